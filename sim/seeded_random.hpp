// SPDX-License-Identifier: Apache-2.0
// All of a schedule's chance, from one number. Only whole numbers and only arithmetic of our own, so that a seed means
// the same with every compiler and library. Each part of a world draws from a stream of its own, so that leaving one
// part out does not change what the others draw: that is what makes a failure shrink.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"

#include <bit>
#include <cstdint>

namespace holdfast::sim {

class seeded_random final : public base::random_source {
public:
  explicit seeded_random(std::uint64_t seed) : state_{seed} {}
  // A copy draws the same again.
  seeded_random(const seeded_random& other) : base::random_source{}, state_{other.state_} {}
  seeded_random& operator=(const seeded_random&) = delete;
  ~seeded_random() override = default;

  // The stream of one part: `what` is its kind, `which` its number.
  static seeded_random of(std::uint64_t seed, std::uint64_t what, std::uint64_t which = 0) {
    const auto first = seeded_random{seed}.next();
    return seeded_random{seeded_random{first ^ (what << 32) ^ which}.next()};
  }

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

  std::array<unsigned char, 16> bytes16() override {
    std::array<unsigned char, 16> bytes{};
    for (std::size_t half = 0; half < 2; ++half) {
      const auto z = next();
      for (std::size_t i = 0; i < 8; ++i) bytes[half * 8 + i] = static_cast<unsigned char>(z >> 8 * i);
    }
    return bytes;
  }

  // Uniform in [0, n).
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  int number(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1)); }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  duration span(duration low, duration high) {
    return low + duration{static_cast<std::int64_t>(below(static_cast<std::uint64_t>((high - low).count()) + 1))};
  }
  // As likely between 1 and 2 as between 1000 and 2000. `low` is above zero.
  duration any_size(duration low, duration high) {
    const auto bits = [](duration d) {
      return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(d.count())));
    };
    const int size = number(bits(low), bits(high));
    const auto from = duration{std::int64_t{1} << (size - 1)};
    const auto drawn = span(from, 2 * from - duration{1});
    return drawn < low ? low : drawn > high ? high : drawn;
  }

private:
  std::uint64_t state_;
};

}  // namespace holdfast::sim
