// SPDX-License-Identifier: Apache-2.0
// Failing renewals, letting go, and releasing in the background.
#include "engine/keeper.hpp"

#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using keeper_testing::drift;
using keeper_testing::keeper_test;
using keeper_testing::keys_of;
using keeper_testing::lease_news;
using keeper_testing::somebody;
using keeper_testing::token;
using keeper_testing::ttl;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- failing: the renewal's one reply is replaced by everything else that may come ----

TEST_F(keeper_test, errors_and_nonsense_lose_nothing_before_the_deadline_B18) {
  for (const auto& said :
       {refusal("LOADING Redis is loading"), refusal("NOPERM no"), refusal("OOM full"), refusal("BUSY script"),
        refusal("WRONGTYPE no"), refusal("ERR what"), integer(1), simple("OK"), std::string{"$-1\r\n"}, list({}),
        list({integer(5), stamp(server.clock)}), list({integer(5), stamp(server.clock), bulk("new word")})}) {
    const auto lease = held();
    const auto before = lease->deadline.left(server.now);
    wake_after(3s);
    if (keeps.wire().is_closed()) server.connect();
    server.take();
    server.say(said);
    EXPECT_THAT(listens.lost, IsEmpty()) << said;
    EXPECT_EQ(lease->deadline.left(server.now), before - 3s) << said;
    drive_until(server.now + 100ms, true, [&](const request&) { return done(); });
    EXPECT_GT(lease->deadline.left(server.now), before - 1s) << said << ": it was not tried again soon";
    keeps.let_go(*lease);
    EXPECT_TRUE(keeps.wire().is_ready());
  }
}

TEST_F(keeper_test, a_cut_loses_nothing_and_is_tried_again_B18) {
  const auto lease = renewing();
  server.cut();
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed connection_lost", "down connection_lost"));
  drive_until(server.now + 100ms, true, [&](const request&) { return done(); });
  EXPECT_THAT(listens.take(), ElementsAre("up", "renewed"));
}

TEST_F(keeper_test, a_primary_that_became_a_replica_is_hung_up_on) {
  const auto lease = renewing();
  server.say(refusal("READONLY You can't write against a read only replica."));
  EXPECT_TRUE(keeps.wire().is_closed());
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed not_a_primary", "down not_a_primary"));
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));
}

// Else whoever loses it hears that the server stopped answering, which has said why with each connection.
TEST_F(keeper_test, a_renewal_that_no_connection_is_granted_for_has_failed_once_for_each_reason) {
  const connection_failure is_replica{errc::not_a_primary, "the server is a read-only replica", true, false};
  const auto lease = held();
  wake_after(3s);
  server.refuse(is_replica);
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed not_a_primary"));
  const auto refused_again = [&](const connection_failure& why) {
    wake_after(keeps.wake_at() - server.now);
    server.refuse(why);
    return listens.take();
  };
  EXPECT_THAT(refused_again(is_replica), IsEmpty());
  EXPECT_THAT(refused_again({errc::cannot_connect, "Connection refused", false, true}), IsEmpty()) << "nobody said it";
  EXPECT_THAT(refused_again({errc::wrong_password, "WRONGPASS", true, false}),
              ElementsAre("renew_failed wrong_password"));
  EXPECT_THAT(refused_again({errc::server_refused, "ERR max number of clients reached", false, false}),
              ElementsAre("renew_failed server_refused"));
  drive_until(server.now + 2s, true, [&](const request&) { return done(); });
  EXPECT_THAT(listens.take(), ElementsAre("up", "renewed"));
  server.cut();
  listens.take();
  wake_after(3s);
  server.refuse(is_replica);
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed not_a_primary")) << "of the next one";
}

TEST_F(keeper_test, what_need_not_be_sent_has_not_failed) {
  const auto lease = held(0, renewal::none);
  keeps.release_later(server.now, a_release());
  wake();
  server.refuse({errc::not_a_primary, "the server is a read-only replica", true, false});
  EXPECT_THAT(listens.take(), IsEmpty());
}

// Else a process that only releases stays with a server where nothing can be released any more.
TEST_F(keeper_test, a_primary_that_became_a_replica_is_hung_up_on_by_what_is_released_in_the_background) {
  keeps.release_later(server.now, a_release());
  wake();
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  server.say(refusal("READONLY You can't write against a read only replica."));
  EXPECT_TRUE(keeps.wire().is_closed());
  EXPECT_TRUE(keeps.has_background_releases());
}

