// SPDX-License-Identifier: Apache-2.0
// One try for a lock of a quorum that is won: who is asked, who is waited for, under which token.
#include "engine/quorum_acquire.hpp"

#include "engine/quorum_acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// ---- asking ----

TEST_F(quorum_acquire_of_five, all_servers_are_asked_before_any_answer_is_read_B62) {
  start_voting();
  ASSERT_EQ(votes.size(), 5u);
  for (const auto& one : votes) {
    EXPECT_EQ(one.at(7), somebody.hex());
    EXPECT_EQ(one.at(13), votes[0].at(13)) << "one proposal for all";
    EXPECT_EQ(one.at(14), text_of(record));
  }
}

TEST_F(quorum_acquire_test, a_request_has_no_effect_after_twice_the_patience_by_each_servers_clock_H12) {
  servers[1].clock += 10s;
  start_voting();
  EXPECT_EQ(not_after_of(votes[0]), servers[0].clock + 400ms);
  EXPECT_EQ(not_after_of(votes[1]), servers[1].clock + 400ms);
  EXPECT_GT(proposal_of(votes[0]).value(), static_cast<std::uint64_t>(servers[1].clock.time_since_epoch().count()))
      << "ahead of all clocks (P23)";
}

TEST_F(quorum_acquire_test, scripts_are_there_before_the_first_vote_is_asked_for) {
  servers[0].connect();
  const auto said = servers[0].take();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].at(2), script::find(script::id::vote).text);
  EXPECT_EQ(said[1].at(2), script::find(script::id::leave).text);
}

// ---- winning ----

TEST_F(quorum_acquire_of_five, a_majority_is_enough_and_nobody_waits_for_the_rest_B56) {
  start_voting();
  grant(0);
  grant(3);
  EXPECT_FALSE(round->is_over());
  grant(1);
  ASSERT_TRUE(is_over(result::won));
  EXPECT_EQ(round->token(), proposal_of(votes[0]));
  for (const std::size_t i : {0u, 1u, 3u}) {
    EXPECT_EQ(round->votes()[i].token, round->token());
    EXPECT_FALSE(is_open_at(i));
  }
  for (const std::size_t i : {2u, 4u}) {
    EXPECT_FALSE(round->votes()[i].token);
    EXPECT_TRUE(is_open_at(i)) << "its vote may still be given";
  }
}

TEST_F(quorum_acquire_test, the_deadline_counts_from_before_the_first_send_H16_B61) {
  const auto began = now();
  start();
  pass(50ms);
  connect_all();
  drive();
  take_votes();
  const auto sent_at = now();
  pass(150ms);
  grant(0);
  grant(1);
  ASSERT_TRUE(is_over(result::won));
  EXPECT_GT(sent_at, began);
  EXPECT_EQ(round->sent_at(), sent_at);
  EXPECT_EQ(round->deadline(), core::deadline_of(sent_at, ttl, drift));
}

TEST_F(quorum_acquire_test, a_vote_that_it_has_already_is_one) {
  start_voting();
  grant(0);
  say(1, mine(servers[1], proposal_of(votes[1]), 8000));
  EXPECT_TRUE(is_over(result::won));
}

TEST_F(quorum_acquire_test, a_semaphore_of_two_takes_all_of_three_servers_H59) {
  wants.keys.is_counted = true;
  wants.part = {'p', 1, 2};
  start_voting();
  EXPECT_EQ(named(votes[0]), "vote_counted");
  grant(0);
  grant(1);
  EXPECT_FALSE(round->is_over());
  grant(2);
  EXPECT_TRUE(is_over(result::won));
}

TEST_F(quorum_acquire_test, a_semaphore_that_needs_all_servers_does_not_begin_without_one_H59) {
  wants.keys.is_counted = true;
  wants.part = {'p', 1, 2};
  connect(0);
  connect(1);
  start();
  EXPECT_THAT(asked(0), IsEmpty());
  pass(2s);
  EXPECT_TRUE(is_over(result::unreachable));
}

// ---- the second phase ----

TEST_F(quorum_acquire_test, who_agree_about_the_token_are_not_asked_twice) {
  start_voting();
  grant(0);
  grant(1);
  ASSERT_TRUE(is_over(result::won));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), IsEmpty());
}

