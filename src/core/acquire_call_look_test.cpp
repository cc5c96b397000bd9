// SPDX-License-Identifier: Apache-2.0
// A waiter in line looks: when, what the answers make of it, and how it comes back. The rules of attacks.md (a).
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>

#include <set>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::course;
using course_testing::drift;
using course_testing::owners;
using course_testing::round_trip;
using course_testing::token;
using course_testing::ttl;
using course_testing::waits_for_ever;

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
    EXPECT_GE(at, c.sent_at + 5s);
    EXPECT_LE(at, c.sent_at + 5500ms);
    c.now = at;
    c.looks();
    c.hears(was_queued{42, 5s});
  }
}

// Or its looks come more than 6 s apart, and others go before it (P3).
TEST(acquire_call_line, heartbeats_of_who_is_far_away_are_no_further_apart_P3) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{}, 2s);
  c.stands();
  c.hears(was_queued{42, 5s}, 2s);
  EXPECT_LE(c.sleeps(), c.sent_at + 5500ms);
  c.now = c.sleeps();
  c.looks();
  c.hears(was_queued{42, 5s}, 7s);
  c.looks();
}

TEST(acquire_call_line, heartbeats_are_spread) {
  course c{waits_for_ever()};
  c.queues(5s);
  std::set<duration> pauses;
  for (int i = 0; i < 100; ++i) {
    pauses.insert(c.sleeps() - c.sent_at);
    c.now = c.sleeps();
    c.looks();
    c.hears(was_queued{42, 5s});
  }
  EXPECT_GT(pauses.size(), 90u);
  EXPECT_LT(*pauses.begin(), 5100ms);
  EXPECT_GT(*pauses.rbegin(), 5400ms);
}

// H61: the claim counts from its own send instant.
TEST(acquire_call_line, claim_counts_from_its_own_send_instant_H61) {
  course c{waits_for_ever()};
  const auto me = c.queues();
  c.now = c.sleeps();
  c.looks();
  c.hears(was_mine{token, 10s}, 30ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(c.sent_at, ttl, drift));
  EXPECT_FALSE(c.lease()->was_repeated);
}

// H61: the claim that counts is the one that was answered; the server's timer ran from it.
TEST(acquire_call_line, a_look_that_was_cut_is_repeated_and_mine_is_a_lease_from_the_repeat_H11_H61) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.is_cut();
  c.sleeps(false);
  c.now += 300ms;
  EXPECT_EQ(c.looks(), me);
  const auto repeated_at = c.now;
  c.hears(was_mine{token, 9'500ms}, 40ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(repeated_at, 9'500ms, drift));
  EXPECT_TRUE(c.lease()->was_repeated);
}

TEST(acquire_call_line, granted_by_a_look_is_a_lease_from_that_look_H61) {
  course c{waits_for_ever()};
  const auto me = c.queues(700ms);
  c.now = c.sleeps();
  c.looks();
  c.hears(was_granted{token}, 30ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.call.owner(), me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(c.sent_at, ttl, drift));
}

// H16: most of the lease was gone when we read of it.
TEST(acquire_call_line, a_claim_with_too_little_left_is_given_back_and_it_enters_again_H16) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.hears(was_mine{token, 10s}, 8s);
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.left_behind(), owners{me});
  EXPECT_NE(c.stands(), me);
}

// Another's look proves nothing of what this one was granted.
TEST(acquire_call_line, who_waits_for_proof_that_its_grant_is_back_looks_itself_C5) {
  for (const bool is_proof : {false, true}) {
    course c{waits_for_ever()};
    c.queues(0ms);
    c.looks();
    c.hears(was_mine{token, 10s}, 8s);
    c.stands();
    c.now += round_trip;
    c.call.on_answer(c.now, c.sent_at, was_queued{42, 5s}, is_proof);
    c.now += 3s;
    EXPECT_EQ(c.call.can_be_looked_for(c.now), is_proof);
  }
}

TEST(acquire_call_line, a_refusal_that_passes_is_looked_through_H28) {
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  c.looks();
  c.hears(was_refused{errc::server_loading, true});
  EXPECT_EQ(c.sleeps(), c.now + 25ms);
  c.now += 25ms;
  EXPECT_EQ(c.looks(), me);
}

// A slot whose move was interrupted refuses for as long as nobody repairs it.
TEST(acquire_call_line, what_does_not_pass_soon_is_asked_for_less_often_H28) {
  course c{waits_for_ever()};
  c.queues(0ms);
  for (const auto pause : {25ms, 50ms, 100ms, 200ms, 200ms}) {
    c.looks();
    c.hears(was_refused{errc::no_primary, true});
    EXPECT_EQ(c.sleeps(), c.now + pause);
    c.now += pause;
  }
  c.looks();
  c.hears(was_queued{42, 0ms});
  c.looks();
  c.hears(was_refused{errc::no_primary, true});
  EXPECT_EQ(c.sleeps(), c.now + 25ms);
}

