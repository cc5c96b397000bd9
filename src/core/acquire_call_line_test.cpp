// SPDX-License-Identifier: Apache-2.0
// A waiter's course into the line and in it: the rules of attacks.md (a), from the waiter's side. What it is told
// stands in acquire_call_hint_test.cpp, how it ends in acquire_call_line_end_test.cpp.
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::course;
using course_testing::drift;
using course_testing::once;
using course_testing::t0;
using course_testing::timeout;
using course_testing::token;
using course_testing::ttl;
using course_testing::waits;
using course_testing::waits_for_ever;
using std::chrono::milliseconds;

TEST(acquire_call_line, busy_stands_in_line_with_a_fresh_id) {
  course c{waits_for_ever()};
  const auto first = c.asks();
  EXPECT_FALSE(c.call.wants_hints());
  c.hears(was_busy{});
  EXPECT_TRUE(c.call.wants_hints());
  EXPECT_NE(c.stands(), first);
  EXPECT_FALSE(c.stood->only_try);
  EXPECT_EQ(c.stood->ticket, 0u);
  EXPECT_FALSE(c.stood->wait_left);
}

TEST(acquire_call_line, free_with_a_line_stands_in_line_too_P2) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_lined{});
  c.stands();
}

// P2: a try goes the line's way once, and never queues.
TEST(acquire_call_line, a_try_on_a_lock_with_a_line_asks_the_line_once_P2) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_lined{});
  EXPECT_FALSE(c.call.wants_hints());
  EXPECT_EQ(c.stands(hearing::pending), me);
  EXPECT_TRUE(c.stood->only_try);
  c.hears(was_lined{});
  EXPECT_TRUE(c.is_busy());
  EXPECT_TRUE(c.left_behind().empty());
}

// P2: behind more dead than one script sees it asks again, with the same id, until the line has said yes or no.
TEST(acquire_call_line, a_try_that_has_not_seen_all_of_the_line_asks_again_P2) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_unseen{});  // Of a counted kind, which asks the line at once.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(c.stands(), me);
    EXPECT_TRUE(c.stood->only_try);
    c.hears(was_unseen{});
  }
  EXPECT_EQ(c.stands(), me);
  c.hears(was_lined{});
  EXPECT_TRUE(c.is_busy());
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call_line, who_waits_stands_in_a_line_that_it_has_not_seen_P2) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_unseen{});
  c.stands();
  EXPECT_FALSE(c.stood->only_try);
}

// P1, P6: an entry names our channel only after the server said that we hear it; but a server that does not say so
// must not keep us out.
TEST(acquire_call_line, waits_for_the_subscription_but_not_long_P1_P6) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  const auto asked_at = c.now;
  EXPECT_EQ(c.sleeps(true, hearing::pending), asked_at + 200ms);
  c.now = asked_at + 200ms - 1ns;
  c.sleeps(true, hearing::pending);
  c.now = asked_at + 200ms;
  c.stands(hearing::pending);
}

TEST(acquire_call_line, does_not_wait_for_a_subscription_that_is_refused) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.stands(hearing::no);
}

// The danger: a subscription that hangs, and a wait shorter than our patience with it. Whoever only ever asked once did
// not wait at all.
TEST(acquire_call_line, a_short_wait_stands_in_line_though_the_subscription_is_pending) {
  course c{waits(100ms)};
  c.asks();
  c.hears(was_busy{});
  EXPECT_EQ(c.sleeps(true, hearing::pending), t0 + 95ms) << "a few round trips before its end";
  c.now = t0 + 95ms;
  c.stands(hearing::pending);
}

// As no request is sent in the last round trips: the answer would come too late, and "timed out" be "unknown".
TEST(acquire_call_line, does_not_wait_for_the_subscription_into_the_last_round_trips) {
  course c{waits(202ms)};
  c.asks();
  c.hears(was_busy{});
  EXPECT_EQ(c.sleeps(true, hearing::pending), t0 + 197ms);
}

// Nobody else stood for it meanwhile: the one try goes on with its id, and the line's yes or no is its end.
TEST(acquire_call_line, a_try_that_asked_the_line_ends_with_its_answer_P2) {
  course refused{once()};
  refused.asks();
  refused.hears(was_lined{});
  refused.stands();
  refused.hears(was_busy{});
  EXPECT_TRUE(refused.is_busy());
  EXPECT_TRUE(refused.left_behind().empty());

  course granted{once()};
  const auto me = granted.asks();
  granted.hears(was_lined{}, 20ms);
  granted.stands();
  granted.hears(was_granted{token});
  ASSERT_TRUE(granted.lease());
  EXPECT_EQ(granted.call.owner(), me);
  EXPECT_EQ(granted.lease()->deadline, deadline_of(granted.sent_at, ttl, drift));
}

// The danger: the copy that was cut put us in line. With another id we would stand there twice.
TEST(acquire_call_line, entering_that_was_cut_is_repeated_with_the_same_id_H11) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  const auto me = c.stands();
  c.is_cut();
  c.sleeps(false);
  EXPECT_EQ(c.stands(), me);
  EXPECT_TRUE(c.left_behind().empty());
}

// P4: a live waiter far away must be able to claim at all.
TEST(acquire_call_line, claim_window_is_four_round_trips_at_least_a_second_at_most_the_ttl_P4) {
  struct {
    duration round_trip;
    milliseconds window;
  } const cases[] = {{1ms, 1s}, {250ms, 1s}, {251ms, 1004ms}, {700ms, 2800ms}, {4s, ttl}};
  for (const auto& row : cases) {
    auto settings = waits_for_ever();
    settings.timeout = 30s;
    course c{settings};
    c.asks();
    c.hears(was_busy{}, row.round_trip);
    c.stands();
    EXPECT_EQ(c.stood->window, row.window);
  }
}

TEST(acquire_call_line, entry_says_how_long_it_waits_P8) {
  course c{waits(3s)};
  c.asks();
  c.hears(was_busy{}, 100ms);
  c.stands();
  EXPECT_EQ(c.stood->wait_left, 2900ms);
}

TEST(acquire_call_line, granted_on_entering_is_a_lease_from_that_request) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  const auto me = c.stands();
  c.hears(was_granted{token}, 20ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(c.sent_at, ttl, drift));
}

}  // namespace

}  // namespace holdfast::core