// Else what a seed of the simulator plays would depend on where they lie in memory.
TEST_F(keeper_test, what_waited_for_a_connection_is_sent_in_the_order_in_which_it_came) {
  std::vector<std::shared_ptr<held_lease>> leases;
  std::vector<std::string> came;
  for (int i = 0; i < 30; ++i) {
    leases.push_back(held(i));
    came.push_back(keys_of(i).holder);
  }
  wake_after(3s);
  server.connect();
  std::vector<std::string> sent;
  for (const auto& one : server.take()) sent.push_back(one.at(3));
  EXPECT_EQ(sent, came);
}

class connecting_keeper : public keeper_test {
protected:
  // Behind the time that a lease's first renewal takes.
  void begins_after(duration time) {
    wake_after(time);
    ASSERT_TRUE(keeps.wire().wants_connection(server.now));
    keeps.wire().on_connecting(server.now);
  }
};

// A lease of 3 s has no time for two addresses of 2 s each.
TEST_F(connecting_keeper, gives_up_a_silent_address_while_a_short_lease_has_time_for_another) {
  const auto lease = held(0, renewal::automatic, 3s);
  begins_after(1s);
  EXPECT_EQ(keeps.wire().wake_at(), server.now + 750ms);
  keeps.let_go(*lease);
  const auto longer = held(0, renewal::automatic, 60s);
  EXPECT_EQ(keeps.wire().wake_at(), server.now + 2s) << "of which there is more time";
}

TEST_F(connecting_keeper, leaves_a_far_server_half_a_second_however_short_a_lease_is) {
  const auto lease = held(0, renewal::automatic, 100ms);
  begins_after(34ms);
  EXPECT_EQ(keeps.wire().wake_at(), server.now + 500ms);
}

// Two renewals of one lease in flight, and the first of them ends its life.
TEST_F(keeper_test, a_task_that_ends_at_a_cut_is_not_told_of_its_second_request) {
  const auto lease = renewing();
  keeps.wire().set_least_silence(1h);
  for (int i = 0; i < 20 && server.take().empty(); ++i) wake_after(500ms);
  server.pass(9s);  // The keeper's own thread was stopped for so long.
  server.cut();
  EXPECT_EQ(listens.lost.size(), 1u);
  EXPECT_TRUE(keeps.is_idle());
}

// ---- silence: the shortest lease that is kept says how long the server may be silent ----

class keeper_silence_test : public keeper_test {
protected:
  // Of a renewal that is sent now, or is on the wire already.
  duration silence_allowed() {
    if (!keeps.wire().has_open_requests()) keeps.wire().send_raw(server.now, "PING\r\n", nobody);
    return keeps.wire().wake_at() - server.now;
  }
  struct deaf : reply_sink {
    void on_reply(time_point, time_point, const resp::value&) override {}
    void on_cut(time_point) override {}
  } nobody;
};

TEST_F(keeper_silence_test, is_a_quarter_of_the_shortest_ttl_while_that_is_kept) {
  const auto lease = renewing();
  EXPECT_EQ(silence_allowed(), 500ms);
  const auto shorter = held(1, renewal::automatic, 400ms);
  const auto shortest = held(2, renewal::automatic, 100ms);
  const auto alike = held(3, renewal::automatic, 100ms);
  EXPECT_EQ(silence_allowed(), 25ms);
  keeps.let_go(*shortest);
  EXPECT_EQ(silence_allowed(), 25ms);
  keeps.let_go(*alike);
  EXPECT_EQ(silence_allowed(), 100ms);
  keeps.let_go(*shorter);
  EXPECT_EQ(silence_allowed(), 500ms);
}

TEST_F(keeper_silence_test, is_longer_again_when_the_shortest_is_lost) {
  const auto lease = held();
  held(1, renewal::none, 100ms);
  wake_after(100ms);
  ASSERT_EQ(listens.lost.size(), 1u);
  wake_after(2900ms);
  server.connect();
  EXPECT_EQ(silence_allowed(), 500ms);
}

