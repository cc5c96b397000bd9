// SPDX-License-Identifier: Apache-2.0
// What a façade makes of the durations and instants that it is given.
#include <holdfast/detail/longest_wait.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <ratio>

namespace holdfast::detail {
namespace {

using namespace std::chrono_literals;
namespace chrono = std::chrono;

TEST(longest_wait, is_what_every_unit_s_for_ever_becomes) {
  EXPECT_EQ(wait_for(chrono::years::max()), longest_wait);
  EXPECT_EQ(wait_for(chrono::hours::max()), longest_wait);
  EXPECT_EQ(wait_for(chrono::milliseconds::max()), longest_wait);
  EXPECT_EQ(wait_for(chrono::nanoseconds::max()), longest_wait);
  EXPECT_EQ(wait_for(chrono::duration<std::uint64_t>::max()), longest_wait);
  EXPECT_EQ(wait_for(chrono::duration<double>{std::numeric_limits<double>::infinity()}), longest_wait);
  EXPECT_EQ(wait_for(longest_wait), longest_wait);
}

TEST(longest_wait, leaves_a_shorter_one_as_it_is_rounded_up) {
  EXPECT_EQ(wait_for(longest_wait - 1ms), longest_wait - 1ms);
  EXPECT_EQ(wait_for(1500ms), 1500ms);
  EXPECT_EQ(wait_for(1ns), 1ms);
  EXPECT_EQ(wait_for(1'000'001us), 1001ms);
  EXPECT_EQ(wait_for(chrono::duration<std::int8_t, std::ratio<60>>{2}), 2min);
  EXPECT_EQ(wait_for(chrono::duration<float>{0.5F}), 500ms);
  EXPECT_EQ(wait_for(chrono::duration<int, std::pico>{1}), 1ms);
}

TEST(longest_wait, is_none_for_what_is_over) {
  EXPECT_EQ(wait_for(0ms), 0ms);
  EXPECT_EQ(wait_for(-1ns), 0ms);
  EXPECT_EQ(wait_for(chrono::hours::min()), 0ms);
  EXPECT_EQ(wait_for(chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()}), 0ms);
}

// A clock whose epoch is to come, as libstdc++'s file_clock: max() minus its now() overflows.
struct clock_before_its_epoch {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = chrono::nanoseconds;
  using time_point = chrono::time_point<clock_before_its_epoch>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static time_point now() { return time_point{-1h}; }
};

TEST(longest_wait, until_an_instant_of_any_clock) {
  EXPECT_EQ(wait_until(chrono::steady_clock::time_point::max()), longest_wait);
  EXPECT_EQ(wait_until(chrono::steady_clock::time_point::min()), 0ms);
  EXPECT_EQ(wait_until(chrono::sys_days::max()), longest_wait);
  EXPECT_EQ(wait_until(chrono::file_clock::time_point::max()), longest_wait);
  EXPECT_EQ(wait_until(clock_before_its_epoch::time_point::max()), longest_wait);
  EXPECT_EQ(wait_until(clock_before_its_epoch::time_point::min()), 0ms);
  EXPECT_EQ(wait_until(clock_before_its_epoch::time_point{-59min}), 1min);
  EXPECT_EQ(wait_until(chrono::system_clock::now() - 1ms), 0ms);
  const auto soon = wait_until(chrono::steady_clock::now() + 1h);
  EXPECT_LE(soon, 1h);
  EXPECT_GT(soon, 59min);
}

}  // namespace
}  // namespace holdfast::detail
