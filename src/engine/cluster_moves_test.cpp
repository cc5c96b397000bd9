// SPDX-License-Identifier: Apache-2.0
// A slot moves to another node: what its calls and its leases do then (B68). Two servers, each with a connection.
#include "engine/acquire.hpp"
#include "engine/keeper_testing.hpp"
#include "engine/question.hpp"
#include "engine/release.hpp"

#include "engine/call_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using call_testing::keys;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int slot = 77;
constexpr std::size_t owner_of_four_keys = 7;

channel::settings in_cluster(std::function<void()> redirected) {
  channel::settings how;
  how.redirected = std::move(redirected);
  return how;
}

class two_nodes : public testing::Test {
protected:
  struct node_under_test {
    explicit node_under_test(two_nodes& of)
        : calls{in_cluster([&of] { ++of.redirections; }), of.rng, {}},
          ear{{}, "hf:wake:me", calls.wire(), of.rng, {}},
          server{calls.wire()} {}
    caller calls;
    hints ear;
    peer server;
  };

  ~two_nodes() override {
    if (where) where->stop(*call);
  }

  int redirections = 0;
  core::seeded_random rng;
  node_under_test a{*this};
  node_under_test b{*this};

  static bool nowhere(int) { return false; }
  void pass(duration time) {
    a.server.pass(time);
    b.server.pass(time);
  }
  time_point now() const { return a.server.now; }
  std::string queued() {
    return list({integer(7), stamp(a.server.clock), bulk("1795212800000001"), integer(0), integer(5000), bulk(""),
                 integer(-2)});
  }
  std::string busy() { return list({integer(2), stamp(a.server.clock), bulk("v1|somebody"), integer(5000)}); }

