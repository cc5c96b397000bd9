// SPDX-License-Identifier: Apache-2.0
// Connecting, replies in order, and the end of a connection.
#include "engine/channel.hpp"

#include "engine/channel_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using channel_testing::channel_news;
using channel_testing::channel_test;
using channel_testing::recorder;
using channel_testing::words;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- when to connect ----

TEST_F(channel_test, wants_a_connection_only_on_demand) {
  EXPECT_FALSE(wire.wants_connection(server.now));
  EXPECT_EQ(wire.wake_at(), never);
  wire.set_demand(true);
  EXPECT_TRUE(wire.wants_connection(server.now));
}

TEST_F(channel_test, is_ready_after_the_greeting) {
  wire.set_demand(true);
  server.connect();
  EXPECT_THAT(listens.news, ElementsAre("ready"));
  EXPECT_TRUE(wire.was_ever_ready());
  EXPECT_FALSE(wire.wants_connection(server.now));
}

TEST_F(channel_test, failed_connections_back_off_and_a_good_one_resets_it) {
  wire.set_demand(true);
  std::vector<duration> pauses;
  for (int i = 0; i < 12; ++i) {
    server.refuse();
    pauses.push_back(wire.wake_at() - server.now);
    EXPECT_FALSE(wire.wants_connection(wire.wake_at() - 1ns));
    server.pass(pauses.back());
  }
  EXPECT_LE(pauses.front(), 20ms);
  EXPECT_GE(pauses.back(), 500ms);
  EXPECT_LE(*std::max_element(pauses.begin(), pauses.end()), 1s);
  server.connect();
  server.cut();
  server.refuse();
  EXPECT_LE(wire.wake_at() - server.now, 20ms);
}

TEST_F(channel_test, a_ready_connection_that_ends_is_made_again_at_once) {
  connect();
  server.cut();
  EXPECT_TRUE(wire.wants_connection(server.now));
}

TEST_F(channel_test, connecting_and_greeting_have_a_time_limit_each) {
  wire.set_demand(true);
  wire.on_connecting(server.now);
  EXPECT_EQ(wire.wake_at(), server.now + 2s);
  server.pass(2s - 1ns);
  EXPECT_FALSE(wire.on_wake(server.now));
  wire.on_connected(server.now);
  server.say(greeting_replies(server.clock)[0]);
  server.pass(2s);
  EXPECT_TRUE(wire.on_wake(server.now));
  EXPECT_TRUE(wire.is_closed());
  EXPECT_THAT(listens.news, ElementsAre("failed server_silent"));
}

TEST_F(channel_test, silence_says_how_far_it_came) {
  wire.set_demand(true);
  wire.on_connecting(server.now);
  EXPECT_EQ(wire.last_failure().text, "") << "nothing is known yet";
  server.pass(2s);
  EXPECT_TRUE(wire.on_wake(server.now));
  EXPECT_EQ(wire.last_failure().text, "no connection");
  server.pass(1s);
  wire.on_connecting(server.now);
  wire.on_connected(server.now);
  EXPECT_EQ(wire.last_failure().text, "no answer") << "who asks meanwhile is not told that nobody is there";
}

// The greeting's exchange is scripted once and cut after each reply.
TEST_F(channel_test, a_cut_anywhere_in_the_greeting_is_a_failed_connection) {
  wire.set_demand(true);
  for (std::size_t replies = 0; replies < greeting_replies(server.clock).size(); ++replies) {
    listens.news.clear();
    server.pass(1min);
    wire.on_connecting(server.now);
    wire.on_connected(server.now);
    for (std::size_t i = 0; i < replies; ++i) server.say(greeting_replies(server.clock)[i]);
    server.cut();
    EXPECT_THAT(listens.news, ElementsAre("failed connection_lost"));
    EXPECT_FALSE(wire.was_ever_ready());
  }
}

TEST_F(channel_test, a_refused_greeting_closes_with_its_reason) {
  wire.set_demand(true);
  wire.on_connecting(server.now);
  wire.on_connected(server.now);
  server.say(refusal("NOAUTH Authentication required.") + refusal("NOAUTH Authentication required."));
  EXPECT_TRUE(wire.must_close());
  EXPECT_TRUE(wire.is_closed());
  EXPECT_THAT(listens.news, ElementsAre("failed no_password"));
}

// ---- replies ----

TEST_F(channel_test, replies_reach_their_senders_in_order) {
  connect();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  ask(a);
  ask(b);
  ask(a);
  server.say(integer(1) + integer(2) + integer(3));
  EXPECT_THAT(heard, ElementsAre("a1", "b2", "a3"));
}

TEST_F(channel_test, a_reply_comes_with_the_instant_its_request_was_handed_over_B19) {
  connect();
  recorder a;
  ask(a);
  const auto sent_at = server.now;
  server.pass(300ms);
  server.say(integer(1));
  EXPECT_EQ(a.sent_at, sent_at);
}

// P30: a caller that stopped waiting must not shift the replies of the others, nor hear of them.
TEST_F(channel_test, a_forgotten_request_keeps_its_slot_P30) {
  connect();
  recorder a;
  recorder b;
  ask(a);
  ask(b);
  ask(a);
  wire.forget(a);
  EXPECT_TRUE(wire.has_open_requests());
  server.say(integer(1) + integer(2) + integer(3));
  EXPECT_THAT(a.own, IsEmpty());
  EXPECT_THAT(b.own, ElementsAre("2"));
  EXPECT_TRUE(wire.is_ready());
}

// A lease that was dropped is released without anybody waiting for the answer.
TEST_F(channel_test, what_nobody_waits_for_has_a_slot_too_P30) {
  connect();
  recorder a;
  wire.send_and_forget(server.now, channel_testing::a_release());
  ask(a);
  server.say(integer(1) + integer(2));
  EXPECT_THAT(a.own, ElementsAre("2"));
}