TEST_F(quorum_acquire_test, the_largest_token_is_written_over_the_smaller_ones_P23_C2) {
  start_voting();
  const auto needed = fencing_token{proposal_of(votes[0]).value() + 10};
  grant(0);
  say(1, granted(servers[1], needed));
  EXPECT_FALSE(round->is_over());
  const auto raise = servers[0].take();
  ASSERT_EQ(raise.size(), 1u);
  EXPECT_EQ(named(raise[0]), "raise");
  EXPECT_EQ(raise[0].at(6), needed.to_string());
  EXPECT_THAT(asked(1), IsEmpty());
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::won));
  EXPECT_EQ(round->token(), needed);
  EXPECT_EQ(round->votes()[0].token, needed);
  EXPECT_EQ(round->votes()[1].token, needed);
}

TEST_F(quorum_acquire_test, the_rounds_token_does_not_change_when_a_larger_one_comes_late_P23) {
  start_voting();
  const auto first = proposal_of(votes[0]).value();
  grant(0);
  say(1, granted(servers[1], fencing_token{first + 10}));
  say(2, granted(servers[2], fencing_token{first + 20}));
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::won));
  EXPECT_EQ(round->token().value(), first + 10);
  EXPECT_FALSE(round->votes()[2].token);
  EXPECT_TRUE(is_open_at(2)) << "it has a vote of ours, under another token";
}

TEST_F(quorum_acquire_of_five, who_cannot_be_raised_does_not_count_P23) {
  start_voting();
  const auto needed = fencing_token{proposal_of(votes[0]).value() + 10};
  grant(0);
  grant(1);
  servers[1].cut();
  say(2, granted(servers[2], needed));
  EXPECT_THAT(asked(0), ElementsAre("raise"));
  say(0, not_mine(servers[0]));
  EXPECT_FALSE(round->is_over()) << "two others may still vote";
  say(3, granted(servers[3], needed));
  EXPECT_FALSE(round->is_over());
  say(4, granted(servers[4], needed));
  ASSERT_TRUE(is_over(result::won));
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_FALSE(round->votes()[i].token);
    EXPECT_TRUE(is_open_at(i));
  }
}

TEST_F(quorum_acquire_test, who_was_not_raised_is_said_to_have_kept_it_from_being_won_P23) {
  const auto two_vote = [this] {
    start_voting();
    grant(0);
    say(1, granted(servers[1], fencing_token{proposal_of(votes[0]).value() + 10}));
    say(2, busy(servers[2]));
    EXPECT_THAT(asked(0), ElementsAre("raise"));
  };
  two_vote();
  pass(patience);
  say(1, done(servers[1]));
  pass(patience);
  ASSERT_TRUE(round->is_over());
  EXPECT_TRUE(round->enough_voted());
  EXPECT_EQ(round->trouble(0), "did not answer in time");
  EXPECT_EQ(round->trouble(1), "");
}

TEST_F(quorum_acquire_test, who_may_not_raise_says_so_P23) {
  start_voting();
  grant(0);
  say(1, granted(servers[1], fencing_token{proposal_of(votes[0]).value() + 10}));
  say(2, busy(servers[2]));
  say(0, refusal("NOPERM this user has no permissions to run the 'evalsha' command"));
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  ASSERT_TRUE(round->is_over());
  EXPECT_EQ(round->final_reason(), errc::no_permission);
  EXPECT_THAT(round->trouble(0), StartsWith("NOPERM"));
}

TEST_F(quorum_acquire_test, an_error_is_no_raised_token_P23) {
  start_voting();
  grant(0);
  say(1, granted(servers[1], fencing_token{proposal_of(votes[0]).value() + 10}));
  say(2, busy(servers[2]));
  say(0, refusal("OOM command not allowed when used memory > 'maxmemory'."));
  EXPECT_THAT(asked(0), ElementsAre("raise", "leave"));
  say(0, done(servers[0]));
  say(1, done(servers[1]));
  EXPECT_TRUE(round->is_over());
  EXPECT_NE(round->outcome(), result::won);
}

}  // namespace

}  // namespace holdfast::engine
