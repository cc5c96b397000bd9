// SPDX-License-Identifier: Apache-2.0
// Connections to a primary that sentinels name: what it grants counts for as long as it was named, and the connection
// ends when another is named (engine/named_primary.hpp, P22). What it renews: named_keeper_test.cpp.
#include "engine/named_primary.hpp"

#include "engine/call_testing.hpp"
#include "engine/channel_testing.hpp"
#include "engine/named_testing.hpp"
#include "engine/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace holdfast::engine {
namespace {

using namespace named_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;

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
  primary->name("10.0.0.2:6379", server.now, server.now);
  EXPECT_EQ(wire.counts_until(), time_point{});
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  EXPECT_TRUE(wire.is_closed());
  EXPECT_THAT(listens.news, ElementsAre("ready", "down no_primary"));
}

TEST_F(a_named_channel, ends_when_its_grants_do_not_count_any_more_P22) {
  server.connect();
  server.pass(primary->grants_for() - 1ms);
  EXPECT_TRUE(wire.counts_grant(server.now, server.now));
  EXPECT_FALSE(wire.mind_primary(server.now, server.term));
  server.pass(1ms);
  EXPECT_FALSE(wire.counts_grant(server.now, server.now));
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  EXPECT_EQ(wire.last_failure().code, errc::no_primary);
}

// A is the primary, then B, then A again. The answer lies in the socket of one who was stopped, and the sentinels are
// heard before it is read.
TEST_F(a_named_channel, does_not_count_what_was_asked_of_it_before_it_came_back_P22) {
  server.connect();
  const auto asked_at = server.now;
  server.pass(primary->grants_for() + 1ms);
  name(server);
  EXPECT_FALSE(wire.counts_grant(asked_at, server.now));
  EXPECT_FALSE(wire.counts_grant(server.now - 1ms, server.now));
  EXPECT_TRUE(wire.counts_grant(server.now, server.now));
}

TEST_F(a_named_channel, counts_what_was_asked_while_it_was_named_again_and_again_P22) {
  server.connect();
  const auto asked_at = server.now;
  for (int i = 0; i < 5; ++i) {
    server.pass(primary->grants_for());
    name(server);
  }
  EXPECT_TRUE(wire.counts_grant(asked_at, server.now));
}

// What is held is renewed while the sentinels say nothing.
TEST_F(named, a_channel_that_only_renews_ends_when_half_of_what_its_naming_is_worth_is_over_P22) {
  channel_testing::channel_news listens;
  auto of_a_keeper = naming(primary);
  of_a_keeper.epoch.may_be_unknown = true;
  channel wire{of_a_keeper, rng, listens};
  peer server{wire};
  name(server);
  wire.set_demand(true);
  server.connect();
  server.pass(worth / 2 - 1ms);
  EXPECT_FALSE(wire.mind_primary(server.now, server.term));
  server.pass(1ms);
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  EXPECT_EQ(wire.last_failure().code, errc::no_primary);
}

// A call may begin at a node that has just lost its last slot, and a connection with it.
TEST_F(a_named_channel, to_whom_nobody_names_any_more_ends_and_what_it_grants_does_not_count_P22) {
  server.connect();
  primary->name_nobody();
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
  server.term = primary->term();
  server.pass(1s);
  server.connect();
  EXPECT_FALSE(wire.counts_grant(server.now, server.now));
  EXPECT_LT(wire.counts_until(), server.now);
  EXPECT_TRUE(wire.mind_primary(server.now, server.term));
}

TEST_F(named, a_channel_that_meets_another_server_than_its_node_wants_to_know_who_serves_what) {
  int looks = 0;
  auto of_a_node = naming(primary);
  of_a_node.node_id = "aa11";
  of_a_node.redirected = [&] { ++looks; };
  channel_testing::channel_news listens;
  channel wire{of_a_node, rng, listens};
  peer server{wire};
  name(server);
  wire.set_demand(true);
  auto replies = greeting_replies(server.clock);
  replies.insert(replies.begin() + 3, bulk("bb22"));
  wire.on_connecting(server.now);
  wire.on_connected(server.now, server.term);
  for (std::size_t i = 0; i < 4; ++i) server.say(replies[i]);
  EXPECT_TRUE(wire.is_closed());
  EXPECT_EQ(wire.last_failure().code, errc::wrong_server);
  EXPECT_FALSE(wire.last_failure().is_final) << "its cluster may name another one soon";
  EXPECT_EQ(looks, 1);
  EXPECT_THAT(listens.news, ElementsAre("failed wrong_server"));
}

// A server that is gone does not refuse a connection, it says nothing.
TEST_F(a_named_channel, ends_while_it_connects_when_another_is_named) {
  wire.on_connecting(server.now);
  EXPECT_FALSE(wire.mind_primary(server.now, 0)) << "nobody knows yet where it leads to";
  EXPECT_FALSE(wire.mind_primary(server.now, server.term));
  primary->name("10.0.0.2:6379", server.now, server.now);
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
  EXPECT_TRUE(wire.counts_grant(server.now, server.now));
  EXPECT_EQ(wire.renewals_from(server.now), time_point{});
  EXPECT_FALSE(wire.mind_primary(server.now, 0));
  server.say(hello("replica", "standalone", "7.0.15"));
  EXPECT_TRUE(wire.last_failure().is_final);
}

