// SPDX-License-Identifier: Apache-2.0
// One try for a lock of a quorum that is not won: what it leaves behind, who is waited for before it begins, and what
// ends it early.
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

using quorum_acquire_lost = quorum_acquire_test;

// ---- to others ----

TEST_F(quorum_acquire_lost, a_lost_round_withdraws_what_it_got_before_it_ends_B55) {
  start_voting();
  grant(0);
  say(1, busy(servers[1]));
  say(2, busy(servers[2]));
  EXPECT_FALSE(round->is_over());
  EXPECT_THAT(asked(0), ElementsAre("leave"));
  EXPECT_THAT(asked(1), IsEmpty());
  EXPECT_THAT(asked(2), IsEmpty());
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::busy));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(is_open_at(i));
}

TEST_F(quorum_acquire_lost, a_withdrawal_is_waited_for_no_longer_than_a_vote_B55_B56) {
  start_voting();
  grant(0);
  say(1, busy(servers[1]));
  say(2, busy(servers[2]));
  pass(patience - 1ns);
  EXPECT_FALSE(round->is_over());
  pass(1ns);
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_TRUE(is_open_at(0)) << "the background is to withdraw it";
}

// The wait that it belongs to is over.
TEST_F(quorum_acquire_lost, a_withdrawal_is_not_waited_for_when_all_time_is_over_B55) {
  wants.over_at = now() + 60ms;
  start_voting();
  grant(0);
  say(1, busy(servers[1]));
  pass(40ms);
  say(2, busy(servers[2]));
  pass(50ms - 1ns);
  EXPECT_FALSE(round->is_over());
  pass(1ns);
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_TRUE(is_open_at(0)) << "the background is to withdraw it";
}

TEST_F(quorum_acquire_lost, who_has_not_voted_yet_is_told_to_withdraw_and_not_waited_for_B55_B56) {
  start_voting();
  say(0, busy(servers[0]));
  say(1, busy(servers[1]));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_THAT(asked(2), ElementsAre("leave"));
  EXPECT_TRUE(is_open_at(2));
}

TEST_F(quorum_acquire_lost, what_two_others_have_between_them_is_nobodys_R12_C5) {
  start_voting();
  say(1, busy(servers[1], 5000, 'b'));
  say(2, busy(servers[2], 5000, 'c'));
  EXPECT_FALSE(round->is_over()) << "the third says whether one of them has it";
  grant(0);
  say(0, done(servers[0]));
  EXPECT_TRUE(is_over(result::tied));
}

TEST_F(quorum_acquire_lost, nor_is_the_one_place_of_a_semaphore_nor_a_writer_s_that_two_others_have_R12_C5) {
  wants.keys.is_counted = true;
  connect_all();
  for (const script::part& what : {script::part{'p', 1, 1}, script::part{'w', 1'000'000, 1'000'000}}) {
    wants.part = what;
    for (const char another : {'c', 'b'}) {
      start();
      take_votes();
      say(1, busy(servers[1], 5000, 'b'));
      say(2, busy(servers[2], 5000, another));
      say(0, granted(servers[0], proposal_of(votes[0])));
      EXPECT_THAT(asked(0), ElementsAre("leave"));
      say(0, done(servers[0]));
      EXPECT_TRUE(is_over(another == 'c' ? result::tied : result::busy)) << what.mode;
    }
  }
}

// Each names one of those who are in the way, and they may all be on both.
TEST_F(quorum_acquire_of_five, of_several_places_it_is_busy_whomever_they_name) {
  wants.keys.is_counted = true;
  wants.part = {'p', 1, 2};
  start_voting();
  say(1, busy(servers[1], 5000, 'b'));
  say(2, busy(servers[2], 5000, 'c'));
  for (const std::size_t i : {0u, 3u, 4u}) say(i, granted(servers[i], proposal_of(votes[i])) + done(servers[i]));
  EXPECT_TRUE(is_over(result::busy));
}

TEST_F(quorum_acquire_of_five, who_withdraws_while_others_are_waited_for_has_nothing_left_B55) {
  start_voting();
  grant(0);
  for (const std::size_t i : {1u, 2u, 3u}) say(i, busy(servers[i]));
  EXPECT_THAT(asked(4), ElementsAre("leave"));
  say(4, granted(servers[4], proposal_of(votes[4])) + done(servers[4]));
  EXPECT_FALSE(round->is_over());
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_FALSE(is_open_at(0));
  EXPECT_FALSE(is_open_at(4));
}

TEST_F(quorum_acquire_of_five, an_error_withdraws_nothing_B55) {
  start_voting();
  grant(0);
  for (const std::size_t i : {1u, 2u, 3u}) say(i, busy(servers[i]));
  say(0, refusal("LOADING Redis is loading the dataset in memory"));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_TRUE(is_open_at(0));
}