TEST_F(keeper_silence_test, is_longer_again_when_the_shortest_has_moved) {
  const auto lease = renewing();
  const auto shortest = held(1, renewal::automatic, 100ms);
  EXPECT_EQ(silence_allowed(), 25ms);
  auto moved = keeps.take_away(server.now, [&](const script::lock_keys& k) { return k.holder == keys_of(1).holder; });
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(silence_allowed(), 500ms);
  keeps.adopt(server.now, std::move(moved[0]));
  EXPECT_EQ(silence_allowed(), 25ms);
}

class a_keeper_whose_server_was_slow : public keeper_silence_test {
protected:
  // So often that the 99th percentile says what it can. `takes`: which answer, how long.
  std::shared_ptr<held_lease> renewed_often(const std::function<duration(int)>& takes) {
    const auto lease = held(0, renewal::automatic, 1s);
    for (int answers = 0; answers < 32;) {
      wake();
      if (keeps.wire().wants_connection(server.now)) server.connect();
      if (!server.take().empty()) {
        server.pass(takes(answers++));
        server.say(done());
      }
      server.pass(std::max(duration{0}, keeps.wake_at() - server.now));
    }
    EXPECT_THAT(listens.lost, IsEmpty());
    listens.take();
    return lease;
  }
  static duration slow_twice(int answer) { return answer == 10 || answer == 20 ? 240ms : 1ms; }
};

// What has been measured outlives its connection.
TEST_F(a_keeper_whose_server_was_slow, twice_gives_a_silent_connection_up_while_there_is_time_for_another) {
  const auto lease = renewed_often(slow_twice);
  wake();
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  EXPECT_LE(silence_allowed(), 450ms);
  drive_until(server.now + 5s, true, [&](const request&) {
    return !listens.news.empty() ? done() : std::string{};  // "down", of the silent one.
  });
  EXPECT_THAT(listens.lost, IsEmpty());
}

// Else it would be given up with each renewal.
TEST_F(a_keeper_whose_server_was_slow, each_time_waits_longer_than_that) {
  const auto lease = renewed_often([](int answer) -> duration { return answer == 0 ? 200ms : 350ms; });
  EXPECT_EQ(silence_allowed(), 525ms);
}

TEST_F(a_keeper_whose_server_was_slow, twice_waits_as_long_as_ever_when_no_lease_is_short) {
  const auto lease = renewed_often(slow_twice);
  keeps.let_go(*lease);
  EXPECT_EQ(silence_allowed(), 720ms);
}

// ---- letting go ----

TEST_F(keeper_test, a_late_reply_to_a_renewal_that_was_let_go_is_dropped_H42_B1_C6) {
  const auto lease = renewing();
  const auto ends = lease->deadline.left(server.now);
  EXPECT_TRUE(keeps.let_go(*lease));
  server.say(done());
  EXPECT_EQ(lease->deadline.left(server.now), ends);
  EXPECT_THAT(listens.take(), IsEmpty());
  wake_after(1h);
  EXPECT_THAT(server.take(), IsEmpty());
  EXPECT_EQ(keeps.wake_at(), never);
}

TEST_F(keeper_test, nothing_is_renewed_after_letting_go_C6_H42) {
  const auto lease = held();
  EXPECT_TRUE(keeps.let_go(*lease));
  EXPECT_FALSE(keeps.let_go(*lease));
  drive_until(server.now + 1min, true, [](const request& r) {
    ADD_FAILURE() << named(r);
    return "";
  });
  EXPECT_THAT(listens.take(), IsEmpty());
}

TEST_F(keeper_test, a_renewal_that_was_let_go_is_not_repeated_by_text_C6_H28) {
  const auto lease = renewing();
  keeps.let_go(*lease);
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take(), IsEmpty());
}

TEST_F(keeper_test, the_last_one_to_go_takes_the_demand_along) {
  const auto lease = held();
  wake_after(3s);
  EXPECT_TRUE(keeps.wire().wants_connection(server.now));
  keeps.let_go(*lease);
  EXPECT_FALSE(keeps.wire().wants_connection(server.now));
}

// ---- releasing in the background ----

TEST_F(keeper_test, releases_in_the_background_at_once) {
  keeps.release_later(server.now, a_release());
  EXPECT_TRUE(keeps.has_background_releases());
  wake();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
  server.say(done());
  EXPECT_TRUE(keeps.is_idle());
}

