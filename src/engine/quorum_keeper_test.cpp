// SPDX-License-Identifier: Apache-2.0
// What a majority of servers has granted: until when it is held, how it is lost, and who hears of it. What is done
// about votes that are missing: quorum_mend_test.cpp; about wishes for a renewal: quorum_keeper_wish_test.cpp.
#include "engine/quorum_keeper.hpp"

#include "engine/quorum_keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- renewing ----

TEST_F(quorum_keeper_test, each_vote_is_renewed_on_its_server_with_the_list_that_it_belongs_to) {
  const auto lease = held({0, 1, 2});
  wake_after(3s);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(wants_connection(i));
    servers[i].connect();
    const auto said = servers[i].take();
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(named(said[0]), "renew");
    EXPECT_THAT(said[0], testing::Contains(token.to_string()));
    EXPECT_EQ(said[0].back(), text_of(record));
  }
}

// Each server is asked at a time of its own, and each answer behind the majority's moves the deadline a little.
TEST_F(quorum_keeper_test, a_renewal_is_told_once) {
  const auto lease = held({0, 1, 2});
  wake_after(3s);
  for (std::size_t i = 0; i < 3; ++i) {
    wake_after(20ms);
    servers[i].connect();
  }
  be_patient();
  renewed(0);
  renewed(1);
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  const auto told = lease->deadline.at();
  renewed(2);
  EXPECT_EQ(lease->deadline.at(), told + 20ms);
  EXPECT_THAT(listens.take(), IsEmpty());
}

TEST_F(quorum_keeper_test, a_renewal_that_reaches_a_minority_moves_nothing_H58) {
  const auto lease = renewing({0, 1, 2});
  const auto had = lease->deadline.at();
  renewed(0);
  EXPECT_EQ(lease->deadline.at(), had);
  EXPECT_THAT(listens.take(), IsEmpty());
  const auto sent_at = now();
  renewed(2);
  EXPECT_EQ(lease->deadline.at(), core::deadline_of(sent_at, ttl, drift));
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  EXPECT_EQ(listens.last_margin, had - now());
}

TEST_F(quorum_keeper_test, no_renewal_moves_a_deadline_beyond_the_longest_hold_R14) {
  auto lease = std::make_shared<held_lease>(keys, somebody, token, ttl, deadline_of_a_grant_now());
  lease->last = now() + 10s;
  keeps.keep(lease, "ann", {{token}, {token}, {token}}, now(), renewal::automatic);
  wake_after(3s);
  for (auto& one : servers) one.connect();
  be_patient();
  for (std::size_t i = 0; i < 3; ++i) renewed(i);
  EXPECT_EQ(lease->deadline.at(), lease->last);
  for (auto& one : servers) one.take();
  wake_after(5s);
  for (auto& one : servers) EXPECT_THAT(one.take(), IsEmpty()) << "a renewal would only keep the next one waiting";
  listens.take();
  wake_after(2s);
  EXPECT_THAT(listens.take(), testing::Contains("lost lease_held_too_long"));
  EXPECT_FALSE(keeps.is_kept(*lease));
}

TEST_F(quorum_keeper_test, the_longest_hold_may_be_less_than_the_ttl_R14) {
  auto lease = std::make_shared<held_lease>(keys, somebody, token, ttl, deadline_of_a_grant_now());
  lease->last = now() + 4s;
  keeps.keep(lease, "ann", {{token}, {token}, {token}}, now(), renewal::automatic);
  EXPECT_EQ(lease->deadline.at(), lease->last);
  wake_after(3s);
  EXPECT_FALSE(wants_connection(0)) << "there is nothing to renew";
  wake_after(1s - core::lost_lead(ttl));
  EXPECT_THAT(listens.take(), testing::Contains("lost lease_held_too_long"));
}

TEST_F(quorum_keeper_test, a_semaphore_is_held_until_the_last_vote_that_is_needed_ends_H59) {
  auto counted = keys;
  counted.is_counted = true;
  const auto lease = held({0, 1, 2}, renewal::automatic, counted, {'p', 1, 2});
  wake_after(3s);
  for (auto& one : servers) one.connect();
  be_patient();
  const auto had = lease->deadline.at();
  renewed(0);
  renewed(1);
  EXPECT_EQ(lease->deadline.at(), had);
  renewed(2);
  EXPECT_GT(lease->deadline.at(), had);
}

TEST_F(quorum_keeper_test, who_loses_a_vote_goes_by_those_that_are_left_B57_H58) {
  const auto lease = renewing({0, 1, 2});
  const auto had = lease->deadline.at();
  renewed(0);
  renewed(1);
  EXPECT_GT(lease->deadline.at(), had);
  wake_after(3300ms);
  say(1, lost(servers[1], "gone"));
  EXPECT_EQ(lease->deadline.at(), had) << "the third has not been renewed";
  EXPECT_TRUE(keeps.is_kept(*lease));
}

