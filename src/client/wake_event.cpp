// SPDX-License-Identifier: Apache-2.0
#include "client/wake_event.hpp"

#include "net/clock.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace holdfast {
inline namespace v0 {
namespace detail {

bool wake_event::wait_until(time_point until) noexcept {
  const duration left = std::clamp<duration>(until - net::boottime_now(), duration{0}, std::chrono::hours{1});
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  const duration when = std::chrono::seconds{at.tv_sec} + std::chrono::nanoseconds{at.tv_nsec} + left;
  at.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(when).count();
  at.tv_nsec = (when % std::chrono::seconds{1}).count();
  return sem_clockwait(&posted_, CLOCK_MONOTONIC, &at) == 0;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
