// SPDX-License-Identifier: Apache-2.0
// At a node of a cluster: a channel in one of its slots, and what becomes of it when the slot goes.
#include "engine/caller.hpp"
#include "engine/hints.hpp"
#include "engine/peer_testing.hpp"

#include "core/random_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using core::hearing;
using testing::ElementsAre;
using testing::IsEmpty;

class hints_shard_test : public testing::Test {
protected:
  hints_shard_test() { ear.want(server.now); }

  void connect() {
    ear.wire().on_connecting(server.now);
    ear.wire().on_connected(server.now);
    server.take();
    server.say(hello("master", "cluster", "7.0.15") + time_of_day(server.clock) + info("a run"));
  }
  void subscribe() {
    connect();
    server.take();
    server.say(told("ssubscribe", "hf:wake:me:{7}", 1));
  }
  static std::string told(std::string_view kind, std::string_view channel, int count) {
    return list({bulk(kind), bulk(channel), integer(count)});
  }
  static channel::settings of_a_node(std::shared_ptr<const std::atomic<int>> tag) {
    channel::settings s;
    s.epoch.tag = std::move(tag);
    return s;
  }

  const std::shared_ptr<std::atomic<int>> tag = std::make_shared<std::atomic<int>>(7);
  core::seeded_random rng;
  int heard = 0;
  int changes = 0;
  caller calls{{}, rng, {}};
  hints ear{
      of_a_node(tag),
      "hf:wake:me",
      calls.wire(),
      rng,
      {[this](time_point, std::string_view, server_time, duration) { ++heard; }, [this](time_point) { ++changes; }}};
  peer server{ear.wire()};
  const std::string grant = "v1|grant|" + std::string(32, 'b') + "|1795212800000042|1795212801000";
};

TEST_F(hints_shard_test, subscribes_in_a_slot_of_its_node) {
  connect();
  EXPECT_THAT(server.take(), ElementsAre(request{"SSUBSCRIBE", "hf:wake:me:{7}"}));
  EXPECT_EQ(ear.hearing(), hearing::pending);
  server.say(told("ssubscribe", "hf:wake:me:{7}", 1));
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(ear.channel_name(), "hf:wake:me:{7}");
  server.say(list({bulk("smessage"), bulk("hf:wake:me:{7}"), bulk(grant)}));
  EXPECT_EQ(heard, 1);
}

// Redis before 7 does not know the command, an ACL may not permit it, and the slot may have just gone.
TEST_F(hints_shard_test, hears_on_the_common_channel_where_the_slot_is_refused) {
  for (const char* why :
       {"ERR unknown command `SSUBSCRIBE`, with args beginning with: `hf:wake:me:{7}`",
        "NOPERM this user has no permissions to run the 'ssubscribe' command", "MOVED 5649 127.0.0.1:7001"}) {
    connect();
    server.take();
    server.say(refusal(why));
    EXPECT_EQ(ear.hearing(), hearing::pending) << why;
    EXPECT_THAT(server.take(), ElementsAre(request{"SUBSCRIBE", "hf:wake:me"})) << why;
    EXPECT_EQ(ear.channel_name(), "hf:wake:me") << why;
    server.say(told("subscribe", "hf:wake:me", 1));
    EXPECT_EQ(ear.hearing(), hearing::yes) << why;
    server.say(list({bulk("message"), bulk("hf:wake:me"), bulk(grant)}));
    server.cut();
    server.pass(1min);
  }
  EXPECT_EQ(heard, 3);
}

TEST_F(hints_shard_test, who_may_not_subscribe_at_all_is_not_waited_for_P1) {
  connect();
  server.take();
  server.say(refusal("NOPERM this user has no permissions to run the 'ssubscribe' command"));
  server.say(refusal("NOPERM this user has no permissions to run the 'subscribe' command"));
  EXPECT_EQ(ear.hearing(), hearing::no);
  EXPECT_THAT(server.take(), ElementsAre(request{"SUBSCRIBE", "hf:wake:me"})) << "and not a third time";
  server.pass(10s);
  ear.want(server.now);
  EXPECT_THAT(server.take(), ElementsAre(request{"SSUBSCRIBE", "hf:wake:me:{7}"})) << "the ACL may have been repaired";
}

// Whoever waits has to say in which channel it hears now: it is told that nothing is heard, and then that it is again.
TEST_F(hints_shard_test, goes_to_another_slot_of_its_node_when_its_own_leaves) {
  subscribe();
  *tag = 12;
  server.say(told("sunsubscribe", "hf:wake:me:{7}", 0));
  EXPECT_EQ(ear.hearing(), hearing::pending);
  EXPECT_EQ(changes, 2);
  EXPECT_THAT(server.take(), ElementsAre(request{"SSUBSCRIBE", "hf:wake:me:{12}"}));
  server.say(told("ssubscribe", "hf:wake:me:{12}", 1));
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(ear.channel_name(), "hf:wake:me:{12}");
  EXPECT_EQ(changes, 3);
}

// The node says so before the cluster's map does.
TEST_F(hints_shard_test, hears_on_the_common_channel_while_it_knows_no_other_slot) {
  subscribe();
  server.say(told("sunsubscribe", "hf:wake:me:{7}", 0));
  EXPECT_THAT(server.take(), ElementsAre(request{"SUBSCRIBE", "hf:wake:me"}));
  server.say(told("subscribe", "hf:wake:me", 1));
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(ear.channel_name(), "hf:wake:me");
  // On the next connection the slot is tried again.
  server.cut();
  server.pass(1min);
  *tag = 12;
  connect();
  EXPECT_THAT(server.take(), ElementsAre(request{"SSUBSCRIBE", "hf:wake:me:{12}"}));
}

TEST_F(hints_shard_test, the_end_of_another_subscription_is_nothing) {
  subscribe();
  server.say(told("sunsubscribe", "hf:wake:me:{3}", 1));
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_THAT(server.take(), IsEmpty());
  EXPECT_TRUE(ear.wire().is_ready());
}

}  // namespace

}  // namespace holdfast::engine
