// SPDX-License-Identifier: Apache-2.0
// Silence, lost scripts, and the server's clock.
#include "engine/channel.hpp"

#include "engine/channel_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using channel_testing::a_release;
using channel_testing::channel_test;
using channel_testing::recorder;
using channel_testing::words;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- silence ----

TEST_F(channel_test, without_open_requests_silence_is_no_fault) {
  connect();
  EXPECT_EQ(wire.wake_at(), never);
  server.pass(1h);
  EXPECT_FALSE(wire.on_wake(server.now));
}

TEST_F(channel_test, silence_with_an_open_request_ends_it_after_half_a_second_P30) {
  connect();
  server.pass(1h);
  recorder a;
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 500ms);
  server.pass(500ms - 1ns);
  EXPECT_FALSE(wire.on_wake(server.now));
  server.pass(1ns);
  EXPECT_TRUE(wire.on_wake(server.now));
  EXPECT_THAT(a.own, ElementsAre("cut"));
  EXPECT_THAT(listens.news, ElementsAre("down server_silent"));
}

// P30: one request that the server is slow with is no silence while it answers others.
TEST_F(channel_test, any_byte_is_a_sign_of_life_P30) {
  connect();
  recorder a;
  ask(a);
  ask(a);
  server.pass(100ms);
  server.say(integer(1));
  EXPECT_EQ(wire.wake_at(), server.now + 500ms);
}

// We were stopped for a minute, with two answers unread: that is no round trip of the server's.
TEST_F(channel_test, what_was_taken_in_late_says_nothing_about_how_long_the_server_takes) {
  connect();
  recorder a;
  const auto quick = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ask(a);
      server.pass(1ms);
      server.say(integer(1));
    }
  };
  quick(40);
  ask(a);
  ask(a);
  server.pass(1min);
  server.say(integer(1) + integer(1));
  quick(40);
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 500ms);
}

// The first requests on a line to the other side of the world, before its round trips are known.
TEST_F(channel_test, a_line_that_was_greeted_slowly_is_waited_for_P4_P30) {
  wire.set_demand(true);
  wire.on_connecting(server.now);
  wire.on_connected(server.now);
  wire.output().clear();
  server.pass(600ms);
  for (const auto& reply : greeting_replies(server.clock)) server.say(reply);
  ASSERT_TRUE(wire.is_ready());
  recorder a;
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 1800ms);
  server.pass(10ms);
  server.say(integer(1));
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 500ms) << "it was slow only once";
}

TEST_F(channel_test, a_greeting_that_was_slow_beyond_reason_does_not_make_silence_good) {
  wire.set_demand(true);
  wire.on_connecting(server.now);
  wire.on_connected(server.now);
  server.pass(1900ms);
  for (const auto& reply : greeting_replies(server.clock)) server.say(reply);
  recorder a;
  ask(a);
  EXPECT_LE(wire.wake_at(), server.now + 2s);
}

TEST_F(channel_test, a_forgotten_request_is_waited_for_too_P30) {
  connect();
  recorder a;
  ask(a);
  wire.forget(a);
  server.pass(500ms);
  EXPECT_TRUE(wire.on_wake(server.now));
}

TEST_F(channel_test, a_slow_line_gets_three_of_its_99th_percentiles_P30) {
  connect();
  recorder a;
  for (int i = 0; i < 32; ++i) {
    ask(a);
    server.pass(i % 2 ? 300ms : 10ms);
    server.say(integer(1));
  }
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 900ms);
}

TEST_F(channel_test, one_slow_reply_in_32_is_not_the_99th_percentile) {
  connect();
  recorder a;
  for (int i = 0; i < 32; ++i) {
    ask(a);
    server.pass(i == 5 ? 400ms : 10ms);
    server.say(integer(1));
  }
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 500ms);
}

TEST_F(channel_test, short_leases_may_shorten_the_patience) {
  connect();
  wire.set_least_silence(50ms);
  recorder a;
  ask(a);
  EXPECT_EQ(wire.wake_at(), server.now + 50ms);
}

// ---- Scripts, and NOSCRIPT ----

// A server that was started anew: the first of its connections has two round trips to go.
TEST_F(channel_test, the_usual_scripts_that_the_server_lacks_are_loaded_before_it_is_ready_H28) {
  wire.set_demand(true);
  server.scripts = scripts_there(1);
  server.greet();
  EXPECT_FALSE(wire.is_ready());
  EXPECT_THAT(server.take_names(), ElementsAre("SCRIPT", "SCRIPT"));
  server.say(bulk(script::find(script::id::renew).sha1));
  EXPECT_FALSE(wire.is_ready());
  server.say(bulk(script::find(script::id::release).sha1));
  EXPECT_TRUE(wire.is_ready());
  EXPECT_THAT(server.take(), IsEmpty());
}

