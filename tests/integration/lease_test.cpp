// SPDX-License-Identifier: Apache-2.0
// What a holder may rely on: the lease keeps itself alive, and says so in time when it cannot (C4).
#include "integration/fixture.hpp"
#include "support/key_events.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

class lease_on_redis : public on_redis {};

TEST_F(lease_on_redis, outlives_its_ttl_many_times_by_renewal) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 1500ms});
  const auto until = boottime() + 4s;
  while (boottime() < until) {
    ASSERT_TRUE(held.valid());
    ASSERT_TRUE(exists("hf:{x}"));
    let_pass(5ms);
  }
  EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(lease_on_redis, without_renewal_ends_with_its_ttl) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 200ms, .renew = renewal::none});
  EXPECT_TRUE(eventually([&] { return !held.valid(); }, 210ms));
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
}

// H68: a program that hangs keeps it no longer, however well its client renews.
TEST_F(lease_on_redis, ends_with_its_longest_hold_R14) {
  auto locks = make_client();
  (void)locks.inspect("x");  // Connected, which is none of it.
  const auto asked_at = boottime();
  auto held = locks.acquire("x", {.ttl = 900ms, .max_hold = 2700ms});
  EXPECT_TRUE(eventually([&] { return boottime() >= asked_at + 2100ms; }, 3s));
  EXPECT_TRUE(held.valid()) << "it was renewed until then";
  EXPECT_LE(held.remaining(), 2700ms - (boottime() - asked_at) + 100ms);
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 600ms + slack));
  EXPECT_LT(boottime(), asked_at + 2700ms + slack);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_held_too_long);
  EXPECT_EQ(held.lost_reason(), outcome::lost);
  // It is not released: whoever hangs may yet write, and the last ttl is the next one's margin.
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 900ms + slack));
}

// B60, H10: what we believe is never longer than what the server keeps.
TEST_F(lease_on_redis, never_believes_longer_than_the_server_keeps) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 900ms});
  for (int i = 0; i < 400; ++i) {
    const auto looked_at = boottime();
    const auto ours = held.remaining();
    const auto kept = pttl("hf:{x}");  // Asked later, so it may be that much less, or renewed meanwhile.
    ASSERT_LE(ours, std::max(kept, 0ms) + 1ms + (boottime() - looked_at)) << "at look " << i;
    let_pass(3ms);
  }
}

TEST_F(lease_on_redis, is_told_when_its_key_is_deleted) {  // H32
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 3s});
  server_("DEL", "hf:{x}");
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 1s + slack));
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_gone);
  EXPECT_EQ(held.lost_reason(), outcome::lost);
  EXPECT_EQ(code_of([&] { held.check(); }), errc::lease_gone);
  EXPECT_EQ(held.release(), release_outcome::already_lost);
}

TEST_F(lease_on_redis, is_told_within_one_renewal_period_after_flushall) {  // C1, H32
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 6s});
  server_("FLUSHALL");
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 2s + slack));
  EXPECT_EQ(held.lost_reason(), errc::lease_gone);
}

TEST_F(lease_on_redis, is_told_that_another_has_it) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 3s});
  server_("DEL", "hf:{x}");
  const auto thief = make_client().acquire("x", {.ttl = 10s});
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 1s + slack));
  EXPECT_EQ(held.lost_reason(), errc::lease_taken);
  EXPECT_TRUE(thief.valid());
}

// B4, B13, H45: RedLock.net makes a lost lock again while renewing, and its owner never learns of the other one.
TEST_F(lease_on_redis, is_never_made_again_by_a_renewal) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 300ms});
  key_events events{server_};
  server_("DEL", "hf:{x}");
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
  let_pass(600ms);
  for (const auto& event : events.take()) EXPECT_FALSE(event.key == "hf:{x}" && event.what == "set");
  EXPECT_FALSE(exists("hf:{x}"));
  EXPECT_FALSE(held.valid());
}

// B13's other half: another held it in between and left; the key is free again, and still the lease is lost.
TEST_F(lease_on_redis, stays_lost_after_another_came_and_went) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 3s});
  server_("DEL", "hf:{x}");
  make_client().acquire("x").release();
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 1s + slack));
  let_pass(300ms);
  EXPECT_FALSE(held.valid());
}

// P9: the same owner id under another token is another grant.
TEST_F(lease_on_redis, compares_the_token_too) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 3s});
  auto value = server_("GET", "hf:{x}").text;
  const auto larger = fencing_token{held.token().value() + 2}.to_string();
  const auto at = value.find(held.token().to_string());
  ASSERT_NE(at, std::string::npos);
  value.replace(at, larger.size(), larger);
  server_("SET", "hf:{x}", value, "PX", "10000");
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 1s + slack));
  EXPECT_EQ(held.release(), release_outcome::already_lost);
  EXPECT_TRUE(exists("hf:{x}"));
  server_("DEL", "hf:{x}");
}

