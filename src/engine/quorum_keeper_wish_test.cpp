// SPDX-License-Identifier: Apache-2.0
// What comes of somebody's wish that a lease of a quorum be renewed, and what a lease that is renewed so is not.
#include "engine/quorum_keeper.hpp"

#include "engine/quorum_keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

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

// Its third server had given its vote in the round, and was not heard of there.
TEST_F(quorum_keeper_wish, is_fulfilled_by_a_vote_that_was_found_meanwhile_C5) {
  for (const auto mode : {renewal::none, renewal::automatic}) {
    const auto lease = held({0, 1}, mode);
    wake_after(1s);
    const auto told = wish(*lease);
    EXPECT_THAT(servers[2].take_names(), testing::Contains("vote"));
    wake_after(1ms);
    say(2, mine(servers[2], token, 8'000));
    renewed(2);
    say(0, lost(servers[0], "taken"));
    EXPECT_FALSE(told->end) << "two of three may be renewed still";
    renewed(1);
    EXPECT_EQ(told->end, errc{});
    EXPECT_TRUE(keeps.is_kept(*lease));
    (void)keeps.let_go(*lease);
    for (auto& one : servers) one.cut();
  }
}

// A vote that the third server had given anew came to count when the wish was under way.
TEST_F(quorum_keeper_wish, that_fails_with_a_vote_does_not_call_a_lease_taken_that_stands_B53_C5) {
  const auto lease = renewing({0, 1});
  for (const auto i : {0u, 1u}) renewed(i);
  servers[2].connect();
  wake_after(1s);
  wake_after(1ms);
  say(2, granted(servers[2], token));
  wake_after(1ms);
  const auto told = wish_again(*lease);
  renewed(0);
  renewed(1);
  EXPECT_FALSE(told->end) << "those were asked before";
  renewed(2);
  say(0, lost(servers[0], "taken"));
  EXPECT_EQ(told->end, errc::no_quorum);
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
  say(1, lost(servers[1], "taken"));
  EXPECT_THAT(listens.take(), testing::Contains("lost lease_taken"));
}

// One of two refuses. To the other there is no connection yet, and the third, which had given its vote in the round, is
// heard of behind that. The two would make a majority.
TEST_F(quorum_keeper_wish, that_has_failed_renews_nothing_behind_that_seed_60200506) {
  const auto lease = held({0, 1}, renewal::none);
  const auto until = lease->deadline.at();
  wake_after(1s);
  const auto told = wish_again(*lease);
  for (const auto i : {0u, 2u}) servers[i].connect();
  be_patient();
  wake();
  say(0, refusal("NOPERM no permissions"));
  EXPECT_EQ(told->end, errc::no_permission);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  say(2, mine(servers[2], token, 8'000));
  EXPECT_THAT(asked(2), IsEmpty());
  servers[1].connect();
  wake_after(1s);
  EXPECT_THAT(asked(1), IsEmpty());
  EXPECT_EQ(lease->deadline.at(), until);

  const auto again = wish_again(*lease);
  for (const auto i : {1u, 2u}) {
    EXPECT_THAT(asked(i), ElementsAre("renew"));
    renewed(i);
  }
  EXPECT_EQ(again->end, errc{}) << "and a vote that was found counts with the next";
  EXPECT_GT(lease->deadline.at(), until);
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
  const auto until = lease->deadline.at();
  for (std::size_t i = 0; i < 3; ++i) renewed(i);
  EXPECT_GT(lease->deadline.at(), until) << "its answers count nevertheless";
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