TEST_F(quorum_acquire_lost, a_server_that_was_cut_off_in_flight_has_something_to_withdraw_B50_R17) {
  start_voting();
  const auto not_after = not_after_of(votes[1]);
  grant(0);
  servers[1].cut();
  say(2, busy(servers[2]));
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::split));
  EXPECT_EQ(round->trouble(1), "the connection ended");
  EXPECT_EQ(round->votes()[1].not_after, not_after);
  EXPECT_EQ(round->votes()[1].not_after_local, now() + 2 * patience);
  EXPECT_FALSE(is_open_at(0));
}

// It said that it had voted, in the form that says "done" of a leave, and then nobody could ask it to leave.
TEST_F(quorum_acquire_lost, a_vote_is_no_withdrawal_R17) {
  start_voting();
  say(0, done(servers[0]));
  servers[0].cut();
  say(1, busy(servers[1]));
  say(2, busy(servers[2]));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_TRUE(is_open_at(0));
}

// The request went over the old connection, and may be read after what came over the new one.
TEST_F(quorum_acquire_lost, a_withdrawal_over_another_connection_settles_nothing_R17) {
  start_voting();
  grant(0);
  servers[1].cut();
  connect(1);
  say(2, busy(servers[2]));
  EXPECT_THAT(asked(1), ElementsAre("leave"));
  say(1, not_mine(servers[1]));
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::split));
  EXPECT_TRUE(is_open_at(1));
}

TEST_F(quorum_acquire_lost, busy_tells_how_long_it_is_held_at_the_most) {
  start_voting();
  say(0, busy(servers[0], 5000));
  say(1, busy(servers[1], 3000));
  EXPECT_TRUE(is_over(result::busy));
  EXPECT_EQ(round->held_for(), 3000ms);
  EXPECT_TRUE(round->has_spoken(0));
  EXPECT_FALSE(round->has_spoken(2));
  EXPECT_EQ(round->trouble(0), "");
}

TEST_F(quorum_acquire_lost, a_foreign_key_without_an_expiry_is_held_for_no_time_that_is_known) {
  start_voting();
  say(0, busy(servers[0], -1));
  say(1, busy(servers[1], -1));
  EXPECT_FALSE(round->held_for()) << "who has its turn would try every 2 ms";
}

TEST_F(quorum_acquire_lost, nobody_who_is_silent_is_waited_for_longer_than_the_patience_B54) {
  start_voting();
  grant(0);
  pass(patience - 1ns);
  EXPECT_THAT(asked(0), IsEmpty());
  pass(1ns);
  EXPECT_THAT(asked(0), ElementsAre("leave"));
  EXPECT_THAT(asked(1), ElementsAre("leave"));
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::unreachable));
  EXPECT_EQ(round->trouble(0), "");
  EXPECT_EQ(round->trouble(1), "did not answer in time");
}

TEST_F(quorum_acquire_lost, who_could_not_answer_before_the_others_had_decided_it_is_not_said_to_be_late) {
  start_voting();
  say(0, refusal("OOM command not allowed"));
  say(1, refusal("OOM command not allowed"));
  pass(patience);  // Its vote, if it gave one, is on its way to be withdrawn.
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_EQ(round->trouble(2), "was not waited for");
}

// ---- before it begins ----

TEST_F(quorum_acquire_lost, a_majority_that_cannot_be_reached_is_waited_for_until_connect_until) {
  connect(0);
  start();
  servers[1].refuse();
  drive();
  pass(2s - 1ns);
  EXPECT_FALSE(round->is_over());
  pass(1ns);
  ASSERT_TRUE(is_over(result::unreachable));
  EXPECT_THAT(asked(0), IsEmpty());
  EXPECT_EQ(round->trouble(0), "");
  EXPECT_EQ(round->trouble(1), "Connection refused");
  EXPECT_EQ(round->trouble(2), "no connection yet");
  EXPECT_EQ(round->final_reason(), errc{});
}

TEST_F(quorum_acquire_lost, what_trying_again_does_not_change_is_told_when_nobody_can_be_reached) {
  start();
  servers[1].refuse({errc::wrong_password, "WRONGPASS invalid username-password pair", true, false});
  drive();
  pass(2s);
  ASSERT_TRUE(is_over(result::unreachable));
  EXPECT_EQ(round->final_reason(), errc::wrong_password);
  EXPECT_EQ(round->final_text(), "10.0.0.1:6379: WRONGPASS invalid username-password pair");
}

