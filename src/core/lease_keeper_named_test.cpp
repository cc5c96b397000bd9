// SPDX-License-Identifier: Apache-2.0
// Renewals that count no longer than their server does (engine/named_primary.hpp, P22).
#include "core/lease_keeper.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {
namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 9s;
constexpr clock_drift drift{10'000};
constexpr time_point t0{1h};

class a_capped_lease_keeper : public testing::Test {
protected:
  static time_point ends(time_point sent_at) { return deadline_of(sent_at, ttl, drift); }

  seeded_random rng;
  lease_keeper keeper{ends(t0), ttl, renewal::automatic, drift, t0};
};

TEST_F(a_capped_lease_keeper, moves_its_deadline_no_further_than_that) {
  EXPECT_TRUE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng, ends(t0) + 1s));
  EXPECT_EQ(keeper.deadline(), ends(t0) + 1s);
}

TEST_F(a_capped_lease_keeper, never_moves_it_back) {
  EXPECT_FALSE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng, ends(t0) - 1s));
  EXPECT_EQ(keeper.deadline(), ends(t0));
}

TEST_F(a_capped_lease_keeper, is_not_held_up_by_a_later_one) {
  EXPECT_TRUE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng, ends(t0) + 1h));
  EXPECT_EQ(keeper.deadline(), ends(t0 + 3s));
}

// It has as little left as one that was renewed so much earlier.
TEST_F(a_capped_lease_keeper, renews_again_as_early_as_that_asks_for) {
  EXPECT_TRUE(keeper.on_renewed(t0 + 3s, t0 + 3s, rng, ends(t0 + 2s)));
  EXPECT_LE(keeper.next_send_at(), t0 + 2s + 3300ms);
}

TEST_F(a_capped_lease_keeper, does_not_renew_without_a_pause_either) {
  EXPECT_TRUE(keeper.on_renewed(t0 + 6s, t0 + 6s, rng, ends(t0) + 1ms));
  EXPECT_GE(keeper.next_send_at(), t0 + 6s + 500ms);
  EXPECT_LT(keeper.next_send_at(), keeper.deadline());
}

// As soon as a renewal counts.
TEST_F(a_capped_lease_keeper, renews_again_when_a_renewal_counts) {
  ASSERT_TRUE(keeper.on_wake(t0 + 3300ms, true).renew);
  keeper.on_early(t0 + 3400ms);
  EXPECT_EQ(keeper.deadline(), ends(t0));
  EXPECT_EQ(keeper.next_send_at(), t0 + 3400ms);
  EXPECT_TRUE(keeper.on_wake(t0 + 3400ms, true).renew);
  keeper.on_early(t0 + 9s);
  EXPECT_LT(keeper.next_send_at(), t0 + 9s) << "and does not wait for it, should it come too late";
}

TEST_F(a_capped_lease_keeper, that_nobody_renews_stays_so) {
  lease_keeper idle{ends(t0), ttl, renewal::none, drift, t0};
  idle.on_early(t0 + 1s);
  EXPECT_EQ(idle.next_send_at(), never);
}

}  // namespace
}  // namespace holdfast::core
