// SPDX-License-Identifier: Apache-2.0
// A waiter's course: into the line, looking, told to look, out again. The rules of attacks.md (a), from the waiter's
// side.
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
using std::chrono::milliseconds;

// ---- into the line ----

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
  EXPECT_EQ(c.lease()->owner, me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(c.sent_at, ttl, drift));
}

// ---- looking ----

TEST(acquire_call_line, looks_when_the_server_says) {
  course c{waits_for_ever()};
  const auto me = c.queues(1234ms);
  EXPECT_EQ(c.sleeps(), c.now + 1234ms);
  c.now += 1234ms;
  EXPECT_EQ(c.looks(), me);
}

// The heartbeats of many are spread, and never more than one in 5 s (design 8).
TEST(acquire_call_line, heartbeat_has_jitter_and_is_never_early) {
  course c{waits_for_ever()};
  c.queues(5s);
  for (int i = 0; i < 100; ++i) {
    const auto at = c.sleeps();
    EXPECT_GE(at, c.now + 5s);
    EXPECT_LE(at, c.now + 5500ms);
    c.now = at;
    c.looks();
    c.hears(was_queued{c.server_now(), 42, 5s});
  }
}

// H61: the claim counts from its own send instant.
TEST(acquire_call_line, claim_counts_from_its_own_send_instant_H61) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.now = c.sleeps();
  c.looks();
  c.hears(was_mine{token, 10s}, 30ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.lease()->owner, me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(c.sent_at, ttl, drift));
  EXPECT_FALSE(c.lease()->was_repeated);
}

TEST(acquire_call_line, a_look_that_was_cut_is_repeated_and_mine_is_a_lease_H11) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.is_cut();
  c.now += 10ms;
  EXPECT_EQ(c.looks(), me);
  c.hears(was_mine{token, 10s});
  ASSERT_TRUE(c.lease());
  EXPECT_TRUE(c.lease()->was_repeated);
}

// P4: the first missed claim keeps the ticket, the second does not.
TEST(acquire_call_line, comes_back_with_its_ticket_once_P4) {
  course c{waits_for_ever()};
  const auto first = c.queues(0ms, 77);
  c.looks();
  c.hears(was_not_in_line{});
  EXPECT_TRUE(c.left_behind().empty()) << "there is nothing of it at the server";
  const auto second = c.stands();
  EXPECT_NE(second, first);
  EXPECT_EQ(c.stood->ticket, 77u);
  c.hears(was_queued{c.server_now(), 77, 0ms});
  c.looks();
  c.hears(was_not_in_line{});
  EXPECT_NE(c.stands(), second);
  EXPECT_EQ(c.stood->ticket, 0u);
}

TEST(acquire_call_line, spent_in_line_enters_again) {
  course c{waits_for_ever()};
  const auto first = c.queues(0ms);
  c.looks();
  c.hears(was_spent{});
  EXPECT_NE(c.stands(), first);
}

TEST(acquire_call_line, late_looks_again_and_again_three_times_P10_P11) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(c.looks(), me);
    c.hears(was_late{});
  }
  EXPECT_EQ(c.failure(), errc::clock_stepped);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call_line, a_refusal_in_line_ends_it_and_it_leaves) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.hears(was_refused{errc::no_permission, false});
  EXPECT_EQ(c.failure(), errc::no_permission);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// ---- told to look ----

TEST(acquire_call_line, a_hint_is_followed_at_once_and_is_no_grant_H20_B31) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.call.on_hint(c.now, c.server_now() + 1ms, 0ms);
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.looks(), me);
  c.hears(was_queued{c.server_now() + 2ms, 42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s) << "a forged hint costs one look";
}

TEST(acquire_call_line, a_hint_that_comes_before_the_answer_is_kept_for_it_P6) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.stands();
  c.call.on_hint(c.now, c.server_now() + 3ms, 0ms);
  c.hears(was_queued{c.server_now() + 2ms, 42, 5s});
  c.looks();
}

TEST(acquire_call_line, a_hint_that_is_older_than_the_answer_is_not_followed_P6) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.stands();
  c.call.on_hint(c.now, c.server_now() + 1ms, 0ms);
  c.hears(was_queued{c.server_now() + 2ms, 42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s);
}

