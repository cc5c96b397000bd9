// SPDX-License-Identifier: Apache-2.0
// H54: the rows of the watchdog's table. Time and what is seen go in by hand; no process and no clock.
#include "watchdog_policy.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;
using act = watchdog_policy::act;
using sight = watchdog_policy::sight;
using ms = std::chrono::milliseconds;

// A lease of 10 s, as loss_policy has it: with a whole grace the owner says TERM at 7.0 s, KILL at 9.5 s.
constexpr ms deadline = 10s;
const watchdog_policy::limits limits{.grace = 2500ms, .margin = 500ms};
const watchdog_policy::limits no_grace{.grace = 0ms, .margin = 500ms};
constexpr ms term_at = 7250ms;  // A quarter of a second later.
constexpr ms kill_at = 9750ms;
constexpr ms patience = 20ms;

const sight alone{.owner_lives = false, .deadline = deadline};
const sight beside{.deadline = deadline};
const sight standing{.stands = true, .deadline = deadline};
const sight ended{.has_ended = true, .deadline = deadline};
const sight stopping{.is_stopping = true, .deadline = deadline};

// What it does next under what is seen, and when.
std::pair<act, ms> next(watchdog_policy& policy, ms now, const sight& seen) {
  while (now < 1h) {
    const auto step = policy.look(now, seen);
    if (step.what != act::none || step.look_again_in == ms::max()) return {step.what, now};
    now += std::max(step.look_again_in, 1ms);
  }
  return {act::none, now};
}

TEST(watchdog_policy, sleeps_until_its_owner_should_have_acted) {
  watchdog_policy policy{limits};
  const auto step = policy.look(1s, beside);
  EXPECT_EQ(step.what, act::none);
  EXPECT_EQ(step.look_again_in, term_at - 1s);
}

TEST(watchdog_policy, stops_what_a_living_owner_did_not_stop_and_kills_it_before_the_lease_ends) {
  watchdog_policy policy{limits};
  EXPECT_EQ(next(policy, 1s, beside), std::pair(act::stop, term_at + patience));
  EXPECT_EQ(next(policy, term_at + patience, beside), std::pair(act::kill, kill_at));
  EXPECT_EQ(policy.look(1h, beside).look_again_in, ms::max());
}

// As after a pause of the whole machine, for 15 s: the owner wakes a moment later and says its new deadline.
TEST(watchdog_policy, gives_an_owner_that_wakes_with_it_a_moment_to_say_the_deadline) {
  watchdog_policy policy{limits};
  ASSERT_EQ(policy.look(1s, beside).what, act::none);
  const auto woken = policy.look(15s, beside);
  EXPECT_EQ(woken.what, act::none);
  EXPECT_EQ(woken.look_again_in, patience);
  const sight renewed{.deadline = 25s};
  EXPECT_EQ(policy.look(15s + patience, renewed).look_again_in, 25s - deadline + term_at - 15s - patience);
}

TEST(watchdog_policy, has_a_whole_patience_each_time) {
  watchdog_policy policy{limits};
  ASSERT_EQ(policy.look(term_at, beside).what, act::none);
  ASSERT_EQ(policy.look(term_at + 1ms, sight{.deadline = 20s}).what, act::none);
  EXPECT_EQ(policy.look(10s + term_at, sight{.deadline = 20s}).what, act::none);
}

TEST(watchdog_policy, kills_without_a_word_what_nobody_looked_after_until_the_end) {
  watchdog_policy policy{limits};
  ASSERT_EQ(policy.look(1h, beside).what, act::none);
  EXPECT_EQ(policy.look(1h + patience, beside).what, act::kill);
}

TEST(watchdog_policy, does_nothing_while_deadlines_move) {
  watchdog_policy policy{limits};
  for (ms now = 0ms; now < 1h; now += 1s) EXPECT_EQ(policy.look(now, {.deadline = now + deadline}).what, act::none);
}

TEST(watchdog_policy, leaves_a_suspended_command_alone_until_its_lease_ends) {
  watchdog_policy policy{limits};
  const auto step = policy.look(1s, standing);
  EXPECT_EQ(step.what, act::none);
  EXPECT_EQ(step.look_again_in, kill_at - 1s);
}

// Somebody may have it go on without its owner, at any time.
TEST(watchdog_policy, has_a_suspended_command_stand_again_and_again_beyond_its_lease_and_never_kills_it) {
  watchdog_policy policy{limits};
  for (auto now = kill_at; now < 1min; now += 100ms) {
    const auto step = policy.look(now, standing);
    EXPECT_EQ(step.what, act::stand);
    EXPECT_EQ(step.look_again_in, 100ms);
  }
}

