// SPDX-License-Identifier: Apache-2.0
// WAIT on the wire: behind which requests it stands, what is kept until it is answered, and what its time is not.
#include "engine/channel.hpp"

#include "engine/channel_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using channel_testing::a_release;
using channel_testing::channel_test;
using channel_testing::keys;
using channel_testing::recorder;
using channel_testing::somebody;
using channel_testing::words;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using word = confirmation::word;

channel::settings of_two() {
  channel::settings s;
  s.durable = {.replicas = 2, .timeout = 150ms};
  return s;
}

script::command an_acquire() { return script::acquire(keys, somebody, 10s, {}, 60s, "ann", {}); }
script::command a_renewal() { return script::renew(keys, somebody, fencing_token{7}, 10s); }

class durable_channel_test : public channel_test {
protected:
  durable_channel_test() : channel_test{of_two()} { server.is_asked_for_wait = true; }

  // What stands on the wire when the greeting is over.
  void begin() {
    connect();
    server.take();
  }
  void acquire(reply_sink& who) { wire.send(server.now, an_acquire(), who); }
};

TEST_F(channel_test, without_durability_nothing_is_waited_for_and_an_answer_needs_no_confirmation) {
  connect();
  recorder a;
  a.then = [&] { EXPECT_EQ(wire.confirmed().what, word::not_needed); };
  wire.send(server.now, an_acquire(), a);
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
  server.say(stamp(server.clock));
  EXPECT_EQ(a.own.size(), 1u);
}

TEST_F(durable_channel_test, what_may_be_granted_or_renewed_is_written_with_one_wait_behind_it) {
  begin();
  recorder a;
  acquire(a);
  wire.send(server.now, a_renewal(), a);
  acquire(a);
  const auto sent = server.take();
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[3], (request{"WAIT", "2", "150"}));
}

TEST_F(durable_channel_test, what_only_takes_away_or_asks_has_no_wait_and_its_answer_is_not_kept) {
  begin();
  recorder a;
  recorder b{"b"};
  wire.send(server.now, a_release(), b);
  wire.send(server.now, script::inspect(keys), b);
  EXPECT_THAT(server.take_names(), ElementsAre("release", "inspect"));
  acquire(a);
  wire.send(server.now, a_release(), b);
  server.say(integer(1) + integer(2) + integer(3) + integer(4));
  EXPECT_THAT(b.own, ElementsAre("b1", "b2", "b4"));
  EXPECT_THAT(a.own, IsEmpty());
}

// It is asked once more, should it be granted something: WAIT stops the connection.
TEST_F(durable_channel_test, a_heartbeat_has_no_wait_and_hears_that_it_is_not_confirmed) {
  begin();
  recorder a;
  a.then = [&] { EXPECT_EQ(wire.confirmed().what, word::not_asked); };
  wire.send(server.now, an_acquire(), a, channel::hope::little);
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
  server.say(integer(1));
  EXPECT_EQ(a.own.size(), 1u);
}

TEST_F(durable_channel_test, an_answer_is_given_out_with_what_wait_says_B63) {
  begin();
  recorder a;
  for (const auto& [said, meant] : {std::pair{2, word::enough}, {3, word::enough}, {1, word::few}, {0, word::few}}) {
    acquire(a);
    server.take();
    const auto sent_at = server.now;
    server.say(stamp(server.clock));
    EXPECT_THAT(a.own, IsEmpty());
    server.pass(100ms);
    bool is_told = false;
    a.then = [&, n = said, m = meant] {
      EXPECT_EQ(wire.confirmed().what, m);
      EXPECT_EQ(wire.confirmed().replicas, n);
      is_told = true;
    };
    server.say(integer(said));
    EXPECT_TRUE(is_told);
    EXPECT_EQ(a.sent_at, sent_at);
    a.own.clear();
  }
}

