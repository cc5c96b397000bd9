// SPDX-License-Identifier: Apache-2.0
// Until when enough of the servers keep a lock for us, a majority, or of a semaphore more (core/quorum_votes.hpp): the
// q-th latest of the instants until which each of them does. So every node's vote is renewed on its own, as a lease of
// one server is, and a renewal that reaches only a minority moves nothing (H58).
#pragma once

#include "base/time.hpp"
#include "core/quorum_round.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace holdfast::core {

// At any instant before at() as many nodes as are needed have our vote, so nobody else can have what we have.
//
// A node that lost its vote may be asked for another one while the others are enough without it. That vote is
// nothing before its first renewal: the round in which it was given may have been one in which another was granted what
// we had lost (R18, B57). So whoever keeps the votes says hold() for the votes of the round that won, and for renewals.
class quorum_deadline {
public:
  explicit quorum_deadline(int nodes) : quorum_deadline{nodes, majority_of(nodes)} {}
  quorum_deadline(int nodes, int needed) : needed_{needed}, until_(static_cast<std::size_t>(nodes)) {}

  // This node has our vote until then, or longer: answers may come out of order.
  void hold(int node, time_point until) {
    auto& had = until_[static_cast<std::size_t>(node)];
    had = std::max(had, until);
  }
  // It has not, or not for certain.
  void drop(int node) { until_[static_cast<std::size_t>(node)] = time_point{}; }

  // In the past when fewer than that have it.
  time_point at() const {
    auto sorted = until_;
    const auto nth = sorted.begin() + (needed_ - 1);
    std::nth_element(sorted.begin(), nth, sorted.end(), std::greater{});
    return *nth;
  }

  // May a node that has no vote of ours be asked for one?
  bool may_repair(time_point now) const { return now < at(); }

private:
  int needed_;
  std::vector<time_point> until_;
};

}  // namespace holdfast::core
