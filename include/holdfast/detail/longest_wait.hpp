// SPDX-License-Identifier: Apache-2.0
// What a std-shaped façade is told to wait, as acquire_options::wait takes it. Its own file, because every façade needs
// it: "for ever" is spelled hours::max() or time_point::max(), and overflows in any other unit.
#pragma once

#include <chrono>

namespace holdfast {
inline namespace v0 {
namespace detail {

inline constexpr std::chrono::milliseconds longest_wait = std::chrono::hours{24 * 366};

// Of any unit: in floating point nothing overflows before it is cut.
using any_span = std::chrono::duration<long double, std::milli>;

// At least what was asked for, zero for what is over, and at most longest_wait.
constexpr std::chrono::milliseconds wait_for(any_span asked) {
  if (asked >= any_span{longest_wait}) return longest_wait;
  if (!(asked > any_span::zero())) return std::chrono::milliseconds{0};  // A NaN, too.
  return std::chrono::ceil<std::chrono::milliseconds>(asked);
}

// From now on. Each of the two by itself, because their difference may overflow.
template <class Clock, class Duration>
std::chrono::milliseconds wait_until(const std::chrono::time_point<Clock, Duration>& deadline) {
  return wait_for(any_span{deadline.time_since_epoch()} - any_span{Clock::now().time_since_epoch()});
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
