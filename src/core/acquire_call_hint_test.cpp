// SPDX-License-Identifier: Apache-2.0
// A waiter is told to look, and told that it can be told: hints, and nothing but hints (H20, B31).
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::course;
using course_testing::round_trip;
using course_testing::t0;
using course_testing::token;
using course_testing::waits;
using course_testing::waits_for_ever;

TEST(acquire_call_line, a_hint_is_followed_at_once_and_is_no_grant_H20_B31_B32) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.call.on_hint(c.now, 0ms);
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.looks(), me);
  c.hears(was_queued{42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s) << "a forged hint costs one look";
}

// Nobody knows which is older, the hint or the answer (seed 50359011).
TEST(acquire_call_line, a_hint_while_it_enters_is_kept_for_its_answer_P6) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  const auto me = c.stands();
  c.call.on_hint(c.now, 0ms);
  c.hears(was_queued{42, 5s});
  EXPECT_EQ(c.looks(), me);
}

// The danger: the line granted us between the look that is under way and its answer.
TEST(acquire_call_line, a_hint_while_a_look_is_under_way_is_kept_for_its_answer_P6) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.call.on_hint(c.now, 0ms);
  c.hears(was_queued{42, 5s});
  EXPECT_EQ(c.looks(), me);
  c.hears(was_queued{42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s) << "and for one only";
}

// A server that took no writes, and granted it to us since.
TEST(acquire_call_line, a_hint_while_a_look_is_under_way_is_kept_for_its_refusal_P6) {
  const was_refused no_writes{errc::server_refused, false, true};
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.call.on_hint(c.now, 0ms);
  c.hears(no_writes);
  EXPECT_EQ(c.looks(), me);
  c.hears(no_writes);
  EXPECT_GE(c.sleeps(), c.now + 5s) << "and for one only";
}

