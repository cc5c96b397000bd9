// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace holdfast::base {
namespace {

TEST(assertion_death_test, prints_the_fact_and_the_place_and_aborts) {
  const int held = 2;
  EXPECT_EXIT(HOLDFAST_ASSERT(held == 1), testing::KilledBySignal(SIGABRT),
              "broken invariant: held == 1 .*assert_test\\.cpp:[0-9]+");
}

TEST(assertion, lets_a_true_fact_pass_and_looks_at_it_once) {
  int looks = 0;
  HOLDFAST_ASSERT(++looks == 1);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace holdfast::base