// B27, P5: no token is known of an acquire that ended in line or unanswered, and a release compares it.
TEST_F(keeper_test, without_a_token_it_leaves_wherever_it_stands_B27_P5) {
  auto what = a_release();
  what.token = {};
  keeps.release_later(server.now, what);
  wake();
  server.connect();
  const auto sent = server.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(named(sent[0]), "leave");
  EXPECT_THAT(keeper_testing::words(sent[0].begin() + 2, sent[0].end()),
              ElementsAre("4", "hf:{0}", "hf:{0}:fence", "hf:{0}:line", "hf:{0}:waiters", std::string(32, '0')));
  server.say(done());
  EXPECT_TRUE(keeps.is_idle());
}

TEST_F(keeper_test, a_release_in_the_background_names_the_token_P9) {
  keeps.release_later(server.now, a_release());
  wake();
  server.connect();
  const auto sent = server.take().at(0);
  EXPECT_THAT(keeper_testing::words(sent.begin() + 2, sent.end()),
              ElementsAre("4", "hf:{0}", "hf:{0}:fence", "hf:{0}:line", "hf:{0}:waiters", std::string(32, '0'),
                          token.to_string()));
}

TEST_F(keeper_test, not_mine_ends_a_background_release_too) {
  keeps.release_later(server.now, a_release());
  wake();
  server.connect();
  server.say(not_mine());
  EXPECT_TRUE(keeps.is_idle());
}

// P10, H12: a copy of the acquire may come until not_after; what is said before proves nothing.
TEST_F(keeper_test, repeats_a_background_release_until_after_not_after_P10_H12) {
  auto what = a_release();
  what.not_after = server.clock + 500ms;
  what.not_after_local = server.now + 500ms;
  keeps.release_later(server.now, what);
  const auto began = server.now;
  std::vector<duration> asked;
  drive_until(server.now + 5s, true, [&](const request& r) {
    EXPECT_EQ(named(r), "release");
    asked.push_back(server.now - began);
    return not_mine();
  });
  EXPECT_TRUE(keeps.is_idle());
  ASSERT_GE(asked.size(), 2u);
  EXPECT_EQ(asked.front(), 0ns);
  EXPECT_GT(asked.back(), 500ms);
  EXPECT_LE(asked.size(), 4u);
}

// P10: somebody else's release has taken the mark that the first one left, and a copy whose connection was cut locks.
TEST_F(keeper_test, lets_go_soon_what_a_copy_took_that_was_cut_off_P10) {
  auto what = a_release();
  what.not_after = server.clock + 5s;
  what.not_after_local = server.now + 5s;
  what.went_by = core::route::was_cut;
  keeps.release_later(server.now, what);
  const auto comes_at = server.now + 300ms;
  std::vector<duration> held_for;
  drive_until(server.now + 10s, true, [&](const request&) {
    if (server.now < comes_at || !held_for.empty()) return not_mine();
    held_for.push_back(server.now - comes_at);
    return done();
  });
  EXPECT_TRUE(keeps.is_idle());
  ASSERT_EQ(held_for.size(), 1u);
  EXPECT_LE(held_for[0], 1s) << "for nobody";
}

// P5: a copy was queued after we left, and now it is its turn.
TEST_F(keeper_test, leaves_at_once_when_the_line_calls_one_who_left_P5) {
  auto what = a_release();
  what.token = {};
  what.not_after = server.clock + 5s;
  what.not_after_local = server.now + 5s;
  keeps.release_later(server.now, what);
  wake();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(not_mine());
  wake_after(1s);
  EXPECT_THAT(server.take_names(), IsEmpty());
  keeps.on_stray_hint(server.now, std::string(32, 'f'), server.clock);
  wake();
  EXPECT_THAT(server.take_names(), IsEmpty()) << "that one is a stranger";
  keeps.on_stray_hint(server.now, std::string(32, '0'), server.clock);
  EXPECT_LE(keeps.wake_at(), server.now);
  wake();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(done());
  EXPECT_FALSE(keeps.is_idle()) << "and once more after its not_after";
}

TEST_F(keeper_test, a_background_release_survives_cuts_and_refusals) {
  keeps.release_later(server.now, a_release());
  int asked = 0;
  drive_until(server.now + 5s, true, [&](const request&) {
    ++asked;
    if (asked == 1) {
      server.cut();
      return std::string{};
    }
    return asked == 2 ? refusal("BUSY Redis is busy running a script.") : done();
  });
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(keeps.is_idle());
}

