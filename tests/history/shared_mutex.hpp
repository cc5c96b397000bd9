// SPDX-License-Identifier: Apache-2.0
// The model of a reader-writer lock: readers together, a writer alone, and a writer may become a reader. Tokens
// increase over both. (`part` of a step is 1 for a reader and `everything` for a writer.)
#pragma once

#include "history/steps.hpp"
#include "history/words.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::test::history {

class shared_mutex {
public:
  struct state {
    std::vector<int> holds{};  // In order. One, if it writes.
    bool writes = false;
    std::uint64_t last_token = 0;
  };

  bool apply(const step& one, state& now) const {
    switch (one.what) {
      case deed::take:
        if (!has_room(now, one.part) || !is_above(one.token, now.last_token)) return false;
        now.holds.insert(std::lower_bound(now.holds.begin(), now.holds.end(), one.hold), one.hold);
        now.writes = one.part == everything;
        if (one.token != 0) now.last_token = one.token;
        return true;
      case deed::end: {
        const auto found = std::find(now.holds.begin(), now.holds.end(), one.hold);
        if (found == now.holds.end()) return false;
        now.holds.erase(found);
        now.writes = false;
        return true;
      }
      case deed::downgrade:
        if (now.holds != std::vector{one.hold}) return false;
        now.writes = false;
        return true;
      case deed::busy: return !has_room(now, one.part);
      default: return false;
    }
  }

  // Of the state what does not follow from which steps are in order and who holds it.
  void append_to(std::string& key, const state& now) const { key.push_back(now.writes ? 'w' : 'r'); }

private:
  static bool has_room(const state& now, int part) { return now.holds.empty() || (part != everything && !now.writes); }
};

}  // namespace holdfast::test::history
