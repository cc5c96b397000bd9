// SPDX-License-Identifier: Apache-2.0
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::course;
using course_testing::drift;
using course_testing::once;
using course_testing::owners;
using course_testing::t0;
using course_testing::timeout;
using course_testing::token;
using course_testing::ttl;
using course_testing::waits;
using course_testing::waits_for_ever;

// ---- granted ----

TEST(acquire_call, granted_is_a_lease_that_counts_from_the_send_instant_B19) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_granted{token}, 400ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
  EXPECT_EQ(c.lease()->token, token);
  EXPECT_EQ(c.lease()->deadline, deadline_of(t0, ttl, drift));
  EXPECT_FALSE(c.lease()->was_repeated);
  EXPECT_TRUE(c.left_behind().empty());
  EXPECT_TRUE(std::holds_alternative<finish>(c.call.on_wake(c.now, true)));
}

// engine/named_primary.hpp: whatever the ttl is.
TEST(acquire_call, granted_counts_no_longer_than_its_server_does_P22) {
  const auto whole = deadline_of(t0, ttl, drift);
  course c{once()};
  c.asks();
  c.hears(was_granted{token, whole - 1s}, 10ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.lease()->deadline, whole - 1s);
  course found_again{once()};
  found_again.asks();
  found_again.hears(was_mine{token, ttl, whole - 1s}, 10ms);
  ASSERT_TRUE(found_again.lease());
  EXPECT_EQ(found_again.lease()->deadline, whole - 1s);
}

TEST(acquire_call, waits_for_the_answer_until_its_deadline) {
  course c{once()};
  c.asks();
  EXPECT_EQ(c.sleeps(), t0 + timeout);
}

// H16, B61: the answer took 7 s of a 10 s lease. It is given back, whatever the caller's patience. The server has
// granted it and may hold it for a while yet: that is no "not applied" (C5).
TEST(acquire_call, a_grant_with_too_little_left_is_given_back_H16_B61) {
  auto settings = once();
  settings.timeout = 20s;
  course c{settings};
  const auto me = c.asks();
  c.hears(was_granted{token}, deadline_of(t0, ttl, drift) - t0 - 3s + 1ns);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call, a_grant_with_just_enough_left_is_kept_H16) {
  auto settings = once();
  settings.timeout = 20s;
  course c{settings};
  c.asks();
  c.hears(was_granted{token}, deadline_of(t0, ttl, drift) - t0 - 3s);
  EXPECT_TRUE(c.lease());
}

// The same for one who waits: the time is over before there is another answer.
TEST(acquire_call, a_wait_that_ends_behind_a_grant_with_too_little_left_is_unknown_C5) {
  auto settings = waits_for_ever();
  settings.wait = 8s + 1ms;
  course c{settings};
  const auto me = c.asks();
  c.hears(was_granted{token}, 8s);
  c.now = t0 + 8s + 1ms;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call, a_waiter_asks_for_a_fresh_lease_when_too_little_is_left_H16) {
  course c{waits_for_ever()};
  const auto first = c.asks();
  c.hears(was_granted{token}, 8s);
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.left_behind(), owners{first});
  EXPECT_NE(c.asks(), first);
}

// A ttl of 10 s and a way of 8 s: whoever goes on asking meets its own last grant for ever.
TEST(acquire_call, a_ttl_that_is_shorter_than_the_way_ends_it_and_nothing_is_left) {
  course c{waits_for_ever()};
  for (int i = 0; i < 2; ++i) {
    c.asks();
    c.hears(was_granted{token}, 8s);
    ASSERT_FALSE(c.call.is_over());
  }
  const auto last = c.asks();
  c.hears(was_granted{token}, 8s);
  ASSERT_FALSE(c.call.is_over()) << "first it is given back";
  const auto action = c.call.on_wake(c.now, true);
  ASSERT_TRUE(std::holds_alternative<give_back>(action));
  EXPECT_EQ(std::get<give_back>(action).owner, last);
  c.sent_at = c.now;
  c.hears(was_left{}, 8s);
  EXPECT_EQ(c.failure(), errc::invalid_option);
  EXPECT_TRUE(c.call.was_too_far()) << "and not what a script says of an argument";
}

