// SPDX-License-Identifier: Apache-2.0
// What an engine wrote and what it was answered, kept beside it; and the claims that must hold whatever a server says:
//
// - every byte it writes belongs to a well-formed request;
// - a call asks for nothing after its end, and a lease is renewed only while it is kept (C6);
// - what was granted counts from the instant before the request was written, and so does each renewal;
// - whatever the server may know of a call at its end is the lease itself, or is let go in the background (C5);
// - nothing was released or refused that no answer said.
#pragma once

#include "input.hpp"

#include "base/time.hpp"
#include "core/lease_time.hpp"
#include "engine/acquire.hpp"
#include "resp/value.hpp"
#include "script/source.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>
#include <holdfast/observer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::fuzz {

constexpr core::clock_drift rho{10'000};

// The connections that carry requests of calls and of the keeper.
enum class wire { commands, keeping };

struct sent_request {
  std::optional<script::id> what;  // None: no call of a script.
  std::string owner;
  std::size_t others;  // That a look is for, too.
  time_point at;
};

class ledger {
public:
  // What happens until the next one may be in any order: whoever ended in it may have written before.
  void begin_operation() { ++operation_; }

  void sent(wire on, time_point now, std::string_view bytes);
  void answered(wire on, const resp::value& what);
  void cut(wire on);
  // Unanswered, in order.
  const std::deque<sent_request>& open(wire on) const { return open_[static_cast<std::size_t>(on)]; }

  // A call says its number in its label; `label_of` writes it.
  static std::string label_of(std::size_t call);
  void call_began() { call_ended_in_.push_back(0); }
  std::size_t calls() const { return call_ended_in_.size(); }
  void acquire_ended(std::size_t call, engine::acquire& how);
  void release_ended(const owner_id& owner, release_outcome how) const;
  std::vector<engine::unsettled> take_unsettled() { return std::exchange(unsettled_, {}); }

  void lease_kept(const owner_id& owner, time_point deadline, std::chrono::milliseconds ttl);
  void lease_ended(const owner_id& owner);
  void lease_lost(const owner_id& owner, errc reason);
  bool is_kept(const owner_id& owner) const;
  // Must not be exceeded by the lease's deadline.
  time_point bound_of(const owner_id& owner) const;

private:
  struct entry {
    std::size_t call = 0;
    bool has_copies = false;  // A request was cut off, or answered by what says nothing.
    bool may_stand = false;   // In line, as far as we were told.
    bool was_granted = false;
    time_point granted_until{};
    bool was_released = false;  // An answer to a release said something definite.
  };
  struct lease {
    bool is_kept = true;
    std::uint64_t ended_in = 0;
    time_point bound{};
    std::chrono::milliseconds ttl{};
    bool was_refused = false;
  };

  void sent_script(wire on, time_point now, script::id what, const std::vector<std::string_view>& words);
  void answered_acquire(entry& who, const sent_request& asked, const resp::value& what);
  bool is_live(std::size_t call) const { return call_ended_in_[call] == 0 || call_ended_in_[call] == operation_; }
  bool is_open(std::string_view owner) const;

  std::uint64_t operation_ = 1;
  std::array<std::deque<sent_request>, 2> open_{};
  std::map<std::string, entry, std::less<>> entries_{};
  std::map<std::string, lease, std::less<>> leases_{};
  std::map<std::string, std::chrono::milliseconds, std::less<>> ttls_{};  // That an owner asked for.
  std::vector<std::uint64_t> call_ended_in_{};                            // Zero: it lives.
  std::vector<engine::unsettled> unsettled_{};
};

}  // namespace holdfast::fuzz