TEST_F(quorum_keeper_test, a_renewal_that_fails_on_a_server_is_told_and_tried_again_there) {
  const auto lease = renewing({0, 1, 2});
  say(1, refusal("OOM command not allowed"));
  EXPECT_THAT(listens.take(), ElementsAre("renew_failed out_of_memory"));
  renewed(0);
  wake_after(1s);
  EXPECT_THAT(asked(1), ElementsAre("renew"));
  renewed(1);
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
}

// ---- losing ----

TEST_F(quorum_keeper_test, a_bare_majority_that_loses_a_vote_is_lost_at_once_with_the_servers_reason_B57) {
  const struct {
    std::string said;
    const char* told;
  } table[] = {{lost(servers[0], "gone"), "lost lease_gone"},
               {lost(servers[0], "taken"), "lost lease_taken"},
               {list({integer(6), stamp(servers[0].clock)}), "lost lease_broken"}};
  for (const auto& row : table) {
    const auto lease = held({0, 1});
    wake_after(3s);
    for (const std::size_t i : {0u, 1u}) {
      if (keeps.wire(i).is_closed()) servers[i].connect();
    }
    be_patient();
    renewed(0);
    say(1, row.said);
    EXPECT_THAT(listens.take(), ElementsAre(row.told));
    EXPECT_FALSE(lease->deadline.is_ahead(now() - 1h));
    EXPECT_FALSE(keeps.is_kept(*lease));
    EXPECT_THAT(keeps.let_go(*lease).of_each, IsEmpty());
    servers[0].take();
    servers[1].take();
  }
}

TEST_F(quorum_keeper_test, a_loss_that_leaves_a_majority_is_told_nobody_B57) {
  const auto lease = renewing({0, 1, 2});
  say(2, lost(servers[2], "gone"));
  EXPECT_THAT(listens.take(), IsEmpty());
  renewed(0);
  renewed(1);
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
}

TEST_F(quorum_keeper_test, cut_off_it_is_warned_of_once_and_then_lost_in_time_C4) {
  const auto lease = held({0, 1, 2});
  const auto ends = deadline_of_a_grant_now();
  wake_after(ends - 1500ms - now());
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
  wake_after(ends - 450ms - 1ns - now());
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
  EXPECT_THAT(listens.take(), IsEmpty());
  wake_after(1ns);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_expired"));
  EXPECT_FALSE(lease->deadline.is_ahead(now()));
}

TEST_F(quorum_keeper_test, is_warned_of_again_when_it_was_renewed_in_between) {
  const auto lease = held({0, 1, 2});
  wake_after(3s);
  for (auto& one : servers) one.connect();
  be_patient();
  const auto first = lease->deadline.at();
  wake_after(first - 1500ms - now());
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
  renewed(0);
  renewed(1);
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  wake_after(lease->deadline.at() - 1500ms - now());
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
}

// No server says anything then, and nobody's vote ends.
TEST_F(quorum_keeper_test, is_warned_of_in_time_however_often_it_was_renewed_C4) {
  const auto lease = renewing({0, 1, 2});
  for (std::size_t i = 0; i < 3; ++i) renewed(i);
  EXPECT_THAT(listens.take(), ElementsAre("renewed"));
  wake_after(lease->deadline.at() - 1500ms - 1ns - now());
  EXPECT_THAT(listens.take(), IsEmpty());
  wake_after(1ns);
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
}

// P13c: valid() said no on some thread.
TEST_F(quorum_keeper_test, a_renewal_behind_the_deadline_that_a_reader_saw_is_a_loss_P13c) {
  const auto lease = renewing({0, 1, 2});
  EXPECT_FALSE(lease->deadline.is_ahead(now() + 1h));
  renewed(0);
  renewed(1);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_expired"));
}

// Whoever has another connection there has seen it.
TEST_F(quorum_keeper_test, a_step_of_a_servers_clock_puts_its_vote_to_the_test_at_once_H3) {
  const auto lease = renewing({0, 1, 2});
  for (std::size_t i = 0; i < 3; ++i) renewed(i);
  core::server_clock seen;
  (void)seen.observe(servers[1].clock + 5s, now(), now());
  keeps.on_step_seen(now(), 1, 5s, seen);
  wake();
  EXPECT_THAT(asked(1), ElementsAre("renew"));
  for (const std::size_t i : {0u, 2u}) EXPECT_THAT(asked(i), IsEmpty());
}

TEST_F(quorum_keeper_test, a_lease_without_renewal_costs_nothing_and_ends) {
  const auto lease = held({0, 1}, renewal::none);
  const auto ends = deadline_of_a_grant_now();
  wake_after(ends - 450ms - 1ns - now());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(wants_connection(i)) << "nor is the third vote asked for";
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
  wake_after(1ns);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_expired"));
}

// ---- letting go ----

