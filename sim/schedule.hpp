// SPDX-License-Identifier: Apache-2.0
// One seed played, and played again with less and less, until everything that is left is needed for the failure.
#pragma once

#include "world.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

// Where schedules are played, one after the other: the scripts are compiled once.
class stage {
public:
  explicit stage(const canary* planted);

  struct outcome {
    std::vector<violation> violations;
    std::vector<std::string> trace;
    std::uint64_t fingerprint;
    std::uint64_t events;
  };
  enum class trace { no, yes };
  outcome play(std::uint64_t seed, const limits& within, statistics& into, trace how = trace::no);

  // The smallest limits within which the seed still breaks the same invariant.
  limits shrink(std::uint64_t seed, limits within);

private:
  const canary* planted_;
  std::shared_ptr<lua_host> scripts_;
};

// The options of holdfast-sim that say the same.
std::string to_options(std::uint64_t seed, const limits& within, const canary* planted);

}  // namespace holdfast::sim
