// SPDX-License-Identifier: Apache-2.0
// A connection and the epoch of its server: when it asks, what it says in quarantine, and what a grant is worth.
#include "engine/epoch_watch.hpp"

#include "engine/channel_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using channel_testing::channel_news;
using channel_testing::keys;
using channel_testing::recorder;
using channel_testing::somebody;
using testing::ElementsAre;
using worth = epoch_watch::worth;

using number = std::shared_ptr<std::atomic<int>>;

channel::settings watching(bool may_be_unknown = false, const number& tag = nullptr) {
  channel::settings s;
  s.epoch = {.prefix = "hf:",
             .hold = 60'602ms,
             .may_be_unknown = may_be_unknown,
             .wants_locks = {},
             .tag = tag,
             .is_first_run = {}};
  return s;
}

class epoch_test : public testing::Test {
protected:
  explicit epoch_test(bool may_be_unknown = false, const number& tag = nullptr)
      : wire{watching(may_be_unknown, tag), rng, listens} {}

  // The greeting, with this answer about the epoch.
  void greet(const std::string& epoch) {
    wire.set_demand(true);
    wire.on_connecting(server.now);
    wire.on_connected(server.now);
    greeting = server.take();
    auto replies = greeting_replies(server.clock);
    replies.insert(replies.begin() + 3, epoch);
    for (const auto& one : replies) server.say(one);
  }
  std::string nothing() { return stamp(server.clock); }
  std::string quarantined_for(int ms) {
    return list({integer(8), stamp(server.clock), integer(ms), integer(3'000), bulk("restart")});
  }
  void look(channel::hope what_for = channel::hope::grant) {
    wire.send(server.now, script::look(keys, somebody, {}, {"hf:wake:me", true}, {}, 60s), who, what_for);
  }
  void release() { wire.send(server.now, script::release(keys, somebody, fencing_token{7}), who); }

  core::seeded_random rng;
  channel_news listens;
  channel wire;
  peer server{wire};
  recorder who;
  std::vector<request> greeting;
};

TEST(epoch_watch, knows_of_the_longest_hold_of_all_clients_while_it_matters_P18) {
  time_point now{1h};
  epoch_watch watch{watching().epoch};
  EXPECT_EQ(watch.longest_hold(now), duration::max()) << "it has not been asked";
  std::string out;
  watch.ask(out, now);
  const server_time clock{1'795'212'800s};
  ASSERT_TRUE(watch.on_answer(
      now, now, parsed(list({integer(8), stamp(clock), integer(57'000), integer(3'000), bulk("promotion")}))));
  EXPECT_GE(watch.longest_hold(now), 60s);
  EXPECT_LE(watch.longest_hold(now), 61s);
  now += 58s;
  EXPECT_EQ(watch.longest_hold(now), 0s) << "it is over";
  EXPECT_EQ(epoch_watch{{}}.longest_hold(now), 0s) << "it never asks";
}

TEST_F(epoch_test, is_asked_for_in_the_greeting_by_text) {
  greet(nothing());
  ASSERT_EQ(greeting.size(), 5u);
  EXPECT_EQ(named(greeting[3]), "epoch by text");
  EXPECT_THAT(request(greeting[3].begin() + 2, greeting[3].end()), ElementsAre("1", "hf:epoch", "60602"));
  EXPECT_TRUE(wire.is_ready());
  EXPECT_FALSE(wire.in_quarantine(server.now));
}

TEST_F(epoch_test, quarantine_lasts_a_little_longer_by_our_clock) {
  greet(quarantined_for(50'000));
  const auto found = wire.in_quarantine(server.now);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ends_at, server.now + 50'502ms);
  EXPECT_EQ(found->began_at, server.now - 3s);
  EXPECT_FALSE(found->is_promotion);
  server.pass(50'502ms);
  EXPECT_FALSE(wire.in_quarantine(server.now));
}

TEST_F(epoch_test, without_an_answer_there_is_no_connection_and_a_reason) {
  greet(refusal("NOPERM this user has no permissions to run the 'info' command"));
  EXPECT_FALSE(wire.is_ready());
  EXPECT_EQ(wire.last_failure().code, errc::no_permission);
  EXPECT_TRUE(wire.last_failure().is_final);
  EXPECT_THAT(wire.last_failure().text, testing::HasSubstr("+info"));
  EXPECT_THAT(wire.last_failure().text, testing::HasSubstr("trust_every_write_is_synced"));
}

TEST_F(epoch_test, a_denial_of_something_else_is_not_put_down_to_info) {
  greet(refusal("NOPERM this user has no permissions to access one of the keys used as arguments"));
  EXPECT_EQ(wire.last_failure().code, errc::no_permission);
  EXPECT_THAT(wire.last_failure().text, testing::Not(testing::HasSubstr("+info")));
}

TEST_F(epoch_test, a_server_that_is_not_ready_yet_is_tried_again) {
  greet(refusal("LOADING Redis is loading the dataset in memory"));
  EXPECT_FALSE(wire.is_ready());
  EXPECT_FALSE(wire.last_failure().is_final);
}

// P20: what happened to the server in a second is not known.
TEST_F(epoch_test, a_request_for_a_grant_goes_behind_a_question_when_the_last_is_a_second_old_P20) {
  greet(nothing());
  server.pass(999ms);
  look();
  EXPECT_THAT(server.take_names(), ElementsAre("look"));
  server.pass(1ms);
  look();
  look();
  EXPECT_THAT(server.take_names(), ElementsAre("epoch by text", "look", "look"));
}

TEST_F(epoch_test, a_release_asks_nothing) {
  greet(nothing());
  server.pass(1min);
  release();
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
}

// A node of a cluster, of whose slots those of 2 and of 3 are.
class epoch_of_a_node : public epoch_test {
protected:
  epoch_of_a_node() : epoch_of_a_node{std::make_shared<std::atomic<int>>(3)} {}
  void renew() { wire.send(server.now, script::renew(keys, somebody, fencing_token{7}, 10s), who); }

private:
  explicit epoch_of_a_node(const number& its) : epoch_test{false, its}, tag{its} {}

protected:
  const number tag;
};

// Who only renews says under the new number, too, how long its leases may live on: who starts later knows no other.
TEST_F(epoch_of_a_node, that_has_another_number_is_asked_again_by_who_only_renews_P18) {
  greet(nothing());
  renew();
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  *tag = 2;
  renew();
  renew();
  const auto said = server.take();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(named(said[0]), "epoch by text");
  EXPECT_THAT(said[0], testing::Contains("hf:epoch:{2}"));
  EXPECT_THAT(said[0], testing::Contains("60602"));
  EXPECT_EQ(named(said[1]), "renew");
  EXPECT_EQ(named(said[2]), "renew");
}

// Of who never had a lease none can be forgotten. Before the first one may be granted, or renewed, it is said.
TEST(epoch_watch, says_first_how_long_a_lease_may_live_when_one_is_asked_for_P18) {
  const auto wants_locks = std::make_shared<std::atomic<bool>>(false);
  auto how = watching();
  how.epoch.wants_locks = wants_locks;
  core::seeded_random rng;
  channel_news listens;
  recorder who;
  channel wire{how, rng, listens};
  peer server{wire};
  server.epoch = stamp(server.clock);
  wire.set_demand(true);
  server.connect();
  const auto ask = [&] {
    wire.send(server.now, script::look(keys, somebody, {}, {"hf:wake:me", true}, {}, 60s), who);
    return server.take();
  };
  server.pass(2s);
  const auto looking = ask();
  ASSERT_EQ(looking.size(), 2u);
  EXPECT_THAT(request(looking[0].begin() + 2, looking[0].end()), ElementsAre("1", "hf:epoch", "60602", "", "look"));
  server.say(stamp(server.clock));
  *wants_locks = true;
  const auto said = ask();
  ASSERT_EQ(said.size(), 2u) << "the last answer is fresh, and was given to an onlooker";
  EXPECT_THAT(request(said[0].begin() + 2, said[0].end()), ElementsAre("1", "hf:epoch", "60602"));
  EXPECT_EQ(ask().size(), 1u);
  wire.forget(who);
}

TEST_F(epoch_test, a_heartbeat_asks_nothing_and_what_it_is_granted_must_be_confirmed) {
  greet(nothing());
  server.pass(5s);
  const auto sent_at = server.now;
  look(channel::hope::little);
  EXPECT_THAT(server.take_names(), ElementsAre("look"));
  EXPECT_EQ(wire.worth_of_grant(sent_at), worth::unconfirmed);
  look();
  EXPECT_THAT(server.take_names(), ElementsAre("epoch by text", "look"));
  server.say("$2\r\nno\r\n");  // Of the heartbeat.
  server.say(nothing());
  EXPECT_EQ(wire.worth_of_grant(server.now), worth::counts);
  EXPECT_EQ(wire.worth_of_grant(sent_at), worth::counts) << "an answer of later says more";
}

TEST_F(epoch_test, a_grant_behind_a_bad_answer_counts_for_nothing_P20) {
  greet(nothing());
  EXPECT_EQ(wire.worth_of_grant(server.now), worth::counts);
  server.pass(2s);
  look();
  server.say(quarantined_for(60'000));
  EXPECT_EQ(wire.worth_of_grant(server.now), worth::nothing);
}

TEST_F(epoch_test, in_quarantine_everything_says_so_and_each_request_for_a_grant_asks_anew) {
  greet(quarantined_for(50'000));
  look();
  release();
  auto said = server.take();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(named(said[0]), "epoch by text");
  EXPECT_EQ(said[1].back(), "sq");
  EXPECT_EQ(said[2].back(), "q");
  wire.send_and_forget(server.now, script::leave(keys, somebody));
  said = server.take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].back(), "q") << "also where nobody waits for the answer";
  server.say(nothing());  // Somebody said that nothing is forgotten.
  look();
  said = server.take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].back(), "s");
}

TEST_F(epoch_test, what_passes_is_asked_again_and_nothing_counts_until_then) {
  greet(nothing());
  server.pass(2s);
  look();
  server.say(refusal("BUSY Redis is busy running a script"));
  EXPECT_TRUE(wire.is_ready());
  EXPECT_EQ(wire.worth_of_grant(server.now), worth::nothing);
  server.take();
  look();
  EXPECT_THAT(server.take_names(), ElementsAre("epoch by text", "look"));
}

TEST_F(epoch_test, permission_that_is_taken_away_ends_the_connection) {
  greet(nothing());
  server.pass(2s);
  look();
  server.say(refusal("NOPERM this user has no permissions to run the 'info' command"));
  EXPECT_FALSE(wire.is_ready());
  EXPECT_TRUE(wire.last_failure().is_final);
  EXPECT_THAT(who.own, ElementsAre("cut"));
}

// Else who waits hears that nobody knows what became of his request, which was refused.
TEST_F(epoch_test, a_replica_that_refuses_the_question_refuses_what_came_along_C5) {
  const std::string readonly = "READONLY You can't write against a read only replica.";
  for (const auto& said : {refusal(readonly), refusal("NOSCRIPT No matching script.")}) {
    who.own.clear();
    greet(nothing());
    server.pass(2s);
    look();
    look();
    server.say(refusal(readonly) + said);
    EXPECT_TRUE(wire.is_closed());
    EXPECT_THAT(who.own, ElementsAre("error " + readonly, "cut"));
    server.pass(2s);
  }
}

// Many threads ask in one write. The first that hears of it ends the connection, as a call does.
TEST_F(epoch_test, all_that_a_replica_refused_behind_the_question_is_a_definite_no_H37_C5) {
  const std::string readonly = refusal("READONLY You can't write against a read only replica.");
  greet(nothing());
  server.pass(2s);
  for (int i = 0; i < 4; ++i) look();
  who.then = [&] { wire.hang_up(server.now, {errc::not_a_primary, "it says so", false, false}); };
  server.say(readonly + readonly + refusal("NOSCRIPT No matching script.") + readonly);
  const std::string no = "error READONLY You can't write against a read only replica.";
  EXPECT_THAT(who.own, ElementsAre(no, no, no, "cut")) << "of the last one nobody knows";
}

// Who asks behind it takes the next answer for a proof that it has left (core/acquire_call.hpp).
TEST_F(epoch_test, a_replica_that_refuses_what_nobody_waits_for_has_refused_it_H37) {
  const std::string readonly = refusal("READONLY You can't write against a read only replica.");
  greet(nothing());
  server.pass(2s);
  look();
  wire.send_and_forget(server.now, script::leave(keys, somebody));
  look();
  server.say(readonly + readonly + readonly + readonly);
  EXPECT_EQ(wire.refused_unheard(), 1u);
}

TEST_F(epoch_test, what_stands_behind_a_second_question_is_refused_likewise_H37_C5) {
  const std::string readonly = refusal("READONLY You can't write against a read only replica.");
  greet(nothing());
  for (int i = 0; i < 2; ++i) {
    server.pass(2s);
    look();
  }
  server.say(readonly + readonly + readonly + readonly);
  const std::string no = "error READONLY You can't write against a read only replica.";
  EXPECT_THAT(who.own, ElementsAre(no, no));
}

// Between two questions the first request finds it out.
TEST_F(epoch_test, all_that_a_replica_refused_behind_a_request_is_a_definite_no_H37_C5) {
  const std::string text = "READONLY You can't write against a read only replica.";
  greet(nothing());
  for (int i = 0; i < 4; ++i) look();
  who.then = [&] { wire.hang_up(server.now, {errc::not_a_primary, text, false, false}); };
  server.say(refusal(text) + refusal("NOSCRIPT No matching script.") + stamp(server.clock) + refusal(text));
  EXPECT_THAT(who.own, ElementsAre("error " + text, "error " + text, "cut", "error " + text)) << "what it says else";
}

// It answers what only reads, and may be a primary by then.
TEST_F(epoch_test, a_replica_that_refuses_the_question_answers_nothing_else_H37) {
  for (const auto& said : {stamp(server.clock), refusal("LOADING Redis is loading"), std::string{}}) {
    who.own.clear();
    greet(nothing());
    server.pass(2s);
    look();
    server.say(refusal("READONLY You can't write against a read only replica.") + said);
    EXPECT_TRUE(wire.is_closed());
    EXPECT_THAT(who.own, ElementsAre("cut")) << said;
    server.pass(2s);
  }
}

TEST_F(epoch_test, a_new_connection_knows_nothing) {
  greet(quarantined_for(50'000));
  server.cut();
  greet(nothing());
  EXPECT_FALSE(wire.in_quarantine(server.now));
  EXPECT_EQ(wire.worth_of_grant(server.now), worth::counts);
}

TEST_F(epoch_test, is_not_asked_for_where_the_server_is_trusted) {
  channel trusting{{}, rng, listens};
  peer there{trusting};
  trusting.set_demand(true);
  there.connect();
  there.pass(1min);
  trusting.send(there.now, script::look(keys, somebody, {}, {"hf:wake:me", true}, {}, 60s), who);
  EXPECT_THAT(there.take_names(), ElementsAre("look"));
  EXPECT_EQ(trusting.worth_of_grant(there.now), worth::counts);
  trusting.forget(who);
}

class keepers_epoch : public epoch_test {
protected:
  keepers_epoch() : epoch_test{true} {}
};

// Renewals must go on, whatever is denied; and what nobody knows is no reason to move a line.
TEST_F(keepers_epoch, may_be_unknown_and_then_no_line_is_moved) {
  greet(refusal("NOPERM this user has no permissions to run the 'info' command"));
  EXPECT_TRUE(wire.is_ready());
  release();
  const auto said = server.take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].back(), "q");
}

// It was denied when the connection was made (seed 49628382), or the server was busy then.
TEST_F(keepers_epoch, is_asked_again_once_a_second_while_it_is_unknown_so_that_lines_move_C7) {
  greet(refusal("NOPERM this user has no permissions to run the 'info' command"));
  server.pass(999ms);
  release();
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
  server.say(stamp(server.clock));
  server.pass(1ms);
  release();
  release();
  const auto said = server.take();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(named(said[0]), "epoch by text");
  EXPECT_EQ(said[1].back(), "q");
  server.say(nothing());
  // Those two have not moved theirs (seed 113628).
  for (int i = 0; i < 2; ++i) {
    server.say(stamp(server.clock));
    const auto behind = server.take();
    ASSERT_EQ(behind.size(), 1u);
    EXPECT_EQ(named(behind[0]), "go_on");
    EXPECT_NE(behind[0].back(), "q");
  }
  for (int i = 0; i < 2; ++i) server.say(stamp(server.clock));
  release();
  EXPECT_NE(server.take().at(0).back(), "q");
}

TEST(epoch_watch, says_that_it_is_the_first_run_where_that_is_certain) {
  int asked = 0;
  epoch_watch watch{{.prefix = "hf:", .hold = 1s, .may_be_unknown = false, .is_first_run = [&] {
                       ++asked;
                       return true;
                     }}};
  watch.begin();
  std::string out;
  watch.ask(out, {});
  watch.ask(out, {});
  EXPECT_EQ(asked, 1) << "a connection has one server";
  EXPECT_EQ(requests_in(out).at(0).back(), "first");
}

}  // namespace

}  // namespace holdfast::engine
