// SPDX-License-Identifier: Apache-2.0
// Randomness for jitter only: needs no secrecy, and is asked for a thousand times a second. Its own file, because
// <random> is a large header.
#pragma once

#include "base/random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

namespace holdfast::base {

// Seeded once, and then without the system call that the kernel's randomness costs. Never for an owner id: a forked
// child would draw the same.
class jitter_source final : public random_source {
public:
  explicit jitter_source(random_source& seed)
      : engine_{static_cast<std::uint64_t>(seed.between(0, std::numeric_limits<std::int64_t>::max() - 1))} {}

  std::array<unsigned char, 16> bytes16() override {
    std::array<unsigned char, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t bits = engine_();
      for (std::size_t j = 0; j < 8; ++j) bytes[i + j] = static_cast<unsigned char>(bits >> 8 * j);
    }
    return bytes;
  }

private:
  std::mt19937_64 engine_;
};

}  // namespace holdfast::base
