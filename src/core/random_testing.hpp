// SPDX-License-Identifier: Apache-2.0
// A seeded source of randomness for tests: the same seed gives the same run.
#pragma once

#include "base/random.hpp"

#include <array>
#include <cstdint>

namespace holdfast::core {

// splitmix64.
class seeded_random final : public base::random_source {
public:
  explicit seeded_random(std::uint64_t seed = 1) : state_{seed} {}

  std::array<unsigned char, 16> bytes16() override {
    std::array<unsigned char, 16> bytes{};
    for (std::size_t half = 0; half < 2; ++half) {
      std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
      z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
      z = (z ^ z >> 27) * 0x94D049BB133111EBu;
      z ^= z >> 31;
      for (std::size_t i = 0; i < 8; ++i) bytes[half * 8 + i] = static_cast<unsigned char>(z >> 8 * i);
    }
    return bytes;
  }

private:
  std::uint64_t state_;
};

}  // namespace holdfast::core
