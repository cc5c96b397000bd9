// SPDX-License-Identifier: Apache-2.0
// Renewing and losing.
#include "engine/keeper.hpp"

#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using keeper_testing::drift;
using keeper_testing::keeper_test;
using keeper_testing::keys_of;
using keeper_testing::somebody;
using keeper_testing::token;
using keeper_testing::ttl;
using keeper_testing::words;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- renewing ----

TEST_F(keeper_test, wants_no_connection_for_who_holds_for_a_moment) {
  const auto lease = held();
  wake();
  EXPECT_FALSE(keeps.wire().wants_connection(server.now));
  EXPECT_EQ(keeps.wake_at(), server.now + 1s);
  wake_after(1s - 1ns);
  EXPECT_FALSE(keeps.wire().wants_connection(server.now));
  wake_after(1ns);
  EXPECT_TRUE(keeps.wire().wants_connection(server.now));
}

// A name server that is slow, or a server that is full, may take seconds: there is time for them before the loss.
TEST_F(keeper_test, has_its_connection_before_the_first_renewal_is_due) {
  const auto lease = held();
  wake_after(1s);
  server.refuse();
  wake_after(keeps.wake_at() - server.now);
  server.connect();
  EXPECT_THAT(server.take_names(), IsEmpty()) << "it is not due";
  EXPECT_THAT(listens.take(), ElementsAre("up"));
  while (server.now < time_point{1h} + 3s - 1ns)
    wake_after(std::min(keeps.wake_at(), time_point{1h} + 3s - 1ns) - server.now);
  EXPECT_THAT(server.take_names(), IsEmpty());
  wake_after(1ns);
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
}

// And behind its end not only when the next one is due.
TEST_F(keeper_test, has_its_connection_again_before_the_next_renewal_is_due) {
  const auto lease = renewing();
  server.say(done());
  wake_after(100ms);
  server.cut();
  wake();
  EXPECT_TRUE(keeps.wire().wants_connection(server.now) || keeps.wake_at() < server.now + 1s);
  server.pass(1s);
  wake();
  EXPECT_TRUE(keeps.wire().wants_connection(server.now));
  server.connect();
  EXPECT_THAT(server.take_names(), IsEmpty()) << "it is not due";
}

TEST_F(keeper_test, wants_no_connection_for_what_is_not_renewed) {
  const auto lease = held(0, renewal::none);
  wake_after(3s);
  EXPECT_FALSE(keeps.wire().wants_connection(server.now));
}

TEST_F(keeper_test, renews_with_owner_and_token_P9) {
  const auto lease = held();
  wake_after(3s);
  server.connect();
  const auto sent = server.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(named(sent[0]), "renew");
  EXPECT_THAT(words(sent[0].begin() + 3, sent[0].end()),
              ElementsAre("hf:{0}", "hf:{0}:break", std::string(32, '0'), token.to_string(), "9000"));
}

TEST_F(keeper_test, no_renewal_moves_a_deadline_beyond_the_longest_hold_R14) {
  const auto ends = core::deadline_of(server.now, ttl, drift);
  const auto lease = std::make_shared<held_lease>(keys_of(0), somebody, token, ttl, ends);
  lease->last = server.now + 10s;
  keeps.keep(lease, server.now, ends, renewal::automatic);
  wake_after(3s);
  server.connect();
  server.take();
  server.say(done());
  EXPECT_EQ(lease->deadline.at(), lease->last);
  wake_after(5s);
  EXPECT_THAT(server.take(), IsEmpty()) << "a renewal would move nothing";
  listens.take();
  wake_after(2s);
  EXPECT_THAT(listens.take(), testing::Contains("lost lease_held_too_long"));
  EXPECT_FALSE(lease->deadline.is_ahead(server.now));
}

