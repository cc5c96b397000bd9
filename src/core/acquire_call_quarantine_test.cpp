// SPDX-License-Identifier: Apache-2.0
// While the server may have forgotten locks nobody is granted anything: places are kept, a try ends, and what was
// granted all the same is given back (P17 to P21).
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::course;
using course_testing::once;
using course_testing::owners;
using course_testing::token;
using course_testing::waits;
using course_testing::waits_for_ever;

TEST(acquire_call_quarantine, goes_to_the_line_without_asking_for_a_grant) {
  course c{waits_for_ever()};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  EXPECT_FALSE(c.stood->only_try);
  c.hears(was_queued{42, 500ms});
  EXPECT_TRUE(c.call.is_in_line());
  EXPECT_GE(c.sleeps(), c.now + 5s) << "nothing can come of a look before a heartbeat is due";
}

TEST(acquire_call_quarantine, looks_at_its_end) {
  course c{waits_for_ever()};
  const auto ends = c.now + 7s;
  c.call.on_quarantine(ends);
  const auto me = c.stands();
  c.hears(was_queued{42, 500ms});
  c.sleeps_and_wakes();
  EXPECT_EQ(c.looks(), me);
  c.hears(was_queued{42, 500ms});
  c.sleeps_and_wakes();
  EXPECT_EQ(c.now, ends);
  c.looks();
  c.hears(was_granted{token});
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
}

TEST(acquire_call_quarantine, that_was_ended_early_is_noticed_with_the_next_answer) {
  course c{waits_for_ever()};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  c.call.on_quarantine({});
  c.hears(was_queued{42, 5s});
  c.looks();
}

TEST(acquire_call_quarantine, a_try_is_told_and_leaves_nothing) {
  course c{once()};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  EXPECT_TRUE(c.stood->only_try);
  c.hears(was_lined{});
  EXPECT_EQ(c.failure(), errc::quarantined);
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call_quarantine, a_try_is_busy_when_somebody_holds_it_still) {
  course c{once()};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  c.hears(was_busy{});
  EXPECT_TRUE(c.is_busy());
}

TEST(acquire_call_quarantine, a_try_asks_again_when_it_is_over_by_now) {
  course c{once()};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  c.call.on_quarantine({});
  c.hears(was_lined{});
  c.stands();
  c.hears(was_granted{token});
  EXPECT_TRUE(c.lease());
}

// P20: the question about the epoch stood before the request, and its answer was bad.
TEST(acquire_call_quarantine, a_grant_that_does_not_count_is_given_back_by_a_try_before_it_ends_P20) {
  course c{once()};
  const auto me = c.asks();
  c.call.on_quarantine(c.now + 60s);
  c.hears(was_uncounted{});
  EXPECT_FALSE(c.call.is_over()) << "the server is changed until it is back (C5)";
  EXPECT_EQ(c.left_behind(), owners{me});
  EXPECT_NE(c.stands(), me);
  c.hears(was_lined{});
  EXPECT_EQ(c.failure(), errc::quarantined);
}

TEST(acquire_call_quarantine, a_claim_that_does_not_count_is_given_back_and_the_ticket_kept_P20) {
  course c{waits_for_ever()};
  const auto me = c.queues(100ms, 42);
  c.sleeps_and_wakes();
  c.looks();
  c.call.on_quarantine(c.now + 60s);
  c.hears(was_uncounted{});
  EXPECT_EQ(c.left_behind(), owners{me});
  for (int again = 0; again < 3; ++again) {
    c.stands();
    EXPECT_EQ(c.stood->ticket, 42u) << "however often";
    c.hears(was_uncounted{});
  }
}

TEST(acquire_call_quarantine, without_a_known_end_a_grant_that_does_not_count_is_asked_for_anew_after_a_pause) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_uncounted{});
  EXPECT_EQ(c.sleeps(), c.now + 25ms);
}

TEST(acquire_call_quarantine, a_heartbeat_that_was_granted_looks_again_as_the_same) {
  course c{waits_for_ever()};
  const auto me = c.queues(5s);
  c.sleeps_and_wakes();
  c.looks();
  c.hears(was_unconfirmed{});
  EXPECT_EQ(c.looks(), me);
  c.hears(was_mine{token, 10s});
  ASSERT_TRUE(c.lease());
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call_quarantine, a_wait_that_ends_in_it_says_so) {
  course c{waits(3s)};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  c.hears(was_queued{42, 500ms});
  while (!c.call.is_over()) {
    c.now = std::max(c.now + 1ms, c.sleeps());
    c.call.on_wake(c.now, true, hearing::yes);
  }
  EXPECT_EQ(c.failure(), errc::quarantined);
}

// Somebody else found it over a moment before.
TEST(acquire_call_quarantine, who_is_not_in_line_lets_go_what_it_may_have_been_granted_and_keeps_its_ticket) {
  course c{waits_for_ever()};
  c.call.on_quarantine(c.now + 60s);
  for (int again = 0; again < 3; ++again) {
    const auto me = c.stands();
    c.hears(was_queued{42, 500ms});
    c.sleeps_and_wakes();
    c.looks();
    c.hears(was_not_in_line{});
    EXPECT_EQ(c.left_behind(), owners{me});
  }
  c.stands();
  EXPECT_EQ(c.stood->ticket, 42u);
}

// It leaves over a connection that may have ended by then.
TEST(acquire_call_quarantine, a_grant_that_must_not_be_claimed_may_be_there_until_the_next_answer_C5_seed_505) {
  course c{once()};
  c.asks();
  c.is_cut();
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  c.hears(was_not_in_line{});
  c.call.on_no_connection(c.now, errc::cannot_connect, true, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
}

TEST(acquire_call_quarantine, that_is_over_by_the_answer_is_no_reason_to_leave_the_line) {
  course c{waits_for_ever()};
  c.call.on_quarantine(c.now + 60s);
  const auto me = c.stands();
  c.hears(was_queued{42, 500ms});
  c.sleeps_and_wakes();
  c.looks();
  c.call.on_quarantine({});
  c.hears(was_not_in_line{});
  EXPECT_EQ(c.looks(), me);
  c.hears(was_mine{token, 10s});
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call_quarantine, hints_in_it_are_nobodys_turn) {
  course c{waits_for_ever()};
  c.call.on_quarantine(c.now + 60s);
  c.stands();
  c.call.on_hint(c.now, 0ms);
  c.hears(was_queued{42, 500ms});
  EXPECT_GE(c.sleeps(), c.now + 5s);
}

}  // namespace

}  // namespace holdfast::core
