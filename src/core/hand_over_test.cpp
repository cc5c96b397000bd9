// SPDX-License-Identifier: Apache-2.0
#include "core/hand_over.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

class hand_over : public testing::Test {
protected:
  const time_point granted_at{100s};
  const hand_over_wish wish{.ttl = 10s};
  const hand_over_limits limits{.most = 3, .longest = 20ms};
  hand_over_chain chain{fencing_token{1000}, 16, granted_at, wish, limits};
  const time_point now = granted_at + 1ms;
  const time_point deadline = granted_at + 9s;
};

TEST_F(hand_over, gives_each_a_larger_token_of_the_block_P14b) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(chain.can_pass(now, deadline, wish));
    EXPECT_EQ(chain.pass().value(), 1000 + i);
  }
}

TEST_F(hand_over, ends_after_so_many_times_P14) {
  for (int i = 0; i < 3; ++i) chain.pass();
  EXPECT_FALSE(chain.can_pass(now, deadline, wish));
}

TEST_F(hand_over, ends_with_the_block) {
  hand_over_chain small{fencing_token{1000}, 1, granted_at, wish, limits};
  small.pass();
  EXPECT_FALSE(small.can_pass(now, deadline, wish));
  const hand_over_chain none{fencing_token{1000}, 0, granted_at, wish, limits};
  EXPECT_FALSE(none.can_pass(now, deadline, wish));
}

TEST_F(hand_over, ends_so_long_after_the_servers_grant_P14) {
  EXPECT_TRUE(chain.can_pass(chain.ends_at() - 1ns, deadline, wish));
  EXPECT_FALSE(chain.can_pass(chain.ends_at(), deadline, wish));
  EXPECT_EQ(chain.ends_at(), granted_at + 20ms);
}

TEST_F(hand_over, wants_30_percent_of_the_ttl_left_for_the_receiver_P14b) {
  EXPECT_TRUE(chain.can_pass(now, now + 3s, wish));
  EXPECT_FALSE(chain.can_pass(now, now + 3s - 1ns, wish));
}

TEST_F(hand_over, is_for_the_same_ttl_and_renewal_only_P13_P14b) {
  EXPECT_FALSE(chain.can_pass(now, deadline, {.ttl = 9s}));
  EXPECT_FALSE(chain.can_pass(now, deadline, {.ttl = 11s}));
  EXPECT_FALSE(chain.can_pass(now, deadline, {.ttl = 10s, .renews = false}));
}

// What people see of the holder would be the giver's.
TEST_F(hand_over, is_for_the_same_label_only) {
  EXPECT_FALSE(chain.can_pass(now, deadline, {.ttl = 10s, .owner = "nightly"}));
  const hand_over_chain nightly{fencing_token{1000}, 16, granted_at, {.ttl = 10s, .owner = "nightly"}, limits};
  EXPECT_TRUE(nightly.can_pass(now, deadline, {.ttl = 10s, .owner = "nightly"}));
  EXPECT_FALSE(nightly.can_pass(now, deadline, wish));
}

TEST_F(hand_over, meets_a_demand_for_a_token_or_is_none_P14b) {
  EXPECT_FALSE(chain.can_pass(now, deadline, {.ttl = 10s, .max_hold = 60s})) << "R14";
  EXPECT_TRUE(chain.can_pass(now, deadline, {.ttl = 10s, .min_fence = fencing_token{1000}}));
  EXPECT_FALSE(chain.can_pass(now, deadline, {.ttl = 10s, .min_fence = fencing_token{1001}}));
  chain.pass();
  EXPECT_TRUE(chain.can_pass(now, deadline, {.ttl = 10s, .min_fence = fencing_token{1001}}));
}

// ---- the server says that nobody waits outside ----

class hand_over_that_may_go_on : public hand_over {
protected:
  hand_over_chain longer{fencing_token{1000}, 16, granted_at, wish, {.most = 4, .longest = 20ms, .may_go_on = true}};
};

TEST_F(hand_over_that_may_go_on, asks_once_when_half_of_it_is_done_P14) {
  longer.pass();
  EXPECT_FALSE(longer.wants_to_go_on(now, deadline));
  EXPECT_TRUE(longer.wants_to_go_on(granted_at + 10ms, deadline)) << "or half of its time is over";
  longer.pass();
  EXPECT_TRUE(longer.wants_to_go_on(now, deadline));
  longer.ask_to_go_on(now);
  longer.pass();
  EXPECT_FALSE(longer.wants_to_go_on(now, deadline));
}

TEST_F(hand_over_that_may_go_on, begins_anew_from_where_it_asked_P14) {
  longer.pass();
  longer.pass();
  longer.ask_to_go_on(now);
  longer.pass();
  longer.go_on();
  EXPECT_EQ(longer.ends_at(), now + 20ms);
  EXPECT_EQ(longer.last(), fencing_token{1020});
  for (std::uint64_t i = 4; i <= 6; ++i) {
    ASSERT_TRUE(longer.can_pass(now, deadline, wish)) << "one of the four was before the answer";
    EXPECT_EQ(longer.pass().value(), 1000 + i);
  }
  EXPECT_FALSE(longer.can_pass(now, deadline, wish));
  EXPECT_TRUE(longer.wants_to_go_on(now, deadline));
}

TEST_F(hand_over_that_may_go_on, does_not_ask_with_a_lease_that_is_soon_renewed) {
  longer.pass();
  longer.pass();
  EXPECT_TRUE(longer.wants_to_go_on(now, now + 7s));
  EXPECT_FALSE(longer.wants_to_go_on(now, now + 7s - 1ns));
}

TEST_F(hand_over_that_may_go_on, does_not_ask_when_it_is_over_or_may_not) {
  longer.pass();
  longer.pass();
  EXPECT_FALSE(longer.wants_to_go_on(longer.ends_at(), deadline));
  chain.pass();
  chain.pass();
  EXPECT_FALSE(chain.wants_to_go_on(now, deadline)) << "replicas are to have its tokens";
}

// A server that lost its data grants smaller tokens then.
TEST(block_of, does_not_outrun_the_clock_C2) {
  const hand_over_limits many{1000, 20ms};
  const server_time clock{1000s};
  const fencing_token at_it{1'001'000'000};
  const fencing_token ahead{1'001'000'001};
  EXPECT_EQ(block_of(many, true, {}, clock), 1000);
  EXPECT_EQ(block_of(many, true, at_it, clock), 1000);
  EXPECT_EQ(block_of(many, true, ahead, clock), 16);
  EXPECT_EQ(block_of(many, false, {}, clock), 16) << "nobody is there to be handed them";
  EXPECT_EQ(block_of({4, 20ms}, true, ahead, clock), 4);
}

}  // namespace

}  // namespace holdfast::core
