// SPDX-License-Identifier: Apache-2.0
// An acquire that stands in line, word by word: wait, look, leave, and who is told what.
#include "engine/acquire.hpp"

#include "engine/acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using call_testing::keys;
using call_testing::timeout;
using call_testing::token;
using testing::ElementsAre;
using testing::IsEmpty;

// A waiter, and the server that it listens to.
class waiting_test : public acquire_testing::acquire_test {
protected:
  void start_with(acquire::request what, const core::acquire_settings& how) {
    call.emplace(calls.wire(), ear, std::move(what), how, server.now, rng);
    calls.start(*call, server.now);
    server.connect();
    asked = server.take();
    ASSERT_EQ(asked.size(), 1u);
  }
  // The client's driver does this: the process's one subscription, and its news for every call.
  void listen() {
    ear.want(server.now);
    ear.wire().on_connecting(server.now);
    ear.wire().on_connected(server.now);
    ear.wire().output().clear();
    ear.wire().on_bytes(server.now,
                        hello("master", "standalone", "7.0.15") + time_of_day(server.clock) + info("a run"));
    ear.wire().on_bytes(server.now, list({bulk("subscribe"), bulk("hf:wake:me"), integer(1)}));
    ASSERT_EQ(ear.hearing(), core::hearing::yes);
    calls.on_hearing_changed(server.now);
  }
  // Busy, then in line without a subscription.
  std::string queue() {
    server.say(busy());
    server.pass(call->wake_at() - server.now);
    call->step(server.now);
    const auto owner = server.take().at(0).at(7);
    server.say(queued());
    return owner;
  }
  std::string queued(int look_ms = 5000) {
    return list({integer(7), stamp(server.clock), bulk("1795212800000001"), integer(0), integer(look_ms), bulk(""),
                 integer(-2)});
  }
  // EVALSHA digest 4 key key key key owner ...
  static const std::string& call_owner(const request& r) { return r.at(7); }
  std::string digits(server_time at) { return std::to_string(at.time_since_epoch().count()); }
  // What comes behind EVALSHA and its digest.
  static std::vector<std::string> words_of(const request& r) { return {r.begin() + 2, r.end()}; }
};

// The server may have forgotten locks, and says so in the greeting.
class quarantined_test : public acquire_testing::acquire_test {
protected:
  quarantined_test() : acquire_test{watching()} {
    server.epoch = list({integer(8), stamp(server.clock), integer(50'000), integer(3'000), bulk("restart")});
  }
  static channel::settings watching() {
    channel::settings how;
    how.epoch.prefix = "hf:";
    how.epoch.hold = 60s;
    return how;
  }
};

// It asks nothing before, so that no answer sends it there.
TEST_F(quarantined_test, who_waits_to_be_heard_on_its_way_into_the_line_wants_to_be) {
  call.emplace(calls.wire(), ear, wants(), rules(false), server.now, rng);
  calls.start(*call, server.now);
  server.connect();
  EXPECT_TRUE(server.take().empty());
  EXPECT_TRUE(ear.is_wanted());
}

// ---- the words ----

TEST_F(waiting_test, wait_says_the_whole_entry_and_that_it_is_heard) {
  listen();
  auto what = wants();
  what.min_fence = fencing_token{7};
  auto how = rules(false);
  how.wait = 30s;
  start_with(what, how);
  server.say(busy());
  const auto stood = server.take();
  ASSERT_EQ(stood.size(), 1u);
  ASSERT_EQ(named(stood[0]), "wait");
  EXPECT_THAT(words_of(stood[0]),
              ElementsAre("4", keys.holder, keys.fence(), keys.line(), keys.waiters(), call_owner(stood[0]), "10000",
                          digits(server.clock + timeout), "60000", "ann", "0000000000000007", "hf:wake:me", "s", "1000",
                          digits(server.clock + 30s), "0", "x"));
  EXPECT_NE(call_owner(stood[0]), owner_of(asked[0]));
}

