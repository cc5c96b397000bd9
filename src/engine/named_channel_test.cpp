// SPDX-License-Identifier: Apache-2.0
// Connections to a primary that sentinels name: what it grants and renews counts for as long as it was named, and the
// connection ends when another is named (engine/named_primary.hpp, P22).
#include "engine/named_primary.hpp"

#include "engine/call_testing.hpp"
#include "engine/channel_testing.hpp"
#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto worth = 60s;

channel::settings naming(const std::shared_ptr<named_primary>& primary) {
  channel::settings s;
  s.primary = primary;
  return s;
}

class named : public testing::Test {
protected:
  void name(peer& server, const std::string& address = "10.0.0.1:6379") {
    primary->name(address, server.now);
    server.term = primary->term();
  }

  std::shared_ptr<named_primary> primary = std::make_shared<named_primary>(worth);
  core::seeded_random rng;
};

// ---- the connection ----

class a_named_channel : public named {
protected:
  a_named_channel() {
    name(server);
    wire.set_demand(true);
  }

  channel_testing::channel_news listens;
  channel wire{naming(primary), rng, listens};
  peer server{wire};
};

TEST_F(a_named_channel, counts_from_when_its_server_was_named) {
  server.connect();
  EXPECT_EQ(wire.counts_until(), server.now + worth);
  server.pass(5s);
  EXPECT_EQ(wire.counts_until(), server.now - 5s + worth);
  name(server);
  EXPECT_EQ(wire.counts_until(), server.now + worth);
}

TEST_F(a_named_channel, ends_when_another_is_named_P22) {
  server.connect();
  EXPECT_FALSE(wire.mind_primary(server.now, server.term));
  primary->name("10.0.0.2:6379", server.now);
  EXPECT_EQ(wire.counts_until(), time_point{});
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  EXPECT_TRUE(wire.is_closed());
  EXPECT_THAT(listens.news, ElementsAre("ready", "down no_primary"));
}

TEST_F(a_named_channel, ends_when_nobody_was_named_for_half_of_what_that_is_worth_P22) {
  server.connect();
  server.pass(worth / 2 - 1ms);
  EXPECT_FALSE(wire.mind_primary(server.now, server.term));
  server.pass(1ms);
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  EXPECT_EQ(wire.last_failure().code, errc::no_primary);
}

// A server that is gone does not refuse a connection, it says nothing.
TEST_F(a_named_channel, ends_while_it_connects_when_another_is_named) {
  wire.on_connecting(server.now);
  EXPECT_FALSE(wire.mind_primary(server.now, 0)) << "nobody knows yet where it leads to";
  EXPECT_FALSE(wire.mind_primary(server.now, server.term));
  primary->name("10.0.0.2:6379", server.now);
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  EXPECT_THAT(listens.news, ElementsAre("failed no_primary"));
}

// During a failover the sentinels and the server may be of two minds for a moment.
TEST_F(a_named_channel, tries_again_when_it_was_named_and_is_a_replica) {
  wire.on_connecting(server.now);
  wire.on_connected(server.now, server.term);
  server.say(hello("replica", "standalone", "7.0.15"));
  EXPECT_EQ(wire.last_failure().code, errc::not_a_primary);
  EXPECT_FALSE(wire.last_failure().is_final);
}

TEST(a_channel, of_one_server_counts_for_ever_and_a_replica_stays_one) {
  core::seeded_random rng;
  channel_testing::channel_news listens;
  channel wire{{}, rng, listens};
  peer server{wire};
  wire.set_demand(true);
  wire.on_connecting(server.now);
  wire.on_connected(server.now);
  EXPECT_EQ(wire.counts_until(), never);
  EXPECT_FALSE(wire.mind_primary(server.now, 0));
  server.say(hello("replica", "standalone", "7.0.15"));
  EXPECT_TRUE(wire.last_failure().is_final);
}

// ---- what it grants ----

class a_named_acquire : public named {
protected:
  // What is granted `age` after the server was named last.
  core::acquire_end granted_after(duration age) {
    name(server);
    acquire call{calls.wire(),
                 ear,
                 {call_testing::keys, std::make_shared<const std::string>("ann"), 60s, {}},
                 {10s, core::clock_drift{10'000}, true, {}, 500ms, true},
                 server.now,
                 rng};
    calls.start(call, server.now);
    server.connect();
    server.take();
    primary->name("10.0.0.1:6379", server.now - age);
    server.say(list({integer(1), stamp(server.clock), bulk(call_testing::token.to_string()), integer(10'000)}));
    EXPECT_TRUE(call.is_over());
    const auto end = call.end();
    calls.stop(call);
    return end;
  }

  caller calls{naming(primary), rng, {}};
  hints ear{{}, "hf:wake:me", calls.wire(), rng, {}};
  peer server{calls.wire()};
};

TEST_F(a_named_acquire, is_granted_for_its_ttl) {
  const auto end = granted_after(0s);
  ASSERT_TRUE(std::holds_alternative<core::got_lease>(end));
  EXPECT_EQ(std::get<core::got_lease>(end).deadline, core::deadline_of(server.now, 10s, core::clock_drift{10'000}));
}

TEST_F(a_named_acquire, is_granted_for_no_longer_than_its_server_was_named_P22) {
  const auto end = granted_after(55s);
  ASSERT_TRUE(std::holds_alternative<core::got_lease>(end));
  EXPECT_EQ(std::get<core::got_lease>(end).deadline, server.now + 5s);
}

// ---- what it renews ----

class a_named_keeper : public named {
protected:
  keeper_testing::lease_news listens;
  keeper keeps{naming(primary), keeper_testing::drift, rng, listens};
  peer server{keeps.wire()};
};

TEST_F(a_named_keeper, renews_for_no_longer_than_its_server_was_named_P22) {
  using keeper_testing::ttl;
  name(server);
  const auto granted_at = server.now;
  const auto first = core::deadline_of(granted_at, ttl, keeper_testing::drift);
  const auto lease = std::make_shared<held_lease>(keeper_testing::keys_of(0), keeper_testing::somebody,
                                                  keeper_testing::token, ttl, first);
  keeps.keep(lease, granted_at, first, renewal::automatic);
  server.pass(3s);
  keeps.on_wake(server.now);
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  // As if it had been named so long ago that this is all that is left.
  primary->name("10.0.0.1:6379", first + 1s - worth);
  server.say(stamp(server.clock));
  EXPECT_TRUE(lease->deadline.is_ahead(first + 1s - 1ns));
  EXPECT_FALSE(lease->deadline.is_ahead(first + 1s));
}

}  // namespace
}  // namespace holdfast::engine
