// SPDX-License-Identifier: Apache-2.0
// The instant until which a lease may be trusted, as one atomic word, so that valid() depends on no thread of ours.
#pragma once

#include "base/time.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace holdfast::core {

// Any number of readers, one writer that extends and shortens, anybody who ends it. Once it has ended, by end() or
// because a reader saw `now` at or past it, nothing moves it again: a renewal that is answered too late must not revive
// a lease that somebody was already told is over (B13, P13c).
class lease_deadline {
public:
  explicit lease_deadline(time_point at) : at_{at.time_since_epoch().count()} {}

  // Ends it, if `now` has reached it.
  bool is_ahead(time_point now) noexcept {
    auto at = at_.load(std::memory_order_acquire);
    if (at == ended) return false;
    if (now.time_since_epoch().count() < at) return true;
    // A renewal may have moved it since we read it: then it had not ended.
    while (!at_.compare_exchange_weak(at, ended, std::memory_order_acq_rel)) {
      if (at == ended) return false;
      if (now.time_since_epoch().count() < at) return true;
    }
    return false;
  }

  // Long past when it has ended.
  time_point at() const noexcept {
    const auto at = at_.load(std::memory_order_acquire);
    return at == ended ? time_point{} : time_point{duration{at}};
  }

  // What is left at `now`; zero when it has ended.
  duration left(time_point now) noexcept {
    if (!is_ahead(now)) return duration{0};
    const auto at = at_.load(std::memory_order_acquire);
    if (at == ended) return duration{0};
    return std::max(duration{0}, duration{at} - now.time_since_epoch());
  }

  // Moves it to `later`, if it is still ahead at `now`. True if it holds until `later` or longer afterwards.
  bool extend(time_point now, time_point later) noexcept {
    auto at = at_.load(std::memory_order_acquire);
    for (;;) {
      if (at == ended || now.time_since_epoch().count() >= at) return false;
      if (later.time_since_epoch().count() <= at) return true;  // Answers may come out of order: never back.
      if (at_.compare_exchange_weak(at, later.time_since_epoch().count(), std::memory_order_acq_rel)) return true;
    }
  }

  // Brings it forward to `sooner`, if it is later than that.
  void shorten(time_point sooner) noexcept {
    auto at = at_.load(std::memory_order_acquire);
    while (at != ended && sooner.time_since_epoch().count() < at) {
      if (at_.compare_exchange_weak(at, sooner.time_since_epoch().count(), std::memory_order_acq_rel)) return;
    }
  }

  void end() noexcept { at_.store(ended, std::memory_order_release); }

private:
  static constexpr std::int64_t ended = INT64_MIN;
  std::atomic<std::int64_t> at_;
};

}  // namespace holdfast::core
