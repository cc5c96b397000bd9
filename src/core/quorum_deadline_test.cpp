// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_deadline.hpp"

#include <gtest/gtest.h>

#include <array>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr time_point t0{100s};

TEST(quorum_deadline, is_over_while_a_minority_votes_H58) {
  quorum_deadline of_five{5};
  of_five.hold(0, t0 + 10s);
  of_five.hold(3, t0 + 10s);
  EXPECT_LT(of_five.at(), t0);
  EXPECT_FALSE(of_five.may_repair(t0));
}

TEST(quorum_deadline, is_that_of_the_vote_that_makes_the_majority) {
  quorum_deadline of_five{5};
  of_five.hold(0, t0 + 9s);
  of_five.hold(1, t0 + 10s);
  of_five.hold(4, t0 + 8s);
  EXPECT_EQ(of_five.at(), t0 + 8s);
  of_five.hold(2, t0 + 11s);
  EXPECT_EQ(of_five.at(), t0 + 9s);
}

// A semaphore of two on five servers takes four votes.
TEST(quorum_deadline, is_that_of_the_last_vote_that_is_needed_H59) {
  quorum_deadline of_five{5, 4};
  of_five.hold(0, t0 + 9s);
  of_five.hold(1, t0 + 10s);
  of_five.hold(4, t0 + 8s);
  EXPECT_LT(of_five.at(), t0) << "a majority is not enough";
  of_five.hold(2, t0 + 7s);
  EXPECT_EQ(of_five.at(), t0 + 7s);
  of_five.hold(3, t0 + 11s);
  EXPECT_EQ(of_five.at(), t0 + 8s);
  of_five.drop(0);
  of_five.drop(1);
  EXPECT_FALSE(of_five.may_repair(t0));
}

TEST(quorum_deadline, a_renewal_that_reaches_a_minority_moves_nothing_H58) {
  quorum_deadline of_three{3};
  for (int node = 0; node < 3; ++node) of_three.hold(node, t0 + 5s);
  of_three.hold(1, t0 + 9s);
  EXPECT_EQ(of_three.at(), t0 + 5s);
}

TEST(quorum_deadline, an_older_answer_does_not_bring_it_back) {
  quorum_deadline of_one{1};
  of_one.hold(0, t0 + 5s);
  of_one.hold(0, t0 + 4s);
  EXPECT_EQ(of_one.at(), t0 + 5s);
}

// B57: A has 1, 2, 3; 3 loses its data. From then on 3, 4 and 5 could make a majority for another.
TEST(quorum_deadline, ends_when_a_node_of_the_bare_majority_loses_its_vote_B57) {
  quorum_deadline of_five{5};
  for (int node = 0; node < 3; ++node) of_five.hold(node, t0 + 5s);
  of_five.drop(2);
  EXPECT_FALSE(of_five.may_repair(t0));
}

TEST(quorum_deadline, lives_on_without_a_node_that_it_does_not_need) {
  quorum_deadline of_five{5};
  for (int node = 0; node < 4; ++node) of_five.hold(node, t0 + 5s);
  of_five.drop(2);
  EXPECT_EQ(of_five.at(), t0 + 5s);
  EXPECT_TRUE(of_five.may_repair(t0));
  EXPECT_FALSE(of_five.may_repair(t0 + 5s));
}

// Another may have had 1 and 2 meanwhile: 1 lost ours, and has not said so yet.
TEST(quorum_deadline, a_vote_that_never_was_waits_for_the_others_too_C1_R18) {
  quorum_deadline of_three{3};
  of_three.hold(0, t0 + 5s);
  of_three.hold(1, t0 + 6s);
  of_three.regain(2, t0 + 7s);
  EXPECT_FALSE(of_three.renew(2, t0 + 7s));
  EXPECT_EQ(of_three.at(), t0 + 5s);
  EXPECT_FALSE(of_three.renew(0, t0 + 7s));
  EXPECT_TRUE(of_three.renew(1, t0 + 7s));
  EXPECT_FALSE(of_three.renew(2, t0 + 9s));
  EXPECT_EQ(of_three.at(), t0 + 7s);
  of_three.drop(1);
  EXPECT_EQ(of_three.at(), t0 + 7s);
}

