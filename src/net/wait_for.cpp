// SPDX-License-Identifier: Apache-2.0
#include "net/wait_for.hpp"

#include "net/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

namespace holdfast::net {

namespace {

timespec timespec_of(duration left) {
  const auto capped = std::clamp<duration>(left, duration{0}, std::chrono::hours{1});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(capped);
  return {seconds.count(), (capped - seconds).count()};
}

}  // namespace

void wait_for(std::span<pollfd> fds, time_point until) {
  const duration left = until - boottime_now();
  const timespec most = timespec_of(left);
  if (::ppoll(fds.data(), fds.size(), &most, nullptr) >= 0) return;
  for (auto& one : fds) one.revents = 0;
  if (errno == EINTR) return;
  // The entries that stand for nothing (-1) count, too: of those that there are, each may be looked at.
  const timespec a_moment = timespec_of(std::min<duration>(left, std::chrono::milliseconds{1}));
  ::nanosleep(&a_moment, nullptr);
  for (auto& one : fds) {
    if (::poll(&one, 1, 0) < 0) one.revents = 0;
  }
}

}  // namespace holdfast::net
