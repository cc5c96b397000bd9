// SPDX-License-Identifier: Apache-2.0
#include "engine/hints.hpp"

#include "engine/caller.hpp"
#include "engine/peer_testing.hpp"

#include "core/random_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using core::hearing;
using testing::ElementsAre;
using testing::IsEmpty;

class hints_test : public testing::Test {
protected:
  hints_test() { ear.want(server.now); }

  // The other end of a connection that only listens: its greeting loads no scripts.
  void connect(std::string_view run_id = "a run") {
    ASSERT_TRUE(ear.wire().wants_connection(server.now));
    ear.wire().on_connecting(server.now);
    ear.wire().on_connected(server.now);
    greeted = server.take();
    server.say(hello("master", "standalone", "7.0.15") + time_of_day(server.clock) + info(run_id));
  }
  void subscribe() {
    connect();
    server.take();
    server.say(list({bulk("subscribe"), bulk("hf:wake:me"), integer(1)}));
  }
  std::string message(const std::string& text) { return list({bulk("message"), bulk("hf:wake:me"), bulk(text)}); }

  core::seeded_random rng;
  std::vector<std::chrono::milliseconds> heard;
  int changes = 0;
  caller calls{{}, rng, {.on_up = [this](time_point now) { ear.compare(now); }}};
  hints ear{{},
            "hf:wake:me",
            calls.wire(),
            rng,
            {[this](time_point, std::string_view who, server_time at, duration look_in) {
               EXPECT_EQ(who, owner);
               EXPECT_EQ(at, server_time{1795212800000042us});
               heard.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(look_in));
             },
             [this](time_point) { ++changes; }}};
  peer server{ear.wire()};
  peer commands{calls.wire()};
  std::vector<request> greeted;
  const std::string owner = std::string(32, 'b');
};

// A process that never waits costs the server no second connection.
TEST(hints, wants_no_connection_before_the_first_waiter) {
  core::seeded_random rng;
  caller calls{{}, rng, {}};
  hints unused{{}, "hf:wake:me", calls.wire(), rng, {}};
  EXPECT_FALSE(unused.is_wanted());
  EXPECT_FALSE(unused.wire().wants_connection(time_point{1h}));
  unused.want(time_point{1h});
  EXPECT_TRUE(unused.wire().wants_connection(time_point{1h}));
}

TEST_F(hints_test, subscribes_when_it_is_wanted_and_loads_no_scripts) {
  connect();
  EXPECT_EQ(greeted.size(), 3u);
  EXPECT_THAT(server.take(), ElementsAre(request{"SUBSCRIBE", "hf:wake:me"}));
  EXPECT_EQ(ear.hearing(), hearing::pending) << "the server has not said so yet (P1)";
  EXPECT_EQ(changes, 0);
}

TEST_F(hints_test, hears_from_the_acknowledgement_on_P1) {
  subscribe();
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(changes, 1);
  server.say(message("v1|grant|" + owner + "|1795212800000042|1795212801000") +
             message("v1|look|" + owner + "|1795212800000042|1795212801200042"));
  EXPECT_THAT(heard, ElementsAre(0ms, 1200ms));
}

TEST_F(hints_test, what_it_cannot_read_is_nothing_and_harms_nothing_H20) {
  subscribe();
  server.say(message("unlock") + message("") + message("v9|grant|x") +
             list({bulk("message"), bulk("hf:wake:me"), integer(1)}));
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_TRUE(ear.wire().is_ready());
  EXPECT_EQ(ear.hearing(), hearing::yes);
  server.say(message("v1|grant|" + owner + "|1795212800000042|1795212801000"));
  EXPECT_EQ(heard.size(), 1u) << "and the next one is heard";
}

TEST_F(hints_test, a_refused_subscription_is_not_waited_for) {
  connect();
  server.say(refusal("NOPERM this user has no permissions to run the 'subscribe' command"));
  EXPECT_EQ(ear.hearing(), hearing::no);
  EXPECT_EQ(changes, 1);
}