TEST_F(durable_channel_test, each_write_has_a_wait_of_its_own_and_each_answer_its_word) {
  begin();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  acquire(a);
  server.take();
  acquire(b);
  server.take();
  a.then = [&] { EXPECT_EQ(wire.confirmed().what, word::few); };
  b.then = [&] { EXPECT_EQ(wire.confirmed().what, word::enough); };
  server.say(integer(10) + integer(1) + integer(11) + integer(2));
  EXPECT_THAT(heard, ElementsAre("a10", "b11"));
}

TEST_F(durable_channel_test, a_cut_between_the_answer_and_wait_is_a_cut) {
  begin();
  recorder a;
  acquire(a);
  server.take();
  server.say(stamp(server.clock));
  server.cut();
  EXPECT_THAT(a.own, ElementsAre("cut"));
  EXPECT_EQ(channel::open_requests(a), 0);
  begin();
  EXPECT_THAT(a.own, ElementsAre("cut"));
}

// Who is told what was confirmed may have no memory for it.
TEST_F(durable_channel_test, what_was_confirmed_ends_with_its_connection_H12) {
  begin();
  recorder a;
  a.then = [] { throw std::bad_alloc{}; };
  acquire(a);
  server.take();
  server.say(stamp(server.clock));
  EXPECT_THROW(server.say(integer(2)), std::bad_alloc);
  server.cut();
  EXPECT_EQ(wire.confirmed().what, word::not_asked);
  server.pass(1min);
  connect();
  EXPECT_EQ(wire.server_now(server.now), server.clock);
}

