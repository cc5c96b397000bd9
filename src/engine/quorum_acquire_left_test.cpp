// SPDX-License-Identifier: Apache-2.0
// What one try for a lock of a quorum may have left with the servers, as whoever tries again remembers it (C5).
#include "engine/quorum_acquire.hpp"

#include "engine/quorum_acquire_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;

using quorum_acquire_left = quorum_acquire_test;

TEST_F(quorum_acquire_left, what_may_be_left_is_told_with_where_it_was_told_to_leave_C5) {
  start_voting();
  const time_point late = now() + 2 * patience;
  grant(0);
  servers[1].cut();
  pass(patience);
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::unreachable));
  const auto left = round->left();
  EXPECT_EQ(left[0].until, time_point{}) << "it has left";
  EXPECT_EQ(left[0].heard_over, all[0]->connection());
  EXPECT_GE(left[1].until, late + ttl) << "a whole ttl behind the last instant";
  EXPECT_EQ(left[1].told_over, 0u) << "its connection ended";
  EXPECT_EQ(left[2].until, left[1].until);
  EXPECT_EQ(left[2].told_over, all[2]->connection());
  EXPECT_EQ(left[2].heard_over, 0u);
}

TEST_F(quorum_acquire_left, who_answers_a_withdrawal_with_an_error_was_not_told_to_leave_C5) {
  start_voting();
  grant(0);
  say(1, busy(servers[1]));
  say(2, busy(servers[2]));
  say(0, refusal("LOADING Redis is loading the dataset in memory"));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_GT(round->left()[0].until, now());
  EXPECT_EQ(round->left()[0].told_over, 0u);
}

}  // namespace

}  // namespace holdfast::engine
