// SPDX-License-Identifier: Apache-2.0
// H54, C4: the command is gone before the lease is. The policy is driven by hand: time and the lease's state in, what
// to do out.
#include "loss_policy.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;
using act = loss_policy::act;
using holdfast::errc;
using ms = std::chrono::milliseconds;

const std::error_code still_ours{};

// A server falls silent right after a renewal: a lease that runs down, looked at when the policy asks for it.
struct run_down {
  explicit run_down(ms ttl, std::optional<ms> kill_after = {}, on_lost when_lost = on_lost::stop)
      : policy{ttl, kill_after, when_lost}, ends{ttl - ttl / 100 - 2ms} {}

  // What comes next, and when it comes, counted from the last good renewal.
  std::pair<act, ms> next() {
    while (true) {
      const auto left = std::max(ends - now, 0ms);
      const auto step = policy.look(now, left, still_ours);
      if (step.what != act::none || step.look_again_in == ms::max()) return {step.what, now};
      now += std::max(step.look_again_in, 1ms);
    }
  }

  loss_policy policy;
  ms ends;
  ms now{0};
};

TEST(loss_policy, of_a_3s_ttl_kills_well_before_3s) {
  run_down lease{3s};
  const auto [first, stopped_at] = lease.next();
  const auto [second, killed_at] = lease.next();
  EXPECT_EQ(first, act::stop);
  EXPECT_EQ(second, act::kill);
  EXPECT_LE(killed_at, 2800ms);
  EXPECT_EQ(killed_at - stopped_at, 750ms);  // A quarter of the ttl.
}

class every_ttl : public testing::TestWithParam<ms> {};

TEST_P(every_ttl, leaves_time_for_a_renewal_and_kills_before_the_end) {
  run_down lease{GetParam()};
  const auto stopped_at = lease.next().second;
  const auto killed_at = lease.next().second;
  EXPECT_GT(stopped_at, GetParam() / 2);  // A renewal is due at a third of it.
  EXPECT_LT(killed_at, lease.ends);
}

INSTANTIATE_TEST_SUITE_P(all, every_ttl, testing::Values(100ms, 250ms, 1s, 3s, 10s, 60s, 24h));

TEST(loss_policy, takes_a_shorter_kill_after_as_it_is) {
  run_down lease{10s, 300ms};
  const auto stopped_at = lease.next().second;
  EXPECT_EQ(lease.next().second - stopped_at, 300ms);
}

TEST(loss_policy, asks_to_be_woken_only_when_the_lease_could_be_at_its_limit) {
  loss_policy policy{10s, {}, on_lost::stop};
  const auto step = policy.look(0ms, 9898ms, still_ours);
  EXPECT_EQ(step.what, act::none);
  EXPECT_EQ(step.look_again_in, 9898ms - policy.grace() - policy.margin());
}

TEST(loss_policy, does_nothing_while_renewals_move_the_deadline) {
  loss_policy policy{3s, {}, on_lost::stop};
  for (ms now = 0ms; now < 1h; now += 1s) EXPECT_EQ(policy.look(now, 2900ms, still_ours).what, act::none);
  EXPECT_FALSE(policy.has_stopped());
}

TEST(loss_policy, does_not_take_back_a_stop_when_a_renewal_comes_after_all) {
  loss_policy policy{3s, {}, on_lost::stop};
  EXPECT_EQ(policy.look(0ms, 900ms, still_ours).what, act::stop);
  policy.look(10ms, 2900ms, still_ours);
  EXPECT_TRUE(policy.has_stopped());
}

TEST(loss_policy, kills_at_once_what_slept_past_the_end) {
  loss_policy policy{10s, {}, on_lost::stop};
  EXPECT_EQ(policy.look(1h, 0ms, still_ours).what, act::kill);
}

TEST(loss_policy, kills_at_once_what_the_library_calls_expired) {
  loss_policy policy{10s, {}, on_lost::stop};
  EXPECT_EQ(policy.look(1h, 0ms, errc::lease_expired).what, act::kill);
}

class told_by_the_server : public testing::TestWithParam<errc> {};

TEST_P(told_by_the_server, stops_at_once_and_kills_after_the_grace) {
  loss_policy policy{10s, {}, on_lost::stop};
  const auto step = policy.look(500ms, 0ms, GetParam());
  EXPECT_EQ(step.what, act::stop);
  EXPECT_EQ(step.look_again_in, 2500ms);
  EXPECT_EQ(policy.look(2999ms, 0ms, GetParam()).what, act::none);
  EXPECT_EQ(policy.look(3000ms, 0ms, GetParam()).what, act::kill);
}

INSTANTIATE_TEST_SUITE_P(all, told_by_the_server,
                         testing::Values(errc::lease_gone, errc::lease_taken, errc::lease_broken));

TEST(loss_policy, on_lost_kill_waits_for_a_renewal_to_the_last_and_sends_no_term) {
  run_down lease{3s, {}, on_lost::kill};
  const auto [what, when] = lease.next();
  EXPECT_EQ(what, act::kill);
  EXPECT_EQ(when, lease.ends - lease.policy.margin());
}

TEST(loss_policy, on_lost_warn_says_it_once_and_stops_nothing) {
  run_down lease{3s, {}, on_lost::warn};
  EXPECT_EQ(lease.next().first, act::warn);
  EXPECT_EQ(lease.next().first, act::none);
  EXPECT_FALSE(lease.policy.has_stopped());
}

TEST(loss_policy, of_kill_after_zero_kills_without_a_grace) {
  run_down lease{3s, 0ms};
  EXPECT_EQ(lease.next().first, act::kill);
}

}  // namespace
