// SPDX-License-Identifier: Apache-2.0
// A renewal that somebody asks for: at once, again while it is unanswered, and then as before.
#include "core/lease_keeper.hpp"
#include "core/random_testing.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 9s;  // Renewed every 3 s; lost() 450 ms before the deadline.
constexpr clock_drift drift{10'000};
constexpr time_point t0{1h};

time_point ends(time_point sent_at) { return deadline_of(sent_at, ttl, drift); }

class an_asked_keeper : public testing::TestWithParam<renewal> {
protected:
  seeded_random rng;
  lease_keeper keeper{ends(t0), ttl, GetParam(), drift, t0};
  bool renews_itself() const { return GetParam() == renewal::automatic; }
};

INSTANTIATE_TEST_SUITE_P(of_each_mode, an_asked_keeper, testing::Values(renewal::automatic, renewal::none),
                         [](const auto& which) { return which.param == renewal::none ? "none" : "automatic"; });

TEST_P(an_asked_keeper, renews_at_once) {
  keeper.ask(t0 + 1s);
  EXPECT_TRUE(keeper.on_wake(t0 + 1s, true).renew);
  EXPECT_TRUE(keeper.on_renewed(t0 + 1100ms, t0 + 1s, rng));
  EXPECT_EQ(keeper.deadline(), ends(t0 + 1s));
}

TEST_P(an_asked_keeper, sends_again_while_nobody_answers_or_the_answer_is_a_failure) {
  keeper.ask(t0);
  EXPECT_TRUE(keeper.on_wake(t0, true).renew);
  const auto next = keeper.on_wake(t0 + 500ms, true);
  EXPECT_FALSE(next.renew);
  EXPECT_TRUE(keeper.on_wake(next.wake_at, true).renew);
  keeper.on_failed(next.wake_at, rng);
  EXPECT_LE(keeper.next_send_at(), next.wake_at + 100ms);
}

TEST_P(an_asked_keeper, waits_for_a_connection) {
  keeper.ask(t0);
  EXPECT_FALSE(keeper.on_wake(t0, false).renew);
  EXPECT_TRUE(keeper.waits_for_connection());
  keeper.on_connected(t0 + 1s);
  EXPECT_TRUE(keeper.on_wake(t0 + 1s, true).renew);
}

// Its own renewal may wait for the same connection.
TEST_P(an_asked_keeper, that_is_asked_no_longer_without_a_connection_waits_for_one_as_before_C4) {
  EXPECT_FALSE(keeper.on_wake(t0 + 3s, false).renew);
  keeper.ask(t0 + 4s);
  EXPECT_FALSE(keeper.on_wake(t0 + 4s, false).renew);
  keeper.stop_asking();
  EXPECT_EQ(keeper.waits_for_connection(), renews_itself());
  keeper.on_connected(t0 + 5s);
  EXPECT_EQ(keeper.on_wake(t0 + 5s, true).renew, renews_itself());
}

TEST_P(an_asked_keeper, goes_on_as_before_once_the_wish_is_met) {
  keeper.ask(t0 + 1s);
  keeper.on_wake(t0 + 1s, true);
  keeper.on_renewed(t0 + 1s, t0 + 1s, rng);
  keeper.stop_asking();
  if (renews_itself()) {
    EXPECT_GE(keeper.next_send_at(), t0 + 1s + 2700ms);
    EXPECT_LE(keeper.next_send_at(), t0 + 1s + 3300ms);
  } else {
    EXPECT_EQ(keeper.next_send_at(), never);
    EXPECT_EQ(keeper.on_wake(ends(t0 + 1s) - 450ms, true).lost, errc::lease_expired);
  }
}

TEST_P(an_asked_keeper, that_is_asked_no_longer_before_an_answer_goes_on_as_before) {
  keeper.ask(t0 + 1s);
  keeper.on_wake(t0 + 1s, true);
  keeper.stop_asking();
  EXPECT_EQ(keeper.next_send_at(), renews_itself() ? t0 + 3s : never);
  // The answer comes yet: it moves the deadline, and begins nothing.
  EXPECT_TRUE(keeper.on_renewed(t0 + 2s, t0 + 1s, rng));
  EXPECT_EQ(keeper.next_send_at() == never, !renews_itself());
}

TEST_P(an_asked_keeper, does_not_try_again_for_a_failure_that_comes_after_the_asking) {
  keeper.ask(t0 + 1s);
  keeper.on_wake(t0 + 1s, true);
  keeper.stop_asking();
  keeper.on_failed(t0 + 1100ms, rng);
  EXPECT_EQ(keeper.next_send_at() == never, !renews_itself());
}

// An older renewal is answered while the asked one is under way.
TEST_P(an_asked_keeper, does_not_put_off_its_next_try_for_an_older_answer) {
  keeper.ask(t0 + 1s);
  const auto asked = keeper.on_wake(t0 + 1s, true);
  keeper.on_renewed(t0 + 1100ms, t0 + 500ms, rng);
  EXPECT_EQ(keeper.next_send_at(), asked.wake_at);
}

TEST_P(an_asked_keeper, asks_in_vain_once_it_is_lost) {
  keeper.on_refused(errc::lease_gone);
  keeper.on_wake(t0, true);
  keeper.ask(t0 + 1s);
  EXPECT_FALSE(keeper.on_wake(t0 + 1s, true).renew);
  EXPECT_FALSE(keeper.stands(t0 + 1s));
}

}  // namespace

}  // namespace holdfast::core
