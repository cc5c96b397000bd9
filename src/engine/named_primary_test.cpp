// SPDX-License-Identifier: Apache-2.0
#include "engine/named_primary.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using answers = std::vector<std::optional<std::string>>;

time_point at(duration since_boot) { return time_point{since_boot}; }

TEST(named_by_majority, counts_the_silent_ones_against_everybody_P22) {
  EXPECT_EQ(named_by_majority(answers{"a", "a", std::nullopt}), "a");
  EXPECT_EQ(named_by_majority(answers{"a", std::nullopt, std::nullopt}), std::nullopt);
  EXPECT_EQ(named_by_majority(answers{std::nullopt, std::nullopt, std::nullopt}), std::nullopt);
}

TEST(named_by_majority, is_more_than_half) {
  EXPECT_EQ(named_by_majority(answers{"a", "b"}), std::nullopt);
  EXPECT_EQ(named_by_majority(answers{"a", "a", "b", "b"}), std::nullopt);
  EXPECT_EQ(named_by_majority(answers{"b", "a", "b", "b"}), "b");
  EXPECT_EQ(named_by_majority(answers{"a"}), "a");
  EXPECT_EQ(named_by_majority({}), std::nullopt);
}

TEST(named_primary, is_worth_nothing_before_it_was_named) {
  const named_primary primary{10s};
  EXPECT_EQ(primary.term(), 0u);
  EXPECT_EQ(primary.until(0), time_point{});
  EXPECT_EQ(primary.until(1), time_point{});
}

TEST(named_primary, counts_from_when_it_was_asked_for) {
  named_primary primary{10s};
  EXPECT_TRUE(primary.name("a", at(100s), at(100s)));
  EXPECT_EQ(primary.until(primary.term()), at(110s));
  EXPECT_FALSE(primary.name("a", at(105s), at(105s)));
  EXPECT_EQ(primary.until(primary.term()), at(115s));
}

TEST(named_primary, ends_what_an_earlier_one_said_when_another_is_named_P22) {
  named_primary primary{10s};
  primary.name("a", at(100s), at(100s));
  const auto before = primary.term();
  EXPECT_TRUE(primary.name("b", at(101s), at(101s)));
  EXPECT_EQ(primary.until(before), time_point{});
  EXPECT_EQ(primary.until(primary.term()), at(111s));
}

TEST(named_primary, is_fresh_for_half_of_its_worth) {
  named_primary primary{10s};
  primary.name("a", at(100s), at(100s));
  EXPECT_TRUE(primary.is_fresh(primary.term(), at(105s) - 1ns));
  EXPECT_FALSE(primary.is_fresh(primary.term(), at(105s)));
  EXPECT_FALSE(primary.is_fresh(primary.term() + 1, at(100s)));
}

// A sixth of its worth, 2 s at most.
TEST(named_primary, grants_for_a_short_time_only_P22) {
  named_primary primary{6s};
  EXPECT_FALSE(primary.may_grant(0, at(100s)));
  primary.name("a", at(100s), at(100s));
  EXPECT_EQ(primary.grants_for(), 1s);
  EXPECT_TRUE(primary.may_grant(primary.term(), at(101s) - 1ns));
  EXPECT_FALSE(primary.may_grant(primary.term(), at(101s)));
  EXPECT_FALSE(primary.may_grant(primary.term() + 1, at(100s)));
  EXPECT_EQ(named_primary{60s}.grants_for(), 2s);
  EXPECT_EQ(named_primary{600ms}.grants_for(), 200ms);
  EXPECT_EQ(named_primary{100ms}.grants_for(), 50ms) << "never longer than half of its worth";
}

