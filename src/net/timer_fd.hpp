// SPDX-License-Identifier: Apache-2.0
// A timer on CLOCK_BOOTTIME to wait for in poll(2), whose own time-out does not count a suspend (H2).
#pragma once

#include "base/time.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace holdfast::net {

class timer_fd {
public:
  timer_fd() : fd_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)} {
    if (fd_ < 0) throw std::system_error{errno, std::generic_category(), "timerfd_create"};
  }
  ~timer_fd() { ::close(fd_); }
  timer_fd(const timer_fd&) = delete;
  timer_fd& operator=(const timer_fd&) = delete;

  int get() const { return fd_; }
  // Readable from `until` on, and no longer before; `never`: not at all.
  void set(time_point until) noexcept {
    if (until == is_at_) return;
    is_at_ = until;
    itimerspec at{};
    if (until < never) {
      const auto since_boot = std::max(duration{1}, until.time_since_epoch());
      at.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(since_boot).count();
      at.it_value.tv_nsec = (since_boot % std::chrono::seconds{1}).count();
    }
    timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at, nullptr);
  }

  // It was found readable: it is to be set again, also to the same.
  void went_off() noexcept { is_at_ = time_point{}; }

private:
  int fd_;
  time_point is_at_ = never;
};

}  // namespace holdfast::net