TEST_F(keeper_test, of_several_the_shortest_longest_hold_counts_R14) {
  const auto ends = core::deadline_of(server.now, ttl, drift);
  keeper::leases several;
  for (int i = 0; i < 2; ++i) several.push_back(std::make_shared<held_lease>(keys_of(i), somebody, token, ttl, ends));
  several[1]->last = server.now + 5s;
  keeps.keep_as_one(several, server.now, ends, renewal::automatic);
  for (const auto& one : several) EXPECT_EQ(one->deadline.at(), server.now + 5s);
  wake_after(5s);
  EXPECT_THAT(listens.take(), testing::Contains("lost lease_held_too_long"));
}

TEST_F(keeper_test, a_renewal_moves_the_deadline_from_its_send_instant_B19) {
  const auto lease = renewing();
  const auto sent_at = server.now;
  server.pass(400ms);
  server.say(done());
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  EXPECT_EQ(lease->deadline.left(server.now), core::deadline_of(sent_at, ttl, drift) - server.now);
  EXPECT_EQ(listens.last_margin, core::deadline_of(sent_at - 3s, ttl, drift) - server.now);
}

TEST_F(keeper_test, a_lease_is_kept_for_as_long_as_the_server_answers) {
  const auto lease = held();
  int renewals = 0;
  drive_until(server.now + 1h, true, [&](const request&) {
    ++renewals;
    return done();
  });
  EXPECT_THAT(listens.lost, IsEmpty());
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));
  EXPECT_NEAR(renewals, 1200, 30);
}

TEST_F(keeper_test, a_lease_without_renewal_costs_nothing_and_ends) {
  const auto lease = held(0, renewal::none);
  const auto ends = core::deadline_of(server.now, ttl, drift);
  drive_until(ends - 450ms - 1ns, true, [](const request&) { return ""; });
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
  drive_until(ends - 450ms, true, [](const request&) { return ""; });
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_expired"));
  EXPECT_FALSE(keeps.wire().was_ever_ready());
}

// B17: two thirds of the ttl were gone when the grant was read.
TEST_F(keeper_test, a_grant_that_was_long_on_its_way_is_renewed_in_time) {
  const auto ends = core::deadline_of(server.now - 6s, ttl, drift);
  const auto lease = std::make_shared<held_lease>(keys_of(0), somebody, token, ttl, ends);
  keeps.keep(lease, server.now, ends, renewal::automatic);
  drive_until(server.now + 1min, true, [&](const request&) { return done(); });
  EXPECT_THAT(listens.lost, IsEmpty());
}

TEST_F(keeper_test, a_thousand_leases_are_renewed_in_one_batch_B94) {
  std::vector<std::shared_ptr<held_lease>> all;
  for (int i = 0; i < 1000; ++i) all.push_back(held(i));
  wake_after(3s);
  server.connect();
  const auto batch = server.take();
  ASSERT_EQ(batch.size(), 1000u);
  std::string answers;
  for (std::size_t i = 0; i < batch.size(); ++i) answers += done();
  server.say(answers);
  EXPECT_EQ(std::count(listens.news.begin(), listens.news.end(), "renewed"), 1000);
  for (const auto& lease : all) EXPECT_GT(lease->deadline.left(server.now), 8s);
}

// A server with more to do than it can: who asks it again each second asks for more and more.
TEST_F(keeper_test, a_slow_server_is_asked_no_third_time_for_one_lease) {
  std::vector<std::shared_ptr<held_lease>> all;
  for (int i = 0; i < 30; ++i) all.push_back(held(i));
  wake_after(3s);
  server.connect();
  auto asked = server.take().size();
  ASSERT_EQ(asked, 30u);
  for (int answered = 0; answered < 6; ++answered) {
    wake_after(400ms);
    server.say(done());
    asked += server.take().size();
  }
  EXPECT_EQ(asked, 30u + 28u) << "each once more after a second, but for the two that were answered before";
  EXPECT_THAT(listens.lost, IsEmpty());
}

// ---- losing ----