TEST_F(quorum_keeper_test, is_renewed_no_more_when_another_that_it_is_held_with_was_lost) {
  for (const errc why : {errc::lease_taken, errc::lease_expired}) {
    const auto fallen = std::make_shared<std::atomic<errc>>(errc{});
    const auto lease = std::make_shared<held_lease>(keys, somebody, token, ttl, deadline_of_a_grant_now());
    lease->falls_with = fallen;
    keeps.keep(lease, "ann", {{token}, {token}, {token}}, now(), renewal::automatic);
    wake_after(3s);
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (wants_connection(i)) servers[i].connect();
    }
    be_patient();
    for (std::size_t i = 0; i < servers.size(); ++i) EXPECT_THAT(asked(i), ElementsAre("renew"));
    listens.take();
    *fallen = why;
    renewed(0);
    EXPECT_FALSE(keeps.is_kept(*lease));
    EXPECT_FALSE(lease->deadline.is_ahead(now()));
    const bool is_told = why == errc::lease_expired;  // The other one's server has said nothing of this one.
    EXPECT_EQ(listens.take(), is_told ? words{"lost lease_expired"} : words{});
    renewed(1);
    renewed(2);
    wake_after(1h);
    for (std::size_t i = 0; i < servers.size(); ++i) EXPECT_THAT(asked(i), IsEmpty());
  }
}

TEST_F(quorum_keeper_test, that_is_lost_ends_the_others_that_it_is_held_with) {
  const auto fallen = std::make_shared<std::atomic<errc>>(errc{});
  const auto lease = held({0, 1});
  lease->falls_with = fallen;
  wake_after(ttl);
  EXPECT_THAT(listens.take(), testing::Contains("lost lease_expired"));
  EXPECT_EQ(*fallen, errc::lease_expired);
}

TEST_F(quorum_keeper_test, letting_go_tells_what_each_server_may_have_and_ends_the_renewals_C6) {
  const auto lease = held({0, 1});
  const auto votes = keeps.let_go(*lease).of_each;
  ASSERT_EQ(votes.size(), 3u);
  EXPECT_EQ(votes[0].token, token);
  EXPECT_EQ(votes[1].token, token);
  EXPECT_FALSE(votes[2].token);
  EXPECT_EQ(votes[2].not_after, servers[2].clock + 2 * patience);
  wake_after(3s);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(wants_connection(i));
  wake_after(1h);
  EXPECT_THAT(listens.take(), IsEmpty());
}

TEST_F(quorum_keeper_test, what_is_kept_goes_on_as_another_record) {
  const auto lease = renewing({0, 1, 2});
  const auto next = std::make_shared<held_lease>(keys, somebody, token, ttl, lease->deadline.at());
  keeps.go_on_as(*lease, next);
  EXPECT_FALSE(keeps.is_kept(*lease));
  EXPECT_TRUE(keeps.is_kept(*next));
  const auto had = lease->deadline.at();
  renewed(0);
  renewed(1);
  EXPECT_EQ(lease->deadline.at(), had);
  EXPECT_GT(next->deadline.at(), had);
  say(2, lost(servers[2], "gone"));
  wake_after(3300ms);
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.lost, ElementsAre(next.get()));
}

// A lock of a set came at risk while the next one was waited for.
TEST_F(quorum_keeper_test, what_goes_on_as_another_record_and_is_at_risk_is_told_so_C4) {
  const auto lease = held({0, 1, 2}, renewal::none);
  wake_after(lease->deadline.at() - core::risk_lead(ttl) - now());
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
  const auto next = std::make_shared<held_lease>(keys, somebody, token, ttl, lease->deadline.at());
  keeps.go_on_as(*lease, next);
  wake();
  EXPECT_THAT(listens.take(), ElementsAre("at_risk"));
}

// One server has lost its vote. Then the others fall silent, or this machine is cut off.
TEST_F(quorum_keeper_test, that_is_cut_off_is_lost_to_time_whatever_one_server_said_C4) {
  for (const char* why : {"gone", "taken"}) {
    const auto lease = renewing({0, 1, 2});
    renewed(0);
    wake_after(1ms);
    renewed(1);
    say(2, lost(servers[2], why));
    listens.take();
    wake_after(lease->deadline.at() - core::lost_lead(ttl) - now());
    EXPECT_THAT(listens.take(), testing::Contains("lost lease_expired"));
    for (auto& one : servers) one.cut();
  }
}

TEST_F(quorum_keeper_test, what_is_released_later_is_released_on_that_server) {
  keeps.release_later(now(), 1, {keys, somebody, token, {}, {}, now() + 10s});
  wake();
  EXPECT_TRUE(keeps.has_background_releases());
  EXPECT_FALSE(wants_connection(0));
  ASSERT_TRUE(wants_connection(1));
  servers[1].connect();
  EXPECT_THAT(asked(1), ElementsAre("release"));
  say(1, not_mine(servers[1]));
  EXPECT_FALSE(keeps.has_background_releases());
  EXPECT_THAT(of_nodes[1].take(), ElementsAre("up")) << "its connection is the server's news";
}

}  // namespace

}  // namespace holdfast::engine
