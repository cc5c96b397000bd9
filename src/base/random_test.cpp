// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include "base/jitter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>

namespace holdfast::base {
namespace {

// Gives what it is told to, as the first eight bytes, most significant first.
class scripted_random final : public random_source {
public:
  explicit scripted_random(std::uint64_t first) : next{first} {}

  std::array<unsigned char, 16> bytes16() override {
    std::array<unsigned char, 16> bytes{};
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(next >> (56 - 8 * i));
    return bytes;
  }

  std::uint64_t next;
};

TEST(between, reaches_both_ends) {
  scripted_random random{0};
  EXPECT_EQ(random.between(-3, 7), -3);
  random.next = 10;
  EXPECT_EQ(random.between(-3, 7), 7);
}

TEST(between, reaches_every_value_of_a_small_range_and_none_outside) {
  std::set<std::int64_t> seen;
  scripted_random random{0};
  for (; random.next < 100; ++random.next) seen.insert(random.between(5, 8));
  EXPECT_EQ(seen, (std::set<std::int64_t>{5, 6, 7, 8}));
}

// Bits whose sign bit is set must not lead below the range.
TEST(between, stays_inside_whatever_the_bits_are) {
  for (const std::uint64_t bits : {UINT64_MAX, UINT64_MAX - 1, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 1}) {
    scripted_random random{bits};
    const auto n = random.between(-10, 10);
    EXPECT_GE(n, -10) << bits;
    EXPECT_LE(n, 10) << bits;
  }
}

TEST(between, has_one_answer_when_the_range_has_one_value) {
  for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{12'345}, UINT64_MAX}) {
    scripted_random random{bits};
    EXPECT_EQ(random.between(42, 42), 42) << bits;
  }
}

TEST(jitter_source, draws_what_its_seed_says_and_then_asks_nobody) {
  scripted_random seed{42};
  jitter_source one{seed};
  jitter_source again{seed};
  seed.next = 43;
  jitter_source other{seed};
  const auto drawn = one.bytes16();
  EXPECT_EQ(again.bytes16(), drawn);
  EXPECT_NE(other.bytes16(), drawn);
  EXPECT_NE(one.bytes16(), drawn);
}

}  // namespace
}  // namespace holdfast::base