// C1: the other nodes may have lost theirs, too, and say so with their next renewals.
TEST(quorum_deadline, a_vote_that_is_given_again_counts_when_enough_others_were_renewed_since_C1_R18) {
  quorum_deadline of_five{5};
  for (int node = 0; node < 5; ++node) of_five.hold(node, t0 + 5s);
  of_five.drop(0);
  of_five.regain(0, t0 + 6s);
  EXPECT_FALSE(of_five.renew(0, t0 + 6s));
  EXPECT_FALSE(of_five.renew(1, t0 + 6s));
  EXPECT_FALSE(of_five.renew(2, t0 + 6s));
  EXPECT_FALSE(of_five.renew(2, t0 + 7s)) << "that one was counted";
  EXPECT_FALSE(of_five.renew(3, t0 + 6s - 1ns)) << "it was asked before";
  EXPECT_TRUE(of_five.is_back(0));
  EXPECT_TRUE(of_five.renew(4, t0 + 6s));
  EXPECT_FALSE(of_five.is_back(0));
  for (int node = 1; node < 4; ++node) of_five.drop(node);
  EXPECT_LT(of_five.at(), t0) << "it was not renewed since";
  of_five.hold(1, t0 + 7s);
  of_five.renew(0, t0 + 8s);
  EXPECT_EQ(of_five.at(), t0 + 6s);
}

TEST(quorum_deadline, votes_that_are_lost_one_after_another_are_not_made_good_one_after_another_C1) {
  quorum_deadline of_three{3};
  for (int node = 0; node < 3; ++node) of_three.hold(node, t0 + 10s);
  of_three.drop(0);
  of_three.regain(0, t0 + 11s);
  of_three.renew(0, t0 + 11s);
  of_three.drop(1);
  EXPECT_LT(of_three.at(), t0);
}

TEST(quorum_deadline, who_comes_back_later_is_waited_for_with_those_before_C1) {
  quorum_deadline of_five{5};
  for (int node = 0; node < 5; ++node) of_five.hold(node, t0 + 10s);
  of_five.drop(0);
  of_five.regain(0, t0 + 11s);
  of_five.renew(2, t0 + 12s);
  of_five.renew(3, t0 + 12s);
  of_five.drop(1);
  of_five.regain(1, t0 + 13s);
  EXPECT_FALSE(of_five.renew(4, t0 + 13s)) << "the others were renewed before the second loss was known";
  of_five.renew(2, t0 + 13s);
  EXPECT_TRUE(of_five.renew(3, t0 + 13s));
}

// All ways in which five nodes can have no vote, a short one or a long one.
TEST(quorum_deadline, before_it_a_majority_has_the_vote_whatever_each_of_them_has) {
  constexpr std::array<time_point, 3> untils{time_point{}, t0 + 1s, t0 + 2s};
  for (int all = 0; all < 3 * 3 * 3 * 3 * 3; ++all) {
    quorum_deadline of_five{5};
    std::array<time_point, 5> has{};
    for (int node = 0, left = all; node < 5; ++node, left /= 3) {
      has[static_cast<std::size_t>(node)] = untils[static_cast<std::size_t>(left % 3)];
      of_five.hold(node, has[static_cast<std::size_t>(node)]);
    }
    for (const auto at : {t0, t0 + 1s, t0 + 2s}) {
      const auto votes = std::count_if(has.begin(), has.end(), [&](time_point until) { return at < until; });
      EXPECT_EQ(at < of_five.at(), votes >= 3) << all;
    }
  }
}

}  // namespace

}  // namespace holdfast::core
