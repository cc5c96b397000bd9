// SPDX-License-Identifier: Apache-2.0
// How a call ends when the answer is not yes or no: late, spent, refused, no connection, out of time, cancelled.
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::behind;
using course_testing::course;
using course_testing::drift;
using course_testing::once;
using course_testing::owners;
using course_testing::stranger;
using course_testing::t0;
using course_testing::timeout;
using course_testing::token;
using course_testing::ttl;
using course_testing::waits;
using course_testing::waits_for_ever;
using course_testing::with_alternative;

// ---- late, spent, refused ----

TEST(acquire_call, late_is_asked_again_at_once_and_is_not_no_P10) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_late{});
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.asks(), me);
  c.hears(was_mine{token, 9s});
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call, late_three_times_in_a_row_is_a_clock_step_P11) {
  course c{once()};
  for (int i = 0; i < 2; ++i) {
    c.asks();
    c.hears(was_late{});
  }
  EXPECT_FALSE(c.call.is_over());
  c.asks();
  c.hears(was_late{});
  EXPECT_EQ(c.failure(), errc::clock_stepped);
  EXPECT_TRUE(c.left_behind().empty()) << "no copy of it can have had an effect";
}

TEST(acquire_call, lates_are_counted_in_a_row_only_P11) {
  course c{waits(10s)};
  c.queues(0ms);
  for (int i = 0; i < 6; ++i) {
    c.looks();
    c.hears(was_late{});
    c.looks();
    c.hears(was_queued{42, 0ms});
  }
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call, spent_is_asked_again_with_a_fresh_id_P9) {
  course c{once()};
  const auto first = c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_spent{});
  EXPECT_NE(c.asks(), first);
}

// The lock remembers one spent id. A copy that is still under way when another one leaves could lock.
TEST(acquire_call, spent_lets_the_old_id_leave_when_a_copy_is_out_P9) {
  course c{once()};
  const auto first = c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_spent{});
  EXPECT_EQ(c.left_behind(), owners{first});
}

TEST(acquire_call, spent_without_a_copy_leaves_nothing_P9) {
  course c{once()};
  c.asks();
  c.hears(was_spent{});
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call, a_refusal_that_stays_ends_it) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_refused{errc::out_of_memory, false});
  EXPECT_EQ(c.failure(), errc::out_of_memory);
  EXPECT_TRUE(c.left_behind().empty());
}

// What the ACL denies may stand behind the grant, in the middle of a script.
TEST(acquire_call, a_denied_script_is_cleaned_up) {
  course c{waits_for_ever()};
  const auto me = c.asks();
  c.hears(was_refused{errc::no_permission, false});
  EXPECT_EQ(c.failure(), errc::no_permission);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call, a_refusal_that_passes_is_asked_again) {
  course c{once()};
  c.asks();
  c.hears(was_refused{errc::server_loading, true});
  EXPECT_EQ(c.sleeps(), c.now + 25ms);
  c.now += 25ms;
  c.asks();
  c.hears(was_granted{token});
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call, a_refusal_that_does_not_pass_in_time_is_reported_as_itself) {
  course c{once()};
  while (!c.call.is_over()) {
    const auto action = c.call.on_wake(c.now, true);
    if (std::holds_alternative<ask>(action)) {
      c.sent_at = c.now;
      c.hears(was_refused{errc::server_loading, true});
    } else if (const auto* s = std::get_if<sleep_until>(&action)) {
      c.now = s->at;
    }
  }
  EXPECT_EQ(c.failure(), errc::server_loading);
}

// An answer that we cannot read says nothing about what the server did.
TEST(acquire_call, an_unexpected_reply_is_cleaned_up_C5) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_refused{errc::unexpected_reply, false});
  EXPECT_EQ(c.failure(), errc::unexpected_reply);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// What is sent behind it by the same connection ends what it did; one that was cut off may come at any time.
TEST(acquire_call, says_whether_a_copy_was_cut_off_P10) {
  for (const bool is_cut : {false, true}) {
    course c{once()};
    c.asks();
    if (is_cut) c.is_cut();
    c.call.on_cancel(c.now);
    EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
    const auto left = c.call.take_clean_ups();
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].went_by, is_cut ? route::was_cut : route::stands);
  }
}

