// SPDX-License-Identifier: Apache-2.0
// The model of an exclusive lock with fencing tokens: one hold at a time, and each token is larger than all before it.
#pragma once

#include "history/steps.hpp"
#include "history/words.hpp"

#include <string>
#include <vector>

namespace holdfast::test::history {

class fenced_mutex {
public:
  struct state {
    std::vector<int> holds{};  // One at most.
    std::uint64_t last_token = 0;
  };

  // The state after `one`; false, and the state is as it was, if it cannot happen there.
  bool apply(const step& one, state& now) const {
    switch (one.what) {
      case deed::take:
        if (!now.holds.empty() || !is_above(one.token, now.last_token)) return false;
        now.holds = {one.hold};
        if (one.token != 0) now.last_token = one.token;
        return true;
      case deed::end:
        if (now.holds != std::vector{one.hold}) return false;
        now.holds.clear();
        return true;
      case deed::busy: return !now.holds.empty();
      default: return false;  // It is neither reentrant nor shared.
    }
  }

  // Of the state what does not follow from which steps are in order and who holds it.
  void append_to(std::string& /*key*/, const state& /*now*/) const {}
};

}  // namespace holdfast::test::history