TEST_F(durable_channel_test, a_lost_script_is_sent_by_text_with_a_wait_of_its_own_H28) {
  begin();
  recorder a;
  acquire(a);
  server.take();
  server.say(refusal("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_THAT(server.take_names(), ElementsAre("acquire by text", "WAIT"));
  server.say(integer(2));  // The first WAIT: of what was never carried out.
  EXPECT_THAT(a.own, IsEmpty());
  a.then = [&] { EXPECT_EQ(wire.confirmed().what, word::few); };
  server.say(integer(42) + integer(0));
  EXPECT_THAT(a.own, ElementsAre("42"));
}

TEST_F(durable_channel_test, who_is_forgotten_hears_nothing_of_what_was_kept) {
  begin();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  acquire(b);
  acquire(a);
  acquire(b);
  server.take();
  server.say(integer(1) + integer(2) + integer(3));
  acquire(a);
  server.take();
  EXPECT_EQ(channel::open_requests(a), 2);
  wire.forget(a);
  EXPECT_EQ(channel::open_requests(a), 0);
  server.say(integer(2) + integer(4) + integer(2));
  EXPECT_THAT(heard, ElementsAre("b1", "b3"));
}

// Who hears of it may go away, and take others along.
TEST_F(durable_channel_test, who_hears_of_it_may_forget_the_next_and_end_the_connection) {
  begin();
  words heard;
  recorder a{"a", &heard};
  recorder b{"b", &heard};
  recorder c{"c", &heard};
  for (auto* one : {&a, &b, &c}) acquire(*one);
  server.take();
  a.then = [&] {
    wire.forget(b);
    wire.hang_up(server.now, {errc::not_a_primary, "READONLY", false, false});
  };
  server.say(integer(1) + integer(2) + integer(3) + integer(2));
  EXPECT_THAT(heard, ElementsAre("a1", "ccut"));
  EXPECT_TRUE(wire.is_closed());
}

// ---- WAIT is refused ----

TEST_F(durable_channel_test, the_greeting_asks_for_wait_and_a_server_without_it_is_of_no_use_B66) {
  for (const auto& [said, code, fix] :
       {std::tuple{"NOPERM this user has no permissions to run the 'wait' command", errc::no_permission, "+wait"},
        {"ERR unknown command 'WAIT', with args beginning with: '0' '1'", errc::wrong_server, "durability.replicas"}}) {
    server.pass(1min);
    wire.set_demand(true);
    wire.on_connecting(server.now);
    wire.on_connected(server.now);
    EXPECT_EQ(server.take().at(3), (request{"WAIT", "0", "1"}));
    for (int i = 0; i < 3; ++i) server.say(greeting_replies(server.clock)[static_cast<std::size_t>(i)]);
    server.say(refusal(said));
    EXPECT_TRUE(wire.is_closed());
    EXPECT_EQ(wire.last_failure().code, code);
    EXPECT_TRUE(wire.last_failure().is_final);
    EXPECT_THAT(wire.last_failure().text, HasSubstr(fix));
  }
}

TEST_F(durable_channel_test, a_refusal_later_on_confirms_nothing_and_says_why_B66) {
  begin();
  recorder a;
  acquire(a);
  server.take();
  a.then = [&] {
    EXPECT_EQ(wire.confirmed().what, word::refused);
    EXPECT_EQ(wire.confirmed().code, errc::no_permission);
    EXPECT_FALSE(wire.confirmed().passes);
    EXPECT_THAT(wire.confirmed().text, HasSubstr("+wait"));
  };
  server.say(integer(1) + refusal("NOPERM this user has no permissions to run the 'wait' command"));
  EXPECT_EQ(a.own.size(), 1u);
  EXPECT_TRUE(wire.is_ready());
}

TEST_F(durable_channel_test, a_server_that_is_no_primary_any_more_or_says_nonsense_is_left) {
  for (const auto* said :
       {"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n",
        "-ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0\r\n", "+OK\r\n",
        ":-1\r\n"}) {
    SCOPED_TRACE(said);
    server.pass(1min);
    begin();
    recorder a;
    acquire(a);
    server.take();
    server.say(integer(1) + said);
    EXPECT_THAT(a.own, ElementsAre("cut"));
    EXPECT_TRUE(wire.must_close());
  }
}

// Bytes of a peer are no reason to fall over.
TEST_F(durable_channel_test, an_answer_to_what_was_not_written_yet_does_no_harm) {
  begin();
  recorder a;
  acquire(a);
  server.say(integer(1));
  EXPECT_THAT(server.take_names(), ElementsAre("acquire", "WAIT"));
  server.say(integer(2));
  EXPECT_THAT(a.own, ElementsAre("1"));
}

// ---- time ----

TEST_F(durable_channel_test, the_time_of_wait_is_no_silence) {
  begin();
  recorder a;
  acquire(a);
  server.take();
  EXPECT_EQ(wire.wake_at(), server.now + 500ms) << "the script answers at once";
  server.say(integer(1));
  EXPECT_EQ(wire.wake_at(), server.now + 650ms);
  server.pass(650ms);
  EXPECT_TRUE(wire.on_wake(server.now)) << "but it ends";
  EXPECT_THAT(a.own, ElementsAre("cut"));
}

TEST_F(durable_channel_test, the_time_of_wait_is_no_round_trip) {
  begin();
  recorder a;
  recorder b;
  for (int i = 0; i < 64; ++i) {
    acquire(a);
    server.take();
    ask(b);  // Behind it.
    server.pass(1ms);
    server.say(integer(1));
    server.pass(400ms);
    server.say(integer(2) + integer(3));
  }
  ask(b);
  EXPECT_EQ(wire.wake_at(), server.now + 500ms);
}

// The server's clock was read when the script ran, not when the answer was given out.
TEST_F(durable_channel_test, the_time_of_wait_is_no_step_of_the_clock) {
  begin();
  recorder a;
  acquire(a);
  server.take();
  const auto read = server.clock;
  const auto before = wire.server_now(server.now);
  server.say(integer(1));
  server.pass(140ms);
  a.then = [&] { wire.observe_clock(read, a.sent_at, server.now); };
  server.say(integer(2));
  EXPECT_EQ(wire.server_now(server.now), before + 140ms);
}

}  // namespace

}  // namespace holdfast::engine