// And those whom it has left behind have no lock of ours.
TEST(watchdog_policy, leaves_a_suspended_command_alone_that_has_ended) {
  watchdog_policy policy{limits};
  EXPECT_EQ(next(policy, 1s, {.has_ended = true, .stands = true, .deadline = deadline}).first, act::none);
}

TEST(watchdog_policy, leaves_a_command_that_has_ended_by_itself_to_its_owner) {
  watchdog_policy policy{limits};
  EXPECT_EQ(next(policy, 1s, ended).first, act::none);
}

TEST(watchdog_policy, says_no_stop_when_its_owner_has_and_kills_when_that_does_not) {
  watchdog_policy policy{limits};
  EXPECT_EQ(next(policy, 1s, stopping), std::pair(act::kill, kill_at + patience));
}

// As of sh -c '(trap "" TERM; exec worker) & wait': the shell has died of its owner's TERM, and the worker has not.
TEST(watchdog_policy, kills_whom_a_command_has_left_behind_that_ended_when_its_owner_stopped_it) {
  watchdog_policy policy{limits};
  const sight ended_by_its_owner{.has_ended = true, .is_stopping = true, .deadline = deadline};
  EXPECT_EQ(next(policy, 1s, ended_by_its_owner), std::pair(act::kill, kill_at + patience));
}

TEST(watchdog_policy, without_a_grace_kills_and_says_no_stop) {
  watchdog_policy policy{no_grace};
  EXPECT_EQ(next(policy, 1s, beside), std::pair(act::kill, kill_at + patience));
}

TEST(watchdog_policy, when_its_owner_is_gone_stops_at_once_and_kills_after_the_grace) {
  watchdog_policy policy{limits};
  EXPECT_EQ(policy.look(1s, alone).what, act::stop);
  EXPECT_EQ(next(policy, 1s, alone), std::pair(act::kill, 3500ms));
}

TEST(watchdog_policy, when_its_owner_is_gone_late_kills_a_margin_before_the_end) {
  watchdog_policy policy{limits};
  EXPECT_EQ(policy.look(8s, alone).what, act::stop);
  EXPECT_EQ(next(policy, 8s, alone), std::pair(act::kill, 9500ms));
}

TEST(watchdog_policy, when_its_owner_is_gone_looks_often_whether_all_of_it_are) {
  watchdog_policy policy{limits};
  EXPECT_EQ(policy.look(1s, alone).look_again_in, 20ms);
  EXPECT_EQ(policy.look(2s, alone).look_again_in, 20ms);
}

TEST(watchdog_policy, when_its_owner_is_gone_at_the_end_kills_at_once) {
  for (const ms now : {ms{9500}, ms{1h}}) {
    watchdog_policy policy{limits};
    EXPECT_EQ(policy.look(now, alone).what, act::kill);
  }
}

TEST(watchdog_policy, when_its_owner_is_gone_a_suspended_command_is_no_exception) {
  watchdog_policy policy{limits};
  ASSERT_EQ(policy.look(1s, standing).what, act::none);
  EXPECT_EQ(policy.look(2s, {.owner_lives = false, .stands = true, .deadline = deadline}).what, act::stop);
}

TEST(watchdog_policy, when_its_owner_is_gone_while_stopping_it_does_not_say_it_twice) {
  watchdog_policy policy{limits};
  EXPECT_EQ(next(policy, 8s, {.owner_lives = false, .is_stopping = true, .deadline = deadline}),
            std::pair(act::kill, 9500ms));
}

TEST(watchdog_policy, when_its_owner_is_gone_without_a_grace_kills_a_margin_before_the_end) {
  watchdog_policy policy{no_grace};
  EXPECT_EQ(next(policy, 1s, alone), std::pair(act::kill, 9500ms));
}

TEST(watchdog_policy, under_another_lock_kills_as_soon_as_its_owner_is_gone) {
  watchdog_policy policy{{.grace = 2500ms, .margin = 500ms, .kills_with_owner = true}};
  EXPECT_EQ(policy.look(1s, alone).what, act::kill);
}

TEST(watchdog_policy, does_not_take_back_a_stop_when_its_owner_goes_on) {
  watchdog_policy policy{limits};
  ASSERT_EQ(next(policy, 1s, beside).first, act::stop);
  EXPECT_EQ(next(policy, term_at + patience, sight{.deadline = 1h}), std::pair(act::kill, kill_at));
}

}  // namespace
