// SPDX-License-Identifier: Apache-2.0
#include "core/lease_keeper.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 9s;  // Renewed every 3 s; lost() 450 ms before the deadline; at_risk() 1.5 s before.
constexpr clock_drift drift{10'000};
constexpr time_point t0{1h};

time_point ends(time_point sent_at) { return deadline_of(sent_at, ttl, drift); }

class lease_keeper_test : public testing::Test {
protected:
  seeded_random rng;
  lease_keeper keeper{ends(t0), ttl, renewal::automatic, drift, t0};
  const time_point lost_at = ends(t0) - 450ms;
  const time_point risk_at = ends(t0) - 1500ms;

  void lose() { ASSERT_EQ(keeper.on_wake(lost_at, true).lost, errc::lease_expired); }
};

// ---- the state table, row by row ----

TEST_F(lease_keeper_test, held_sleeps_until_the_next_send) {
  const auto what = keeper.on_wake(t0 + 3s - 1ns, true);
  EXPECT_FALSE(what.renew);
  EXPECT_FALSE(what.lost);
  EXPECT_EQ(what.wake_at, t0 + 3s);
}

TEST_F(lease_keeper_test, one_in_doubt_is_due_now_if_it_renews_itself_H3) {
  keeper.hurry(t0 + 1s);
  EXPECT_TRUE(keeper.on_wake(t0 + 1s, true).renew);
  lease_keeper by_hand{ends(t0), ttl, renewal::none, drift, t0};
  by_hand.hurry(t0 + 1s);
  EXPECT_FALSE(by_hand.on_wake(t0 + 1s, true).renew);
}

TEST_F(lease_keeper_test, held_renews_when_the_send_is_due) {
  const auto what = keeper.on_wake(t0 + 3s, true);
  EXPECT_TRUE(what.renew);
  EXPECT_EQ(what.wake_at, t0 + 4s) << "an attempt gets min(ttl/6, a third of what is left, 1 s)";
}

TEST_F(lease_keeper_test, a_silent_renewal_is_sent_again_until_the_loss) {
  int sent = 0;
  time_point now = t0;
  for (;;) {
    const auto what = keeper.on_wake(now, true);
    if (what.lost) break;
    sent += what.renew;
    ASSERT_GT(what.wake_at, now);
    now = what.wake_at;
  }
  EXPECT_EQ(now, lost_at);
  EXPECT_GE(sent, 6);
}

TEST_F(lease_keeper_test, lost_fires_a_twentieth_before_the_deadline_C4) {
  EXPECT_FALSE(keeper.on_wake(lost_at - 1ns, true).lost);
  EXPECT_EQ(keeper.on_wake(lost_at, true).lost, errc::lease_expired);
}

TEST_F(lease_keeper_test, lost_fires_5_ms_before_the_deadline_of_a_short_lease_C4) {
  const auto deadline = deadline_of(t0, 100ms, drift);
  lease_keeper brief{deadline, 100ms, renewal::none, drift, t0};
  EXPECT_FALSE(brief.on_wake(deadline - 5ms - 1ns, true).lost);
  EXPECT_TRUE(brief.on_wake(deadline - 5ms, true).lost);
}

TEST_F(lease_keeper_test, the_driver_that_sleeps_as_told_is_in_time_C4) {
  EXPECT_LE(keeper.on_wake(lost_at - 1ms, false).wake_at, lost_at);
}

// B19: the server's ttl runs from when it read the request, at the latest from when we sent it; not from the answer.
TEST_F(lease_keeper_test, renewed_counts_from_the_send_instant_B19) {
  keeper.on_wake(t0 + 3s, true);
  EXPECT_TRUE(keeper.on_renewed(t0 + 5s, t0 + 3s, rng));
  EXPECT_EQ(keeper.deadline(), ends(t0 + 3s));
}

// B17: rueidislock added the period to the old instant, so one delay made every later renewal late.
TEST_F(lease_keeper_test, the_next_send_counts_from_the_last_send_B17) {
  keeper.on_wake(t0 + 5s, true);
  keeper.on_renewed(t0 + 5500ms, t0 + 5s, rng);
  const auto next = keeper.on_wake(t0 + 5500ms, true).wake_at;
  EXPECT_GE(next, t0 + 5s + 2700ms);
  EXPECT_LE(next, t0 + 5s + 3300ms);
}

TEST_F(lease_keeper_test, renewals_spread_by_a_tenth_of_the_period) {
  auto least = never;
  auto most = t0;
  for (int i = 0; i < 200; ++i) {
    lease_keeper one{ends(t0), ttl, renewal::automatic, drift, t0};
    one.on_renewed(t0 + 3s, t0 + 3s, rng);
    least = std::min(least, one.next_send_at());
    most = std::max(most, one.next_send_at());
  }
  EXPECT_LT(least, t0 + 6s - 250ms);
  EXPECT_GE(least, t0 + 6s - 300ms);
  EXPECT_GT(most, t0 + 6s + 250ms);
  EXPECT_LE(most, t0 + 6s + 300ms);
}

TEST_F(lease_keeper_test, answers_out_of_order_never_move_the_deadline_back_P13c) {
  EXPECT_TRUE(keeper.on_renewed(t0 + 5s, t0 + 4s, rng));
  EXPECT_FALSE(keeper.on_renewed(t0 + 5s, t0 + 3s, rng));
  EXPECT_EQ(keeper.deadline(), ends(t0 + 4s));
}

TEST_F(lease_keeper_test, a_renewal_answered_just_before_the_loss_counts) {
  EXPECT_TRUE(keeper.on_renewed(lost_at - 1ns, t0 + 3s, rng));
  EXPECT_FALSE(keeper.on_wake(lost_at, true).lost);
}

// P13c: whoever wakes at that instant says "lost"; the answer must not depend on who comes first.
TEST_F(lease_keeper_test, a_renewal_answered_at_the_instant_of_loss_changes_nothing_P13c) {
  EXPECT_FALSE(keeper.on_renewed(lost_at, t0 + 3s, rng));
  EXPECT_EQ(keeper.deadline(), ends(t0));
  EXPECT_EQ(keeper.on_wake(lost_at, true).lost, errc::lease_expired);
}

TEST_F(lease_keeper_test, a_refusal_is_a_loss_at_once_with_its_reason_B18) {
  for (const auto reason : {errc::lease_gone, errc::lease_taken, errc::lease_broken}) {
    lease_keeper one{ends(t0), ttl, renewal::automatic, drift, t0};
    one.on_refused(reason);
    EXPECT_EQ(one.on_wake(t0 + 1s, true).lost, reason);
  }
}

TEST_F(lease_keeper_test, a_refused_lease_is_not_renewed_by_an_older_answer_B13) {
  keeper.on_refused(errc::lease_gone);
  EXPECT_FALSE(keeper.on_renewed(t0 + 4s, t0 + 3s, rng));
  EXPECT_FALSE(keeper.on_wake(t0 + 4s, true).renew);
}

TEST_F(lease_keeper_test, lost_is_told_once_and_is_the_end_B13) {
  lose();
  keeper.on_refused(errc::lease_taken);
  keeper.on_failed(lost_at, rng);
  keeper.on_connected(lost_at);
  EXPECT_FALSE(keeper.on_renewed(lost_at, t0 + 8s, rng));
  const auto what = keeper.on_wake(lost_at + 1h, true);
  EXPECT_FALSE(what.lost);
  EXPECT_FALSE(what.renew);
  EXPECT_FALSE(what.at_risk);
  EXPECT_EQ(what.wake_at, never);
  EXPECT_EQ(keeper.deadline(), ends(t0));
}

// ---- failures ----

// B18: bsm/redislock retried on "not yours"; the other half of the rule is that nothing else is a loss.
TEST_F(lease_keeper_test, a_failure_moves_nothing_and_is_retried_soon_B18) {
  keeper.on_wake(t0 + 3s, true);
  keeper.on_failed(t0 + 3s, rng);
  EXPECT_EQ(keeper.deadline(), ends(t0));
  const auto what = keeper.on_wake(t0 + 3s, true);
  EXPECT_FALSE(what.lost);
  EXPECT_LE(what.wake_at, t0 + 3s + 25ms);
  EXPECT_GT(what.wake_at, t0 + 3s);
}

TEST_F(lease_keeper_test, failures_back_off_to_a_quarter_of_what_is_left) {
  time_point now = t0 + 3s;
  for (int i = 0; i < 200 && !keeper.is_lost(); ++i) {
    const auto what = keeper.on_wake(now, true);
    if (what.lost) break;
    if (what.renew) keeper.on_failed(now, rng);
    const auto next = keeper.next_send_at();
    ASSERT_LE(next - now, std::min<duration>(2s, (keeper.deadline() - now) / 4));
    now = std::min(next, what.wake_at);
  }
  EXPECT_TRUE(keeper.is_lost()) << "200 tries were not enough: it did not back off";
}

TEST_F(lease_keeper_test, a_success_begins_the_retries_anew) {
  keeper.on_wake(t0 + 3s, true);
  for (int i = 0; i < 20; ++i) keeper.on_failed(t0 + 3s, rng);
  keeper.on_renewed(t0 + 3s, t0 + 3s, rng);
  keeper.on_failed(t0 + 4s, rng);
  EXPECT_LE(keeper.next_send_at(), t0 + 4s + 25ms);
}

// ---- without a connection ----

TEST_F(lease_keeper_test, waits_for_a_connection_and_then_renews_at_once) {
  EXPECT_FALSE(keeper.on_wake(t0 + 3s, false).renew);
  EXPECT_TRUE(keeper.waits_for_connection());
  keeper.on_connected(t0 + 4s);
  EXPECT_FALSE(keeper.waits_for_connection());
  EXPECT_TRUE(keeper.on_wake(t0 + 4s, true).renew);
}

TEST_F(lease_keeper_test, connects_before_the_first_renewal_is_due) {
  EXPECT_EQ(keeper.first_wake_at(false), t0 + 1s);
  EXPECT_EQ(keeper.first_wake_at(true), t0 + 3s);
  EXPECT_FALSE(keeper.on_wake(t0 + 1s - 1ns, false).connect);
  EXPECT_EQ(keeper.on_wake(t0 + 1s - 1ns, false).wake_at, t0 + 1s);
  const auto what = keeper.on_wake(t0 + 1s, false);
  EXPECT_TRUE(what.connect);
  EXPECT_EQ(what.wake_at, t0 + 3s);
  keeper.on_connected(t0 + 1s);
  EXPECT_FALSE(keeper.on_wake(t0 + 1s, true).renew) << "it is not due";
  EXPECT_FALSE(keeper.on_wake(t0 + 1s, true).connect);
}

TEST_F(lease_keeper_test, a_connection_does_not_hurry_what_is_not_due) {
  keeper.on_connected(t0 + 1s);
  EXPECT_FALSE(keeper.on_wake(t0 + 1s, true).renew);
}

// ---- renewal::none ----

TEST_F(lease_keeper_test, a_lease_without_renewal_is_never_renewed) {
  lease_keeper fixed{ends(t0), ttl, renewal::none, drift, t0};
  for (time_point now = t0; now < lost_at; now += 50ms) EXPECT_FALSE(fixed.on_wake(now, true).renew);
  EXPECT_EQ(fixed.on_wake(lost_at, true).lost, errc::lease_expired);
}

// ---- at_risk ----

TEST_F(lease_keeper_test, at_risk_is_told_once) {
  EXPECT_FALSE(keeper.on_wake(risk_at - 1ns, true).at_risk);
  EXPECT_TRUE(keeper.on_wake(risk_at, true).at_risk);
  EXPECT_FALSE(keeper.on_wake(risk_at + 1ms, true).at_risk);
}

TEST_F(lease_keeper_test, at_risk_is_told_again_after_a_renewal) {
  keeper.on_wake(risk_at, true);
  ASSERT_TRUE(keeper.on_renewed(risk_at, t0 + 3s, rng));
  EXPECT_FALSE(keeper.on_wake(risk_at, true).at_risk);
  EXPECT_TRUE(keeper.on_wake(ends(t0 + 3s) - 1500ms, true).at_risk);
}

TEST_F(lease_keeper_test, the_driver_is_woken_for_the_warning) {
  EXPECT_LE(keeper.on_wake(risk_at - 1ms, false).wake_at, risk_at);
}

// ---- the first renewal ----

// The danger: the grant was 60 % of the ttl on its way, or was found again by a repeated request, so that less than a
// ttl is left. A first renewal a third of the ttl after the answer would come behind the loss.
TEST_F(lease_keeper_test, the_first_renewal_of_a_late_grant_is_not_late_too_B17) {
  const time_point read_at = t0 + 6s;
  lease_keeper late{ends(t0), ttl, renewal::automatic, drift, read_at};
  EXPECT_TRUE(late.on_wake(read_at, true).renew);

  lease_keeper found_again{deadline_of(t0, 3s, drift), ttl, renewal::automatic, drift, t0};
  EXPECT_TRUE(found_again.on_wake(t0, true).renew);
}

// ---- any order of events ----

enum class event { wake, wake_offline, renewed, renewed_late, failed, refused, connected, ask, stop_asking };

// The danger: an order of answers that nobody thought of. The trick: a model that remembers only what may be trusted.
// The expectations stand beside the assertions.
TEST(lease_keeper, invariants_hold_for_any_events_B1_B13_B18_C4) {
  EXPECT_TRUE(rc::check("random events", [](std::uint64_t seed) {
    seeded_random rng{seed};
    const auto mode = *rc::gen::element(renewal::automatic, renewal::none);
    lease_keeper keeper{ends(t0), ttl, mode, drift, t0};
    time_point now = t0;
    time_point trusted = ends(t0);
    std::vector<time_point> in_flight;
    bool was_lost = false;
    bool was_refused = false;
    bool is_asked = false;

    const auto wake = [&](bool can_send) {
      const time_point lost_at = trusted - 450ms;
      const auto what = keeper.on_wake(now, can_send);
      if (was_lost) {
        RC_ASSERT(!what.lost && !what.renew && !what.at_risk && what.wake_at == never);
        return;
      }
      RC_ASSERT(what.lost.has_value() == (was_refused || now >= lost_at));
      was_lost = what.lost.has_value();
      if (was_lost) {
        RC_ASSERT(!what.renew);
        return;
      }
      RC_ASSERT(what.wake_at > now);  // Progress: a driver that does as it is told never spins.
      RC_ASSERT(what.wake_at <= lost_at);
      RC_ASSERT(!what.renew || (can_send && (mode == renewal::automatic || is_asked)));
      if (what.renew) in_flight.push_back(now);
    };

    for (const auto e :
         *rc::gen::container<std::vector<event>>(rc::gen::weightedElement<event>({{6, event::wake},
                                                                                  {2, event::wake_offline},
                                                                                  {4, event::renewed},
                                                                                  {1, event::renewed_late},
                                                                                  {2, event::failed},
                                                                                  {1, event::refused},
                                                                                  {2, event::connected},
                                                                                  {1, event::ask},
                                                                                  {1, event::stop_asking}}))) {
      now += duration{rng.between(0, 900'000'000)};
      if (e == event::wake || e == event::wake_offline) wake(e == event::wake);
      if (e == event::connected) keeper.on_connected(now);
      if (e == event::ask) keeper.ask(now);
      if (e == event::stop_asking) keeper.stop_asking();
      if (e == event::ask || e == event::stop_asking) is_asked = e == event::ask;
      if (e == event::refused && rng.between(0, 3) == 0) {
        keeper.on_refused(errc::lease_gone);
        was_refused = true;
      }
      if (in_flight.empty()) continue;
      const auto which = e == event::renewed_late ? in_flight.begin() : in_flight.end() - 1;
      const time_point sent_at = *which;
      if (e == event::failed) {
        in_flight.erase(which);
        keeper.on_failed(now, rng);
      } else if (e == event::renewed || e == event::renewed_late) {
        in_flight.erase(which);
        const bool counts = !was_lost && !was_refused && now < trusted - 450ms && ends(sent_at) > trusted;
        RC_ASSERT(keeper.on_renewed(now, sent_at, rng) == counts);
        if (counts) trusted = ends(sent_at);
      }
      RC_ASSERT(keeper.deadline() == trusted);
      RC_ASSERT(keeper.is_lost() == was_lost);
    }
  }));
}

}  // namespace

}  // namespace holdfast::core