TEST_F(channel_test, is_told_to_load_only_what_is_not_there) {
  wire.set_demand(true);
  server.scripts = scripts_there(3, {script::id::wait});
  server.greet();
  for (const auto which : {script::id::wait, script::id::look, script::id::look}) wire.load(server.now, which);
  const auto said = server.take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0][2], script::find(script::id::look).text);
}

TEST_F(channel_test, a_lost_script_is_sent_by_text_H28) {
  connect();
  recorder a;
  wire.send(server.now, a_release(), a);
  const auto by_digest = server.take().at(0);
  ASSERT_EQ(named(by_digest), "release");
  const auto sent_at = server.now;
  server.pass(10ms);
  server.say(refusal("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_THAT(a.own, IsEmpty());

  const auto by_text = server.take().at(0);
  EXPECT_EQ(named(by_text), "release by text");
  EXPECT_EQ(words(by_text.begin() + 2, by_text.end()), words(by_digest.begin() + 2, by_digest.end()));
  server.say(integer(1));
  EXPECT_THAT(a.own, ElementsAre("1"));
  EXPECT_EQ(a.sent_at, sent_at) << "a lease is counted from the first sending, which is the careful side";
}

TEST_F(channel_test, a_request_by_text_comes_behind_what_was_sent_meanwhile_H28) {
  connect();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  wire.send(server.now, a_release(), a);
  ask(b);
  server.say(refusal("NOSCRIPT No matching script."));
  server.say(integer(1) + integer(2));
  EXPECT_THAT(heard, ElementsAre("b1", "a2"));
}

TEST_F(channel_test, a_script_is_sent_by_text_once_H28) {
  connect();
  recorder a;
  wire.send(server.now, a_release(), a);
  server.say(refusal("NOSCRIPT No matching script."));
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(a.own, ElementsAre("error NOSCRIPT No matching script."));
}

// The text is 4 kB, and with ten thousand under way each would be sent it.
TEST_F(channel_test, a_script_is_sent_by_text_once_for_all_that_were_under_way_H28) {
  connect();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  wire.send(server.now, a_release(), a);
  wire.send(server.now, a_release(), b);
  server.take();
  server.say(refusal("NOSCRIPT No matching script.") + refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take_names(), ElementsAre("release by text", "release"));
  // Forgotten again in between: then this one brings the text.
  server.say(integer(1) + refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take_names(), ElementsAre("release by text"));
  server.say(integer(2));
  EXPECT_THAT(heard, ElementsAre("a1", "b2"));
}

TEST_F(channel_test, raw_requests_hear_of_NOSCRIPT_themselves) {
  connect();
  recorder a;
  ask(a);
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(a.own, ElementsAre("error NOSCRIPT No matching script."));
}

// A lease that was dropped must be released by a server that lost its scripts, too: else it stays for its whole ttl.
TEST_F(channel_test, what_nobody_waits_for_is_sent_by_text_too_H28) {
  connect();
  wire.send_and_forget(server.now, a_release());
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take_names(), ElementsAre("release by text"));
  EXPECT_TRUE(wire.has_open_requests());
  server.say(integer(1));
  EXPECT_FALSE(wire.has_open_requests());
  EXPECT_TRUE(wire.is_ready());
}

// C6: a renewal that was let go while it was on its way would be sent once more, after release() returned.
TEST_F(channel_test, a_forgotten_request_is_not_sent_again_after_NOSCRIPT_C6) {
  connect();
  recorder a;
  wire.send(server.now, a_release(), a);
  server.take();
  wire.forget(a);
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take(), IsEmpty());
  EXPECT_FALSE(wire.has_open_requests());
}

// Whoever withdraws its votes and tries again forgets it, and the votes would stay: seed 1701811 of quorums.
TEST_F(channel_test, a_forgotten_leave_is_sent_again_after_NOSCRIPT_C5_H28) {
  connect();
  recorder a;
  wire.send(server.now, script::leave(channel_testing::keys, channel_testing::somebody), a);
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  wire.forget(a);
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take_names(), ElementsAre("leave by text"));
  server.say(stamp(server.clock));
  EXPECT_THAT(a.own, IsEmpty());
  EXPECT_FALSE(wire.has_open_requests());
}