// It was stopped three times, while the server is quick.
TEST(acquire_call, grants_that_were_taken_in_late_say_nothing_of_the_way) {
  course c{waits_for_ever()};
  for (int i = 0; i < 5; ++i) {
    c.asks();
    c.hears(was_granted{token}, 8s);
    ASSERT_FALSE(c.call.is_over());
    c.asks();
    c.hears(was_refused{errc::server_loading, true}, 1ms);
    c.now += 1s;
  }
}

// ---- a lost reply ----

// H11: the request was carried out and its reply was lost. The same owner id asks again and hears "mine".
TEST(acquire_call, a_cut_is_repeated_at_once_with_the_same_owner_id_H11) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  EXPECT_EQ(c.sleeps(false), t0 + timeout) << "there is no connection yet";
  EXPECT_EQ(c.asks(), me);
  EXPECT_EQ(c.call.attempts(), 2);
}

TEST(acquire_call, mine_counts_what_is_left_from_this_request_H11_B19) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut(100ms);
  c.asks();
  c.hears(was_mine{token, 9'900ms}, 50ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(t0 + 100ms, 9'900ms, drift));
}

// P9: the lost copy may still arrive after this lease was released, and lock again.
TEST(acquire_call, a_lease_after_a_cut_says_that_a_copy_is_out_P9) {
  course c{once()};
  c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_granted{token});
  ASSERT_TRUE(c.lease());
  EXPECT_TRUE(c.lease()->was_repeated);
}

TEST(acquire_call, mine_without_expiry_is_not_trusted_C8) {
  course c{once()};
  c.asks();
  c.hears(was_mine{token, -1ms});
  EXPECT_FALSE(c.lease());
}

// C5: nobody knows, and so it is said.
TEST(acquire_call, no_answer_by_the_deadline_is_unknown_C5) {
  for (const auto& settings : {once(), waits(200ms), waits_for_ever()}) {
    course c{settings};
    const auto me = c.asks();
    c.now = c.sleeps();
    c.call.on_wake(c.now, true);
    EXPECT_EQ(c.failure(), errc::reply_lost);
    EXPECT_EQ(c.left_behind(), owners{me});
  }
}

TEST(acquire_call, no_connection_after_a_cut_is_unknown_C5) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call, a_final_refusal_to_connect_after_a_cut_is_unknown_C5) {
  course c{once()};
  c.asks();
  c.is_cut();
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
}

// The danger: the first copy was granted and its reply lost; the repeat is refused. "Denied, not applied" would be
// untrue: there is a lock, and it is ours.
TEST(acquire_call, a_refusal_after_a_cut_is_unknown_C5) {
  for (const auto code : {errc::no_permission, errc::out_of_memory, errc::wrong_kind, errc::fence_too_far}) {
    course c{once()};
    const auto me = c.asks();
    c.is_cut();
    c.asks();
    c.hears(was_refused{code, false});
    EXPECT_EQ(c.failure(), errc::reply_lost);
    EXPECT_EQ(c.left_behind(), owners{me});
  }
}

TEST(acquire_call, late_for_ever_after_a_cut_is_unknown_C5_P10) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  for (int i = 0; i < 3; ++i) {
    c.asks();
    c.hears(was_late{});
  }
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// ---- busy ----

TEST(acquire_call, busy_ends_a_single_try) {
  course c{once()};
  c.asks();
  c.hears(was_busy{});
  EXPECT_TRUE(c.is_busy());
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call, busy_after_a_cut_leaves_the_copy_to_be_cleaned_up_P9) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_busy{});
  EXPECT_TRUE(c.is_busy());
  EXPECT_EQ(c.left_behind(), owners{me});
}

}  // namespace

}  // namespace holdfast::core
