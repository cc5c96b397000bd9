// SPDX-License-Identifier: Apache-2.0
// What a majority of sentinels says about which server is the primary, and for how long that is worth something.
//
// An isolated primary goes on serving whoever still reaches it, and cannot know that another was promoted (P22). The
// promoted one grants nothing for max_ttl, because it may have forgotten locks (docs/decisions/0012-quarantine.md). So
// what a primary grants or renews counts until max_ttl after the last time that it was named, and no longer: by then
// either it was named again, or its successor may have begun to grant.
#pragma once

#include "base/time.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace holdfast::engine {

// The address that more than half of all sentinels name, those that are silent included. Two majorities have a sentinel
// in common, so there is one such address at most at a time.
inline std::optional<std::string> named_by_majority(std::span<const std::optional<std::string>> answers) {
  for (const auto& one : answers) {
    const auto votes = static_cast<std::size_t>(std::count(answers.begin(), answers.end(), one));
    if (one && votes * 2 > answers.size()) return one;
  }
  return std::nullopt;
}

// One writer; until() and term() by any thread.
class named_primary {
public:
  // Which of the primaries that were named one after another. 0: none yet.
  using term_number = std::uint64_t;

  // `worth`: for how long after it was named.
  explicit named_primary(duration worth) : worth_{worth} {}

  // A majority named `address`; the first of them was asked at `asked_at`. True: it is another one than before.
  bool name(const std::string& address, time_point asked_at) {
    const bool is_other = address != address_;
    if (is_other) {
      address_ = address;
      term_.fetch_add(1, std::memory_order_release);
    }
    named_at_.store(asked_at.time_since_epoch().count(), std::memory_order_release);
    return is_other;
  }
  const std::string& address() const { return address_; }  // The writer's.

  term_number term() const { return term_.load(std::memory_order_acquire); }

  // Until when a grant or a renewal counts that was answered by the primary of that term; in the past when another was
  // named since.
  time_point until(term_number of) const {
    // In this order: an instant that belongs to a later term is read only together with that term.
    const duration named_at{named_at_.load(std::memory_order_acquire)};
    if (of == 0 || term() != of) return time_point{};
    return time_point{named_at} + worth_;
  }

  // Was it named not so long ago that half of its worth is over? Then the longest lease is worth having.
  bool is_fresh(term_number of, time_point now) const { return now < until(of) - worth_ / 2; }

private:
  const duration worth_;
  std::string address_{};
  std::atomic<term_number> term_{0};
  std::atomic<std::int64_t> named_at_{0};
};

}  // namespace holdfast::engine
