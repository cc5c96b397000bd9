// SPDX-License-Identifier: Apache-2.0
// Whom of those that a process asks it gets no answer from, and until when.
#pragma once

#include "world_time.hpp"

#include <cstddef>
#include <map>
#include <utility>

namespace holdfast::sim {

class silence {
public:
  // This process gets no answer from it before that.
  void be_silent(int process, std::size_t whom, instant until) { until_[{process, whom}] = until; }
  bool answers(int process, std::size_t whom, instant at) const {
    const auto found = until_.find({process, whom});
    return found == until_.end() || found->second <= at;
  }
  void speak() { until_.clear(); }

private:
  std::map<std::pair<int, std::size_t>, instant> until_{};
};

}  // namespace holdfast::sim
