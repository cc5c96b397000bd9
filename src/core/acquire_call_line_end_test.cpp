// SPDX-License-Identifier: Apache-2.0
// How a waiter leaves the line without the lock: out of time, cancelled, refused, cut off. It leaves no ghost (B27,
// P5).
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::course;
using course_testing::owners;
using course_testing::t0;
using course_testing::timeout;
using course_testing::waits;
using course_testing::waits_for_ever;
using course_testing::with_alternative;

// And finds that its connection has ended meanwhile.
TEST(acquire_call_line, who_was_stopped_for_a_minute_without_a_connection_looks_when_there_is_one_H47) {
  course c{waits_for_ever()};
  c.queues();
  c.sleeps();
  c.now += 60s;
  c.sleeps(false);
  ASSERT_FALSE(c.call.is_over());
  c.now += 1s;
  c.looks();
  c.hears(was_queued{42, 0ms});
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call_line, who_finds_nobody_for_as_long_as_its_place_lives_is_over) {
  course c{waits_for_ever()};
  c.queues();
  c.sleeps();
  c.call.on_taken_along(c.now);
  c.now += 60s;  // It stood still, and hears what another one's look said then.
  c.call.on_looked_for(c.now);
  const auto began = c.now;
  while (!c.call.is_over() && c.now < began + 60s) {
    c.now += 1ms;  // It comes a little late each time.
    const auto what = c.call.on_wake(c.now, false);
    if (const auto* sleep = std::get_if<sleep_until>(&what)) c.now = std::max(c.now, sleep->at);
  }
  EXPECT_LE(c.now, began + 27s);
  EXPECT_EQ(c.failure(), errc::server_silent);
}

TEST(acquire_call_line, the_end_of_the_wait_is_timed_out_and_it_leaves_B27) {
  course c{waits(2s)};
  const auto me = c.queues();
  while (!c.call.is_over()) {
    const auto action = c.call.on_wake(c.now, true, hearing::yes);
    if (std::holds_alternative<look>(action)) {
      c.sent_at = c.now;
      c.hears(was_queued{42, 5s});
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

TEST(acquire_call_line, an_answer_in_line_makes_the_fate_of_earlier_copies_known) {
  course c{waits(2s)};
  c.queues(0ms);
  c.looks();
  c.is_cut();
  c.looks();
  c.hears(was_queued{42, 5s});
  c.now = t0 + 2s;
  c.call.on_wake(c.now, true, hearing::yes);
  EXPECT_EQ(c.failure(), errc::timed_out);
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0].may_have_copies) << "but one may still arrive";
}

TEST(acquire_call_line, a_lease_behind_a_copy_that_was_cut_off_in_line_says_so_P9) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.stands();
  c.is_cut();
  c.stands();
  c.hears(was_queued{42, 0ms});
  c.looks();
  c.hears(was_mine{course_testing::token, course_testing::ttl});
  ASSERT_TRUE(c.lease());
  EXPECT_TRUE(c.lease()->was_repeated) << "the first copy may still arrive";
}

// Between a grant that does not count and its giving back nothing is asked: the end is unknown all the same (C5), and
// the owner id is let go.
TEST(acquire_call_line, an_end_behind_a_grant_that_does_not_count_is_unknown_and_cleaned_up_C5) {
  for (const acquire_answer& what : {acquire_answer{was_uncounted{}}, acquire_answer{was_unconfirmed{}},
                                     acquire_answer{was_unreplicated{errc::not_replicated, true}}}) {
    SCOPED_TRACE(what.index());
    course c{waits(2s)};
    const auto me = c.asks();
    c.hears(what);
    c.call.on_wake(c.now, false, hearing::yes);  // The connection ended with that answer.
    c.call.on_cancel(c.now);
    EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
    EXPECT_EQ(c.left_behind(), (course_testing::owners{me}));
  }
}

TEST(acquire_call_line, a_wrong_password_behind_a_grant_that_is_given_back_is_unknown_C5) {
  course c{waits(2s)};
  c.asks();
  c.hears(was_uncounted{});
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
}

TEST(acquire_call_line, cancelled_in_line_leaves_H50) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled);
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner, me);
  EXPECT_FALSE(left[0].may_have_copies) << "one leave settles it";
}

