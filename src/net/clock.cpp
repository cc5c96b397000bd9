// SPDX-License-Identifier: Apache-2.0
#include "net/clock.hpp"

#include <sys/random.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace holdfast::net {

time_point boottime_now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point{std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec}};
}

server_time wall_clock_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return server_time{std::chrono::seconds{now.tv_sec} + std::chrono::microseconds{now.tv_nsec / 1000}};
}

std::array<unsigned char, 16> kernel_random::bytes16() {
  std::array<unsigned char, 16> bytes;
  // 16 bytes are never interrupted and never short once the pool is initialised (random(7)).
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::fputs("holdfast: getrandom(2) failed; refusing to go on without unguessable owner ids\n", stderr);
    std::abort();
  }
  return bytes;
}

kernel_random& system_random() {
  static auto* const forever = new kernel_random;
  return *forever;
}

}  // namespace holdfast::net
