// SPDX-License-Identifier: Apache-2.0
#include "net/spin_habit.hpp"

#include <gtest/gtest.h>

namespace holdfast::net {
namespace {

int tries_of(spin_habit& habit, int times, bool is_near) {
  int tries = 0;
  for (int i = 0; i < times; ++i) {
    if (!habit.should_try()) continue;
    ++tries;
    is_near ? habit.hit() : habit.miss();
  }
  return tries;
}

TEST(spin_habit, is_kept_up_while_answers_come_at_once) {
  spin_habit habit;
  EXPECT_EQ(tries_of(habit, 1'000, true), 1'000);
}

TEST(spin_habit, is_all_but_given_up_when_they_do_not) {
  spin_habit habit;
  tries_of(habit, 100, false);
  EXPECT_LE(tries_of(habit, 6'400, false), 100);
}

TEST(spin_habit, comes_back_when_the_server_has_come_near) {
  spin_habit habit;
  tries_of(habit, 1'000, false);
  tries_of(habit, 64, true);
  EXPECT_EQ(tries_of(habit, 100, true), 100);
}

TEST(spin_habit, survives_four_misses_for_a_hit) {
  spin_habit habit;
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(habit.should_try());
    i % 5 == 0 ? habit.hit() : habit.miss();
  }
}

}  // namespace
}  // namespace holdfast::net