// Its clock was set back between the grant and the repeated request.
TEST(acquire_call, no_more_than_the_ttl_is_believed_to_be_left_H5_seed_12294127) {
  course c{waits(1min)};
  c.asks();
  c.hears(was_mine{token, 1h});
  ASSERT_TRUE(c.call.is_over());
  EXPECT_EQ(std::get<got_lease>(c.call.end()).deadline, deadline_of(c.sent_at, ttl, drift));
}

// ---- no connection ----

TEST(acquire_call, three_refusals_end_a_call_that_never_had_contact) {
  course c{stranger(waits_for_ever())};
  for (int i = 0; i < 2; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_EQ(c.failure(), errc::cannot_connect);
}

TEST(acquire_call, refusals_may_be_a_restart_when_there_was_contact) {
  course c{waits(10s)};
  for (int i = 0; i < 20; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call, an_answer_is_contact) {
  course c{stranger(waits(10s))};
  c.asks();
  c.hears(was_busy{});
  for (int i = 0; i < 20; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call, a_final_refusal_to_connect_ends_it_at_once) {
  course c{waits_for_ever()};
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_EQ(c.failure(), errc::wrong_password);
}

TEST(acquire_call, the_last_trouble_is_named_at_the_deadline) {
  course c{once()};
  EXPECT_EQ(c.sleeps(false), t0 + timeout);
  c.call.on_no_connection(c.now, errc::cannot_resolve, false, false);
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::cannot_resolve);
}

TEST(acquire_call, an_unbounded_wait_does_not_outlive_a_silent_server) {
  course c{waits_for_ever()};
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::server_silent);
}

// A client with a time-out shorter than the pause between two looks: sleeping is not the server's silence.
TEST(acquire_call, the_pause_between_two_looks_is_no_silence) {
  auto impatient = waits_for_ever();
  impatient.timeout = 20ms;
  course c{impatient};
  c.queues();
  for (int i = 0; i < 5; ++i) {
    c.now = c.sleeps();
    EXPECT_FALSE(c.call.is_over());
    c.looks();
    c.hears(was_queued{42, 5s});
  }
}

TEST(acquire_call, a_bounded_wait_lasts_as_long_as_it_was_told_to) {
  course c{waits(3s)};
  while (!c.call.is_over() && c.now < t0 + 1h) {
    const auto action = c.call.on_wake(c.now, false);
    if (const auto* s = std::get_if<sleep_until>(&action)) c.now = s->at;
  }
  EXPECT_EQ(c.now, t0 + 3s);
}

TEST(acquire_call, with_an_alternative_no_wait_outlives_a_silent_server_P25) {
  course c{with_alternative(waits(1min))};
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::server_silent);
}

