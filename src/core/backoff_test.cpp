// SPDX-License-Identifier: Apache-2.0
#include "core/backoff.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>

#include <set>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

TEST(backoff, doubles_with_jitter_up_to_its_cap) {
  seeded_random rng;
  backoff b{20ms, 100ms};
  for (const duration step : {20ms, 40ms, 80ms, 100ms, 100ms, 100ms}) {
    const auto got = b.next(rng);
    EXPECT_GE(got, step / 2);
    EXPECT_LE(got, step);
  }
}

TEST(backoff, begins_again_after_a_success) {
  seeded_random rng;
  backoff b{20ms, 1s};
  for (int i = 0; i < 10; ++i) b.next(rng);
  b.reset();
  EXPECT_LE(b.next(rng), 20ms);
}

// A thousand clients that lost the same server must not come back in step.
TEST(backoff, jitter_spreads) {
  seeded_random rng;
  std::set<duration> seen;
  for (int i = 0; i < 100; ++i) seen.insert(backoff{1s, 1s}.next(rng));
  EXPECT_GT(seen.size(), 90u);
}

TEST(backoff, never_overflows) {
  seeded_random rng;
  backoff b{25ms, 24h};
  for (int i = 0; i < 200; ++i) {
    const auto got = b.next(rng);
    EXPECT_GT(got, 0ns);
    EXPECT_LE(got, 24h);
  }
}

}  // namespace

}  // namespace holdfast::core
