// SPDX-License-Identifier: Apache-2.0
// Several leases that are kept as one: one renewal, one deadline, one loss. And one that is held with others that are
// kept elsewhere: one loss.
#include "engine/keeper.hpp"

#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
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
using testing::ElementsAre;
using testing::IsEmpty;

class keeper_set_test : public keeper_test {
protected:
  static constexpr duration apart = 1s;  // Between one grant and the next.

  // Granted one after the other, the last of them just now.
  void SetUp() override {
    for (int i = 0; i < 3; ++i) {
      if (i > 0) server.pass(apart);
      const auto ends = core::deadline_of(server.now, ttl, drift);
      set.push_back(std::make_shared<held_lease>(keys_of(i), somebody, token, ttl, ends));
    }
    keeps.keep_as_one(set, never, ends_at(server.now - 2 * apart), renewal::automatic);
  }
  static time_point ends_at(time_point granted_at) { return core::deadline_of(granted_at, ttl, drift); }
  void connect_and_renew() {
    wake_after(1s);  // 3 s after the first grant.
    server.connect();
    EXPECT_THAT(server.take_names(), ElementsAre("renew", "renew", "renew"));
    listens.take();
  }

  keeper::leases set;
};

TEST_F(keeper_set_test, is_renewed_in_one_write_when_the_first_of_them_is_due) {
  wake();
  server.connect();
  wake_after(1s - 1ns);
  EXPECT_THAT(server.take_names(), IsEmpty());
  wake_after(1ns);
  const auto sent = server.take();
  ASSERT_EQ(sent.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sent[static_cast<std::size_t>(i)][3], keys_of(i).holder);
}

TEST_F(keeper_set_test, deadline_moves_when_the_last_of_them_is_renewed) {
  connect_and_renew();
  const auto sent_at = server.now;
  server.pass(10ms);
  server.say(done() + done());
  EXPECT_THAT(listens.take(), IsEmpty());
  EXPECT_EQ(set[0]->deadline.left(server.now), ends_at(sent_at - 3s) - server.now) << "it is held with the others";
  server.say(done());
  EXPECT_THAT(listens.take(), ElementsAre("renewed", "renewed", "renewed"));
  for (const auto& one : set) EXPECT_EQ(one->deadline.left(server.now), ends_at(sent_at) - server.now);
}

TEST_F(keeper_set_test, deadline_goes_by_the_one_that_was_renewed_longest_ago) {
  connect_and_renew();
  const auto first = server.now;
  server.pass(10ms);
  server.say(done() + done());
  EXPECT_THAT(listens.take(), IsEmpty());
  server.cut();
  const auto again = [&] {
    for (int wakes = 0; wakes < 10 && keeps.wire().output().empty(); ++wakes) {
      wake_after(keeps.wake_at() - server.now);
      if (keeps.wire().wants_connection(server.now)) server.connect();
    }
    EXPECT_THAT(server.take_names(), ElementsAre("renew", "renew", "renew"));
    listens.take();
    return server.now;
  };
  const auto busy = refusal("BUSY Redis is busy running a script.");
  const auto second = again();
  server.say(busy + busy + done());
  EXPECT_EQ(set[0]->deadline.left(server.now), ends_at(first) - server.now) << "two of them have that";
  const auto third = again();
  server.say(done());
  EXPECT_EQ(set[0]->deadline.left(server.now), ends_at(first) - server.now) << "one of them has that still";
  server.say(done());
  EXPECT_EQ(set[0]->deadline.left(server.now), ends_at(second) - server.now);
  server.say(done());
  EXPECT_EQ(set[0]->deadline.left(server.now), ends_at(third) - server.now);
}

TEST_F(keeper_set_test, is_kept_for_as_long_as_the_server_answers) {
  int renewals = 0;
  drive_until(server.now + 1h, true, [&](const request&) {
    ++renewals;
    return done();
  });
  EXPECT_THAT(listens.lost, IsEmpty());
  for (const auto& one : set) EXPECT_TRUE(one->deadline.is_ahead(server.now));
  EXPECT_NEAR(renewals, 3 * 1200, 3 * 30);
}

TEST_F(keeper_set_test, loss_of_one_is_a_loss_of_all_and_told_once) {
  connect_and_renew();
  server.say(done() + not_mine("taken"));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_taken"));
  EXPECT_THAT(listens.lost, ElementsAre(set[1].get()));
  for (const auto& one : set) EXPECT_FALSE(one->deadline.is_ahead(server.now));
  EXPECT_TRUE(keeps.is_idle());
  server.say(done());  // The third one's answer is nobody's any more.
  EXPECT_THAT(listens.take(), IsEmpty());
}