TEST(acquire_call, with_an_alternative_three_refusals_end_it_although_there_was_contact_P25) {
  course c{with_alternative(waits(1min))};
  for (int i = 0; i < 2; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_EQ(c.failure(), errc::cannot_connect);
}

// Or it would stand where nobody is served, while others have the lock elsewhere.
TEST(acquire_call, with_an_alternative_it_looks_every_second_P25) {
  course c{with_alternative(waits_for_ever())};
  c.queues(5s);
  const auto looked_at = c.sent_at;
  for (int i = 0; i < 3; ++i) {
    const auto at = c.sleeps();
    EXPECT_GE(at, c.sent_at + 1s);
    EXPECT_LE(at, c.sent_at + 1100ms);
    c.now = at;
    c.looks();
    c.hears(was_queued{42, 5s});
  }
  EXPECT_GT(c.sent_at, looked_at);
}

TEST(acquire_call, with_an_alternative_who_is_looked_for_is_so_every_second_P25) {
  course c{with_alternative(waits_for_ever())};
  c.queues(5s);
  EXPECT_FALSE(c.call.can_be_looked_for(c.now)) << "its own look was just now";
  c.now += 600ms;
  EXPECT_TRUE(c.call.can_be_looked_for(c.now));
  c.call.on_taken_along(c.now);
  c.call.on_looked_for(c.now);
  EXPECT_GE(c.sleeps(), c.now + 1s);
  EXPECT_LE(c.sleeps(), c.now + 1100ms);
}

TEST(acquire_call, with_an_alternative_an_unanswered_request_is_unknown_and_cleaned_up_C5) {
  course c{with_alternative(waits(1min))};
  const auto me = c.asks();
  c.call.on_cut(c.now);
  for (int i = 0; i < 3; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// ---- deadlines ----

TEST(acquire_call, a_request_may_take_effect_no_later_than_the_deadline_C5_H12) {
  course single{once()};
  single.now += 200ms;
  single.asks();
  EXPECT_EQ(single.may_take, 300ms);

  course patient{waits(10s)};
  patient.asks();
  EXPECT_EQ(patient.may_take, timeout);
}

TEST(acquire_call, nothing_is_asked_at_the_deadline) {
  course c{once()};
  c.now = t0 + timeout;
  EXPECT_TRUE(std::holds_alternative<finish>(c.call.on_wake(c.now, true)));
  EXPECT_EQ(c.call.attempts(), 0);
}

// ---- cancel (H50, B46) ----

// It would be answered behind the deadline, and the wait would end as unknown, although who asked for it knows.
TEST(acquire_call, with_too_little_time_left_behind_others_it_ends_with_what_those_have_heard_C5) {
  for (const errc heard : {errc::timed_out, errc::quarantined}) {
    course c{behind(waits(39ms), heard, 10ms)};
    EXPECT_TRUE(c.call.is_past_asking());
    EXPECT_EQ(c.sleeps(), t0 + 39ms) << "nothing is asked";
    c.sleeps_and_wakes();
    c.call.on_wake(c.now, true);
    EXPECT_EQ(c.failure(), heard);
    EXPECT_EQ(c.left_behind(), owners{});
  }
}

TEST(acquire_call, with_time_for_an_answer_it_asks_behind_others_too) {
  EXPECT_TRUE((course{behind(waits(4ms), errc::timed_out, 100us)}.call.is_past_asking())) << "near by";
  // As the second name of an acquire_all with a short wait: nobody else asks.
  EXPECT_FALSE((course{behind(waits(6ms), errc::timed_out, 100us)}.call.is_past_asking()));
  auto in_a_crowd = behind(waits(19ms), errc::timed_out, 100us);
  in_a_crowd.too_little = 20ms;
  EXPECT_TRUE(course{in_a_crowd}.call.is_past_asking());
  EXPECT_TRUE((course{behind(waits(249ms), errc::timed_out, 200ms)}.call.is_past_asking())) << "far away";
  EXPECT_FALSE((course{behind(waits(251ms), errc::timed_out, 200ms)}.call.is_past_asking()));
  course c{behind(waits(41ms), errc::timed_out, 10ms)};
  EXPECT_FALSE(c.call.is_past_asking());
  c.asks();
  c.hears(was_granted{token});
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call, of_which_nobody_has_heard_it_asks_with_any_time_left) {
  course c{behind(waits(1ms), errc::server_silent, 10ms)};
  c.asks();
  c.hears(was_granted{token}, 500us);
  EXPECT_TRUE(c.lease());
}

// It has the whole of the timeout for one answer, however long answers take (acquire_all with wait = 0).
TEST(acquire_call, a_try_asks_whatever_others_have_heard) {
  course c{behind(once(), errc::timed_out, timeout)};
  c.asks();
  c.hears(was_granted{token});
  EXPECT_TRUE(c.lease());
}

// Whoever is next is to know how long nothing has been heard: not since its last wake-up, and not since it asked.
TEST(acquire_call, a_bounded_wait_remembers_when_the_silence_began) {
  auto told = waits(3 * timeout);
  course c{told};
  c.asks();
  c.now = t0 + 3 * timeout;
  c.call.on_wake(c.now, true);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.call.silent_since(), t0);
}

TEST(acquire_call, who_asks_behind_a_silence_goes_on_with_it_until_something_is_heard) {
  auto told = waits(3 * timeout);
  told.silent_since = t0 - 3ms;
  course c{told};
  c.now += 1ms;
  c.asks();
  EXPECT_EQ(c.call.silent_since(), t0 - 3ms);
  c.now += 1ms;
  c.hears(was_busy{});
  EXPECT_GE(c.call.silent_since(), t0 + 2ms);
}

TEST(acquire_call, without_a_bound_it_asks_whatever_others_have_heard) {
  course c{behind(waits_for_ever(), errc::timed_out, 10ms)};
  c.asks();
}

// Too few replicas have what it was granted, which it gives back.
void is_granted_in_vain(course& c, const was_unreplicated& why) {
  c.asks();
  c.hears(why);
  EXPECT_TRUE(std::holds_alternative<give_back>(c.call.on_wake(c.now, true)));
  c.sent_at = c.now;
  c.hears(was_left{});
}

TEST(acquire_call, does_not_ask_again_where_no_replica_will_ever_do_B63) {
  course c{waits_for_ever()};
  is_granted_in_vain(c, {errc::no_permission, false});
  EXPECT_EQ(c.failure(), errc::no_permission);
}

TEST(acquire_call, asks_every_second_or_so_for_as_long_as_replicas_are_missing_B63) {
  course c{waits_for_ever()};
  for (int i = 0; i < 100; ++i) {
    is_granted_in_vain(c, {errc::not_replicated, true});
    const time_point from = c.now;
    c.sleeps_and_wakes();
    EXPECT_GE(c.now - from, 12ms);
    EXPECT_LE(c.now - from, 1s);
  }
  EXPECT_GE(c.now - t0, 30s) << "less and less often";
}

TEST(acquire_call, cancel_before_anything_was_asked_leaves_nothing_H50) {
  course c{waits_for_ever()};
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled);
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call, cancel_between_two_requests_leaves_nothing_H50) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled);
  EXPECT_TRUE(c.left_behind().empty());
}