// A semaphore's first request is the same script as its place in line, as a try.
TEST_F(waiting_test, a_counted_kind_asks_by_a_try_and_says_how_much_it_wants) {
  auto what = wants();
  what.keys.is_counted = true;
  what.part = {'p', 2, 3};
  call.emplace(calls.wire(), ear, what, rules(), server.now, rng);
  calls.start(*call, server.now);
  server.connect();
  const auto tried = server.take();
  ASSERT_EQ(tried.size(), 1u);
  EXPECT_EQ(tried[0].at(1), script::find(script::id::wait_counted).sha1);
  EXPECT_EQ(tried[0].at(15), "t");
  EXPECT_EQ(std::vector<std::string>(tried[0].end() - 3, tried[0].end()), (std::vector<std::string>{"p", "2", "s3"}));
  server.say(list({integer(16), stamp(server.clock), integer(5)}));
  EXPECT_EQ(failure(), errc::other_size);
  EXPECT_EQ(call->found_size(), 5);
}

TEST_F(waiting_test, wait_without_end_says_so) {
  listen();
  start(false);
  server.say(busy());
  const auto stood = server.take().at(0);
  EXPECT_EQ(stood.at(12), "0") << "min_fence";
  EXPECT_EQ(stood.at(16), "0") << "wait_until";
}

TEST_F(waiting_test, who_comes_back_brings_the_ticket_P4) {
  listen();
  start(false);
  server.say(busy());
  server.take();
  server.say(queued(0));
  ASSERT_THAT(server.take_names(), ElementsAre("look"));
  server.say(list({integer(15), stamp(server.clock)}));
  const auto again = server.take().at(0);
  EXPECT_EQ(named(again), "wait");
  EXPECT_EQ(again.at(17), "1795212800000001");
}

// A cut look may be granted yet. Its owner id would keep the new one out until the ttl is over.
TEST_F(waiting_test, who_comes_back_lets_the_former_id_leave_first_P9) {
  start(false);
  const auto former = queue();
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("look"));
  server.cut();
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("look"));
  server.say(list({integer(15), stamp(server.clock)}));
  const auto left_first = server.take();
  ASSERT_EQ(left_first.size(), 1u);
  EXPECT_EQ(named(left_first[0]), "leave");
  EXPECT_EQ(call_owner(left_first[0]), former);
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("wait")) << "it tried for a while to be heard";
  call->cancel(server.now);
  const auto left = call->take_unsettled();
  ASSERT_EQ(left.size(), 2u);
  EXPECT_TRUE(left[0].was_told);
  EXPECT_EQ(left[0].owner.hex(), former);
  EXPECT_FALSE(left[1].was_told);
}

TEST_F(waiting_test, a_try_with_a_line_says_that_it_is_one_P2) {
  start(true);
  server.say(list({integer(14), stamp(server.clock)}));
  const auto stood = server.take().at(0);
  EXPECT_EQ(named(stood), "wait");
  EXPECT_EQ(call_owner(stood), owner_of(asked[0]));
  EXPECT_EQ(stood.at(14), "t");
  EXPECT_FALSE(ear.is_wanted()) << "a try waits for no hint";
  server.say(busy());
  ASSERT_TRUE(call->is_over());
  EXPECT_TRUE(std::holds_alternative<core::got_busy>(call->end()));
}

TEST_F(waiting_test, look_says_who_looks_and_whether_it_hears) {
  start(false);
  const auto owner = queue();
  listen();
  const auto looked = server.take();
  ASSERT_EQ(looked.size(), 1u) << "H18: it looks as soon as it hears";
  ASSERT_EQ(named(looked[0]), "look");
  EXPECT_THAT(words_of(looked[0]), ElementsAre("4", keys.holder, keys.fence(), keys.line(), keys.waiters(), owner,
                                               digits(server.clock + timeout), "60000", "hf:wake:me", "s"));
}

TEST_F(waiting_test, look_of_the_deaf_says_so_P1) {
  start(false);
  const auto owner = queue();
  call->on_hint(server.now, owner, server.clock, 0s);
  EXPECT_EQ(server.take().at(0).at(11), "-");
}

// Whatever the state of the subscription: as long as it is pending it waits for it, at most 200 ms.
TEST_F(waiting_test, busy_stands_in_line_without_a_channel_when_none_comes_P1) {
  start(false);
  server.say(busy());
  EXPECT_FALSE(call->is_over());
  EXPECT_TRUE(ear.is_wanted());
  EXPECT_THAT(server.take(), IsEmpty());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  const auto stood = server.take();
  ASSERT_EQ(stood.size(), 1u);
  EXPECT_EQ(named(stood[0]), "wait");
  EXPECT_NE(stood[0].at(7), owner_of(asked[0]));
  EXPECT_EQ(stood[0].at(13), "hf:wake:me");
  EXPECT_EQ(stood[0].at(14), "-");
}

