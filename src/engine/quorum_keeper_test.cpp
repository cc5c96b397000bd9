// SPDX-License-Identifier: Apache-2.0
// What a majority of servers has granted: until when it is held, how it is lost, and who hears of it. What is done
// about votes that are missing: quorum_mend_test.cpp.
#include "engine/quorum_keeper.hpp"

#include "engine/quorum_keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>

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

// ---- wishes ----

struct noted_wish final : renewal_wish {
  void on_end(errc how) noexcept override {
    EXPECT_FALSE(end) << "told twice";
    end = how;
  }
  std::optional<errc> end{};
};

class quorum_keeper_wish : public quorum_keeper_test {
protected:
  std::shared_ptr<noted_wish> wish_again(const held_lease& lease) {
    auto made = std::make_shared<noted_wish>();
    EXPECT_TRUE(keeps.renew_now(now(), lease, now() + 5s, made));
    wake();
    return made;
  }
  // The first thing that is asked on each server.
  std::shared_ptr<noted_wish> wish(const held_lease& lease) {
    auto made = wish_again(lease);
    for (auto& one : servers) one.connect();
    be_patient();
    wake();
    return made;
  }
};

TEST_F(quorum_keeper_wish, is_fulfilled_by_a_majority) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto told = wish(*lease);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), ElementsAre("renew"));
  renewed(0);
  EXPECT_FALSE(told->end);
  renewed(2);
  EXPECT_EQ(told->end, errc{});
  renewed(1);
}

TEST_F(quorum_keeper_wish, fails_when_too_few_can_fulfil_it_and_the_lease_stands) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto told = wish(*lease);
  say(0, refusal("NOPERM no permissions"));
  EXPECT_FALSE(told->end);
  say(1, refusal("NOPERM no permissions"));
  EXPECT_EQ(told->end, errc::no_permission);
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
}

TEST_F(quorum_keeper_wish, that_fails_does_not_call_a_lease_lost_that_lost_a_vote) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto told = wish(*lease);
  say(0, lost(servers[0], "gone"));
  EXPECT_FALSE(told->end);
  say(1, refusal("NOPERM no permissions"));
  EXPECT_EQ(told->end, errc::no_permission);
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
}

TEST_F(quorum_keeper_wish, ends_with_the_lease_and_its_reason) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto told = wish(*lease);
  say(0, lost(servers[0], "gone"));
  say(1, lost(servers[1], "gone"));
  EXPECT_EQ(told->end, errc::lease_gone);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_gone"));
}

TEST_F(quorum_keeper_wish, is_unknown_where_enough_may_have_renewed_it_C5) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto told = wish(*lease);
  say(0, refusal("NOPERM no permissions"));
  renewed(1);
  EXPECT_FALSE(told->end);
  wake_after(5s);
  EXPECT_EQ(told->end, errc::reply_lost);
}

// Its third server's vote, of the round and not heard of there, came to count when the wish was under way.
TEST_F(quorum_keeper_wish, that_fails_with_a_vote_does_not_call_a_lease_taken_that_stands_B53_C5) {
  const auto lease = held({0, 1}, renewal::none);
  const auto told = wish(*lease);
  wake_after(1ms);
  say(2, mine(servers[2], token, 8'000));
  renewed(2);
  say(0, lost(servers[0], "taken"));
  EXPECT_EQ(told->end, errc::no_quorum);
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
  say(1, lost(servers[1], "taken"));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_taken"));
}

TEST_F(quorum_keeper_wish, that_is_cancelled_says_whether_its_request_may_be_under_way) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto unsent = std::make_shared<noted_wish>();
  EXPECT_TRUE(keeps.renew_now(now(), *lease, now() + 5s, unsent));
  keeps.cancel(*lease, *unsent);
  EXPECT_EQ(unsent->end, errc::cancelled);

  wake_after(1s);
  const auto sent = wish(*lease);
  EXPECT_THAT(asked(0), ElementsAre("renew"));
  keeps.cancel(*lease, *sent);
  EXPECT_EQ(sent->end, errc::cancelled_in_flight);
  listens.take();
  for (std::size_t i = 0; i < 3; ++i) renewed(i);
  EXPECT_THAT(listens.take(), testing::Contains("renewed")) << "its answers count nevertheless";
  keeps.cancel(*lease, *sent);
}

TEST_F(quorum_keeper_wish, that_is_cancelled_leaves_others_alone) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto gone = wish(*lease);
  const auto there = std::make_shared<noted_wish>();
  EXPECT_TRUE(keeps.renew_now(now(), *lease, now() + 5s, there));
  keeps.cancel(*lease, *gone);
  EXPECT_FALSE(there->end);
  (void)keeps.let_go(*lease);
  EXPECT_EQ(there->end, errc::empty_handle);
}

