// SPDX-License-Identifier: Apache-2.0
// The edges of a suspension, without a process and without a clock.
#include "standstill.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;
using act = standstill::act;

TEST(standstill, does_nothing_unless_asked) {
  standstill still{0};
  EXPECT_EQ(still.look(0ms, true).what, act::none);
  EXPECT_EQ(still.look(0ms, true).look_again_in, std::chrono::milliseconds::max());
}

TEST(standstill, stops_us_as_soon_as_the_command_stands) {
  standstill still{0};
  still.ask(1000ms);
  EXPECT_EQ(still.look(1001ms, true).what, act::stop_us);
  EXPECT_FALSE(still.is_asked_for());
}

TEST(standstill, gives_handlers_a_moment_and_then_stops_the_command) {
  standstill still{0};
  still.ask(1000ms);
  EXPECT_EQ(still.look(1099ms, false).what, act::none);
  EXPECT_EQ(still.look(1100ms, false).what, act::stop_command);
}

// One above it stops it after 100 ms, and STOP cannot be put off (H54).
TEST(standstill, is_done_before_those_above_it_lose_their_patience) {
  standstill second{1};
  standstill third{2};
  second.ask(1000ms);
  third.ask(1000ms);
  EXPECT_EQ(third.look(1032ms, false).what, act::none);
  EXPECT_EQ(third.look(1033ms, false).what, act::stop_command);
  EXPECT_EQ(second.look(1049ms, false).what, act::none);
  EXPECT_EQ(second.look(1050ms, false).what, act::stop_command);
}

TEST(standstill, does_not_stop_us_while_the_command_runs_after_it_was_stopped) {
  standstill still{0};
  still.ask(1000ms);
  ASSERT_EQ(still.look(1100ms, false).what, act::stop_command);
  EXPECT_EQ(still.look(1349ms, false).what, act::none);
  EXPECT_EQ(still.look(1349ms, true).what, act::stop_us);
}

TEST(standstill, lets_a_command_that_cannot_stop_run_and_stops_it_again) {
  standstill still{0};
  still.ask(1000ms);
  ASSERT_EQ(still.look(1100ms, false).what, act::stop_command);
  EXPECT_EQ(still.look(1350ms, false).what, act::let_run);
  EXPECT_EQ(still.look(1370ms, false).what, act::stop_command);
}

TEST(standstill, asked_again_is_not_longer_patient) {
  standstill still{0};
  still.ask(1000ms);
  still.ask(1090ms);
  EXPECT_EQ(still.look(1100ms, false).what, act::stop_command);
}

TEST(standstill, that_is_cancelled_is_over) {
  standstill still{0};
  still.ask(1000ms);
  still.cancel();
  EXPECT_EQ(still.look(1100ms, true).what, act::none);
}

}  // namespace