TEST_F(waiting_test, in_line_it_looks_when_told_and_the_look_gives_the_lease_H20) {
  start(false);
  server.say(busy());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  const auto owner = server.take().at(0).at(7);
  server.say(list(
      {integer(7), stamp(server.clock), bulk("1795212800000001"), integer(0), integer(5000), bulk(""), integer(-2)}));
  EXPECT_THAT(server.take(), IsEmpty());

  call->on_hint(server.now, std::string(32, 'f'), server.clock + 1s, 0s);
  EXPECT_THAT(server.take(), IsEmpty()) << "that was for somebody else";
  call->on_hint(server.now, owner, server.clock + 1s, 0s);
  const auto looked = server.take();
  ASSERT_EQ(looked.size(), 1u);
  EXPECT_EQ(named(looked[0]), "look");
  EXPECT_EQ(looked[0].at(7), owner);
  EXPECT_FALSE(call->is_over());
  server.say(mine(10'000));
  ASSERT_TRUE(lease());
  EXPECT_EQ(call->owner().hex(), owner);
}

// The subscription is older than 5 s here: a younger one is not doubted (engine/hints.hpp).
TEST_F(waiting_test, who_missed_its_turn_unheard_doubts_its_ear_H18) {
  listen();
  start(false);
  server.say(busy());
  server.take();
  server.say(queued());
  server.pass(6s);
  call->step(server.now);
  ASSERT_EQ(named(server.take().at(0)), "look");
  server.say(list({integer(15), stamp(server.clock)}));
  EXPECT_EQ(ear.hearing(), core::hearing::pending);
}

// Its turn was broken before it came. It hung up what it heard so well with, and was passed over elsewhere meanwhile.
TEST_F(waiting_test, who_was_called_and_found_its_turn_over_does_not_doubt_its_ear_seed_10655104) {
  listen();
  start(false);
  server.say(busy());
  const auto owner = server.take().at(0).at(7);
  server.say(queued(20'000));
  server.pass(5500ms);
  call->on_hint(server.now, owner, server.clock, 0s);
  ASSERT_EQ(named(server.take().at(0)), "look");
  server.say(list({integer(15), stamp(server.clock)}));
  EXPECT_EQ(ear.hearing(), core::hearing::yes);
}

// It is called while an earlier look of its is on its way, which comes too late as well.
TEST_F(waiting_test, who_is_called_behind_its_look_does_not_doubt_its_ear_either) {
  listen();
  start(false);
  server.say(busy());
  const auto owner = server.take().at(0).at(7);
  server.say(queued());
  server.pass(6s);
  call->step(server.now);
  ASSERT_EQ(named(server.take().at(0)), "look");
  call->on_hint(server.now, owner, server.clock, 0s);
  server.say(list({integer(15), stamp(server.clock)}));
  EXPECT_EQ(ear.hearing(), core::hearing::yes);
}

// ---- the news ----

// One message on the process's channel, and many who wait there.
TEST_F(waiting_test, a_hint_is_followed_by_its_owner_only) {
  listen();
  start(false);
  acquire other{calls.wire(), ear, wants(), rules(false), server.now, rng};
  calls.start(other, server.now);
  server.take();
  server.say(busy() + busy());
  const auto stood = server.take();
  ASSERT_EQ(stood.size(), 2u);
  server.say(queued() + queued());
  calls.on_hint(server.now, call_owner(stood[1]), server.clock + 1s, 0s);
  const auto looked = server.take();
  ASSERT_EQ(looked.size(), 1u);
  EXPECT_EQ(call_owner(looked[0]), call_owner(stood[1]));
  calls.on_hint(server.now, owner_of(asked[0]), server.clock + 1s, 0s);
  EXPECT_THAT(server.take(), IsEmpty()) << "an id that is not used any more";
  calls.stop(other);
}

// P6: the hint comes on one connection, the answer that queues us on another, and later.
TEST_F(waiting_test, a_hint_that_overtakes_the_answer_is_kept_for_it_P6) {
  listen();
  start(false);
  server.say(busy());
  const auto owner = call_owner(server.take().at(0));
  calls.on_hint(server.now, owner, server.clock + 1ms, 0s);
  EXPECT_THAT(server.take(), IsEmpty());
  server.say(queued());
  EXPECT_THAT(server.take_names(), ElementsAre("look"));
}

TEST_F(waiting_test, a_new_connection_is_looked_on_at_once_H19) {
  start(false);
  const auto owner = queue();
  server.cut();
  EXPECT_FALSE(call->is_over());
  server.connect();
  const auto looked = server.take();
  ASSERT_EQ(looked.size(), 1u);
  EXPECT_EQ(named(looked[0]), "look");
  EXPECT_EQ(call_owner(looked[0]), owner);
}

// H11, H61: the look claimed, and its answer was lost.
TEST_F(waiting_test, a_look_that_was_cut_is_repeated_on_the_new_connection_H11_H61) {
  start(false);
  const auto owner = queue();
  call->on_hint(server.now, owner, server.clock, 0s);
  ASSERT_THAT(server.take_names(), ElementsAre("look"));
  server.pass(30ms);
  server.cut();
  server.pass(200ms);
  server.connect();
  const auto again = server.take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(call_owner(again[0]), owner);
  const auto sent_at = server.now;
  server.pass(20ms);
  server.say(mine(9'750));
  ASSERT_TRUE(lease());
  EXPECT_EQ(lease()->token, token);
  EXPECT_EQ(lease()->deadline, core::deadline_of(sent_at, 9'750ms, core::clock_drift{10'000}));
  EXPECT_TRUE(lease()->was_repeated);
}

// ---- the end ----

// B27: no copy is out, so the first answer to its `leave` settles it: the epoch.
TEST_F(waiting_test, cancelled_in_line_leaves_and_one_answer_settles_it_B27) {
  start(false);
  const auto owner = queue();
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled);
  const auto left = call->take_unsettled();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner.hex(), owner);
  EXPECT_EQ(left[0].not_after, server_time{});
}

TEST_F(waiting_test, cancelled_while_it_looks_leaves_until_no_copy_can_come_P10) {
  start(false);
  const auto owner = queue();
  server.pass(1s);
  call->on_hint(server.now, owner, server.clock, 0s);
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled_in_flight);
  const auto left = call->take_unsettled();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner.hex(), owner);
  EXPECT_EQ(left[0].not_after, server.clock + timeout);
}

TEST_F(waiting_test, what_is_no_answer_in_line_is_unknown_and_leaves_C5) {
  for (const auto& wrong : {integer(1), simple("OK"), list({integer(7), stamp(server.clock)}),
                            list({integer(15), stamp(server.clock), integer(1)})}) {
    acquire one{calls.wire(), ear, wants(), rules(false), server.now, rng};
    calls.start(one, server.now);
    if (calls.wire().is_closed()) server.connect();
    server.say(busy());
    server.pass(one.wake_at() - server.now);
    one.step(server.now);
    server.say(wrong);
    ASSERT_TRUE(one.is_over()) << wrong;
    EXPECT_EQ(std::get<core::got_failure>(one.end()).code, errc::unexpected_reply) << wrong;
    EXPECT_EQ(one.take_unsettled().size(), 1u) << wrong;
    calls.stop(one);
  }
}

// To whoever has no place yet each of these is the end (acquire_test.cpp).
TEST_F(waiting_test, a_server_that_takes_no_writes_ends_nobody_who_stands_in_line_H31) {
  for (const char* text :
       {"OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Redis is configured to save RDB snapshots",
        "NOREPLICAS Not enough good replicas"}) {
    start_with(wants(), rules(false));
    queue();
    server.pass(call->wake_at() - server.now);
    call->step(server.now);
    EXPECT_THAT(server.take_names(), ElementsAre("look")) << text;
    server.say(refusal(text));
    EXPECT_FALSE(call->is_over()) << text;
    EXPECT_EQ(call->server_text(), text);
    EXPECT_GE(call->wake_at() - server.now, 5s - 1ms) << "it is not asked again and again";
    server.pass(call->wake_at() - server.now);
    call->step(server.now);
    EXPECT_THAT(server.take_names(), ElementsAre("look")) << text;
    server.say(queued());
    EXPECT_EQ(call->server_text(), "") << "that has passed";
    calls.stop(*call);
    server.cut();
  }
}

}  // namespace

}  // namespace holdfast::engine