TEST_F(keeper_set_test, one_that_is_never_renewed_ends_all) {
  connect_and_renew();
  const auto lost_at = ends_at(server.now - 3s) - core::lost_lead(ttl);
  const auto busy = refusal("BUSY Redis is busy running a script.");
  const auto answer = [&](const request& r) { return r[3] == keys_of(2).holder ? busy : done(); };
  server.say(done() + done() + busy);
  drive_until(lost_at - 1ns, true, answer);
  EXPECT_THAT(listens.lost, IsEmpty());
  drive_until(lost_at, true, answer);
  EXPECT_EQ(listens.lost.size(), 3u);
  for (const auto& one : set) EXPECT_FALSE(one->deadline.is_ahead(server.now));
}

TEST_F(keeper_set_test, one_cut_is_one_failure) {
  connect_and_renew();
  server.cut();
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed connection_lost", "renew_failed connection_lost",
                                          "renew_failed connection_lost", "down connection_lost"));
  EXPECT_LE(keeps.wake_at(), server.now + 25ms);
  // The pause after the next one is the second, not the fourth.
  wake_after(25ms);
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("renew", "renew", "renew"));
  server.say(refusal("LOADING Redis is loading the dataset in memory"));
  EXPECT_LE(keeps.wake_at(), server.now + 50ms);
}

TEST_F(keeper_set_test, each_of_them_is_told_that_it_is_at_risk_C4) {
  drive_until(ends_at(server.now - 2 * apart) - ttl / 6, false, [](const request&) { return std::string{}; });
  const auto told = listens.take();
  EXPECT_EQ(std::count(told.begin(), told.end(), "at_risk"), 3);
}

TEST_F(keeper_set_test, nothing_is_renewed_after_it_was_let_go_C6) {
  connect_and_renew();
  EXPECT_TRUE(keeps.let_go(*set.front()));
  EXPECT_TRUE(keeps.is_idle());
  server.say(refusal("NOSCRIPT No matching script") + done() + done());
  EXPECT_THAT(server.take_names(), IsEmpty());
  EXPECT_THAT(listens.take(), IsEmpty());
}

// ---- held with others that another keeper has, of another node of a cluster ----

class keeper_fellow_test : public keeper_test {
protected:
  // At its first renewal, which is unanswered.
  void SetUp() override {
    const auto ends = core::deadline_of(server.now, ttl, drift);
    mine = std::make_shared<held_lease>(keys_of(0), somebody, token, ttl, ends);
    mine->falls_with = fallen;
    keeps.keep(mine, server.now, ends, renewal::automatic);
    wake_after(3s);
    server.connect();
    EXPECT_THAT(server.take_names(), ElementsAre("renew"));
    listens.take();
  }

  const std::shared_ptr<std::atomic<errc>> fallen = std::make_shared<std::atomic<errc>>(errc{});
  std::shared_ptr<held_lease> mine;
};

TEST_F(keeper_fellow_test, nothing_is_renewed_once_another_was_refused_which_is_told_there) {
  server.say(done());
  listens.take();
  *fallen = errc::lease_broken;
  drive_until(server.now + 1h, true, [&](const request& r) {
    ADD_FAILURE() << r[0];
    return done();
  });
  EXPECT_THAT(listens.take(), IsEmpty());
  EXPECT_FALSE(mine->deadline.is_ahead(server.now));
  EXPECT_TRUE(keeps.is_idle());
}

TEST_F(keeper_fellow_test, what_was_under_way_meanwhile_moves_no_deadline) {
  *fallen = errc::lease_broken;
  server.say(done());
  EXPECT_THAT(listens.take(), IsEmpty());
  EXPECT_FALSE(mine->deadline.is_ahead(server.now));
  EXPECT_TRUE(keeps.is_idle());
}

// A replica of its server that had not heard of its end is promoted, and its line calls it.
TEST_F(keeper_fellow_test, a_line_that_came_back_with_it_is_left_H25) {
  mine->was_in_line = true;
  *fallen = errc::lease_broken;
  server.say(done());
  ASSERT_TRUE(keeps.is_idle());
  keeps.on_stray_hint(server.now, mine->owner.hex(), server_time::max());
  EXPECT_TRUE(keeps.has_background_releases());
}

TEST_F(keeper_fellow_test, all_are_told_when_one_was_held_for_as_long_as_it_may_be_R14) {
  *fallen = errc::lease_held_too_long;
  drive_until(server.now + ttl, true, [&](const request&) { return std::string{}; });
  EXPECT_THAT(listens.lost, ElementsAre(mine.get()));
  EXPECT_EQ(mine->lost_reason, errc::lease_held_too_long);
}

TEST_F(keeper_fellow_test, all_are_told_when_the_time_of_one_was_over) {
  *fallen = errc::lease_expired;
  drive_until(server.now + ttl, true, [&](const request&) { return std::string{}; });
  EXPECT_THAT(listens.lost, ElementsAre(mine.get()));
  EXPECT_EQ(mine->lost_reason, errc::lease_expired);
  EXPECT_TRUE(keeps.is_idle());
}

TEST_F(keeper_fellow_test, the_others_know_why_it_was_lost) {
  server.say(not_mine("taken"));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_taken"));
  EXPECT_EQ(*fallen, errc::lease_taken);
}

}  // namespace

}  // namespace holdfast::engine
