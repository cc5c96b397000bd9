// SPDX-License-Identifier: Apache-2.0
// Three sentinels, as far as clients see them: whom each of them names as the primary, and since when.
#pragma once

#include "network.hpp"
#include "replicas/silence.hpp"
#include "world_time.hpp"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast::sim {

class sentinels : public silence {
public:
  static constexpr std::size_t count = 3;

  // All of them name server 0 in the beginning.
  void name(std::size_t sentinel, int server, instant since) { said_[sentinel].push_back({since, server}); }
  int named_by(std::size_t sentinel, instant at) const {
    int server = 0;
    for (const auto& [since, who] : said_[sentinel]) {
      if (since <= at) server = who;
    }
    return server;
  }

private:
  std::array<std::vector<std::pair<instant, int>>, count> said_{};
};

}  // namespace holdfast::sim
