// SPDX-License-Identifier: Apache-2.0
// Where most sentinels have been silent for a while nothing is granted, and nothing is asked for that would be; what is
// held is given back all the same (P22, C5, docs/decisions/0024-what-an-old-primary-grants.md).
#include "engine/release.hpp"

#include "engine/call_testing.hpp"
#include "engine/named_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace holdfast::engine {
namespace {

using namespace named_testing;
using namespace std::chrono_literals;
using call_testing::keys;
using call_testing::somebody;
using call_testing::token;
using testing::ElementsAre;
using testing::IsEmpty;

class while_nobody_is_named : public named {
protected:
  while_nobody_is_named() { name(server); }
  ~while_nobody_is_named() override {
    calls.stop(back);
    if (wanted) calls.stop(*wanted);
  }

  // Everybody is gone, and the connection is idle.
  void connect_and_fall_silent() {
    calls.wire().set_demand(true);
    server.connect();
    fall_silent();
  }
  void fall_silent() { server.pass(primary->grants_for()); }
  void begin_release() { calls.start(back, server.now); }
  void begin_acquire(bool only_once = true) {
    wanted.emplace(calls.wire(), ear, acquire::request{keys, std::make_shared<const std::string>("ann"), worth, {}},
                   core::acquire_settings{10s, core::clock_drift{10'000}, only_once, {}, 2s, true}, server.now, rng);
    calls.start(*wanted, server.now);
  }
  bool ends() { return calls.wire().mind_primary(server.now, server.term); }
  // A connection that is looked at between its greeting's question and answer, as by a driver. True: it ends there.
  bool ends_in_its_greeting() {
    EXPECT_TRUE(calls.wire().wants_connection(server.now));
    calls.wire().on_connecting(server.now);
    EXPECT_FALSE(ends());
    calls.wire().on_connected(server.now, server.term);
    server.take();
    if (ends()) return true;
    for (const auto& reply : greeting_replies(server.clock)) server.say(reply);
    return false;
  }
  std::string done() { return stamp(server.clock); }

  caller calls{naming(primary), rng, {}};
  hints ear{{}, "hf:wake:me", calls.wire(), rng, {}};
  peer server{calls.wire()};
  release back{calls.wire(), keys, somebody, token, server.now + 60s, server.now + 60s};
  std::optional<acquire> wanted{};
};

// It asks for no grant. Else it would be executed and not heard, again and again, and the lock held until it gives up.
TEST_F(while_nobody_is_named, a_release_is_answered_over_the_connection_that_stands_P22) {
  connect_and_fall_silent();
  begin_release();
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  EXPECT_FALSE(ends());
  server.say(done());
  ASSERT_TRUE(back.is_over());
  EXPECT_EQ(back.end(), release_outcome::released);
  calls.stop(back);
  EXPECT_TRUE(ends()) << "there is nobody left to be served";
}

TEST_F(while_nobody_is_named, a_release_is_answered_over_a_new_connection_P22) {
  fall_silent();
  begin_release();
  ASSERT_FALSE(ends_in_its_greeting());
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  EXPECT_FALSE(ends());
  server.say(done());
  ASSERT_TRUE(back.is_over());
  EXPECT_EQ(back.end(), release_outcome::released);
}

// Those pauses grow up to a second.
TEST_F(while_nobody_is_named, a_release_does_not_wait_for_the_next_try_of_somebody_else) {
  fall_silent();
  begin_acquire();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(ends_in_its_greeting());
    server.pass(calls.wire().wake_at() - server.now);
  }
  ASSERT_TRUE(ends_in_its_greeting());
  ASSERT_FALSE(calls.wire().wants_connection(server.now));
  begin_release();
  EXPECT_FALSE(ends_in_its_greeting());
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
}

// A renewal would be worth little there, by now, and a release as little: others keep the lock elsewhere, perhaps.
TEST_F(while_nobody_is_named, a_release_is_not_asked_for_when_half_of_what_the_naming_is_worth_is_over_P22) {
  connect_and_fall_silent();
  begin_release();
  EXPECT_FALSE(ends());
  server.pass(worth / 2);
  EXPECT_TRUE(ends());
  EXPECT_TRUE(ends_in_its_greeting());
}

TEST_F(while_nobody_is_named, a_release_ends_with_the_connection_when_another_is_named_P22) {
  connect_and_fall_silent();
  begin_release();
  primary->name("10.0.0.2:6379", server.now, server.now);
  EXPECT_TRUE(ends());
}

// Nothing would be granted that counts, and what is asked and cut off leaves open whether it was.
TEST_F(while_nobody_is_named, an_acquire_asks_nothing_over_an_idle_connection_P22_C5) {
  connect_and_fall_silent();
  begin_acquire();
  EXPECT_THAT(server.take_names(), IsEmpty());
  EXPECT_TRUE(calls.wire().is_closed());
  EXPECT_TRUE(ends_in_its_greeting());
  server.pass(2s);
  wanted->step(server.now);
  ASSERT_TRUE(wanted->is_over());
  EXPECT_EQ(std::get<core::got_failure>(wanted->end()).code, errc::no_primary);
}

TEST_F(while_nobody_is_named, an_acquire_asks_nothing_beside_a_release_P22_C5) {
  fall_silent();
  begin_release();
  begin_acquire(false);
  ASSERT_FALSE(ends_in_its_greeting());
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  EXPECT_FALSE(ends());
  wanted->step(server.now);
  EXPECT_THAT(server.take_names(), IsEmpty());
  EXPECT_GT(wanted->wake_at(), server.now) << "its driver must not spin";
  server.say(done());
  EXPECT_EQ(back.end(), release_outcome::released);
  calls.stop(back);
  EXPECT_TRUE(ends());
}

// It has not heard of the connection that was there for others.
TEST_F(while_nobody_is_named, an_acquire_asks_over_the_next_connection_when_there_is_a_primary_again) {
  connect_and_fall_silent();
  begin_release();
  begin_acquire(false);
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  name(server);
  EXPECT_FALSE(ends());
  server.say(done());
  calls.stop(back);
  EXPECT_TRUE(ends());
  ASSERT_FALSE(ends_in_its_greeting());
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
}

// Its answer came, and does not count: to ask once more without a chance would be a loop.
TEST_F(while_nobody_is_named, an_acquire_is_not_asked_again_beside_a_release_P22) {
  calls.wire().set_demand(true);
  server.connect();
  begin_acquire(false);
  ASSERT_THAT(server.take_names(), ElementsAre("acquire"));
  fall_silent();
  begin_release();
  server.take();
  server.say(list({integer(1), stamp(server.clock), bulk(token.to_string()), integer(10'000)}));
  EXPECT_FALSE(wanted->is_over());
  EXPECT_THAT(server.take_names(), IsEmpty());
}

}  // namespace
}  // namespace holdfast::engine