// Two of three had decided it before the third was heard.
TEST_F(quorum_keeper_wish, of_one_that_is_renewed_by_hand_asks_for_the_votes_that_are_missing_B57) {
  const auto lease = held({0, 1}, renewal::none);
  wake_after(3s);
  EXPECT_FALSE(wants_connection(2)) << "nobody has asked for anything";
  const auto first = wish(*lease);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  renewed(0);
  renewed(1);
  EXPECT_EQ(first->end, errc{});
  say(2, mine(servers[2], token, 8'000));
  renewed(2);

  servers[1].cut();
  wake_after(1s);
  const auto second = std::make_shared<noted_wish>();
  EXPECT_TRUE(keeps.renew_now(now(), *lease, now() + 5s, second));
  wake();
  renewed(0);
  renewed(2);
  EXPECT_EQ(second->end, errc{}) << "a majority is there";
}

// The work hangs, and a server comes back.
TEST_F(quorum_keeper_wish, is_the_only_renewal_of_one_that_is_renewed_by_hand_C6) {
  const auto lease = held({0, 1}, renewal::none);
  const auto first = wish_again(*lease);
  for (std::size_t i : {0u, 1u}) servers[i].connect();
  be_patient();
  wake();
  renewed(0);
  renewed(1);
  EXPECT_EQ(first->end, errc{});
  for (auto& one : servers) one.take();
  wake_after(2s);
  const auto until = lease->deadline.at();
  servers[2].connect();
  wake_after(1ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  wake_after(1ms);
  say(2, granted(servers[2], token));
  for (std::size_t i : {0u, 1u, 2u}) EXPECT_THAT(asked(i), IsEmpty()) << i;
  EXPECT_EQ(lease->deadline.at(), until);

  const auto second = wish_again(*lease);
  renewed(0);
  renewed(1);
  EXPECT_EQ(second->end, errc{});
  EXPECT_THAT(asked(2), ElementsAre("renew")) << "it counts with that";
  renewed(2);
  say(1, lost(servers[1], "gone"));
  wake();
  EXPECT_TRUE(keeps.is_kept(*lease));
}

TEST_F(quorum_keeper_wish, asks_no_server_whose_vote_is_gone) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto first = wish(*lease);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), ElementsAre("renew"));
  say(2, lost(servers[2], "gone"));
  renewed(0);
  renewed(1);
  EXPECT_EQ(first->end, errc{});
  const auto second = wish_again(*lease);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  renewed(0);
  EXPECT_FALSE(second->end);
  renewed(1);
  EXPECT_EQ(second->end, errc{});
}

// The third renewed it and was not heard: it has ended by our clock there, and not by its own.
TEST_F(quorum_keeper_wish, of_one_server_that_was_not_heard_leaves_a_vote_to_give_back_B55) {
  const auto lease = held({0, 1, 2}, renewal::none);
  wake_after(5s);
  const auto told = wish(*lease);
  servers[2].cut();
  renewed(0);
  renewed(1);
  EXPECT_EQ(told->end, errc{});
  wake_after(5s);
  ASSERT_TRUE(lease->deadline.is_ahead(now()));
  EXPECT_EQ(keeps.let_go(*lease).of_each[2].token, token);
}

TEST_F(quorum_keeper_wish, of_what_is_let_go_ends_with_an_empty_handle) {
  const auto lease = held({0, 1, 2}, renewal::none);
  const auto told = wish(*lease);
  (void)keeps.let_go(*lease);
  EXPECT_EQ(told->end, errc::empty_handle);
  EXPECT_FALSE(keeps.renew_now(now(), *lease, now() + 5s, told));
}

}  // namespace

}  // namespace holdfast::engine
