// SPDX-License-Identifier: Apache-2.0
// Renewals that count only when replicas have them: too few of them move no deadline, and lose nothing (P13b).
#include "engine/keeper.hpp"

#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using keeper_testing::drift;
using keeper_testing::keeper_test;
using keeper_testing::ttl;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

channel::settings of_two() {
  channel::settings s;
  s.durable = {.replicas = 2, .timeout = 100ms};
  s.epoch.may_be_unknown = true;  // As the keeper's connection is.
  return s;
}

struct noted_wish final : renewal_wish {
  void on_end(errc how) noexcept override { end = how; }
  std::optional<errc> end;
};

class durable_keeper_test : public keeper_test {
protected:
  durable_keeper_test() : keeper_test{of_two()} {}

  // Up to the first renewal, on the wire.
  std::shared_ptr<held_lease> renewing() {
    auto lease = held();
    wake_after(3s);
    server.connect();
    EXPECT_THAT(server.take_names(), ElementsAre("renew", "WAIT"));
    listens.take();
    return lease;
  }
  std::shared_ptr<noted_wish> wish(const held_lease& lease) {
    auto made = std::make_shared<noted_wish>();
    EXPECT_TRUE(keeps.renew_now(server.now, lease, server.now + 5s, made));
    wake();
    return made;
  }
};

TEST_F(durable_keeper_test, a_renewal_moves_the_deadline_when_enough_replicas_have_it_from_its_send_instant_B19) {
  const auto lease = renewing();
  const auto sent_at = server.now;
  const auto before = lease->deadline.left(server.now);
  server.say(done());
  EXPECT_THAT(listens.take(), IsEmpty());
  EXPECT_EQ(lease->deadline.left(server.now), before);
  server.pass(90ms);
  server.say(integer(2));
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  EXPECT_EQ(lease->deadline.left(server.now), core::deadline_of(sent_at, ttl, drift) - server.now);
}

TEST_F(durable_keeper_test, too_few_replicas_move_no_deadline_and_lose_no_lease_and_it_is_tried_again_soon_P13b) {
  const auto lease = renewing();
  const auto before = lease->deadline.left(server.now);
  server.say(done() + integer(1));
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed not_replicated"));
  EXPECT_EQ(lease->deadline.left(server.now), before);
  EXPECT_TRUE(keeps.is_kept(*lease));
  wake_after(25ms);
  EXPECT_THAT(server.take_names(), ElementsAre("renew", "WAIT"));
  server.say(done() + integer(2));
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  EXPECT_THAT(listens.lost, IsEmpty());
}

TEST_F(durable_keeper_test, replicas_that_stay_away_lose_it_at_its_old_deadline_and_not_before_P13b) {
  const auto lease = held();
  const auto ends = core::deadline_of(server.now, ttl, drift);
  const auto answer = [&](const request& r) { return r[0] == "WAIT" ? integer(1) : done(); };
  drive_until(ends - 450ms - 1ns, true, answer);
  EXPECT_THAT(listens.lost, IsEmpty());
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));
  drive_until(ends, true, answer);
  EXPECT_THAT(listens.lost, ElementsAre(lease.get()));
  EXPECT_EQ(std::count(listens.news.begin(), listens.news.end(), "lost lease_expired"), 1);
}

// What is said of the first says nothing of the second, which is under way.
TEST_F(durable_keeper_test, a_wish_is_not_told_of_an_earlier_copy_while_a_later_one_is_under_way_C5) {
  const auto lease = renewing();
  const auto told = std::make_shared<noted_wish>();
  EXPECT_TRUE(keeps.renew_now(server.now, *lease, server.now + 100ms, told));
  wake();
  ASSERT_THAT(server.take_names(), ElementsAre("renew", "WAIT"));
  server.say(done() + integer(1));
  EXPECT_FALSE(told->end);
  server.say(done() + integer(2));
  EXPECT_EQ(told->end, errc{});
}

TEST_F(durable_keeper_test, a_lease_is_kept_for_as_long_as_the_replicas_have_it) {
  const auto lease = held();
  drive_until(server.now + 1h, true, [&](const request& r) { return r[0] == "WAIT" ? integer(2) : done(); });
  EXPECT_THAT(listens.lost, IsEmpty());
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));
}

TEST_F(durable_keeper_test, a_batch_of_renewals_has_one_wait) {
  std::vector<std::shared_ptr<held_lease>> leases;
  for (int i = 0; i < 1000; ++i) leases.push_back(held(i));
  wake_after(3s);
  server.connect();
  const auto names = server.take_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "renew"), 1000);
  EXPECT_EQ(std::count(names.begin(), names.end(), "WAIT"), 1);
  EXPECT_EQ(names.back(), "WAIT");
  listens.take();
  for (int i = 0; i < 1000; ++i) server.say(done());
  EXPECT_THAT(listens.take(), IsEmpty());
  server.say(integer(2));
  const auto news = listens.take();
  EXPECT_EQ(news.size(), 1000u);
  EXPECT_THAT(news, Each("renewed"));
}

TEST_F(durable_keeper_test, a_lease_that_is_gone_is_lost_whatever_the_replicas_say) {
  const auto lease = renewing();
  server.say(not_mine("gone") + integer(0));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_gone"));
}

TEST_F(durable_keeper_test, a_refusal_of_wait_moves_no_deadline_and_says_which_B66) {
  const auto lease = renewing();
  server.say(done() + refusal("NOPERM this user has no permissions to run the 'wait' command"));
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed no_permission"));
  EXPECT_TRUE(keeps.is_kept(*lease));
}

TEST_F(durable_keeper_test, a_cut_between_the_answer_and_wait_is_a_failure_and_no_renewal) {
  const auto lease = renewing();
  const auto before = lease->deadline.left(server.now);
  server.say(done());
  server.cut();
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed connection_lost", "down connection_lost"));
  EXPECT_EQ(lease->deadline.left(server.now), before);
}

TEST_F(durable_keeper_test, a_lease_that_is_let_go_while_wait_is_unanswered_is_not_renewed_C6) {
  const auto lease = renewing();
  server.say(done());
  EXPECT_TRUE(keeps.let_go(*lease));
  server.say(integer(2));
  EXPECT_THAT(listens.take(), IsEmpty());
}

TEST_F(durable_keeper_test, a_release_in_the_background_has_no_wait) {
  keeps.release_later(server.now, a_release());
  wake();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
}

// ---- a renewal on request ----

TEST_F(durable_keeper_test, a_wish_is_met_when_the_replicas_have_it) {
  const auto lease = held(0, renewal::none);
  const auto one = wish(*lease);
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("renew", "WAIT"));
  server.say(done());
  EXPECT_FALSE(one->end);
  server.say(integer(2));
  EXPECT_EQ(one->end, errc{});
}

TEST_F(durable_keeper_test, a_wish_that_too_few_replicas_met_ends_with_that_when_there_is_no_time_for_another_try) {
  const auto lease = held(0, renewal::none);
  const auto one = wish(*lease);
  const auto gives_up_at = server.now + 5s;
  server.connect();
  drive_until(server.now + 1s, true, [&](const request& r) { return r[0] == "WAIT" ? integer(1) : done(); });
  EXPECT_FALSE(one->end) << "it is tried again";
  drive_until(gives_up_at, true, [&](const request& r) { return r[0] == "WAIT" ? integer(1) : done(); });
  EXPECT_EQ(one->end, errc::not_replicated);
  EXPECT_TRUE(keeps.is_kept(*lease));
}

}  // namespace

}  // namespace holdfast::engine