// ---- what it grants ----

acquire an_acquire(caller& by, hints& ear, time_point now, base::random_source& rng,
                   std::chrono::milliseconds ttl = 10s) {
  return {by.wire(),
          ear,
          {call_testing::keys, std::make_shared<const std::string>("ann"), worth, {}},
          {ttl, core::clock_drift{10'000}, true, {}, 500ms, true},
          now,
          rng};
}

class a_named_acquire : public named {
protected:
  a_named_acquire() {
    name(server);
    calls.start(call, server.now);
    server.connect();
    server.take();
  }
  ~a_named_acquire() override { calls.stop(call); }

  // It is answered when its server was named so long ago.
  void is_granted_after(duration age) {
    primary->name("10.0.0.1:6379", server.now - age, server.now);
    server.say(list({integer(1), stamp(server.clock), bulk(call_testing::token.to_string()), integer(10'000)}));
  }
  time_point deadline() const { return std::get<core::got_lease>(call.end()).deadline; }

  caller calls{naming(primary), rng, {}};
  hints ear{{}, "hf:wake:me", calls.wire(), rng, {}};
  peer server{calls.wire()};
  acquire call = an_acquire(calls, ear, server.now, rng);
};

TEST_F(a_named_acquire, is_granted_for_its_ttl) {
  is_granted_after(primary->grants_for() - 1ms);
  ASSERT_TRUE(call.is_over());
  EXPECT_EQ(deadline(), core::deadline_of(server.now, 10s, core::clock_drift{10'000}));
}

// The longest lease there is.
TEST_F(a_named_acquire, is_granted_for_no_longer_than_its_server_was_named_P22) {
  is_granted_after(0s);
  acquire longest = an_acquire(calls, ear, server.now, rng, worth);
  calls.start(longest, server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("acquire"));
  primary->name("10.0.0.1:6379", server.now - 1500ms, server.now);
  server.say(list({integer(1), stamp(server.clock), bulk(call_testing::token.to_string()), integer(60'000)}));
  ASSERT_TRUE(longest.is_over());
  EXPECT_EQ(std::get<core::got_lease>(longest.end()).deadline, server.now - 1500ms + worth);
  calls.stop(longest);
}

// The one that was isolated may have let a lease expire that is renewed on its successor. The same owner id asks again,
// and has it when it is named anew.
TEST_F(a_named_acquire, is_not_granted_what_its_server_grants_long_after_it_was_named_P22) {
  is_granted_after(primary->grants_for());
  EXPECT_FALSE(call.is_over());
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
  is_granted_after(0s);
  EXPECT_TRUE(call.is_over());
}

// Who was named is demoted before those who name it have heard of it, as at the start of a failover.
TEST_F(a_named_acquire, whose_server_writes_nothing_any_more_goes_on_when_there_is_a_primary) {
  server.say(refusal("READONLY You can't write against a read only replica."));
  EXPECT_FALSE(call.is_over());
  EXPECT_TRUE(calls.wire().must_close()) << "the next greeting says what it is";
  EXPECT_EQ(calls.wire().last_failure().code, errc::no_primary);
  server.pass(30ms);
  server.connect();
  call.step(server.now);
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
  is_granted_after(0s);
  EXPECT_TRUE(call.is_over());
}

TEST_F(a_named_acquire, says_that_there_is_no_primary_when_that_lasts) {
  server.say(refusal("READONLY You can't write against a read only replica."));
  server.pass(10s);
  call.step(server.now);
  ASSERT_TRUE(call.is_over());
  EXPECT_EQ(std::get<core::got_failure>(call.end()).code, errc::no_primary);
}

// It was definitely not done, so also what must not be done twice.
TEST_F(named, a_break_whose_server_writes_nothing_any_more_is_asked_again) {
  caller calls{naming(primary), rng, {}};
  peer server{calls.wire()};
  name(server);
  question asks{calls.wire(), script::break_lock(call_testing::keys, call_testing::token, {}, "ann", "why"),
                question::repeat::refused, server.now + 5s};
  calls.start(asks, server.now);
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("break"));
  server.say(refusal("READONLY You can't write against a read only replica."));
  EXPECT_FALSE(asks.is_over());
  server.pass(1s);
  server.connect();
  asks.step(server.now);
  EXPECT_THAT(server.take_names(), ElementsAre("break"));
  calls.stop(asks);
}

// Of one server that is all there is to say.
TEST_F(named, an_acquire_of_one_server_that_writes_nothing_ends_as_not_a_primary) {
  caller calls{{}, rng, {}};
  hints ear{{}, "hf:wake:me", calls.wire(), rng, {}};
  peer server{calls.wire()};
  acquire call = an_acquire(calls, ear, server.now, rng);
  calls.start(call, server.now);
  server.connect();
  server.take();
  server.say(refusal("READONLY You can't write against a read only replica."));
  ASSERT_TRUE(call.is_over());
  EXPECT_EQ(std::get<core::got_failure>(call.end()).code, errc::not_a_primary);
  calls.stop(call);
}

}  // namespace
}  // namespace holdfast::engine