TEST_F(hints_test, a_server_that_is_busy_for_now_is_asked_again) {
  connect();
  server.say(refusal("BUSY Redis is busy running a script."));
  EXPECT_EQ(ear.hearing(), hearing::pending);
  EXPECT_TRUE(ear.wire().must_close());
  subscribe();
  EXPECT_EQ(ear.hearing(), hearing::yes);
}

// Each time costs a connection.
TEST_F(hints_test, a_server_that_is_always_busy_is_not_asked_for_ever) {
  for (int i = 0; i < 3; ++i) {
    connect();
    server.say(refusal("BUSY Redis is busy running a script."));
    EXPECT_EQ(ear.hearing(), hearing::pending) << i;
  }
  connect();
  server.say(refusal("BUSY Redis is busy running a script."));
  EXPECT_EQ(ear.hearing(), hearing::no);
  EXPECT_TRUE(ear.wire().is_ready());
}

TEST_F(hints_test, a_server_that_lets_nobody_in_is_not_waited_for) {
  ear.wire().on_connecting(server.now);
  ear.wire().on_connected(server.now);
  server.say(refusal("WRONGPASS invalid username-password pair or user is disabled."));
  EXPECT_EQ(ear.hearing(), hearing::no);
}

TEST_F(hints_test, a_lost_connection_is_told_once_and_made_again_H18) {
  subscribe();
  server.cut();
  EXPECT_EQ(ear.hearing(), hearing::pending);
  EXPECT_EQ(changes, 2);
  subscribe();
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(changes, 3);
}

// A cut that neither end was told of: it looks subscribed from the server, and nothing arrives.
TEST_F(hints_test, a_missed_turn_makes_the_connection_anew_but_not_again_and_again) {
  subscribe();
  server.pass(4999ms);
  ear.doubt(server.now);
  EXPECT_EQ(ear.hearing(), hearing::yes);
  server.pass(1ms);
  ear.doubt(server.now);
  EXPECT_EQ(ear.hearing(), hearing::pending);
  EXPECT_TRUE(ear.wire().must_close());
  subscribe();
  ear.doubt(server.now);
  EXPECT_EQ(ear.hearing(), hearing::yes);
}

// The subscription is per connection: on the next one it is asked for again, and the server has to say so again.
TEST_F(hints_test, subscribes_anew_on_each_connection_P1) {
  subscribe();
  server.cut();
  connect();
  EXPECT_THAT(server.take(), ElementsAre(request{"SUBSCRIBE", "hf:wake:me"}));
  EXPECT_EQ(ear.hearing(), hearing::pending);
}

// Who may not subscribe is not waited for 200 ms at each reconnection; but it may have been given the permission.
TEST_F(hints_test, a_refusal_is_kept_until_a_subscription_is_granted) {
  connect();
  server.say(refusal("NOPERM this user has no permissions to run the 'subscribe' command"));
  server.cut();
  EXPECT_EQ(ear.hearing(), hearing::no);
  server.refuse();
  EXPECT_EQ(ear.hearing(), hearing::no);
  server.pass(1min);
  connect();
  server.say(refusal("NOPERM this user has no permissions to run the 'subscribe' command"));
  EXPECT_EQ(changes, 1) << "nothing has changed, so nobody needs to look";
  server.cut();
  server.pass(1min);
  subscribe();
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(changes, 2);
}

// An ACL that was repaired ends no connection. Nor is a server asked each half second that such a waiter looks.
TEST_F(hints_test, a_refused_subscription_is_asked_for_again_while_somebody_waits) {
  connect();
  server.take();
  server.say(refusal("NOPERM this user has no permissions to run the 'subscribe' command"));
  server.pass(9999ms);
  ear.want(server.now);
  EXPECT_THAT(server.take(), IsEmpty());
  server.pass(1ms);
  ear.want(server.now);
  EXPECT_THAT(server.take(), ElementsAre(request{"SUBSCRIBE", "hf:wake:me"}));
  ear.want(server.now);
  EXPECT_THAT(server.take(), IsEmpty()) << "one is on its way";
  server.say(refusal("NOPERM this user has no permissions to run the 'subscribe' command"));
  EXPECT_EQ(changes, 1) << "nobody needs to look";
  server.pass(10s);
  ear.want(server.now);
  server.say(list({bulk("subscribe"), bulk("hf:wake:me"), integer(1)}));
  EXPECT_EQ(ear.hearing(), hearing::yes);
  EXPECT_EQ(changes, 2);
  server.take();
  server.pass(1min);
  ear.want(server.now);
  EXPECT_THAT(server.take(), IsEmpty());
}

