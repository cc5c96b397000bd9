// SPDX-License-Identifier: Apache-2.0
// What will happen, in the order of time, and at one instant in the order in which it was planned.
#pragma once

#include "world_time.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace holdfast::sim {

class event_queue {
public:
  using action = std::function<void()>;

  instant now() const { return now_; }
  std::uint64_t count() const { return count_; }

  void at(instant when, action what) {
    planned_.push_back({std::max(when, now_), ++last_, std::move(what)});
    std::push_heap(planned_.begin(), planned_.end(), later);
  }
  void after(duration wait, action what) { at(now_ + wait, std::move(what)); }

  // Lets the next thing happen. False: nothing is planned before `until`, and it is `until` now.
  bool step(instant until) {
    if (planned_.empty() || planned_.front().when > until) {
      now_ = std::max(now_, until);
      return false;
    }
    std::pop_heap(planned_.begin(), planned_.end(), later);
    const event next = std::move(planned_.back());
    planned_.pop_back();
    now_ = next.when;
    ++count_;
    next.what();
    return true;
  }

private:
  struct event {
    instant when;
    std::uint64_t number;
    action what;
  };
  static bool later(const event& a, const event& b) {
    return std::pair{a.when, a.number} > std::pair{b.when, b.number};
  }

  instant now_{};
  std::uint64_t last_ = 0;
  std::uint64_t count_ = 0;
  std::vector<event> planned_;
};

}  // namespace holdfast::sim
