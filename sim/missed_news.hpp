// SPDX-License-Identifier: Apache-2.0
// What came to a process while it stood still. When it runs again its threads read in any order: what lies in one
// socket stays in its order, and says nothing of what lies in another.
#pragma once

#include "seeded_random.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace holdfast::sim {

class missed_news {
public:
  using action = std::function<void()>;
  // Whose order is its own: a connection, or
  using source = int;
  static constexpr source timers = 0;
  static constexpr source watches = -1;

  void push(source from, action what) { all_.push_back({from, std::move(what)}); }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }

  // In the order in which it came; or the first of a source that is drawn.
  action take_first() { return take(all_.begin()); }
  action take_any(seeded_random& rng) {
    std::vector<source> sources;
    for (const auto& one : all_) {
      if (std::find(sources.begin(), sources.end(), one.from) == sources.end()) sources.push_back(one.from);
    }
    const source from = sources[rng.below(sources.size())];
    return take(std::find_if(all_.begin(), all_.end(), [&](const item& one) { return one.from == from; }));
  }

private:
  struct item {
    source from;
    action what;
  };
  action take(std::deque<item>::iterator which) {
    action what = std::move(which->what);
    all_.erase(which);
    return what;
  }

  std::deque<item> all_{};
};

}  // namespace holdfast::sim
