// SPDX-License-Identifier: Apache-2.0
// Whether it pays to look again for a moment before sleeping. A server on the same machine or next door answers within
// microseconds, and then falling asleep and being woken costs more than the answer; a distant one never does, and
// looking is wasted. So the past decides (docs/decisions/0005).
#pragma once

#include <algorithm>

namespace holdfast::net {

// Pays while at least about one look in five hits. Given up, it is tried again every 64th time.
class spin_habit {
public:
  bool should_try() {
    if (credit_ > 0) return true;
    if (++skipped_ < try_again_after) return false;
    skipped_ = 0;
    return true;
  }

  void hit() { credit_ = std::min(credit_ + 4, most); }
  void miss() { credit_ = std::max(credit_ - 1, 0); }

private:
  static constexpr int most = 32;
  static constexpr int try_again_after = 64;

  int credit_ = most;
  int skipped_ = 0;
};

}  // namespace holdfast::net
