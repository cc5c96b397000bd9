// SPDX-License-Identifier: Apache-2.0
// The calls that no thread waits for: who of them wants to be woken when, and who is over. A thread that waits looks
// after its own call; these are looked after by whoever drives the connection, and there may be ten thousand of them.
#pragma once

#include "base/time.hpp"
#include "engine/call.hpp"
#include "engine/caller.hpp"

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace holdfast::engine {

// Not thread-safe: the driver calls everything under one mutex. A call must not move while it is here.
class unattended {
public:
  explicit unattended(caller& with) : caller_{&with} {}

  // Starts it. It is here until take_over() gives it back.
  void start(call& what, time_point now);
  // Something happened to it outside of the connection: it was cancelled.
  void look_at(call& what);

  // Steps whoever is due, in the order of the instants, and at one instant in the order of the starts: so calls that
  // were started one after the other join a line in that order.
  void step_due(time_point now);
  // The past, if somebody is over already.
  time_point wake_at() const {
    if (!over_.empty()) return time_point{};
    return agenda_.empty() ? never : std::get<time_point>(*agenda_.begin());
  }

  // Those that are over, in the order in which they ended; stopped.
  std::vector<call*> take_over();

private:
  void schedule(call& what, time_point at);

  caller* caller_;
  std::uint64_t last_number_ = 0;
  std::set<std::tuple<time_point, std::uint64_t, call*>> agenda_;
  std::vector<call*> over_;
};

}  // namespace holdfast::engine