TEST_F(hints_test, a_server_that_cannot_be_reached_is_tried_again_and_told_once_H18) {
  subscribe();
  server.cut();
  for (int i = 0; i < 3; ++i) {
    server.pass(1min);
    server.refuse();
    EXPECT_EQ(ear.hearing(), hearing::pending);
  }
  EXPECT_EQ(changes, 2) << "yes, and pending";
}

// P6: while one connection is still with the old server, what is queued on the other would be told to nobody.
TEST_F(hints_test, ends_both_connections_when_they_reached_two_servers_P6) {
  calls.wire().set_demand(true);
  commands.connect();
  connect("another run");
  EXPECT_TRUE(ear.wire().must_close());
  EXPECT_TRUE(calls.wire().must_close());
  EXPECT_EQ(ear.hearing(), hearing::pending);
  EXPECT_EQ(calls.wire().last_failure().text, "two connections reached two servers");
  // The other way round: the commands come back elsewhere.
  subscribe();
  EXPECT_EQ(ear.hearing(), hearing::yes);
  commands.connect();
  EXPECT_TRUE(calls.wire().is_ready());
  commands.cut();
  commands.run_id = "another run";
  commands.pass(1s);
  commands.greet();
  EXPECT_TRUE(calls.wire().is_closed());
  EXPECT_TRUE(ear.wire().is_closed());
  EXPECT_EQ(ear.hearing(), hearing::pending);
}

TEST_F(hints_test, takes_a_server_that_does_not_say_who_it_is_for_the_same_P6) {
  calls.wire().set_demand(true);
  commands.run_id = "";
  commands.connect();
  connect();
  EXPECT_TRUE(ear.wire().is_ready());
  EXPECT_TRUE(calls.wire().is_ready());
}

TEST_F(hints_test, an_acknowledgement_that_is_none_is_not_believed_P1) {
  for (const auto& wrong : {list({bulk("unsubscribe"), bulk("hf:wake:me"), integer(0)}), integer(1), bulk("subscribe"),
                            list({bulk("subscribe"), bulk("hf:wake:me")})}) {
    hints other{{}, "hf:wake:me", calls.wire(), rng, {}};
    peer its_server{other.wire()};
    other.want(its_server.now);
    other.wire().on_connecting(its_server.now);
    other.wire().on_connected(its_server.now);
    its_server.say(hello("master", "standalone", "7.0.15") + time_of_day(its_server.clock) + info("a run") + wrong);
    EXPECT_NE(other.hearing(), hearing::yes) << wrong;
  }
}

// It has no open request then: what the server says unasked, and is no message, is out of step.
TEST_F(hints_test, a_word_that_is_no_message_ends_the_connection_H14) {
  for (const auto& wrong : {simple("OK"), integer(1), bulk("message"), list({bulk("message"), bulk("hf:wake:me")}),
                            list({bulk("pmessage"), bulk("hf:*"), bulk("hf:wake:me"), bulk("x")}),
                            list({bulk("unsubscribe"), bulk("hf:wake:me"), integer(0)})}) {
    subscribe();
    server.say(wrong);
    EXPECT_TRUE(ear.wire().must_close()) << wrong;
    EXPECT_EQ(ear.hearing(), hearing::pending) << wrong;
    server.pass(1min);
  }
  EXPECT_THAT(heard, IsEmpty());
}

}  // namespace

}  // namespace holdfast::engine