  std::optional<acquire> call;
  caller* where = nullptr;  // It is started.
  void start(std::optional<duration> wait, bool only_once = false) {
    const core::acquire_settings rules{10s, core::clock_drift{10'000}, only_once, wait, 5s, true};
    call.emplace(a.calls.wire(), a.ear, acquire::request{keys, std::make_shared<const std::string>("ann"), 60s, {}},
                 rules, now(), rng);
    call->set_slot(slot);
    a.calls.start(*call, now());
    where = &a.calls;
    a.server.connect();
  }
  // Until it stands in line at A; its owner id.
  std::string queue() {
    a.server.take();
    a.server.say(busy());
    pass(call->wake_at() - now());
    call->step(now());
    const auto owner = a.server.take().at(0).at(owner_of_four_keys);
    a.server.say(queued());
    return owner;
  }
  void move_to_b() {
    a.calls.leave_server(now(), nowhere);
    ASSERT_TRUE(call->is_moved());
    a.calls.stop(*call);
    call->go_on(b.calls.wire(), b.ear, now());
    b.calls.start(*call, now());
    where = &b.calls;
    if (!b.calls.wire().is_ready()) b.server.connect();
  }
};

TEST_F(two_nodes, an_acquire_that_is_told_MOVED_asks_again_with_the_same_id) {
  start(5s);
  const auto first = a.server.take().at(0);
  a.server.say(refusal("MOVED 77 10.0.0.2:7000"));
  EXPECT_FALSE(call->is_over());
  EXPECT_EQ(redirections, 1) << "who serves the slot must be asked";
  move_to_b();
  pass(call->wake_at() - now());
  call->step(now());
  const auto again = b.server.take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(named(again[0]), "acquire");
  EXPECT_EQ(again[0].at(5), first.at(5)) << "the owner id";
}

// Its own text: on one server there is nobody else to ask.
TEST_F(two_nodes, an_acquire_that_has_no_slot_ends_with_MOVED) {
  start(5s);
  call->set_slot(call::no_slot);
  a.server.take();
  a.server.say(refusal("MOVED 77 10.0.0.2:7000"));
  ASSERT_TRUE(call->is_over());
  EXPECT_EQ(std::get<core::got_failure>(call->end()).code, errc::wrong_server);
}

TEST_F(two_nodes, a_call_whose_slot_stays_stays) {
  start(5s);
  a.calls.leave_server(now(), [](int which) { return which == slot; });
  EXPECT_FALSE(call->is_moved());
}

TEST_F(two_nodes, who_waits_looks_at_once_where_the_line_is_now_with_the_same_id) {
  start(60s);
  const auto owner = queue();
  move_to_b();
  const auto asked = b.server.take();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(named(asked[0]), "look");
  EXPECT_EQ(asked[0].at(owner_of_four_keys), owner);
}

// The look can find nobody, if the line was lost with the old node: then it stands again, with its ticket.
TEST_F(two_nodes, who_waits_comes_back_with_its_ticket_where_the_line_was_lost) {
  start(60s);
  queue();
  move_to_b();
  b.server.take();
  b.server.say(list({integer(15), stamp(b.server.clock)}));
  pass(call->wake_at() - now());
  call->step(now());
  const auto asked = b.server.take();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(named(asked.back()), "wait");
  EXPECT_THAT(asked.back(), Contains("1795212800000001"));
}

TEST_F(two_nodes, a_hint_finds_who_came_from_another_node) {
  start(60s);
  const auto owner = queue();
  move_to_b();
  b.server.take();
  b.server.say(queued());
  pass(1s);
  b.calls.on_hint(now(), owner, b.server.clock, 0s);
  EXPECT_THAT(b.server.take_names(), ElementsAre("look"));
}

// What was asked may have taken effect: if the call ends without another answer, nobody knows.
TEST_F(two_nodes, what_is_unanswered_when_the_slot_moves_is_taken_for_cut_off) {
  start({}, true);
  a.calls.leave_server(now(), nowhere);
  ASSERT_TRUE(call->is_moved());
  a.calls.stop(*call);
  where = nullptr;
  call->cancel(now());
  ASSERT_TRUE(call->is_over());
  EXPECT_EQ(std::get<core::got_failure>(call->end()).code, errc::cancelled_in_flight);
  EXPECT_EQ(call->take_unsettled().size(), 1u);
}

TEST_F(two_nodes, a_late_answer_of_the_old_node_is_not_heard) {
  start(60s);
  a.server.take();
  move_to_b();
  a.server.say(list({integer(0), stamp(a.server.clock), bulk("1795212800000042")}));
  EXPECT_FALSE(call->is_over());
}

TEST_F(two_nodes, a_question_follows_its_key) {
  question asks{a.calls.wire(), script::inspect(keys), question::repeat::refused, now() + 5s};
  asks.set_slot(slot);
  a.calls.start(asks, now());
  a.server.connect();
  a.server.take();
  a.server.say(refusal("MOVED 77 10.0.0.2:7000"));
  EXPECT_FALSE(asks.is_over()) << "it was definitely not done";
  a.calls.leave_server(now(), nowhere);
  ASSERT_TRUE(asks.is_moved());
  a.calls.stop(asks);
  asks.go_on(b.calls.wire(), b.ear, now());
  b.calls.start(asks, now());
  b.server.connect();
  pass(30ms);
  asks.step(now());
  EXPECT_THAT(b.server.take_names(), ElementsAre("inspect"));
  b.calls.stop(asks);
}

// As long as nobody else is known to serve it there is no primary for it: the server is none that is wrong.
TEST_F(two_nodes, a_question_that_is_sent_elsewhere_to_the_end_says_that_there_is_no_primary) {
  for (const char* said : {"MOVED 77 10.0.0.2:7000", "ASK 77 10.0.0.2:7000"}) {
    question asks{a.calls.wire(), script::inspect(keys), question::repeat::allowed, now() + 1s};
    asks.set_slot(slot);
    a.calls.start(asks, now());
    if (!a.calls.wire().is_ready()) a.server.connect();
    a.server.take();
    a.server.say(refusal(said));
    EXPECT_FALSE(asks.is_over());
    pass(30ms);
    asks.step(now());
    a.server.say(refusal(said));
    pass(970ms);
    asks.step(now());
    ASSERT_TRUE(asks.is_over());
    EXPECT_FALSE(asks.reply());
    EXPECT_EQ(asks.failure(), errc::no_primary);
    a.calls.stop(asks);
  }
}

// ---- what is held ----

class two_keepers : public keeper_testing::keeper_test {
protected:
  two_keepers() : keeper_test{in_cluster([] {})} {}

  keeper_testing::lease_news there_listens;
  keeper there{in_cluster([] {}), keeper_testing::drift, rng, there_listens};
  peer there_server{there.wire()};

  void move_all() {
    there_server.now = server.now;
    there_server.clock = server.clock;
    for (auto& one : keeps.take_away(server.now, [](const script::lock_keys&) { return true; })) {
      there.adopt(server.now, std::move(one));
    }
    there.on_wake(there_server.now);
  }
};

// Else what a seed of the simulator plays would depend on where they lie in memory.
TEST_F(two_keepers, what_moves_arrives_in_the_order_in_which_it_came) {
  std::vector<std::shared_ptr<held_lease>> leases;
  std::vector<std::string> came;
  for (int i = 0; i < 30; ++i) {
    if (i % 3 == 0)
      keeps.release_later(
          server.now,
          {keeper_testing::keys_of(i), keeper_testing::somebody, keeper_testing::token, {}, {}, server.now + 10s});
    else
      leases.push_back(held(i));
    came.push_back(keeper_testing::keys_of(i).holder);
  }
  std::vector<std::string> left;
  for (const auto& one : keeps.take_away(server.now, [](const auto&) { return true; }))
    left.push_back(one.keys().holder);
  EXPECT_EQ(left, came);
}

// Nor what is drawn for each of them.
TEST_F(two_keepers, what_moves_is_tried_again_then_wherever_it_lies_in_memory) {
  std::vector<std::shared_ptr<held_lease>> leases;
  for (int i = 0; i < 30; ++i) {
    leases.push_back(std::make_shared<held_lease>(keeper_testing::keys_of(i), keeper_testing::somebody,
                                                  keeper_testing::token, keeper_testing::ttl, server.now + 10s));
  }
  const auto times_of = [&] {
    core::seeded_random same;
    keeper one{in_cluster([] {}), keeper_testing::drift, same, there_listens};
    for (const auto& lease : leases) one.keep(lease, server.now, server.now + 10s, renewal::automatic);
    std::vector<time_point> times;
    for (auto& leaving : one.take_away(server.now, [](const auto&) { return true; }))
      times.push_back(leaving.plan->on_wake(server.now, false).wake_at);
    return times;
  };
  const auto times = times_of();
  std::reverse(leases.begin(), leases.end());
  EXPECT_EQ(times_of(), times);
}

TEST_F(two_keepers, a_lease_that_moves_is_renewed_there_at_once) {
  const auto lease = renewing();
  server.say(refusal("MOVED 77 10.0.0.2:7000"));
  EXPECT_FALSE(lease->deadline.left(server.now) <= 0s);
  move_all();
  EXPECT_FALSE(keeps.is_kept(*lease));
  EXPECT_TRUE(there.is_kept(*lease));
  there_server.pass(1s);
  there.on_wake(there_server.now);
  there_server.connect();
  EXPECT_THAT(there_server.take_names(), Contains("renew"));
}

TEST_F(two_keepers, a_lease_that_moves_keeps_its_deadline) {
  const auto lease = held();
  const auto left = lease->deadline.left(server.now);
  move_all();
  EXPECT_EQ(lease->deadline.left(server.now), left);
  there_server.pass(left);
  there.on_wake(there_server.now);
  EXPECT_THAT(there_listens.take(), Contains("lost lease_expired"));
}

TEST_F(two_keepers, a_late_renewal_of_the_old_node_moves_no_deadline) {
  const auto lease = renewing();
  const auto left = lease->deadline.left(server.now);
  move_all();
  server.say(done());
  EXPECT_EQ(lease->deadline.left(server.now), left);
  EXPECT_THAT(listens.take(), IsEmpty());
}

TEST_F(two_keepers, a_background_release_goes_on_there) {
  keeps.release_later(server.now, a_release());
  move_all();
  EXPECT_FALSE(keeps.has_background_releases());
  there_server.connect();
  EXPECT_THAT(there_server.take_names(), ElementsAre("release"));
  there_server.say(done());
  EXPECT_FALSE(there.has_background_releases());
}

TEST_F(two_keepers, a_background_release_that_was_under_way_is_sent_again_there_P9) {
  keeps.release_later(server.now, a_release());
  wake();
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("release"));
  move_all();
  there_server.connect();
  there_server.pass(1s);
  there.on_wake(there_server.now);
  EXPECT_THAT(there_server.take_names(), ElementsAre("release"));
}

// It would be let go by the hint for it, if the old keeper thought that it had ended (H20).
TEST_F(two_keepers, a_lease_that_moves_has_not_ended) {
  const auto lease = held();
  lease->was_in_line = true;
  move_all();
  keeps.on_stray_hint(server.now, lease->owner.hex(), server_time::max());
  EXPECT_FALSE(keeps.has_background_releases());
}

// A replica of the new node that had not heard of his end is promoted, and its line calls him.
TEST_F(two_keepers, who_has_had_his_turn_leaves_where_his_key_is_served_now_H25) {
  std::vector<owner_id> owners;
  for (const int i : {0, 1}) {
    const auto ends = core::deadline_of(server.now, keeper_testing::ttl, keeper_testing::drift);
    const auto lease = std::make_shared<held_lease>(keeper_testing::keys_of(i), owners.emplace_back(rng.bytes16()),
                                                    keeper_testing::token, keeper_testing::ttl, ends);
    lease->was_in_line = true;
    keeps.keep(lease, server.now, ends, renewal::automatic);
    keeps.let_go(*lease);
  }
  const auto moving = keeper_testing::keys_of(1).holder;
  for (auto& one : keeps.take_away(server.now, [&](const auto& which) { return which.holder == moving; }))
    there.adopt(server.now, std::move(one));
  const auto is_let_leave = [&](keeper& by, const owner_id& whom) {
    by.on_stray_hint(server.now, whom.hex(), server_time::max());
    return by.has_background_releases();
  };
  EXPECT_FALSE(is_let_leave(keeps, owners[1]));
  EXPECT_FALSE(is_let_leave(there, owners[0])) << "whose key stays";
  EXPECT_TRUE(is_let_leave(there, owners[1]));
  EXPECT_TRUE(is_let_leave(keeps, owners[0]));
}

TEST_F(two_keepers, the_last_one_to_move_takes_the_demand_along) {
  const auto lease = held();
  wake_after(3s);
  EXPECT_TRUE(keeps.wire().wants_connection(server.now));
  move_all();
  EXPECT_FALSE(keeps.wire().wants_connection(server.now));
}

struct heard final : renewal_wish {
  void on_end(errc how) noexcept override { end = how; }
  std::optional<errc> end{};
};

TEST_F(two_keepers, a_renewal_that_is_sent_elsewhere_to_the_end_says_that_there_is_no_primary) {
  const auto wish = std::make_shared<heard>();
  const auto lease = held(0, renewal::none);
  keeps.renew_now(server.now, *lease, server.now + 1s, wish);
  wake();
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(refusal("ASK 77 10.0.0.2:7000"));
  EXPECT_FALSE(wish->end);
  server.pass(1s);
  wake();
  EXPECT_EQ(wish->end, errc::no_primary);
}

// It may have been renewed where it was, whatever is said where it is now.
class a_renewal_under_way : public two_keepers {
protected:
  std::optional<errc> ends_there() {
    const auto wish = std::make_shared<heard>();
    const auto lease = held(0, renewal::none);
    keeps.renew_now(server.now, *lease, server.now + 5s, wish);
    wake();
    server.connect();
    EXPECT_THAT(server.take_names(), ElementsAre("renew"));
    move_all();
    if (is_connected_there) {
      there_server.pass(1s);
      there.on_wake(there_server.now);
      there_server.connect();
    }
    while (!wish->end && there.is_kept(*lease)) {
      for (const auto& name : there_server.take_names()) {
        EXPECT_EQ(name, "renew");
        there_server.say(refusal("LOADING Redis is loading the dataset in memory"));
      }
      there_server.pass(std::max<duration>(there.wake_at() - there_server.now, 1ms));
      there.on_wake(there_server.now);
    }
    return wish->end;
  }
  bool is_connected_there = false;
};

TEST_F(a_renewal_under_way, is_unknown_where_nobody_answers_there_C5) { EXPECT_EQ(ends_there(), errc::reply_lost); }

TEST_F(a_renewal_under_way, is_unknown_where_it_is_refused_there_C5) {
  is_connected_there = true;
  EXPECT_EQ(ends_there(), errc::reply_lost);
}

TEST_F(two_keepers, whoever_wants_a_renewal_hears_of_it_there) {
  const auto wish = std::make_shared<heard>();
  const auto lease = held(0, renewal::none);
  keeps.renew_now(server.now, *lease, server.now + 5s, wish);
  move_all();
  EXPECT_FALSE(wish->end);
  there_server.connect();
  EXPECT_THAT(there_server.take_names(), ElementsAre("renew"));
  there_server.say(done());
  EXPECT_EQ(wish->end, errc{});
}

}  // namespace
}  // namespace holdfast::engine