TEST_F(quorum_acquire_lost, what_trying_again_does_not_change_is_not_waited_for_when_too_few_are_left) {
  const connection_failure wrong{errc::wrong_password, "WRONGPASS invalid username-password pair", true, false};
  connect(0);
  start();
  servers[1].refuse(wrong);
  drive();
  EXPECT_FALSE(round->is_over()) << "two may be there yet";
  servers[2].refuse(wrong);
  drive();
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_EQ(round->final_reason(), errc::wrong_password);
  EXPECT_EQ(round->final_text(), "10.0.0.1:6379: WRONGPASS invalid username-password pair");
}

TEST_F(quorum_acquire_lost, what_became_of_a_call_before_is_no_refusal) {
  const connection_failure wrong{errc::wrong_password, "WRONGPASS invalid username-password pair", true, false};
  for (auto& one : servers) one.refuse(wrong);
  start();
  EXPECT_FALSE(round->is_over()) << "nobody has tried to connect since";
  pass(500ms);
  connect_all();
  drive();
  for (std::size_t i = 0; i < servers.size(); ++i) EXPECT_THAT(asked(i), ElementsAre("vote"));
}

TEST_F(quorum_acquire_lost, a_majority_does_not_wait_for_who_refuses_to_connect_B56) {
  connect(0);
  connect(1);
  servers[2].refuse();
  start();
  EXPECT_THAT(asked(0), ElementsAre("vote"));
}

TEST_F(quorum_acquire_lost, a_majority_waits_for_who_may_soon_be_connected_and_no_longer_than_the_patience_B56) {
  connect(0);
  connect(1);
  start();
  pass(patience - 1ns);
  EXPECT_THAT(asked(0), IsEmpty());
  pass(1ns);
  EXPECT_THAT(asked(0), ElementsAre("vote"));
  EXPECT_TRUE(all[2]->is_slow());
}

TEST_F(quorum_acquire_lost, who_was_waited_for_in_vain_is_not_waited_for_by_the_next_B56) {
  connect(0);
  connect(1);
  start();
  pass(patience);
  EXPECT_THAT(asked(0), ElementsAre("vote"));
  start();
  EXPECT_THAT(asked(0), ElementsAre("vote"));
  connect(2);
  EXPECT_FALSE(all[2]->is_slow()) << "it is there again";
}

TEST_F(quorum_acquire_lost, who_did_not_answer_in_time_is_slow_until_it_answers_B56) {
  start_voting();
  pass(patience);
  EXPECT_TRUE(is_over(result::unreachable));
  EXPECT_TRUE(all[0]->is_slow());
  EXPECT_EQ(all[0]->trouble(), "did not answer in time");
  servers[0].say(busy(servers[0]) + not_mine(servers[0]));
  start();
  servers[0].take();
  say(0, busy(servers[0]));
  EXPECT_FALSE(all[0]->is_slow());
}

TEST_F(quorum_acquire_lost, one_server_behind_two_addresses_is_not_asked_R20) {
  servers[2].run_id = servers[0].run_id;
  connect_all();
  start();
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_EQ(round->final_reason(), errc::invalid_uri);
  EXPECT_EQ(round->final_text(), "10.0.0.0:6379 and 10.0.0.2:6379");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), IsEmpty());
}

// ---- cancelled ----

TEST_F(quorum_acquire_lost, who_cancels_before_it_begins_has_asked_nobody) {
  connect(0);
  start();
  round->cancel();
  round->tell_news();
  drive();
  ASSERT_TRUE(is_over(result::unreachable));
  EXPECT_TRUE(round->was_cancelled());
  EXPECT_THAT(asked(0), IsEmpty());
}

TEST_F(quorum_acquire_lost, who_cancels_withdraws_everywhere_B55) {
  start_voting();
  grant(0);
  round->cancel();
  round->tell_news();
  drive();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), ElementsAre("leave"));
  EXPECT_FALSE(round->is_over());
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::unreachable));
  EXPECT_TRUE(round->was_cancelled());
  EXPECT_FALSE(is_open_at(0));
  EXPECT_TRUE(is_open_at(1));
}

TEST_F(quorum_acquire_lost, who_cancels_while_it_withdraws_still_does_B55) {
  start_voting();
  grant(0);
  say(1, busy(servers[1]));
  say(2, busy(servers[2]));
  round->cancel();
  round->tell_news();
  drive();
  EXPECT_FALSE(round->is_over());
  say(0, done(servers[0]));
  EXPECT_TRUE(is_over(result::busy));
  EXPECT_TRUE(round->was_cancelled());
}

TEST_F(quorum_acquire_lost, what_was_won_was_not_cancelled) {
  start_voting();
  grant(0);
  grant(1);
  round->cancel();
  EXPECT_TRUE(is_over(result::won));
  EXPECT_FALSE(round->was_cancelled());
}

}  // namespace

}  // namespace holdfast::engine
