// SPDX-License-Identifier: Apache-2.0
#include "local/clock.hpp"

#include <cerrno>
#include <ctime>

namespace holdfast::local {

time_point boottime_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
}

void pause_for(std::chrono::nanoseconds time) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
  timespec left{whole.count(), (time - whole).count()};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace holdfast::local