// Nobody knows whom a majority would have named in between: another, for whose leases this one does not wait.
TEST(named_primary, grants_behind_a_gap_from_when_it_was_heard_P22) {
  named_primary primary{6s};
  primary.name("a", at(100s), at(100s));
  primary.name("a", at(102s), at(102'500ms));
  EXPECT_FALSE(primary.counts_grant(primary.term(), at(102'499ms), at(102'600ms)));
  EXPECT_TRUE(primary.counts_grant(primary.term(), at(102'500ms), at(102'600ms)));
}

// One is too fast, the other one too slow.
TEST(named_primary, waits_for_the_grants_of_the_one_before_by_clocks_as_far_apart_as_they_may_be_P22) {
  for (const std::int64_t ppm : {0, 1'000, 10'000, 50'000, 200'000}) {
    const named_primary primary{60s, core::clock_drift{ppm}};
    EXPECT_GE(primary.moving_takes() * (1'000'000 - ppm), primary.grants_for() * (1'000'000 + ppm)) << ppm;
    EXPECT_LE(primary.moving_takes(), 2 * primary.grants_for()) << ppm;
  }
}

// Whoever has a larger max_ttl counts its grants for longer (a rolling change of it, say).
TEST(named_primary, waits_for_the_grants_of_clients_with_a_larger_max_ttl_P22) {
  named_primary primary{6s};
  const named_primary others{60s};
  EXPECT_LT(primary.moving_takes(), others.grants_for());
  EXPECT_GT(primary.moving_takes(60s), others.grants_for());
  EXPECT_EQ(primary.moving_takes(3s), primary.moving_takes());
  EXPECT_EQ(primary.moving_takes(duration::max()), primary.longest_moving_takes());
  primary.name("a", at(100s), at(100s));
  EXPECT_EQ(primary.renewals_from(primary.term(), 60s), time_point{}) << "nobody was before it";
  primary.name("b", at(110s), at(111s));
  EXPECT_EQ(primary.renewals_from(primary.term(), 60s), at(111s) + primary.moving_takes(60s));
}

// Two clocks that differ by twice rho: what is counted there is over when what is renewed here begins to count.
TEST(named_primary, renews_when_no_grant_of_the_one_before_counts_any_more_P22) {
  named_primary primary{60s};
  EXPECT_EQ(primary.renewals_from(0), never);
  primary.name("a", at(100s), at(100s));
  EXPECT_EQ(primary.renewals_from(primary.term()), time_point{}) << "nobody was before it";
  const auto before = primary.term();
  primary.name("b", at(110s), at(111s));
  EXPECT_EQ(primary.renewals_from(before), never);
  const auto from = primary.renewals_from(primary.term());
  EXPECT_EQ(from, at(111s) + primary.moving_takes());
  EXPECT_GE(primary.moving_takes(), primary.grants_for() / 99 * 101);
  primary.name("b", at(112s), at(113s));
  EXPECT_EQ(primary.renewals_from(primary.term()), from) << "named again is not named anew";
}

TEST(named_primary, is_worth_nothing_when_nobody_is_named_P22) {
  named_primary primary{60s};
  primary.name_nobody();
  EXPECT_EQ(primary.term(), 0U) << "nobody ever was";
  primary.name("a", at(1s), at(1s));
  const auto of_a = primary.term();
  primary.name_nobody();
  for (const auto term : {of_a, primary.term()}) {
    EXPECT_LE(primary.until(term), time_point{});
    EXPECT_FALSE(primary.may_grant(term, at(1s)));
    EXPECT_FALSE(primary.is_fresh(term, at(1s)));
  }
  const auto of_nobody = primary.term();
  primary.name_nobody();
  EXPECT_EQ(primary.term(), of_nobody);
  primary.name("a", at(2s), at(2s));
  EXPECT_GT(primary.term(), of_nobody);
  EXPECT_TRUE(primary.may_grant(primary.term(), at(2s)));
}

// It may be another server behind the old address, with other keys.
TEST(named_primary, is_in_a_new_term_when_it_comes_back) {
  named_primary primary{10s};
  primary.name("a", at(100s), at(100s));
  const auto before = primary.term();
  primary.name("b", at(101s), at(101s));
  primary.name("a", at(102s), at(102s));
  EXPECT_NE(primary.term(), before);
  EXPECT_EQ(primary.until(before), time_point{});
}

}  // namespace
}  // namespace holdfast::engine