TEST_F(channel_test, a_reply_to_no_request_ends_the_connection_H14) {
  connect();
  server.say(integer(1));
  EXPECT_TRUE(wire.must_close());
  EXPECT_THAT(listens.news, ElementsAre("down unexpected_reply"));
}

TEST_F(channel_test, bytes_that_are_no_reply_end_the_connection) {
  connect();
  recorder a;
  ask(a);
  server.say("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_TRUE(wire.must_close());
  EXPECT_THAT(a.own, ElementsAre("cut"));
  EXPECT_THAT(listens.news, ElementsAre("down unexpected_reply"));
}

// Nobody wants to look at the port of a web server for five seconds.
TEST_F(channel_test, another_protocol_is_found_out_at_its_greeting_and_for_good) {
  const std::string no_reply = "not a reply we understand: Protocol error, got \"S\" as reply type byte";
  for (const auto& [bytes, text] :
       {std::pair{"HTTP/1.1 400 Bad Request\r\n", std::string{"it speaks HTTP, not Redis"}},
        std::pair{"<html>", std::string{"it speaks HTTP, not Redis"}}, std::pair{"SSH-2.0-OpenSSH_9.2\r\n", no_reply},
        std::pair{"+OK\r\n", std::string{"the answer to HELLO is none that Redis gives"}}}) {
    wire.on_connecting(server.now);
    wire.on_connected(server.now);
    wire.on_bytes(server.now, bytes);
    EXPECT_TRUE(wire.must_close()) << bytes;
    EXPECT_EQ(wire.last_failure().code, errc::wrong_server) << bytes;
    EXPECT_EQ(wire.last_failure().text, text) << bytes;
    EXPECT_TRUE(wire.last_failure().is_final) << bytes;
    wire.on_closed(server.now, {});
  }
}

TEST_F(channel_test, bytes_after_the_end_are_not_read) {
  connect();
  recorder a;
  ask(a);
  server.cut();
  server.say(integer(1));
  EXPECT_THAT(a.own, ElementsAre("cut"));
}

TEST_F(channel_test, nothing_of_the_old_connection_is_left_on_the_new_one) {
  connect();
  recorder a;
  ask(a);
  server.say("$10\r\nhalf");
  server.cut();
  EXPECT_EQ(wire.output(), "");
  server.connect();
  EXPECT_FALSE(wire.has_open_requests());
  ask(a);
  server.say(integer(1));
  EXPECT_THAT(a.own, ElementsAre("cut", "1"));
}

// The danger: a reply, the greeting's end or an error that only works when it comes in one piece.
TEST_F(channel_test, any_split_of_the_bytes_gives_the_same_news) {
  std::string all;
  for (const auto& reply : greeting_replies(server.clock)) all += reply;
  const std::size_t greeted = all.size();
  all += integer(1) + bulk("two") + refusal("ERR three") + list({integer(4), bulk("x")}) + bulk("");
  EXPECT_TRUE(rc::check("random splits", [&] {
    channel_news heard_by;
    channel split{{}, rng, heard_by};
    split.set_demand(true);
    split.on_connecting(server.now);
    split.on_connected(server.now);
    recorder a;
    std::size_t sent = 0;
    for (std::size_t at = 0; at < all.size();) {
      const auto most = at < greeted ? greeted - at : all.size() - at;
      const auto size = std::min<std::size_t>(most, *rc::gen::inRange<std::size_t>(1, 40));
      if (split.is_ready()) {
        for (; sent < 5; ++sent) split.send_raw(server.now, "", a);
      }
      split.on_bytes(server.now, std::string_view{all}.substr(at, size));
      at += size;
    }
    RC_ASSERT(a.own == (words{"1", "two", "error ERR three", "?", ""}));
    RC_ASSERT(heard_by.news == words{"ready"});
  }));
}

// ---- the end of a connection ----

TEST_F(channel_test, every_open_request_hears_of_the_cut_exactly_once) {
  connect();
  recorder a;
  recorder b;
  ask(a);
  ask(b);
  ask(a);
  server.cut();
  server.cut();
  EXPECT_THAT(a.own, ElementsAre("cut", "cut"));
  EXPECT_THAT(b.own, ElementsAre("cut"));
  EXPECT_THAT(listens.news, ElementsAre("down connection_lost"));
}

TEST_F(channel_test, the_forgotten_hear_of_no_cut_P30) {
  connect();
  recorder a;
  ask(a);
  wire.forget(a);
  server.cut();
  EXPECT_THAT(a.own, IsEmpty());
}

// A keeper's task with two renewals in flight ends with the first cut: the second must not reach it.
TEST_F(channel_test, who_ends_at_a_cut_takes_its_other_requests_along) {
  connect();
  recorder a;
  recorder b;
  ask(a);
  ask(b);
  ask(a);
  a.then = [&] {
    wire.forget(a);
    wire.forget(b);
  };
  server.cut();
  EXPECT_THAT(a.own, ElementsAre("cut"));
  EXPECT_THAT(b.own, IsEmpty());
}

TEST_F(channel_test, who_hangs_up_while_reading_cuts_all_others_and_hears_no_more) {
  connect();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  ask(a);
  ask(b);
  a.then = [&] { wire.hang_up(server.now, {errc::not_a_primary, "READONLY", false, false}); };
  server.say(integer(1) + integer(2));
  EXPECT_THAT(heard, ElementsAre("a1", "bcut"));
  EXPECT_TRUE(wire.must_close());
  EXPECT_EQ(wire.last_failure().code, errc::not_a_primary);
}

}  // namespace

}  // namespace holdfast::engine
