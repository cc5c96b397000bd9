// SPDX-License-Identifier: Apache-2.0
// Decides whether a lock that one thread gives back goes to the next thread of its process without Redis (P14, P14b).
// Pure: who waits, and who is told, is client/'s.
#pragma once

#include "base/time.hpp"
#include "core/lease_time.hpp"

#include <holdfast/names.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::core {

// What others of this process may do with one grant of the server, before the line outside gets its turn.
struct hand_over_limits {
  int most = 0;
  duration longest{0};
  bool may_go_on = false;  // Ask the server, meanwhile, whether anybody waits there (reserve.lua).
};

// How many tokens to ask for, beside the granted one, for others of the process; `last` is the last that it had. A
// token is a microsecond: so few, for each grant, no rate of grants makes them outrun the server's clock. More only
// where somebody waits to be handed them, and the last ones are not ahead of the clock already: else a server that
// loses its data would grant smaller ones, behind its quarantine, too (C2).
inline constexpr int modest_block = 16;
inline int block_of(const hand_over_limits& limits, bool others_wait, fencing_token last, server_time now) {
  const auto soon = static_cast<std::uint64_t>((now + std::chrono::seconds{1}).time_since_epoch().count());
  return others_wait && last.value() <= soon ? limits.most : std::min(limits.most, modest_block);
}

// What a thread asks for.
struct hand_over_wish {
  std::chrono::milliseconds ttl{0};
  fencing_token min_fence{};
  bool renews = true;
  std::optional<std::chrono::milliseconds> max_hold{};
  std::string owner{};  // The label.
};

// One grant of the server, and how often it has been handed on. Its bounds do not depend on knowing that somebody waits
// outside: a holder hears of that only with its next reply (P14). When half of what it may do is done it asks the
// server once; if nobody waits there, it begins anew with the time and the hand-overs since that question, and may ask
// again. So whoever comes to the line waits no longer than for one such stretch.
class hand_over_chain {
public:
  // `block`: the tokens base + 1 to base + block are reserved by the server. `granted_at`: not later than the grant.
  hand_over_chain(fencing_token base, int block, time_point granted_at, const hand_over_wish& first,
                  const hand_over_limits& limits)
      : base_{base},
        first_{first},
        limits_{limits},
        ends_at_{granted_at + limits.longest},
        left_{std::min(block, limits.most)},
        reserved_{static_cast<std::uint64_t>(block)} {}

  // `deadline`: the giver's. Who would have little of the ttl left, wants another ttl or another longest hold,
  // demands a token above the next one, or has another label (the server shows the giver's), asks the server instead.
  bool can_pass(time_point now, time_point deadline, const hand_over_wish& to) const {
    return left_ > 0 && now < ends_at_ && is_worth_taking(now, deadline, first_.ttl) && to.ttl == first_.ttl &&
           to.renews == first_.renews && to.max_hold == first_.max_hold &&
           to.min_fence.value() <= base_.value() + passed_ && to.owner == first_.owner;
  }
  // Whether who is handed it, and comes to it now, has enough of it left: he may have stood still meanwhile (P14b).
  static bool is_worth_taking(time_point now, time_point deadline, std::chrono::milliseconds ttl) {
    return deadline - now >= least_useful(ttl);
  }
  fencing_token pass() {
    --left_;
    return fencing_token{base_.value() + ++passed_};
  }

  // Not with a lease that is soon to be renewed: each hand-over takes that up anew, so a grant is better.
  bool wants_to_go_on(time_point now, time_point deadline) const {
    const bool is_half_over = left_ <= limits_.most / 2 || now >= ends_at_ - limits_.longest / 2;
    return limits_.may_go_on && !asked_at_ && is_half_over && now < ends_at_ &&
           deadline - now >= first_.ttl * std::int64_t{7} / 10;
  }
  void ask_to_go_on(time_point now) {
    asked_at_ = now;
    passed_when_asked_ = passed_;
  }
  // The server has reserved limits.most tokens more.
  void go_on() {
    ends_at_ = *asked_at_ + limits_.longest;
    left_ = limits_.most - static_cast<int>(passed_ - passed_when_asked_);
    reserved_ += static_cast<std::uint64_t>(limits_.most);
    asked_at_.reset();
  }
  int most() const { return limits_.most; }
  // Of those that are reserved.
  fencing_token last() const { return fencing_token{base_.value() + reserved_}; }

  // From here on nothing is handed on, so whoever waits goes to the server.
  time_point ends_at() const { return ends_at_; }

private:
  fencing_token base_;
  hand_over_wish first_;
  hand_over_limits limits_;
  time_point ends_at_;
  int left_;
  std::uint64_t reserved_;
  std::uint64_t passed_ = 0;
  std::optional<time_point> asked_at_{};
  std::uint64_t passed_when_asked_ = 0;
};

}  // namespace holdfast::core
