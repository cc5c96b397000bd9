// SPDX-License-Identifier: Apache-2.0
// The two clocks of the design as types, so that they cannot be mixed. Neither has a now(): time is an argument
// everywhere but in net, local, client and cli, which read CLOCK_BOOTTIME.
#pragma once

#include <chrono>
#include <cstdint>

namespace holdfast {
inline namespace v0 {

// Ours: CLOCK_BOOTTIME. It runs during suspend, which std::chrono::steady_clock does not (H2).
struct boottime {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<boottime>;
  static constexpr bool is_steady = true;
};
using time_point = boottime::time_point;
using duration = boottime::duration;

// A point that never comes. Small enough that adding any checked duration to it does not overflow.
inline constexpr time_point never{duration{INT64_MAX / 2}};

// The server's wall clock, as TIME gives it inside a script. Only ever compared with itself.
struct server_clock_tag {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<server_clock_tag>;
  static constexpr bool is_steady = false;
};
using server_time = server_clock_tag::time_point;

}  // namespace v0
}  // namespace holdfast
