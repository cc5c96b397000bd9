// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_release.hpp"

#include "engine/quorum_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr fencing_token token{1'795'212'800'000'042};

// Of three servers the first two have a vote, and the third may have one.
class quorum_release_test : public quorum_test {
protected:
  explicit quorum_release_test(std::size_t nodes = 3) : quorum_test{nodes} {}

  void start() {
    release.emplace(all, keys, somebody, votes_left{votes, needed}, now() + 1s);
    run(*release);
  }
  void start_connected() {
    connect_all();
    start();
    for (auto& one : servers) one.take();
  }
  void is_done_over_new_connections() {
    start();
    EXPECT_FALSE(release->is_over());
    for (const std::size_t i : {0u, 1u}) {
      connect(i);
      drive();
      EXPECT_THAT(asked(i), ElementsAre("release"));
      say(i, done(servers[i]));
    }
    EXPECT_TRUE(is_over(release_outcome::released));
  }
  // Which comes so long after the request; the third is not heard.
  void ends_behind_the_second_answer(duration came_after, duration ends_after) {
    start_connected();
    say(0, done(servers[0]));
    pass(came_after);
    say(1, done(servers[1]));
    pass(ends_after - 1ns);
    EXPECT_FALSE(release->is_over());
    pass(1ns);
    EXPECT_TRUE(is_over(release_outcome::released));
  }
  bool is_over(release_outcome how) const { return release->is_over() && release->end() == how; }
  // A request for its vote is unanswered.
  quorum_vote asked_for(std::uint64_t over) const { return {{}, servers[0].clock + 400ms, now() + 400ms, over}; }

  std::vector<quorum_vote> votes{{token}, {token}, asked_for(1)};
  int needed = 2;
  std::optional<quorum_release> release{};
};

class quorum_release_of_five : public quorum_release_test {
protected:
  quorum_release_of_five() : quorum_release_test{5} {
    votes = {{token}, {token}, {token}, {}, {}};
    needed = 3;
  }
};

// ---- how it ends ----

TEST_F(quorum_release_test, all_are_asked_at_once_also_where_no_vote_is_known_B55) {
  connect_all();
  start();
  for (const std::size_t i : {0u, 1u}) {
    const auto said = servers[i].take();
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(named(said[0]), "release");
    EXPECT_EQ(said[0].at(8), token.to_string());
  }
  EXPECT_THAT(asked(2), ElementsAre("leave"));
}

TEST_F(quorum_release_test, a_majority_is_enough_and_nobody_waits_for_the_rest_B56) {
  start_connected();
  say(0, done(servers[0]));
  pass(1ms);
  EXPECT_FALSE(release->is_over());
  say(1, done(servers[1]));
  pass(1ms);
  ASSERT_TRUE(is_over(release_outcome::released));
  EXPECT_TRUE(release->is_settled(0));
  EXPECT_TRUE(release->is_settled(1));
  EXPECT_FALSE(release->is_settled(2)) << "that is for the background";
}

// Else the background would ask it again, and the end of a process wait for that.
TEST_F(quorum_release_test, who_is_a_little_slower_than_a_majority_settles_it) {
  start_connected();
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  pass(1ms - 1ns);
  EXPECT_FALSE(release->is_over());
  say(2, not_mine(servers[2]));
  ASSERT_TRUE(is_over(release_outcome::released));
  EXPECT_TRUE(release->is_settled(2));
}

TEST_F(quorum_release_test, who_is_slower_is_waited_for_as_long_again_as_the_others_took_B56) {
  ends_behind_the_second_answer(7ms, 7ms);
}

TEST_F(quorum_release_test, who_is_slower_is_waited_for_20_ms_at_most_B56) {
  ends_behind_the_second_answer(300ms, 20ms);
}

TEST_F(quorum_release_test, who_owes_an_earlier_answer_is_not_waited_for_at_all_B56) {
  connect_all();
  start();
  for (const std::size_t i : {0u, 1u}) say(i, not_mine(servers[i]));
  start();
  for (auto& one : servers) one.take();
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  EXPECT_TRUE(is_over(release_outcome::released));
  EXPECT_FALSE(release->is_settled(2));
}