TEST_F(keeper_test, a_background_release_gives_up_when_the_lease_has_expired_by_itself) {
  keeps.release_later(server.now, a_release());
  drive_until(server.now + 10s, false, [](const request&) { return ""; });
  EXPECT_TRUE(keeps.is_idle());
  EXPECT_FALSE(keeps.wire().wants_connection(server.now));
}

// ---- the end ----

// The tasks go before the channel that knows them; the sanitizers look on.
TEST_F(keeper_test, may_go_away_with_everything_in_flight) {
  lease_news own;
  auto brief = std::make_unique<keeper>(channel::settings{}, drift, rng, own);
  peer other{brief->wire()};
  const auto ends = core::deadline_of(other.now, ttl, drift);
  const auto lease = std::make_shared<held_lease>(keys_of(0), somebody, token, ttl, ends);
  brief->keep(lease, other.now, ends, renewal::automatic);
  other.pass(3s);
  brief->release_later(other.now, a_release());
  brief->on_wake(other.now);
  other.connect();
  EXPECT_THAT(other.take_names(), testing::UnorderedElementsAre("renew", "release"));
  own.take();
  brief.reset();
  EXPECT_THAT(own.news, IsEmpty());
  EXPECT_EQ(lease.use_count(), 1);
}

TEST_F(keeper_test, tells_of_a_clock_step_H4) {
  const auto lease = renewing();
  server.clock += 1h;
  server.say(done());
  EXPECT_THAT(listens.take(), ElementsAre("step", "renewed"));
}

// Its machine was frozen, its clock with it: every deadline here is too late by that much.
TEST_F(keeper_test, a_clock_that_went_forward_puts_all_leases_to_the_test_H3) {
  const auto first = renewing();
  const auto second = held(1);
  const auto by_hand = held(2, renewal::none);
  server.pass(100ms);
  server.clock += 5s;
  server.say(done());
  wake();
  const auto asked = server.take();
  ASSERT_EQ(asked.size(), 1u) << "the first has just been renewed, and the third does not renew itself";
  EXPECT_EQ(asked[0][3], keys_of(1).holder);
  server.say(not_mine("gone"));
  wake();
  EXPECT_EQ(second->lost_reason, errc::lease_gone);
  EXPECT_EQ(first->lost_reason, errc{});
}

// What is sent must not depend on where leases lie in memory: a seed of the simulator would play differently elsewhere.
TEST_F(keeper_test, a_clock_that_went_forward_has_leases_asked_about_in_the_order_in_which_they_came) {
  const auto first = renewing();
  std::vector<std::shared_ptr<held_lease>> all;
  std::vector<std::string> keys;
  for (int i = 1; i <= 20; ++i) {
    all.push_back(held(i));
    keys.push_back(keys_of(i).holder);
  }
  server.pass(100ms);
  server.clock += 5s;
  server.say(done());
  wake();
  std::vector<std::string> asked;
  for (const auto& one : server.take()) asked.push_back(one[3]);
  EXPECT_EQ(asked, keys);
}

// The callers' connection has had an answer first. Whoever was to be told is, by that one.
TEST_F(keeper_test, a_clock_that_was_seen_to_go_forward_elsewhere_puts_all_leases_to_the_test_H3) {
  const auto lease = renewing();
  server.say(done());
  listens.take();
  server.pass(100ms);
  server.clock += 5s;
  core::server_clock seen;
  (void)seen.observe(server.clock, server.now, server.now);
  keeps.on_step_seen(server.now, 5s, seen);
  wake();
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(not_mine("gone"));
  wake();
  EXPECT_EQ(lease->lost_reason, errc::lease_gone);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_gone")) << "no second step";
  held(1);
  keeps.on_step_seen(server.now, -5s, seen);
  wake();
  EXPECT_THAT(server.take(), IsEmpty()) << "back is no danger";
}

TEST_F(keeper_test, a_clock_that_went_back_puts_nothing_to_the_test_H3) {
  const auto first = renewing();
  const auto second = held(1);
  server.pass(100ms);
  server.clock -= 5s;
  server.say(done());
  wake();
  EXPECT_THAT(server.take(), IsEmpty());
}

}  // namespace

}  // namespace holdfast::engine
