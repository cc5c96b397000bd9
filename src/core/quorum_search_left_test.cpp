// SPDX-License-Identifier: Apache-2.0
// A search that is cancelled, and the votes that its tries have left (C5).
#include "core/quorum_search.hpp"

#include "core/quorum_search_testing.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::core {

namespace {

using namespace hunt_testing;

// With so many of three servers, each of which was told over its first connection to leave.
std::vector<quorum_search::leftover> left_with(int servers, time_point until = t0 + 10s) {
  std::vector<quorum_search::leftover> all(3);
  for (std::size_t i = 0; i < static_cast<std::size_t>(servers); ++i) all[i] = {until, {1}, {}};
  return all;
}
std::vector<quorum_search::leftover> answered_by(int servers, quorum_search::passage connection) {
  std::vector<quorum_search::leftover> all(3);
  for (std::size_t i = 0; i < static_cast<std::size_t>(servers); ++i) all[i].heard_over = connection;
  return all;
}

TEST(quorum_search, nobody_knows_the_end_while_a_majority_may_have_its_votes_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  EXPECT_TRUE(h.pauses());
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
  EXPECT_TRUE(h.round_tells());
  EXPECT_EQ(std::get<quorum_search::end>(h.next).reason, errc::no_quorum);
  EXPECT_EQ(h.flow.left_until(), t0 + 10s);
}

// It may be we who hold it.
TEST(quorum_search, nor_is_it_known_to_be_busy_or_timed_out_C5) {
  hunt h{once()};
  h.loses({.how = result::split, .left = left_with(2)});
  h.loses(result::busy);
  EXPECT_EQ(h.ends(), errc::reply_lost);

  hunt in_line{waits(1s)};
  in_line.loses({.how = result::busy, .left = left_with(3)});
  in_line.now += 1s;
  in_line.next = in_line.flow.on_turn(in_line.now, errc::timed_out);
  EXPECT_EQ(in_line.ends(), errc::reply_lost);
}

// No lock is made of that.
TEST(quorum_search, a_minority_s_vote_that_is_left_changes_no_answer) {
  hunt h{waits_for_ever()};
  h.now += timeout;
  h.loses({.how = result::unreachable, .left = left_with(1)});
  EXPECT_EQ(h.ends(), errc::no_quorum);
}

TEST(quorum_search, votes_that_must_have_ended_are_none_C5) {
  hunt h{waits(9s)};
  h.loses({.how = result::busy, .left = left_with(3)});
  h.now += 10s - 1ns;
  h.next = h.flow.on_turn(h.now, errc::timed_out);
  EXPECT_EQ(h.ends(), errc::reply_lost);
  h.now += 1ns;
  h.next = h.flow.on_turn(h.now, errc::timed_out);
  EXPECT_EQ(h.ends(), errc::timed_out);
}

TEST(quorum_search, who_answers_over_the_same_connection_has_left_before) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  h.loses({.how = result::split, .left = answered_by(2, {1})});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::no_quorum);
}

TEST(quorum_search, who_answers_over_another_connection_says_nothing_of_it_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  h.loses({.how = result::split, .left = answered_by(2, {2})});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
}

// MISCONF, say: what only reads is answered where the leave was refused, and nobody heard that.
TEST(quorum_search, who_has_refused_something_since_may_not_have_left_C5) {
  hunt h{once()};
  h.loses({.how = result::split, .left = left_with(2)});
  h.loses({.how = result::busy, .left = answered_by(2, {.connection = 1, .refused = 1})});
  EXPECT_EQ(h.ends(), errc::reply_lost);
}

// What came over one of two connections is not settled by the other, whichever was the later.
TEST(quorum_search, votes_of_two_connections_are_there_until_they_end_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  auto over_the_next = left_with(2);
  for (auto& one : over_the_next) one.told_over = {2};
  h.loses({.how = result::unreachable, .left = over_the_next});
  h.loses({.how = result::split, .left = answered_by(2, {2})});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
}

// Nothing was heard from it since, over whichever.
TEST(quorum_search, who_does_not_answer_has_not_left_either_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  auto over_the_next = left_with(2);
  for (auto& one : over_the_next) one.told_over = {2};
  h.loses({.how = result::unreachable, .left = over_the_next});
  h.loses({.how = result::unreachable, .left = answered_by(0, {})});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
}

TEST(quorum_search, votes_of_one_connection_are_settled_by_it_however_many_they_are_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2, t0 + 10s)});
  h.loses({.how = result::unreachable, .left = left_with(2, t0 + 9s)});
  EXPECT_EQ(h.flow.left_until(), t0 + 10s) << "the one that lasts longest";
  h.loses(result::unreachable);
  h.loses({.how = result::unreachable, .left = std::vector<quorum_search::leftover>(3)});
  h.loses({.how = result::split, .left = answered_by(2, {1})});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::no_quorum);
}

TEST(quorum_search, who_cancels_is_told_of_votes_that_are_left_C5) {
  hunt h{waits_for_ever()};
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(h.now)).code, errc::cancelled);
  h.loses({.how = result::busy, .left = left_with(2)});
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(h.now)).code, errc::cancelled_in_flight);
  h.loses({.how = result::busy, .was_cancelled = true});
  EXPECT_EQ(h.ends(), errc::cancelled_in_flight);
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(t0 + 10s)).code, errc::cancelled);

  hunt at_once{waits_for_ever()};
  at_once.loses({.how = result::busy, .was_cancelled = true, .left = left_with(2)});
  EXPECT_EQ(at_once.ends(), errc::cancelled_in_flight);
}

// Two servers have said that another has it, and nobody waits for the third: so each try ends while all are well.
TEST(quorum_search, who_cancels_with_a_minority_s_vote_that_is_left_has_nothing_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::busy, .left = left_with(1)});
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(h.now)).code, errc::cancelled);
  h.loses({.how = result::busy, .was_cancelled = true, .left = left_with(1)});
  EXPECT_EQ(h.ends(), errc::cancelled);
}

}  // namespace

}  // namespace holdfast::core