// Its answer settles nothing: the request for its vote went over another connection.
TEST_F(quorum_release_test, whose_answer_would_settle_nothing_is_not_waited_for) {
  votes[2] = asked_for(0);
  start_connected();
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  EXPECT_TRUE(is_over(release_outcome::released));
}

TEST_F(quorum_release_test, a_majority_that_had_nothing_says_that_it_was_lost_B47) {
  start_connected();
  say(0, not_mine(servers[0]));
  EXPECT_FALSE(release->is_over()) << "the others may have had it";
  say(1, not_mine(servers[1]));
  pass(1ms);
  EXPECT_TRUE(is_over(release_outcome::already_lost));
}

// Its key was deleted on two of three, and another has it there.
TEST_F(quorum_release_test, one_that_had_it_is_not_enough_where_another_may_have_it_C5) {
  votes = {{token}, {token}, {token}};
  start_connected();
  say(0, done(servers[0]));
  say(1, not_mine(servers[1]));
  EXPECT_FALSE(release->is_over());
  say(2, not_mine(servers[2]));
  EXPECT_TRUE(is_over(release_outcome::already_lost));
}

TEST_F(quorum_release_of_five, who_was_never_asked_for_a_vote_is_not_waited_for_C5) {
  start_connected();
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  EXPECT_FALSE(release->is_over());
  say(2, not_mine(servers[2]));
  EXPECT_TRUE(is_over(release_outcome::already_lost));
}

TEST_F(quorum_release_of_five, as_many_as_a_semaphore_takes_must_have_had_it_C5_H59) {
  votes = {{token}, {token}, {token}, {token}, asked_for(1)};
  needed = 4;
  start_connected();
  for (const std::size_t i : {0u, 1u, 2u}) say(i, done(servers[i]));
  EXPECT_FALSE(release->is_over());
  say(4, done(servers[4]));
  pass(1ms);
  EXPECT_TRUE(is_over(release_outcome::released)) << "it was asked for its vote in the round, and gave it";
}

TEST_F(quorum_release_of_five, who_is_left_to_be_heard_may_say_yet_that_it_was_lost_C5) {
  votes = {{token}, {token}, {token}, {token}, {token}};
  start_connected();
  for (const std::size_t i : {0u, 1u}) servers[i].cut();
  for (const std::size_t i : {2u, 3u}) {
    say(i, not_mine(servers[i]));
    EXPECT_FALSE(release->is_over()) << i;
  }
  say(4, not_mine(servers[4]));
  EXPECT_EQ(release->end(), release_outcome::already_lost);
}

// Whether the third had it decides, and it says nothing.
TEST_F(quorum_release_test, one_that_had_it_and_one_that_had_not_is_unknown_when_it_gives_up_C5) {
  start_connected();
  say(0, done(servers[0]));
  say(1, not_mine(servers[1]));
  all[2]->wire().set_least_silence(1h);
  pass(1s - 1ns);
  EXPECT_FALSE(release->is_over());
  pass(1ns);
  EXPECT_TRUE(is_over(release_outcome::unknown));
}

TEST_F(quorum_release_test, without_a_majority_it_is_unknown_B48_B49) {
  start_connected();
  for (auto& one : all) one->wire().set_least_silence(1h);
  say(0, done(servers[0]));
  pass(1s - 1ns);
  EXPECT_FALSE(release->is_over());
  pass(1ns);
  ASSERT_TRUE(is_over(release_outcome::unknown));
  EXPECT_TRUE(release->is_settled(0));
  EXPECT_FALSE(release->is_settled(1));
}

TEST_F(quorum_release_test, too_few_that_can_be_reached_are_not_waited_for_H55) {
  connect(0);
  for (const std::size_t i : {1u, 2u}) servers[i].refuse();
  start();
  EXPECT_THAT(asked(0), ElementsAre("release")) << "what can be released is";
  EXPECT_TRUE(is_over(release_outcome::unknown));
}

// A server ends those that say nothing for long (its `timeout`), and nobody read that it did.
TEST_F(quorum_release_test, connections_that_ended_while_they_were_idle_are_made_again_first_C5) {
  connect_all();
  for (auto& one : servers) one.cut();
  is_done_over_new_connections();
}