// P4: the first missed claim keeps the ticket, the second does not.
TEST(acquire_call_line, comes_back_with_its_ticket_once_P4_B26_H60) {
  course c{waits_for_ever()};
  const auto first = c.queues(0ms, 77);
  c.looks();
  c.hears(was_not_in_line{});
  EXPECT_TRUE(c.left_behind().empty()) << "there is nothing of it at the server";
  const auto second = c.stands();
  EXPECT_NE(second, first);
  EXPECT_EQ(c.stood->ticket, 77u);
  c.hears(was_queued{77, 0ms});
  c.looks();
  c.hears(was_not_in_line{});
  EXPECT_NE(c.stands(), second);
  EXPECT_EQ(c.stood->ticket, 0u);
}

// A copy of the look that was cut may still claim, if the line grants before it comes.
TEST(acquire_call_line, not_in_line_after_a_cut_lets_the_old_id_leave_P9) {
  course c{waits_for_ever()};
  const auto first = c.queues(0ms);
  c.looks();
  c.is_cut();
  c.looks();
  c.hears(was_not_in_line{});
  const auto left = c.call.take_clean_ups();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner, first);
  EXPECT_TRUE(left[0].may_have_copies);
  EXPECT_NE(c.stands(), first);
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

// A replica that restarts, a disk or a memory that is full for a moment: the place lives as long as it would if the
// server were silent.
TEST(acquire_call_line, a_server_that_takes_no_writes_is_a_look_missed_and_three_in_a_row_end_it_H31) {
  const was_refused no_writes{errc::out_of_memory, false, true};
  course c{waits_for_ever()};
  const auto me = c.queues(0ms);
  for (int i = 0; i < 2; ++i) {
    c.looks();
    c.hears(no_writes);
    EXPECT_GE(c.sleeps(), c.sent_at + 5s);
    EXPECT_LE(c.sleeps(), c.sent_at + 5500ms);
    c.now = c.sleeps();
  }
  EXPECT_EQ(c.looks(), me);
  c.hears(was_queued{42, 0ms});
  for (int i = 0; i < 3; ++i) {
    c.looks();
    c.hears(no_writes);
    if (i < 2) c.now = c.sleeps();
  }
  EXPECT_EQ(c.failure(), errc::out_of_memory);
  EXPECT_EQ(c.left_behind(), owners{me});
}

// Whose connections end and come back looks each time, and its place lives through that.
TEST(acquire_call_line, looks_that_a_reconnect_makes_end_it_no_sooner_where_no_writes_are_taken_H31) {
  const was_refused no_writes{errc::server_refused, false, true};
  course c{waits_for_ever()};
  c.queues(0ms);
  const auto began = c.now;
  for (int i = 0; i < 5; ++i) {
    c.call.on_connected(c.now);
    c.looks();
    c.hears(no_writes);
    ASSERT_FALSE(c.call.is_over()) << i;
    c.now += 10ms;
  }
  while (!c.call.is_over() && c.now < began + 20s) {
    c.now = c.sleeps();
    c.looks();
    c.hears(no_writes);
  }
  EXPECT_EQ(c.failure(), errc::server_refused);
  EXPECT_GE(c.now, began + 9s);
}

TEST(acquire_call_line, a_bounded_wait_lasts_when_no_writes_are_taken_and_says_so_at_its_end_H31) {
  auto bounded = waits_for_ever();
  bounded.wait = 60s;
  course c{bounded};
  c.queues(0ms);
  for (int i = 0; i < 10; ++i) {
    c.looks();
    c.hears(was_refused{errc::server_refused, false, true});
    c.now = c.sleeps();
  }
  c.now += 60s;
  (void)c.call.on_wake(c.now, true);
  EXPECT_EQ(c.failure(), errc::server_refused);
}

// Who has no place yet has nothing to keep, and is told.
TEST(acquire_call_line, a_server_that_takes_no_writes_ends_a_call_that_is_not_in_line) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{});
  c.stands();
  c.hears(was_refused{errc::out_of_memory, false, true});
  EXPECT_EQ(c.failure(), errc::out_of_memory);
}

// P4: so slow that each claim comes too late to be of use. It gives the lease back, and its old place with the second.
TEST(acquire_call_look, a_claim_that_comes_too_late_keeps_the_ticket_once_P4_H16) {
  auto patient = waits_for_ever();
  patient.timeout = 30s;
  course c{patient};
  c.queues(0ms, 77);
  for (const std::uint64_t ticket : {77u, 0u}) {
    c.looks();
    c.hears(was_mine{token, 10s}, 8s);
    c.stands();
    EXPECT_EQ(c.stood->ticket, ticket);
    c.hears(was_queued{77, 0ms});
  }
}

}  // namespace

}  // namespace holdfast::core
