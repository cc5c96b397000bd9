// SPDX-License-Identifier: Apache-2.0
// What a majority of sentinels says about which server is the primary, and for how long that is worth something.
//
// An isolated primary goes on serving whoever still reaches it, and cannot know that another was promoted (P22). The
// promoted one grants nothing for max_ttl, because it may have forgotten locks (docs/decisions/0012-quarantine.md). So
// what a primary grants or renews counts until max_ttl after the last time that it was named, and no longer: by then
// either it was named again, or its successor may have begun to grant.
//
// That alone would let two in (docs/decisions/0024-what-an-old-primary-grants.md). The promoted one renews what it
// knows of, and the isolated one, where nobody renews it any more, lets it expire and grants it to the next in line
// there. So a grant counts only while its primary was named within the last grants_for(), again and again since it was
// asked for (there may have been two failovers, there and back); and who has moved to another primary takes its leases
// along, but there no renewal moves a deadline before all grants of the one before have counted that ever will: from
// renewals_from() on. A lease that the old one granted to somebody else has come to its deadline by then.
#pragma once

#include "base/time.hpp"
#include "core/lease_time.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
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

  // `worth`: for how long after it was named. `drift`: how far apart two clients' clocks may be.
  explicit named_primary(duration worth, core::clock_drift drift = {})
      : worth_{worth}, grants_for_{grants_for(worth)}, drift_{drift}, moving_takes_{outlasting(grants_for_)} {}

  // A majority named `address`; the first of them was asked at `asked_at`, the last was heard at `heard_at`. True: it
  // is another one than before.
  bool name(const std::string& address, time_point asked_at, time_point heard_at) {
    const bool is_other = address != address_;
    if (is_other) {
      address_ = address;
      const bool is_first = term_.load(std::memory_order_relaxed) == 0;
      if (!is_first) moved_at_.store(heard_at.time_since_epoch().count(), std::memory_order_release);
      term_.fetch_add(1, std::memory_order_release);
    } else if (asked_at - time_point{duration{named_at_.load(std::memory_order_relaxed)}} > grants_for_) {
      grants_from_.store(heard_at.time_since_epoch().count(), std::memory_order_release);
    }
    named_at_.store(asked_at.time_since_epoch().count(), std::memory_order_release);
    return is_other;
  }
  // It is none any more: what it says counts as little as what it said.
  void name_nobody() {
    if (address_.empty()) return;
    address_.clear();
    named_at_.store(long_ago, std::memory_order_release);
    term_.fetch_add(1, std::memory_order_release);
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

  // Was it named not so long ago that half of its worth is over? Then it is worth renewing there.
  bool is_fresh(term_number of, time_point now) const { return now < until(of) - worth_ / 2; }

  // For how long after it was named its grants count. Those who ask do it four times in that time.
  duration grants_for() const { return grants_for_; }
  bool may_grant(term_number of, time_point now) const { return now < until(of) - worth_ + grants_for_; }
  // Of one that is answered now, to a request that was sent then.
  bool counts_grant(term_number of, time_point sent_at, time_point now) const {
    if (!may_grant(of, now)) return false;  // In this order: see until().
    return sent_at >= time_point{duration{grants_from_.load(std::memory_order_acquire)}};
  }
  // Who moves to another primary, or to another node, renews for so long what counts only later: as long as a grant of
  // the one before may count by a clock that is slower than ours by twice rho. `longest_worth`: of any client, as far
  // as is known; for whoever has a larger max_ttl its grants count for longer.
  duration moving_takes(duration longest_worth = duration{0}) const {
    return longest_worth <= worth_ ? moving_takes_ : outlasting(grants_for(longest_worth));
  }
  // So long at the most, whoever the others are.
  duration longest_moving_takes() const { return outlasting(most_grants); }
  // No renewal that was sent there before moves a deadline. The first that is ever named has nothing to wait for.
  time_point renewals_from(term_number of, duration longest_worth = duration{0}) const {
    if (of == 0 || term() != of) return never;
    const duration moved_at{moved_at_.load(std::memory_order_acquire)};
    return moved_at == duration{long_ago} ? time_point{} : time_point{moved_at} + moving_takes(longest_worth);
  }

private:
  static constexpr duration least_grants = std::chrono::milliseconds{200};
  static constexpr duration most_grants = std::chrono::seconds{2};
  static duration grants_for(duration worth) {
    return std::min(std::clamp<duration>(worth / 6, least_grants, most_grants), worth / 2);
  }
  // A clock that is too fast by rho waits for it, while one that is too slow counts grants_for(). At least 3 %.
  duration outlasting(duration grants) const {
    constexpr std::int64_t million = 1'000'000;
    const std::int64_t slow = million - std::min(drift_.ppm, million / 2);
    const duration by_drift = (grants * (million + drift_.ppm) + duration{slow - 1}) / slow;
    return std::max(by_drift, grants + grants / 32);
  }

  static constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min() / 2;

  const duration worth_;
  const duration grants_for_;
  const core::clock_drift drift_;
  const duration moving_takes_;
  std::string address_{};
  std::atomic<term_number> term_{0};
  std::atomic<std::int64_t> named_at_{0};
  std::atomic<std::int64_t> moved_at_{long_ago};
  std::atomic<std::int64_t> grants_from_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace holdfast::engine
