// SPDX-License-Identifier: Apache-2.0
#include "lease_watch.hpp"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <system_error>

namespace holdfast::cli {

using std::chrono::milliseconds;

lease_watch::lease_watch()
    : timer_{::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)},
      lost_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (timer_ < 0 || lost_ < 0) throw std::system_error{errno, std::generic_category(), "timerfd, eventfd"};
}

void lease_watch::watch(const lease& held) {
  first_end_ = now() + held.remaining();
  on_lost_.emplace(held.lost(), [fd = lost_] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
  });
}

lease_watch::~lease_watch() {
  on_lost_.reset();  // Waits for a callback that is running, so that it cannot write to a descriptor we closed.
  ::close(timer_);
  ::close(lost_);
}

milliseconds lease_watch::now() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return milliseconds{static_cast<std::int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000};
}

void lease_watch::wake_in(milliseconds span) {
  itimerspec when{};
  if (span != milliseconds::max()) {
    span = std::clamp(span, milliseconds{1}, milliseconds{std::chrono::hours{24}});
    when.it_value.tv_sec = span.count() / 1000;
    when.it_value.tv_nsec = span.count() % 1000 * 1'000'000;
  }
  ::timerfd_settime(timer_, 0, &when, nullptr);
}

void lease_watch::drain() {
  std::uint64_t dropped = 0;
  while (::read(timer_, &dropped, sizeof dropped) > 0) {
  }
  while (::read(lost_, &dropped, sizeof dropped) > 0) {
  }
}

}  // namespace holdfast::cli