TEST(acquire_call, cancel_while_asked_is_cleaned_up_H50_B46) {
  course c{waits_for_ever()};
  const auto me = c.asks();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call, cancel_after_a_cut_is_cleaned_up_H50_B46) {
  course c{waits_for_ever()};
  const auto me = c.asks();
  c.is_cut();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
  EXPECT_EQ(c.left_behind(), owners{me});
}

TEST(acquire_call, cancel_after_the_end_changes_nothing_H50) {
  course c{once()};
  c.asks();
  c.hears(was_granted{token});
  c.call.on_cancel(c.now);
  EXPECT_TRUE(c.lease());
  EXPECT_TRUE(c.left_behind().empty());
}

// Of a script the ACL may deny what stands behind the grant.
TEST(acquire_call, what_may_be_half_done_is_cleaned_up_whatever_was_given_back_C5) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_granted{token}, ttl - 1s);
  const auto next = c.asks();
  c.call.on_answer(c.now, c.now, was_refused{errc::no_permission, false}, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.left_behind().back(), next);
}

// It was answered behind the leave.
TEST(acquire_call, a_script_that_says_no_behind_a_leave_is_definite_C5) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_granted{token}, ttl - 1s);
  c.asks();
  c.hears(was_refused{errc::other_size, false});
  EXPECT_EQ(c.failure(), errc::other_size);
}

// Its deadline may come of something else than its grant (engine/named_primary.hpp); its longest hold and its
// hand-overs count from that.
TEST(acquire_call, a_lease_says_when_it_was_granted_P14) {
  const auto lease_of = [](const acquire_answer& what) {
    course c{once()};
    c.asks();
    c.hears(what);
    return std::get<got_lease>(c.call.end());
  };
  const auto granted = lease_of(was_granted{token, t0 + ttl / 2});
  EXPECT_EQ(granted.deadline, t0 + ttl / 2);
  EXPECT_EQ(granted.granted_at, t0);
  const auto mine = lease_of(was_mine{token, ttl - 1s, t0 + ttl / 2});
  EXPECT_EQ(mine.deadline, t0 + ttl / 2);
  EXPECT_EQ(mine.granted_at, t0 + usable(ttl - 1s, drift) - usable(ttl, drift));
}

TEST(acquire_call, what_comes_after_the_end_changes_nothing) {
  course c{once()};
  c.asks();
  c.hears(was_busy{});
  c.call.on_answer(c.now, t0, was_granted{token});
  c.call.on_cut(c.now);
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_TRUE(c.is_busy());
  EXPECT_TRUE(c.left_behind().empty());
}

}  // namespace

}  // namespace holdfast::core