TEST(acquire_call_line, cancelled_while_it_looks_is_unknown_and_leaves_H50_B46_C5) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner, me);
  EXPECT_TRUE(left[0].may_have_copies);
}

TEST(acquire_call_line, cancelled_on_the_way_into_the_line_is_unknown_and_leaves_H50_B46) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  const auto me = c.stands();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// The server was asked nothing, so the place stands there: whoever may not connect any more cannot leave by itself.
TEST(acquire_call_line, a_final_refusal_to_connect_in_line_ends_it_and_it_leaves) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_EQ(c.failure(), errc::wrong_password);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// A restart takes longer than one answer may: who stands in line is as patient as the line.
TEST(acquire_call_line, without_a_connection_it_waits_as_long_as_its_place_is_kept) {
  course c{waits_for_ever()};
  c.queues(0ms);
  const auto last_heard = c.now;
  EXPECT_EQ(c.sleeps(false), last_heard + 15s);
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  c.now = last_heard + 15s - 1ns;
  c.sleeps(false);
  c.now = last_heard + 15s;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::cannot_connect);
  EXPECT_EQ(c.left_behind().size(), 1u);
}

TEST(acquire_call_line, a_caller_more_patient_than_the_line_is_asked_first) {
  auto patient = waits_for_ever();
  patient.timeout = 20s;
  course c{patient};
  c.queues(0ms);
  EXPECT_EQ(c.sleeps(false), c.now + 20s);
}

TEST(acquire_call_line, without_a_connection_a_bounded_wait_lasts_to_its_deadline) {
  course c{waits(1min)};
  c.queues();
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  while (!c.call.is_over() && c.now < t0 + 1h) {
    const auto action = c.call.on_wake(c.now, false);
    if (const auto* s = std::get_if<sleep_until>(&action)) c.now = s->at;
  }
  EXPECT_EQ(c.now, t0 + 1min);
  EXPECT_EQ(c.failure(), errc::cannot_connect);
}

// Seen with a quorum: the line's server was killed, and who came to it just then waited for it to the end of its time.
TEST(acquire_call_line, with_an_alternative_who_stands_there_does_not_wait_for_a_server_that_is_gone_P25) {
  course c{with_alternative(waits(1min))};
  c.queues();
  c.call.on_no_connection(c.now, errc::cannot_connect, false, false);
  const auto began_at = c.now;
  while (!c.call.is_over() && c.now < t0 + 1h) {
    const auto action = c.call.on_wake(c.now, false);
    if (const auto* s = std::get_if<sleep_until>(&action)) c.now = s->at;
  }
  EXPECT_EQ(c.failure(), errc::cannot_connect);
  EXPECT_LE(c.now, began_at + 21s);  // The silence begins when it would have looked.
}

// The danger: the last thing that the server said was "busy". Somebody who waits without end cannot have timed out.
TEST(acquire_call_line, an_unbounded_wait_never_times_out) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.now = c.sleeps(false, hearing::pending);
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::server_silent);

  course in_line{waits_for_ever()};
  in_line.queues(0ms);
  in_line.now = in_line.sleeps(false);
  in_line.call.on_wake(in_line.now, false);
  EXPECT_EQ(in_line.failure(), errc::server_silent);
}

// SIGSTOP, or a suspended machine: nobody asked the server anything meanwhile.
TEST(acquire_call_line, who_was_stopped_for_a_minute_looks_and_does_not_call_the_server_silent) {
  course c{waits_for_ever()};
  c.queues();
  c.now += 60s;
  c.looks();
  c.hears(was_queued{42, 5s});
  EXPECT_FALSE(c.call.is_over());
}

// It takes connections and requests, and answers none (found by fuzz/engine_calls).
TEST(acquire_call_line, a_server_that_is_asked_again_and_again_and_never_answers_is_given_up) {
  course c{waits_for_ever()};
  c.queues();
  const auto began_at = c.now;
  while (!c.call.is_over() && c.now < t0 + 1h) {
    const auto action = c.call.on_wake(c.now, true);
    if (c.call.is_over()) break;
    const auto* s = std::get_if<sleep_until>(&action);
    c.now = s ? std::min(s->at, c.now + 1s) : c.now + 1s;
    c.call.on_cut(c.now);
  }
  EXPECT_EQ(c.failure(), errc::reply_lost) << "one of them may have been granted";
  EXPECT_LE(c.now, began_at + 22s);
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
