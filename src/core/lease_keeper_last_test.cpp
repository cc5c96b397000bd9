// SPDX-License-Identifier: Apache-2.0
// A lease that may be held for so long and no longer (R14, H68).
#include "core/lease_keeper.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 9s;  // Renewed every 3 s; lost() 450 ms before the deadline; at_risk() 1.5 s before.
constexpr clock_drift drift{10'000};
constexpr time_point t0{1h};

class lease_keeper_last : public testing::Test {
protected:
  lease_keeper until(time_point last, renewal mode = renewal::automatic) {
    return {deadline_of(t0, ttl, drift), ttl, mode, drift, t0, last};
  }
  seeded_random rng;
};

TEST_F(lease_keeper_last, no_renewal_moves_the_deadline_beyond_it_R14) {
  const time_point last = t0 + 10s;
  auto keeper = until(last);
  ASSERT_TRUE(keeper.on_wake(t0 + 3s, true).renew);
  EXPECT_TRUE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng));
  EXPECT_EQ(keeper.deadline(), last);
}

TEST_F(lease_keeper_last, nothing_is_renewed_that_cannot_move_it_R14) {
  const time_point last = t0 + 10s;
  auto keeper = until(last);
  (void)keeper.on_wake(t0 + 3s, true);
  ASSERT_TRUE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng));
  EXPECT_EQ(keeper.next_send_at(), never);
  keeper.on_failed(t0 + 4s, rng);  // Of another one that was under way.
  EXPECT_EQ(keeper.next_send_at(), never);
  EXPECT_FALSE(keeper.on_wake(t0 + 9s, true).renew);
}

TEST_F(lease_keeper_last, is_shorter_than_the_first_ttl_R14) {
  auto keeper = until(t0 + 5s);
  EXPECT_EQ(keeper.deadline(), t0 + 5s);
  EXPECT_EQ(keeper.next_send_at(), never);
}

TEST_F(lease_keeper_last, at_it_the_loss_says_why_R14) {
  const time_point last = t0 + 10s;
  auto keeper = until(last);
  (void)keeper.on_wake(t0 + 3s, true);
  ASSERT_TRUE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng));
  EXPECT_TRUE(keeper.on_wake(last - 1500ms, true).at_risk);
  EXPECT_FALSE(keeper.on_wake(last - 450ms - 1ns, true).lost);
  EXPECT_EQ(keeper.on_wake(last - 450ms, true).lost, errc::lease_held_too_long);
}

TEST_F(lease_keeper_last, a_silent_server_before_it_is_no_long_hold) {
  auto keeper = until(t0 + 10s);
  EXPECT_EQ(keeper.on_wake(deadline_of(t0, ttl, drift) - 450ms, false).lost, errc::lease_expired);
}

TEST_F(lease_keeper_last, who_asks_for_a_renewal_then_is_answered_and_gets_no_more) {
  const time_point last = t0 + 10s;
  auto keeper = until(last, renewal::none);
  keeper.ask(t0 + 5s);
  ASSERT_TRUE(keeper.on_wake(t0 + 5s, true).renew);
  EXPECT_TRUE(keeper.on_renewed(t0 + 5s, t0 + 5s, rng));
  keeper.stop_asking();
  EXPECT_EQ(keeper.deadline(), last);
  keeper.ask(t0 + 6s);
  ASSERT_TRUE(keeper.on_wake(t0 + 6s, true).renew);
  EXPECT_FALSE(keeper.on_renewed(t0 + 6s, t0 + 6s, rng));
  keeper.stop_asking();
  EXPECT_EQ(keeper.deadline(), last);
  EXPECT_EQ(keeper.next_send_at(), never);
}

}  // namespace

}  // namespace holdfast::core