TEST_F(keeper_test, a_loss_is_told_once_with_the_servers_reason_B18) {
  const struct {
    std::function<std::string()> said;
    const char* told;
  } table[] = {{[&] { return not_mine("gone"); }, "lost lease_gone"},
               {[&] { return not_mine("taken"); }, "lost lease_taken"},
               {[&] {
                  return list({integer(6), stamp(server.clock)});
                },
                "lost lease_broken"}};
  for (const auto& row : table) {
    const auto lease = held();
    wake_after(3s);
    if (keeps.wire().is_closed()) server.connect();
    server.take();
    listens.take();
    server.say(row.said());
    EXPECT_THAT(listens.take(), ElementsAre(row.told));
    EXPECT_FALSE(lease->deadline.is_ahead(server.now - 1h));
    EXPECT_FALSE(keeps.let_go(*lease));
    EXPECT_TRUE(keeps.is_idle());
    wake_after(1h);
    EXPECT_THAT(listens.take(), IsEmpty());
  }
}

// Else a program that looks in that moment takes what was broken for what nobody renewed.
TEST_F(keeper_test, whoever_sees_that_the_server_ended_it_sees_why_C4) {
  const time_point long_before = server.now;
  for (int i = 0; i < 500; ++i) {
    const auto lease = held();
    wake_after(3s);
    if (keeps.wire().is_closed()) server.connect();
    server.take();
    std::atomic<bool> looks{false};
    errc seen{};
    std::thread reader{[&] {
      looks = true;
      while (lease->deadline.is_ahead(long_before)) {
      }
      seen = lease->lost_reason;
    }};
    while (!looks) std::this_thread::yield();
    server.say(not_mine("gone"));
    reader.join();
    ASSERT_EQ(seen, errc::lease_gone) << "in round " << i;
  }
}

// B13: the server was only slow: all its answers come, and come too late.
TEST_F(keeper_test, a_lost_lease_is_not_revived_by_what_was_in_flight_B13_P13c) {
  const auto lease = renewing();
  keeps.wire().set_least_silence(1h);
  int in_flight = 1;
  drive_until(server.now + 6s, true, [&](const request&) {
    ++in_flight;
    return "";
  });
  ASSERT_EQ(listens.lost.size(), 1u);
  EXPECT_EQ(in_flight, 2);
  listens.take();
  for (int i = 0; i < in_flight; ++i) server.say(done());
  EXPECT_TRUE(keeps.wire().is_ready());
  EXPECT_THAT(listens.take(), IsEmpty());
  EXPECT_FALSE(lease->deadline.is_ahead(server.now - 1h));
  EXPECT_THAT(server.take(), IsEmpty());
}

TEST_F(keeper_test, a_dead_server_is_warned_of_and_then_the_lease_is_lost_in_time_C4) {
  const auto lease = held();
  const auto ends = core::deadline_of(server.now, ttl, drift);
  const auto nothing = [](const request&) { return ""; };
  drive_until(ends - 1500ms, false, nothing);
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
  drive_until(ends - 450ms - 1ns, false, nothing);
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));
  drive_until(ends - 450ms, false, nothing);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_expired"));
  EXPECT_FALSE(lease->deadline.is_ahead(server.now));
}

// H15: the server takes everything and says nothing. The connection is given up and another is tried, in time.
TEST_F(keeper_test, a_silent_connection_is_given_up_while_there_is_time_for_another_H15) {
  const auto lease = held();
  int connections = 0;
  drive_until(server.now + 1min, true, [&](const request&) {
    const bool is_first = connections == 0;
    if (is_first && std::count(listens.news.begin(), listens.news.end(), "down server_silent") > 0) connections = 1;
    return connections == 0 ? std::string{} : done();
  });
  EXPECT_THAT(listens.lost, IsEmpty());
  EXPECT_EQ(std::count(listens.news.begin(), listens.news.end(), "down server_silent"), 1);
}

// P13c: valid() said no on some thread, whose clock was read a moment later than the keeper's.
TEST_F(keeper_test, a_renewal_answered_after_a_reader_saw_the_deadline_pass_is_a_loss_P13c) {
  const auto lease = renewing();
  EXPECT_FALSE(lease->deadline.is_ahead(server.now + 1h));
  server.say(done());
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_expired"));
  EXPECT_FALSE(lease->deadline.is_ahead(server.now));
}

}  // namespace

}  // namespace holdfast::engine
