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
// A node that has no vote of ours may be asked for one while the others are enough without it. The round in which it is
// given may be one in which another was granted what we had lost (R18, B57), and the others, whose turn to be renewed
// comes later, may just not have said that our votes are gone. Would it count at once, each could be made good before
// the next is heard of, and a lease that no node had any more would go on for ever. So what is given later, or again,
// counts from its first renewal behind those of as many others as are needed (`told_in_time` of spec/quorum.pml).
// Whoever keeps the votes says hold() for the votes of the round that won, and renew() for renewals.
class quorum_deadline {
public:
  explicit quorum_deadline(int nodes) : quorum_deadline{nodes, majority_of(nodes)} {}
  quorum_deadline(int nodes, int needed) : needed_{needed}, votes_(static_cast<std::size_t>(nodes)) {}

  // This node has our vote until then, or longer: answers may come out of order.
  void hold(int node, time_point until) {
    auto& had = of(node).until;
    had = std::max(had, until);
  }
  // It has not, or not for certain.
  void drop(int node) { of(node) = {}; }
  // It gave its vote now, behind the round. `until`: of a renewal that is sent now, or later, no less.
  void regain(int node, time_point until) {
    of(node).is_back = true;
    for (auto& one : votes_) one.is_confirmed = false;
    confirmed_from_ = until;
  }
  // It was renewed. True: those that gave their votes later count from their next renewal on.
  bool renew(int node, time_point until) {
    if (of(node).is_back) return false;
    hold(node, until);
    if (!is_anybody_back() || until < confirmed_from_) return false;
    of(node).is_confirmed = true;
    if (std::count_if(votes_.begin(), votes_.end(), [](const vote& v) { return v.is_confirmed; }) < needed_)
      return false;
    for (auto& one : votes_) one.is_back = one.is_confirmed = false;
    return true;
  }
  // It gave its vote later, and that does not count yet.
  bool is_back(int node) const { return votes_[static_cast<std::size_t>(node)].is_back; }

  // In the past when fewer than that have it.
  time_point at() const {
    auto sorted = votes_;
    const auto nth = sorted.begin() + (needed_ - 1);
    std::nth_element(sorted.begin(), nth, sorted.end(), [](const vote& a, const vote& b) { return a.until > b.until; });
    return nth->until;
  }

  // May a node that has no vote of ours be asked for one?
  bool may_repair(time_point now) const { return now < at(); }

private:
  struct vote {
    time_point until{};
    bool is_back = false;
    bool is_confirmed = false;  // Renewed since the last one came back.
  };
  vote& of(int node) { return votes_[static_cast<std::size_t>(node)]; }
  bool is_anybody_back() const {
    return std::any_of(votes_.begin(), votes_.end(), [](const vote& v) { return v.is_back; });
  }

  int needed_;
  std::vector<vote> votes_;
  time_point confirmed_from_{};
};

}  // namespace holdfast::core