// ---- a line that one script does not see to its end ----

const auto unseen = [](server_time at) { return list({integer(18), stamp(at)}); };

TEST_F(channel_test, lets_the_line_go_on_until_somebody_has_it_P2) {
  connect();
  recorder a;
  wire.send(server.now, a_release(), a);
  server.take();
  server.say(unseen(server.clock));
  EXPECT_THAT(a.own, ElementsAre("?")) << "it is done, and need not wait for that";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(wire.is_going_on());
    EXPECT_THAT(server.take_names(), ElementsAre("go_on"));
    server.say(unseen(server.clock));
  }
  EXPECT_THAT(server.take_names(), ElementsAre("go_on"));
  server.say(stamp(server.clock));
  EXPECT_THAT(server.take(), IsEmpty());
  EXPECT_FALSE(wire.is_going_on());
  EXPECT_FALSE(wire.has_open_requests());
  EXPECT_EQ(a.own.size(), 1u);
}

TEST_F(channel_test, lets_the_line_go_on_by_text_where_the_server_does_not_know_it_P2_H28) {
  connect();
  wire.send_and_forget(server.now, a_release());
  server.say(refusal("NOSCRIPT No matching script."));
  server.take();
  server.say(unseen(server.clock));
  EXPECT_THAT(server.take_names(), ElementsAre("go_on"));
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take_names(), ElementsAre("go_on by text"));
  EXPECT_TRUE(wire.is_going_on());
  server.say(unseen(server.clock));
  EXPECT_THAT(server.take_names(), ElementsAre("go_on"));
  server.say(refusal("ERR no"));
  EXPECT_THAT(server.take(), IsEmpty());
  EXPECT_FALSE(wire.is_going_on());
}

TEST_F(channel_test, does_not_let_the_line_go_on_for_ever_P2) {
  connect();
  wire.send_and_forget(server.now, a_release());
  int times = -1;
  while (!server.take().empty() && times < 1000) {
    ++times;
    server.say(unseen(server.clock));
  }
  EXPECT_EQ(times, 255);
  EXPECT_FALSE(wire.is_going_on());
}

TEST_F(channel_test, does_not_let_the_line_go_on_without_a_connection_P2) {
  connect();
  wire.send_and_forget(server.now, a_release());
  server.say(unseen(server.clock));
  EXPECT_TRUE(wire.is_going_on());
  server.cut();
  EXPECT_FALSE(wire.is_going_on());
  server.connect();
  EXPECT_THAT(server.take(), IsEmpty());
}

// ---- the server's clock ----

TEST_F(channel_test, knows_the_servers_time_from_the_greeting_on) {
  connect();
  EXPECT_EQ(wire.server_now(server.now + 2s), server.clock + 2s);
}

TEST_F(channel_test, tells_of_a_clock_step_H4) {
  connect();
  server.pass(1s);
  wire.observe_clock(server.clock + 1min, server.now, server.now);
  EXPECT_THAT(listens.news, ElementsAre("step 60"));
}

TEST_F(channel_test, a_new_connection_reckons_from_its_own_greeting_P11) {
  connect();
  server.cut();
  server.pass(3s);
  server.clock += 100ms;
  server.connect();
  EXPECT_EQ(wire.server_now(server.now), server.clock);
  EXPECT_THAT(listens.news, ElementsAre("down connection_lost", "ready"));
}

// H4: else the time between two connections would be a blind spot.
TEST_F(channel_test, a_step_between_two_connections_is_told_H4_P11) {
  connect();
  server.cut();
  listens.news.clear();
  server.clock -= 1h;
  server.connect();
  EXPECT_THAT(listens.news, ElementsAre("step -3600", "ready"));
  EXPECT_EQ(wire.server_now(server.now), server.clock);
}

TEST_F(channel_test, learns_only_what_is_newer_from_another_connection) {
  connect();
  core::server_clock older;
  older.observe(server.clock - 1h, server.now - 2s, server.now - 1s);
  wire.learn_clock(older);
  wire.learn_clock(core::server_clock{});
  EXPECT_EQ(wire.server_now(server.now), server.clock);
  server.pass(1s);
  core::server_clock newer;
  newer.observe(server.clock + 1h, server.now, server.now);
  wire.learn_clock(newer);
  EXPECT_EQ(wire.server_now(server.now), server.clock + 1h);
}

}  // namespace

}  // namespace holdfast::engine