TEST(acquire_call_line, hints_while_nothing_is_under_way_are_followed_once_H20) {
  course c{waits_for_ever()};
  c.queues();
  c.call.on_hint(c.now, 0ms);
  c.call.on_hint(c.now, 0ms);
  c.looks();
  c.hears(was_queued{42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s);
}

// What a look grants to somebody else is known here before its own answer, which does not know of it (seed 50495783).
TEST(acquire_call_line, stand_by_while_a_look_is_under_way_is_kept_for_its_answer_P3_P6) {
  course c{waits_for_ever()};
  c.queues(0ms);
  c.looks();
  const auto told_at = c.now;
  c.call.on_hint(c.now, 1200ms);
  c.hears(was_queued{42, 5s});
  EXPECT_EQ(c.sleeps(), told_at + 1200ms - round_trip);
  c.sleeps_and_wakes();
  c.looks();
  c.hears(was_queued{42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s) << "and for one only";
}

TEST(acquire_call_line, stand_by_whose_time_comes_while_a_look_is_under_way_looks_behind_it_P3_P6) {
  course c{waits_for_ever()};
  c.queues(0ms);
  c.looks();
  c.call.on_hint(c.now, 1200ms);
  c.hears(was_queued{42, 5s}, 1300ms);
  c.looks();
}

// The answer to the earlier one says when those look whom nobody tells; whoever was told has something else to do.
TEST(acquire_call_line, stand_by_outlives_whatever_is_asked_before_P3) {
  const auto stands_by = [](const auto& what_comes_before) {
    course c{waits_for_ever()};
    c.queues();
    const auto then = c.now + 1200ms - round_trip;
    c.call.on_hint(c.now, 1200ms);
    c.now += 500ms;
    what_comes_before(c);
    EXPECT_EQ(c.sleeps(), then);
    c.now = then;
    c.looks();
  };
  stands_by([](course& c) {
    c.call.on_hint(c.now, 0ms);
    c.looks();
    c.hears(was_queued{42, 5s});
  });
  stands_by([](course& c) {
    c.call.on_connected(c.now);
    c.looks();
    c.is_cut();
    c.looks();
    c.hears(was_queued{42, 5s});
  });
  stands_by([](course& c) {
    c.call.on_hint(c.now, 100ms);  // And a later one takes the place of an earlier.
    c.call.on_hint(c.now, 700ms);
    c.sleeps_and_wakes();
    c.looks();
    c.hears(was_queued{42, 5s});
  });
}

// It is the former one that was to look.
TEST(acquire_call_line, stand_by_ends_with_the_owner_id_P3) {
  course c{waits_for_ever()};
  c.queues();
  c.call.on_hint(c.now, 1200ms);
  c.call.on_connected(c.now);
  c.looks();
  c.hears(was_not_in_line{});
  c.stands();
  c.hears(was_queued{42, 5s});
  EXPECT_GE(c.sleeps(), c.now + 5s);
}

// Its own look, not one that is made for all of a process: only that one is waited for.
TEST(acquire_call_line, who_stands_by_is_not_looked_for_before_P3) {
  course c{waits_for_ever()};
  c.queues(0ms);
  c.looks();
  c.call.on_hint(c.now, 1200ms);
  c.hears(was_queued{42, 5s});
  EXPECT_FALSE(c.call.can_be_looked_for(c.sleeps()));

  course taken{waits_for_ever()};
  taken.queues();
  taken.now += 4500ms;
  EXPECT_TRUE(taken.call.can_be_looked_for(taken.now));
  taken.call.on_taken_along(taken.now);
  const auto then = taken.now + 1200ms - round_trip;
  taken.call.on_hint(taken.now, 1200ms);
  taken.now += round_trip;
  taken.call.on_looked_for(taken.now);
  EXPECT_EQ(taken.sleeps(), then);
  EXPECT_FALSE(taken.call.can_be_looked_for(then));
}

TEST(acquire_call_line, stand_by_looks_then_and_postpones_nothing_P3) {
  course early{waits_for_ever()};
  early.queues();
  early.call.on_hint(early.now, 1200ms);
  EXPECT_EQ(early.sleeps(), early.now + 1200ms - round_trip);

  course late{waits_for_ever()};
  late.queues(800ms);
  late.call.on_hint(late.now, 1200ms);
  EXPECT_EQ(late.sleeps(), late.now + 800ms);
}

// Whoever is told to stand by is passed over when its look comes too late: the way there and back counts (P3).
TEST(acquire_call_line, stand_by_from_far_away_is_at_the_server_in_time_P3) {
  course far{waits_for_ever()};
  far.asks();
  far.hears(was_busy{});
  far.stands();
  far.hears(was_queued{42, 5s}, 150ms);
  far.call.on_hint(far.now, 1200ms);
  EXPECT_EQ(far.sleeps(), far.now + 1050ms);

  far.call.on_hint(far.now, 100ms);
  far.looks();
}

// One slow answer is no distance, and before the window is over there is nothing to be had.
TEST(acquire_call_line, stand_by_never_looks_before_the_window_is_over_P3) {
  course slow{waits_for_ever()};
  slow.asks();
  slow.hears(was_busy{});
  slow.stands();
  slow.hears(was_queued{42, 5s}, 400ms);
  slow.call.on_hint(slow.now, 1200ms);
  EXPECT_EQ(slow.sleeps(), slow.now + 1s);
}

TEST(acquire_call_line, a_hint_into_the_past_means_now) {
  course c{waits_for_ever()};
  c.queues();
  c.call.on_hint(c.now, -1h);
  c.looks();
}

TEST(acquire_call_line, a_hint_outside_the_line_is_nothing) {
  course c{waits_for_ever()};
  c.call.on_hint(c.now, 0ms);
  c.asks();
  c.call.on_hint(c.now, 0ms);
  c.hears(was_granted{token});
  c.call.on_hint(c.now, 0ms);
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

// The danger: the line granted us after the look that is under way, when nobody listened. Its answer says 5 s.
TEST(acquire_call_line, hearing_again_while_a_look_is_under_way_looks_once_more_H18_P6) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.call.on_hearing_changed(c.now);
  c.hears(was_queued{42, 5s});
  EXPECT_EQ(c.looks(), me);
}

TEST(acquire_call_line, a_change_of_hearing_outside_the_line_asks_nothing) {
  course c{waits_for_ever()};
  c.asks();
  c.call.on_hearing_changed(c.now);
  c.call.on_connected(c.now);
  c.sleeps();
}

// A hint in the last moment would turn "timed out" into "unknown", and helps nobody.
TEST(acquire_call_line, a_hint_in_the_last_round_trips_is_not_followed) {
  course c{waits(1s)};
  c.queues();
  c.now = t0 + 1s - 4ms;
  for (const duration look_in : {duration{0ms}, duration{-1h}}) {
    c.call.on_hint(c.now, look_in);
    EXPECT_EQ(c.sleeps(), t0 + 1s);
  }
}

// Its turn would go to whoever stands behind it.
TEST(acquire_call_line, a_hint_is_followed_while_there_are_two_round_trips_seed_12316192) {
  const auto is_followed = [](duration left) {
    course c{waits(1s)};
    c.asks();
    c.hears(was_busy{});
    c.stands();
    c.hears(was_queued{42, 5s}, 50ms);
    c.now = t0 + 1s - left;
    c.call.on_hint(c.now, 0ms);
    return std::holds_alternative<look>(c.call.on_wake(c.now, true, hearing::yes));
  };
  EXPECT_TRUE(is_followed(150ms));
  EXPECT_TRUE(is_followed(100ms));
  EXPECT_FALSE(is_followed(99ms));
}

TEST(acquire_call_line, news_of_a_connection_in_the_last_round_trips_is_not_followed) {
  course heard{waits(1s)};
  heard.queues();
  heard.now = t0 + 1s - 4ms;
  heard.call.on_hearing_changed(heard.now);
  EXPECT_EQ(heard.sleeps(), t0 + 1s);

  course connected{waits(1s)};
  connected.queues();
  connected.now = t0 + 1s - 4ms;
  connected.call.on_connected(connected.now);
  EXPECT_EQ(connected.sleeps(), t0 + 1s);
}

}  // namespace

}  // namespace holdfast::core