// However far ahead a forger dates it, it is followed once.
TEST(acquire_call_line, a_hint_from_the_future_is_followed_once_H20) {
  course c{waits_for_ever()};
  c.queues();
  c.call.on_hint(c.now, server_time{100'000h}, 0ms);
  c.looks();
  c.hears(was_queued{c.server_now(), 42, 5s});
  c.looks();
  c.hears(was_queued{c.server_now(), 42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s);
}

TEST(acquire_call_line, stand_by_looks_then_and_postpones_nothing_P3) {
  course early{waits_for_ever()};
  early.queues();
  early.call.on_hint(early.now, early.server_now(), 1200ms);
  EXPECT_EQ(early.sleeps(), early.now + 1200ms);

  course late{waits_for_ever()};
  late.queues(800ms);
  late.call.on_hint(late.now, late.server_now(), 1200ms);
  EXPECT_EQ(late.sleeps(), late.now + 800ms);
}

TEST(acquire_call_line, a_hint_outside_the_line_is_nothing) {
  course c{waits_for_ever()};
  c.call.on_hint(c.now, c.server_now(), 0ms);
  c.asks();
  c.call.on_hint(c.now, c.server_now(), 0ms);
  c.hears(was_granted{token});
  c.call.on_hint(c.now, c.server_now(), 0ms);
  EXPECT_TRUE(c.lease());
}

// H18, H19: what was said while nobody listened is lost; so is what a new server never knew.
TEST(acquire_call_line, looks_when_it_hears_again_or_is_connected_again_H18_H19) {
  course heard{waits_for_ever()};
  heard.queues();
  heard.call.on_hearing_changed(heard.now);
  heard.looks();

  course connected{waits_for_ever()};
  connected.queues();
  connected.call.on_connected(connected.now);
  connected.looks();
}

// ---- out of the line ----

TEST(acquire_call_line, the_end_of_the_wait_is_timed_out_and_it_leaves_B27) {
  course c{waits(2s)};
  const auto me = c.queues();
  while (!c.call.is_over()) {
    const auto action = c.call.on_wake(c.now, true, hearing::yes);
    if (std::holds_alternative<look>(action)) {
      c.sent_at = c.now;
      c.hears(was_queued{c.server_now(), 42, 5s});
    } else if (const auto* s = std::get_if<sleep_until>(&action)) {
      c.now = s->at;
    }
  }
  EXPECT_EQ(c.now, t0 + 2s);
  EXPECT_EQ(c.failure(), errc::timed_out);
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner, me);
  EXPECT_FALSE(left[0].may_have_copies) << "one leave settles it";
}

TEST(acquire_call_line, an_unanswered_look_at_the_end_is_unknown_C5) {
  course c{waits(2s)};
  const auto me = c.queues(100ms);
  c.now = c.sleeps();
  c.looks();
  c.now = t0 + 2s;
  c.call.on_wake(c.now, true, hearing::yes);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner, me);
  EXPECT_TRUE(left[0].may_have_copies);
}

TEST(acquire_call_line, does_not_look_once_more_before_it_gives_up) {
  course c{waits(1s)};
  c.queues();
  EXPECT_EQ(c.sleeps(), t0 + 1s);
}

// A hint in the last moment would turn "timed out" into "unknown", and helps nobody.
TEST(acquire_call_line, a_hint_in_the_last_round_trips_is_not_followed) {
  course c{waits(1s)};
  c.queues();
  c.now = t0 + 1s - 4ms;
  c.call.on_hint(c.now, c.server_now(), 0ms);
  EXPECT_EQ(c.sleeps(), t0 + 1s);
}

TEST(acquire_call_line, an_answer_in_line_makes_the_fate_of_earlier_copies_known) {
  course c{waits(2s)};
  c.queues(0ms);
  c.looks();
  c.is_cut();
  c.looks();
  c.hears(was_queued{c.server_now(), 42, 5s});
  c.now = t0 + 2s;
  c.call.on_wake(c.now, true, hearing::yes);
  EXPECT_EQ(c.failure(), errc::timed_out);
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0].may_have_copies) << "but one may still arrive";
}

TEST(acquire_call_line, cancelled_in_line_leaves_H50) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// A restart takes longer than one answer may: who stands in line is as patient as the line.
TEST(acquire_call_line, without_a_connection_it_waits_as_long_as_its_place_is_kept) {
  course c{waits_for_ever()};
  c.queues(0ms);
  c.now = c.sleeps(false);
  EXPECT_GE(c.now, t0 + 15s);
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::cannot_connect);
  EXPECT_EQ(c.left_behind().size(), 1u);
}

TEST(acquire_call_line, an_unanswered_look_of_an_unbounded_wait_is_given_the_same_patience) {
  course c{waits_for_ever()};
  c.queues(0ms);
  c.looks();
  c.now += timeout;
  c.sleeps();
  EXPECT_FALSE(c.call.is_over());
}

}  // namespace

}  // namespace holdfast::core