// C4: the server stands still; the holder is told before the deadline, at_risk before that, and valid() turns false
// exactly there, whatever our threads do.
TEST_F(lease_on_redis, is_told_in_time_when_the_server_stands_still) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 3s});
  std::atomic<std::chrono::nanoseconds> risk_at{0ns}, lost_at{0ns};
  std::stop_callback risk{held.at_risk(), [&] { risk_at = boottime(); }};
  std::stop_callback lost{held.lost(), [&] { lost_at = boottime(); }};
  server_.pause();
  const auto deadline = boottime() + held.remaining();
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 5s));
  EXPECT_TRUE(eventually([&] { return boottime() > deadline + 1ms; }));
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(eventually([&] { return lost_at.load() != 0ns; }));
  EXPECT_LE(lost_at.load(), deadline + 1ms + when_busy / 4);
  EXPECT_GT(risk_at.load(), 0ns);
  EXPECT_LT(risk_at.load(), lost_at.load());
  EXPECT_GE(lost_at.load() - risk_at.load(), 50ms) << "ttl/6 less ttl/20 is 350 ms";
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  server_.resume();
}

TEST_F(lease_on_redis, is_lost_for_ever_even_if_the_server_comes_back) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 500ms});
  server_.pause();
  EXPECT_TRUE(eventually([&] { return !held.valid(); }, 2s));
  server_.resume();
  let_pass(600ms);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.remaining(), 0ms);
}

TEST_F(lease_on_redis, rides_out_a_pause_of_the_server_shorter_than_its_ttl) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 4500ms});
  server_.pause();
  let_pass(2100ms);
  server_.resume();
  const auto until = boottime() + 5s;
  while (boottime() < until) {
    ASSERT_TRUE(held.valid());
    let_pass(5ms);
  }
}

TEST_F(lease_on_redis, lost_fires_once_and_never_after_release) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 900ms});
  const auto lost = held.lost();
  held.release();
  let_pass(1200ms);
  EXPECT_FALSE(lost.stop_requested());
}

// The server refuses to renew what was deleted, so neither its keys nor its events show whether it is asked
// (race_test).
TEST_F(lease_on_redis, is_not_asked_for_after_its_release_nor_after_its_drop_C6) {
  auto locks = make_client();
  for (const bool is_dropped : {false, true}) {
    auto held = locks.acquire("x", {.ttl = 1500ms});
    auto left = pttl("hf:{x}");
    const auto is_renewed = [&] {
      const auto before = std::exchange(left, pttl("hf:{x}"));
      return left > before;
    };
    ASSERT_TRUE(eventually(is_renewed)) << "so that the keeper is connected";
    if (is_dropped) {
      held = {};
    } else {
      EXPECT_EQ(held.release(), release_outcome::released);
    }
    ASSERT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
    let_pass(20ms);
    const auto before = server_.info("total_commands_processed");
    let_pass(700ms);  // Two renewals of a lease that is held.
    EXPECT_LE(server_.info("total_commands_processed") - before, 1) << (is_dropped ? "dropped" : "released");
  }
}

TEST_F(lease_on_redis, empty_handle_answers_without_harm) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  lease moved = std::move(held);
  EXPECT_FALSE(held);  // NOLINT(bugprone-use-after-move): that is the claim.
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.token(), fencing_token{});
  EXPECT_EQ(code_of([&] { held.release(); }), errc::empty_handle);
  EXPECT_EQ(code_of([&] { (void)held.name(); }), errc::empty_handle);
  EXPECT_TRUE(moved.valid());
  EXPECT_EQ(moved.release(), release_outcome::released);
  EXPECT_EQ(code_of([&] { moved.release(); }), errc::empty_handle);
}

TEST_F(lease_on_redis, dropped_is_released_in_the_background) {
  auto locks = make_client();
  { const auto held = locks.acquire("x", {.ttl = 30s}); }
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 1s));
}

TEST_F(lease_on_redis, assigned_over_is_released_in_the_background) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 30s});
  held = locks.acquire("y", {.ttl = 30s});
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 1s));
  EXPECT_TRUE(held.valid());
}

// Destroying the client while leases are out is allowed: they keep what they need.
TEST_F(lease_on_redis, outlives_its_client) {
  std::optional<client> locks = make_client();
  auto held = locks->acquire("x", {.ttl = 1500ms});
  locks.reset();
  let_pass(2s);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), release_outcome::released);
}

// B84: with a dead server a destructor must neither throw nor wait.
TEST_F(lease_on_redis, dropped_with_a_dead_server_does_not_wait) {
  auto locks = make_client(5s);
  auto held = std::make_optional(locks.acquire("x", {.ttl = 10s}));
  server_.pause();
  const auto began = boottime();
  held.reset();
  EXPECT_LT(boottime() - began, slack);
  server_.resume();
}

TEST_F(lease_on_redis, released_with_a_silent_server_is_unknown) {
  auto locks = make_client(300ms);
  auto held = locks.acquire("x", {.ttl = 30s, .wait = 10s});
  server_.pause();
  const auto began = boottime();
  EXPECT_EQ(held.release(), release_outcome::unknown);
  EXPECT_LT(boottime() - began, 300ms + slack);
  server_.resume();
  // B2, B49: the background goes on trying.
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 10s));
}

}  // namespace
}  // namespace holdfast::test
