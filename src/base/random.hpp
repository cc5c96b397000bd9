// SPDX-License-Identifier: Apache-2.0
// Randomness as an argument. The client hands in getrandom(2), tests and the simulator a seeded source.
#pragma once

#include <array>
#include <cstdint>

namespace holdfast::base {

class random_source {
public:
  random_source() = default;
  random_source(const random_source&) = delete;
  random_source& operator=(const random_source&) = delete;
  virtual ~random_source() = default;

  virtual std::array<unsigned char, 16> bytes16() = 0;

  // Uniform in [low, high]; bias below 2^-32 for the ranges we use.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto bytes = bytes16();
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | bytes[static_cast<std::size_t>(i)];
    return low + static_cast<std::int64_t>(bits % (static_cast<std::uint64_t>(high - low) + 1));
  }
};

}  // namespace holdfast::base
