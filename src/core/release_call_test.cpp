// SPDX-License-Identifier: Apache-2.0
#include "core/release_call.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr time_point t0{1h};
constexpr time_point lease_ends = t0 + 10s;
constexpr time_point give_up = t0 + 20s;

release_call asked() {
  release_call r{lease_ends, give_up};
  EXPECT_TRUE(r.on_wake(t0, true));
  return r;
}

// Sent, cut off, and sent again at `at`.
release_call repeated(time_point at) {
  auto r = asked();
  r.on_cut();
  EXPECT_TRUE(r.on_wake(at, true));
  return r;
}

TEST(release_call, asks_once) {
  auto r = asked();
  EXPECT_FALSE(r.on_wake(t0, true));
  EXPECT_EQ(r.wake_at(true), give_up);
}

TEST(release_call, released_is_released) {
  auto r = asked();
  r.on_released();
  EXPECT_EQ(r.end(), release_outcome::released);
}

TEST(release_call, not_mine_to_the_only_copy_is_already_lost) {
  auto r = asked();
  r.on_not_mine(t0);
  EXPECT_EQ(r.end(), release_outcome::already_lost);
}

// P12: the first copy may have released it, and nobody else could have had it since.
TEST(release_call, not_mine_to_a_repeat_before_the_deadline_is_released_P12) {
  auto r = repeated(lease_ends - 1ns);
  r.on_not_mine(lease_ends - 1ns);
  EXPECT_EQ(r.end(), release_outcome::released);
}

TEST(release_call, not_mine_to_a_repeat_at_the_deadline_is_unknown_P12) {
  auto r = repeated(lease_ends);
  r.on_not_mine(lease_ends);
  EXPECT_EQ(r.end(), release_outcome::unknown);
}

TEST(release_call, a_repeat_that_releases_is_released) {
  auto r = repeated(lease_ends + 1s);
  r.on_released();
  EXPECT_EQ(r.end(), release_outcome::released);
}

// A refusal that says "not done" leaves the copy count at one: the next "not yours" is definite.
TEST(release_call, not_done_is_not_a_lost_copy) {
  auto r = asked();
  r.on_not_done(t0);
  EXPECT_FALSE(r.on_wake(t0 + 24ms, true));
  EXPECT_TRUE(r.on_wake(t0 + 25ms, true));
  r.on_not_mine(t0 + 25ms);
  EXPECT_EQ(r.end(), release_outcome::already_lost);
}

TEST(release_call, no_answer_in_time_is_unknown_C5) {
  auto r = asked();
  EXPECT_FALSE(r.on_wake(give_up - 1ns, true));
  EXPECT_FALSE(r.end());
  EXPECT_FALSE(r.on_wake(give_up, true));
  EXPECT_EQ(r.end(), release_outcome::unknown);
}

TEST(release_call, no_connection_in_time_is_unknown) {
  release_call r{lease_ends, give_up};
  EXPECT_FALSE(r.on_wake(t0, false));
  EXPECT_FALSE(r.on_wake(give_up, true));
  EXPECT_EQ(r.end(), release_outcome::unknown);
}

// Else the driver wakes again and again at an instant that has passed, and burns a core until the server is back.
TEST(release_call, without_a_connection_nothing_is_due) {
  release_call r{lease_ends, give_up};
  EXPECT_EQ(r.wake_at(false), give_up);
  auto cut = asked();
  cut.on_cut();
  EXPECT_EQ(cut.wake_at(false), give_up);
  EXPECT_LE(cut.wake_at(true), t0);
}

TEST(release_call, hopeless_is_unknown) {
  auto r = asked();
  r.on_hopeless();
  EXPECT_EQ(r.end(), release_outcome::unknown);
}

TEST(release_call, the_first_end_stands) {
  auto r = asked();
  r.on_released();
  r.on_not_mine(t0);
  r.on_hopeless();
  r.on_wake(give_up, true);
  EXPECT_EQ(r.end(), release_outcome::released);
  EXPECT_FALSE(r.on_wake(t0 + 1s, true));
}

}  // namespace

}  // namespace holdfast::core
