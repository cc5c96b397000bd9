// SPDX-License-Identifier: Apache-2.0
// The model of a mutex that its holder may lock again: one holder at a time, who is out when it has unlocked as often
// as it has locked. The server knows of one lease, so locking again gives the same token; that it was lost meanwhile is
// not noticed by it (recursive_mutex.hpp). So token and count of a hold hang on no order with others, and steps.cpp
// judges them.
#pragma once

#include "history/steps.hpp"
#include "history/words.hpp"

#include <string>
#include <vector>

namespace holdfast::test::history {

class reentrant_mutex {
public:
  struct state {
    std::vector<int> holds{};  // One at most.
    std::uint64_t token = 0;   // Of the last take, also after its end.
  };

  bool apply(const step& one, state& now) const {
    switch (one.what) {
      case deed::take:
        if (!now.holds.empty() || !is_above(one.token, now.token)) return false;
        now.holds = {one.hold};
        if (one.token != 0) now.token = one.token;
        return true;
      case deed::again:
      case deed::back: return true;
      case deed::end:
        if (now.holds != std::vector{one.hold}) return false;
        now.holds.clear();
        return true;
      case deed::busy: return !now.holds.empty();
      case deed::downgrade: return false;
    }
    return false;
  }

  // Of the state what does not follow from which steps are in order and who holds it.
  void append_to(std::string& /*key*/, const state& /*now*/) const {}
};

}  // namespace holdfast::test::history
