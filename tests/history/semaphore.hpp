// SPDX-License-Identifier: Apache-2.0
// The model of a semaphore: the permits that are out are never more than its size, and tokens increase. (`part` of a
// step is how many permits it is about.)
#pragma once

#include "history/steps.hpp"
#include "history/words.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::test::history {

class semaphore {
public:
  explicit semaphore(int size) : size_{size} {}

  struct state {
    std::vector<int> holds{};  // In order.
    std::vector<int> parts{};  // Of each of them.
    std::uint64_t last_token = 0;
  };

  bool apply(const step& one, state& now) const {
    switch (one.what) {
      case deed::take: {
        if (!has_room(now, one.part) || !is_above(one.token, now.last_token)) return false;
        const auto place = std::lower_bound(now.holds.begin(), now.holds.end(), one.hold) - now.holds.begin();
        now.holds.insert(now.holds.begin() + place, one.hold);
        now.parts.insert(now.parts.begin() + place, one.part);
        if (one.token != 0) now.last_token = one.token;
        return true;
      }
      case deed::end: {
        const auto found = std::find(now.holds.begin(), now.holds.end(), one.hold);
        if (found == now.holds.end()) return false;
        now.parts.erase(now.parts.begin() + (found - now.holds.begin()));
        now.holds.erase(found);
        return true;
      }
      case deed::busy: return !has_room(now, one.part);
      default: return false;
    }
  }

  // Of the state what does not follow from which steps are in order and who holds it.
  void append_to(std::string& /*key*/, const state& /*now*/) const {}

private:
  bool has_room(const state& now, int part) const {
    int out = 0;
    for (const int one : now.parts) out += one;
    return out + part <= size_;
  }

  int size_;
};

}  // namespace holdfast::test::history