// Somebody before us who had less time did not hear of them.
TEST_F(quorum_release_test, those_that_were_slow_once_are_connected_first_all_the_same_C5) {
  connect_all();
  for (auto& one : servers) one.cut();
  for (auto& one : all) one->found_slow();
  is_done_over_new_connections();
}

TEST_F(quorum_release_test, those_that_are_slow_again_are_given_up_with_their_connection_H55) {
  connect_all();
  for (auto& one : servers) one.cut();
  for (auto& one : all) one->found_slow();
  start();
  for (const std::size_t i : {0u, 1u}) servers[i].refuse();
  drive();
  EXPECT_TRUE(is_over(release_outcome::unknown));
}

TEST_F(quorum_release_test, who_cannot_be_connected_again_is_not_waited_for_H55) {
  connect_all();
  for (auto& one : servers) one.cut();
  start();
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_FALSE(release->is_over());
    servers[i].refuse();
    drive();
  }
  EXPECT_TRUE(is_over(release_outcome::unknown));
}

TEST_F(quorum_release_test, a_connection_that_ends_is_not_waited_for_H55) {
  start_connected();
  servers[1].cut();
  drive();
  EXPECT_FALSE(release->is_over());
  servers[2].cut();
  drive();
  ASSERT_TRUE(is_over(release_outcome::unknown));
  EXPECT_FALSE(release->is_settled(1));
}

TEST_F(quorum_release_test, an_error_is_no_answer_B48) {
  start_connected();
  say(0, done(servers[0]));
  say(1, refusal("MISCONF Errors writing to the AOF file"));
  EXPECT_FALSE(release->is_over());
  say(2, refusal("MISCONF Errors writing to the AOF file"));
  ASSERT_TRUE(is_over(release_outcome::unknown));
  EXPECT_FALSE(release->is_settled(1));
}

// ---- what is left for the background ----

TEST_F(quorum_release_of_five, a_server_that_was_never_asked_has_nothing) {
  for (const std::size_t i : {0u, 1u, 2u}) connect(i);
  start();
  EXPECT_TRUE(release->is_settled(3));
  EXPECT_FALSE(release->is_settled(0));
}

TEST_F(quorum_release_test, a_vote_that_was_asked_for_over_this_connection_is_settled_by_any_answer_R17) {
  start_connected();
  say(2, not_mine(servers[2]));
  EXPECT_TRUE(release->is_settled(2));
}

TEST_F(quorum_release_test, a_vote_that_was_asked_for_over_another_connection_is_not_settled_R17) {
  connect(2);
  servers[2].cut();
  start_connected();
  say(2, not_mine(servers[2]));
  EXPECT_FALSE(release->is_settled(2)) << "its request may be read behind this";
}

TEST_F(quorum_release_test, nor_is_one_that_the_keeper_asked_for_P27) {
  votes[2] = asked_for(0);
  start_connected();
  say(2, done(servers[2]));
  EXPECT_FALSE(release->is_settled(2));
}

TEST_F(quorum_release_test, a_vote_that_can_be_given_no_more_is_settled_R17) {
  votes[2] = asked_for(0);
  start_connected();
  for (auto& one : all) one->wire().set_least_silence(1h);
  pass(400ms);
  say(2, not_mine(servers[2]));
  EXPECT_FALSE(release->is_settled(2)) << "the server takes it until then, inclusive";
  start();
  for (auto& one : servers) one.take();
  pass(1ms);
  say(2, not_mine(servers[2]));
  EXPECT_TRUE(release->is_settled(2));
}

// The answer came while it still could be, and the other servers' much later.
TEST_F(quorum_release_test, an_answer_from_before_then_does_not_settle_it_by_growing_old_R17) {
  votes[2] = asked_for(0);
  start_connected();
  for (auto& one : all) one->wire().set_least_silence(1h);
  say(2, not_mine(servers[2]));
  pass(600ms);
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  ASSERT_TRUE(is_over(release_outcome::released));
  EXPECT_FALSE(release->is_settled(2));
}

}  // namespace

}  // namespace holdfast::engine
