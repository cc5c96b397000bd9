// SPDX-License-Identifier: Apache-2.0
// One try for a lock of a quorum and servers that are not as they should be: of another list, of another kind, with a
// clock that is off, in quarantine.
#include "engine/quorum_acquire.hpp"

#include "engine/quorum_acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using quorum_acquire_trouble = quorum_acquire_test;

// ---- what trying again does not change ----

TEST_F(quorum_acquire_trouble, what_a_server_refuses_is_told_with_its_name_and_its_reason) {
  const auto of = [](std::string (*what)(const peer&)) { return what; };
  const struct {
    std::function<std::string(const peer&)> said;
    errc reason;
    std::string text;
    std::string why;
  } table[] = {
      {[](const peer& p) { return wrong_kind(p, "list"); }, errc::wrong_kind, "it is a list",
       "it is a list on 10.0.0.0:6379"},
      {[](const peer& p) { return wrong_kind(p, "zset"); }, errc::wrong_kind,
       "it is a shared lock or a semaphore (a zset)", "it is a shared lock or a semaphore (a zset) on 10.0.0.0:6379"},
      {[](const peer& p) { return other_size(p, 4); }, errc::other_size, "it has 4 permits",
       "it has 4 permits on 10.0.0.0:6379"},
      {of(fence_too_far), errc::fence_too_far, "min_fence is far ahead of its clock", ""},
      {of(bad_argument), errc::unexpected_reply, "it does not take the request", ""},
      {of(spent), errc::unexpected_reply, "it does not take the request", ""},
      {[](const peer&) { return refusal("OOM command not allowed"); }, errc::out_of_memory, "OOM command not allowed",
       ""},
      {[](const peer&) { return refusal("LOADING in memory"); }, errc{}, "LOADING in memory", ""},
  };
  connect_all();
  for (const auto& row : table) {
    start();
    take_votes();
    for (auto& one : servers) one.say(row.said(one));
    drive();
    ASSERT_TRUE(is_over(result::refused)) << row.text;
    EXPECT_EQ(round->trouble(0), row.text);
    EXPECT_EQ(round->trouble(2), row.text);
    EXPECT_EQ(round->final_reason(), row.reason) << row.text;
    EXPECT_EQ(round->final_text(), row.reason == errc{} ? "" : "10.0.0.0:6379: " + row.text);
    EXPECT_EQ(round->final_why(), row.why);
    EXPECT_TRUE(round->has_spoken(0));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(is_open_at(i)) << row.text;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), IsEmpty()) << row.text;
  }
}

// What stands behind the vote in the script may be denied, and nobody knows what an answer means that is none of ours.
TEST_F(quorum_acquire_trouble, who_may_have_voted_for_all_its_answer_is_asked_to_leave_B55_C5) {
  const struct {
    std::string said;
    errc reason;
  } table[] = {
      {simple("OK"), errc::unexpected_reply},
      {refusal("NOPERM no permissions"), errc::no_permission},
      {refusal("ERR The user executing the script can't run this command or subcommand"), errc::no_permission},
  };
  connect_all();
  for (const auto& row : table) {
    start();
    take_votes();
    for (auto& one : servers) one.say(row.said);
    drive();
    EXPECT_FALSE(round->is_over()) << row.said;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), ElementsAre("leave")) << row.said;
    say(0, done(servers[0]));
    say(1, not_mine(servers[1]));
    say(2, refusal("NOPERM no permissions"));
    ASSERT_TRUE(is_over(result::refused)) << row.said;
    EXPECT_EQ(round->final_reason(), row.reason) << row.said;
    EXPECT_FALSE(is_open_at(0)) << row.said;
    EXPECT_FALSE(is_open_at(1)) << row.said;
    EXPECT_TRUE(is_open_at(2)) << row.said;
  }
}

TEST_F(quorum_acquire_trouble, who_wins_has_to_release_what_may_be_a_vote_B55) {
  start_voting();
  say(0, refusal("NOPERM no permissions"));
  grant(1);
  grant(2);
  ASSERT_TRUE(is_over(result::won));
  EXPECT_FALSE(round->votes()[0].token);
  EXPECT_TRUE(is_open_at(0));
}

TEST_F(quorum_acquire_trouble, a_server_that_refuses_is_outvoted) {
  start_voting();
  say(0, refusal("OOM command not allowed"));
  grant(1);
  grant(2);
  EXPECT_TRUE(is_over(result::won));
}

TEST_F(quorum_acquire_trouble, a_replica_is_hung_up_on_and_greeted_again_B64) {
  start_voting();
  say(0, refusal("READONLY You can't write against a read only replica."));
  EXPECT_FALSE(all[0]->wire().is_ready());
  EXPECT_EQ(round->trouble(0), "READONLY You can't write against a read only replica.");
  EXPECT_EQ(round->final_reason(), errc{});
  EXPECT_FALSE(is_open_at(0));
  EXPECT_FALSE(round->is_over());
}

// ---- other lists of servers ----

TEST_F(quorum_acquire_of_five, whoever_knows_another_list_is_not_outvoted_P26_R19) {
  start_voting();
  grant(0);
  grant(1);
  servers[2].say(granted(servers[2], proposal_of(votes[2])));
  say(3, other_list(servers[3], "v1|1|open|a:1,b:1,c:1"));
  EXPECT_FALSE(round->is_over());
  for (const std::size_t i : {0u, 1u, 2u, 4u}) EXPECT_THAT(asked(i), ElementsAre("leave"));
  for (const std::size_t i : {0u, 1u, 2u}) say(i, done(servers[i]));
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_EQ(round->final_reason(), errc::other_quorum);
  EXPECT_EQ(round->final_text(), "10.0.0.3:6379: it belongs to v1|1|open|a:1,b:1,c:1");
}

TEST_F(quorum_acquire_of_five, nor_when_another_server_said_something_else_before_P26) {
  start_voting();
  say(0, refusal("OOM command not allowed when used memory > 'maxmemory'."));
  say(1, other_list(servers[1], "v1|1|open|a:1,b:1,c:1"));
  EXPECT_THAT(asked(2), ElementsAre("leave"));
  for (const std::size_t i : {2u, 3u, 4u})
    servers[i].say(granted(servers[i], proposal_of(votes[i])) + done(servers[i]));
  drive();
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_EQ(round->final_reason(), errc::other_quorum);
}

TEST_F(quorum_acquire_trouble, who_has_an_old_list_is_told_the_one_that_replaced_it_P26) {
  start_voting();
  say(1, other_list(servers[1], "v1|2|open|a:1,b:1,c:1"));
  EXPECT_FALSE(round->is_over()) << "the other two may have voted, and then nobody knows";
  say(0, granted(servers[0], proposal_of(votes[0])) + done(servers[0]));
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_EQ(round->final_reason(), errc::other_quorum);
  EXPECT_EQ(round->trouble(1), "its list of servers was replaced by a:1,b:1,c:1?generation=2");
}

TEST_F(quorum_acquire_trouble, whoever_is_silent_behind_that_is_waited_for_no_longer_than_a_vote_P26_B54) {
  start_voting();
  say(1, other_list(servers[1], "v1|2|open|a:1,b:1,c:1"));
  pass(patience - 1ns);
  EXPECT_FALSE(round->is_over());
  pass(1ns);
  ASSERT_TRUE(is_over(result::refused));
  EXPECT_TRUE(is_open_at(0));
  EXPECT_TRUE(is_open_at(2));
}

TEST_F(quorum_acquire_trouble, a_list_that_is_not_open_yet_may_be_waited_for_P26) {
  wants.record.generation = 2;
  start_voting();
  say(0, other_list(servers[0], text_of(record)));
  say(1, other_list(servers[1], ""));
  ASSERT_TRUE(is_over(result::quarantined));
  EXPECT_EQ(round->trouble(0), "generation 2 of the quorum is not open here yet");
  EXPECT_EQ(round->final_reason(), errc{});
  EXPECT_THAT(asked(0), IsEmpty()) << "nobody but a majority opens it";
}

TEST_F(quorum_acquire_trouble, who_wins_opens_the_list_where_it_is_not_P26) {
  wants.record.generation = 2;
  auto kept = wants.record;
  kept.is_open = false;
  start_voting();
  say(0, other_list(servers[0], text_of(kept)));
  grant(1);
  grant(2);
  ASSERT_TRUE(is_over(result::won));
  const auto said = servers[0].take();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].at(2), script::find(script::id::quorum_record).text);
  EXPECT_EQ(named(said[1]), "quorum_record");
  EXPECT_EQ(said[1].at(4), text_of(wants.record));
  EXPECT_EQ(said[1].at(5), text_of(kept));
  EXPECT_FALSE(is_open_at(0));
}

// It may be another quorum's, which has a majority with it.
TEST_F(quorum_acquire_trouble, who_wins_leaves_an_earlier_list_alone_that_is_open_P26) {
  wants.record.generation = 2;
  start_voting();
  say(0, other_list(servers[0], "v1|1|open|10.0.0.0:6379,10.1.1.1:6379,10.1.1.2:6379"));
  grant(1);
  grant(2);
  ASSERT_TRUE(is_over(result::won));
  EXPECT_THAT(asked(0), IsEmpty());
}

TEST_F(quorum_acquire_trouble, who_needs_all_servers_opens_the_list_where_it_is_not_when_a_majority_has_it_P26) {
  wants.record.generation = 2;
  wants.part = {'p', 1, 2};
  start_voting();
  say(1, other_list(servers[1], ""));
  grant(0);
  EXPECT_THAT(asked(1), IsEmpty()) << "one server is no majority";
  say(2, busy(servers[2]));
  const auto said = servers[1].take();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(named(said[1]), "quorum_record");
  EXPECT_EQ(said[1].at(4), text_of(wants.record));
  EXPECT_TRUE(round->has_opened());
}

TEST_F(quorum_acquire_trouble, a_minority_that_is_open_opens_nothing_P26) {
  wants.record.generation = 2;
  start_voting();
  grant(2);
  say(0, other_list(servers[0], text_of(record)));
  say(1, other_list(servers[1], ""));
  EXPECT_THAT(asked(0), IsEmpty());
  EXPECT_THAT(asked(1), IsEmpty());
  EXPECT_FALSE(round->has_opened());
}

// ---- clocks ----

TEST_F(quorum_acquire_trouble, who_says_it_was_late_is_asked_again_by_the_clock_that_it_shows_P11) {
  start_voting();
  servers[0].clock += 10s;
  say(0, late(servers[0]));
  const auto again = servers[0].take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(named(again[0]), "vote");
  EXPECT_EQ(not_after_of(again[0]), servers[0].clock + 400ms);
  EXPECT_EQ(round->votes()[0].not_after, servers[0].clock + 400ms);
  grant(0);
  grant(1);
  EXPECT_TRUE(is_over(result::won));
}

TEST_F(quorum_acquire_trouble, who_is_late_again_and_again_is_asked_three_times_P11) {
  start_voting();
  for (int tries = 1; tries < 3; ++tries) {
    say(0, late(servers[0]));
    EXPECT_THAT(asked(0), ElementsAre("vote")) << tries;
  }
  say(0, late(servers[0]));
  EXPECT_THAT(asked(0), IsEmpty());
  EXPECT_EQ(round->trouble(0), "the request came too late");
  EXPECT_TRUE(round->has_spoken(0));
  EXPECT_FALSE(is_open_at(0)) << "none of them had an effect (P10)";
}

TEST_F(quorum_acquire_trouble, a_vote_of_a_server_whose_clock_jumped_in_that_moment_does_not_count_P24_R3) {
  start_voting();
  grant(0);
  servers[1].clock += 31s;
  grant(1);
  EXPECT_FALSE(round->is_over());
  EXPECT_EQ(round->trouble(1), "its clock is far from that of the others");
  grant(2);
  ASSERT_TRUE(is_over(result::won));
  EXPECT_FALSE(round->votes()[1].token);
  EXPECT_TRUE(is_open_at(1)) << "it is ours to release";
}

// Tokens that are ahead of all clocks go back when a majority has lost its data.
TEST_F(quorum_acquire_trouble, a_clock_that_is_far_off_is_not_what_a_token_goes_by_P24_C2) {
  servers[1].clock += 31s;
  connect_all();
  start();
  EXPECT_EQ(round->trouble(1), "its clock is far from that of the others");
  const auto said = servers[0].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(proposal_of(said[0]).value(),
            static_cast<std::uint64_t>((servers[0].clock + 5ms).time_since_epoch().count()));
}

TEST_F(quorum_acquire_trouble, a_vote_that_does_not_count_is_withdrawn_B55_P24) {
  start_voting();
  servers[1].clock += 31s;
  grant(1);
  say(0, busy(servers[0]));
  EXPECT_FALSE(round->is_over()) << "who has not answered yet says whether it is busy";
  say(2, busy(servers[2]));
  EXPECT_THAT(asked(1), ElementsAre("leave"));
  say(1, done(servers[1]));
  EXPECT_FALSE(is_open_at(1));
}

TEST_F(quorum_acquire_trouble, who_is_late_because_its_clock_jumped_is_not_asked_again_P24) {
  start_voting();
  servers[0].clock += 31s;
  say(0, late(servers[0]));
  EXPECT_THAT(asked(0), IsEmpty());
  EXPECT_EQ(round->trouble(0), "its clock is far from that of the others");
}

TEST_F(quorum_acquire_trouble, a_server_whose_clock_is_known_to_be_far_off_is_not_asked_P24) {
  servers[1].clock -= 31s;
  connect_all();
  start();
  EXPECT_THAT(asked(0), ElementsAre("vote"));
  EXPECT_THAT(asked(1), IsEmpty());
  EXPECT_EQ(round->trouble(1), "its clock is far from that of the others");
  EXPECT_TRUE(round->has_spoken(1));
  EXPECT_FALSE(is_open_at(1));
}

TEST_F(quorum_acquire_trouble, half_of_max_ttl_is_not_far_P24) {
  servers[1].clock += 30s;
  connect_all();
  start();
  EXPECT_THAT(asked(1), ElementsAre("vote"));
}

// ---- quarantine ----

class quorum_acquire_quarantine : public quorum_acquire_test {
protected:
  quorum_acquire_quarantine() : quorum_acquire_test{3, watching()} {}
};

TEST_F(quorum_acquire_quarantine, a_server_that_may_have_forgotten_is_not_asked_R7) {
  servers[1].epoch = in_quarantine(servers[1], 7000);
  servers[2].epoch = in_quarantine(servers[2], 9000);
  connect_all();
  start();
  EXPECT_THAT(asked(1), ElementsAre("epoch by text")) << "is it over?";
  EXPECT_TRUE(is_over(result::quarantined)) << "one that votes is too few";
  EXPECT_EQ(round->trouble(1), "may have forgotten locks: no vote for 8 s more");
  EXPECT_TRUE(round->has_spoken(1));
  EXPECT_FALSE(is_open_at(1));
}

// Else it is off for as long as its connection lasts.
TEST_F(quorum_acquire_quarantine, a_server_whose_clock_is_far_off_is_asked_what_it_shows_now_P24) {
  servers[1].clock += 31s;
  connect_all();
  for (auto& one : servers) one.pass(2s);
  start();
  EXPECT_THAT(asked(1), ElementsAre("epoch by text"));
  servers[1].clock -= 31s;
  say(1, done(servers[1]));
  start();
  EXPECT_THAT(asked(1), ElementsAre("vote"));
}

// One is away, one came back: whether the third would vote is what makes it a quarantine.
TEST_F(quorum_acquire_quarantine, is_waited_for_where_another_server_is_away_H24) {
  servers[1].epoch = in_quarantine(servers[1], 7000);
  connect(0);
  connect(1);
  servers[2].refuse();
  start();
  EXPECT_THAT(asked(1), ElementsAre("epoch by text"));
  votes = servers[0].take();
  ASSERT_EQ(votes.size(), 1u);
  EXPECT_FALSE(round->is_over());
  grant(0);
  say(0, done(servers[0]));
  EXPECT_TRUE(is_over(result::quarantined));
}

// P20: the restart is seen by the question that went ahead of the request.
TEST_F(quorum_acquire_quarantine, a_vote_of_a_server_that_has_just_forgotten_does_not_count_and_is_withdrawn_R7_P20) {
  connect_all();
  pass_quietly(2s);
  start();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto requests = servers[i].take();
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(named(requests[0]), "epoch by text");
    votes.push_back(requests[1]);
  }
  say(0, done(servers[0]));
  grant(0);
  say(1, in_quarantine(servers[1], 9000));
  grant(1);
  EXPECT_FALSE(round->is_over());
  EXPECT_EQ(round->trouble(1), "may have forgotten locks");
  say(2, done(servers[2]) + busy(servers[2]));
  EXPECT_THAT(asked(0), ElementsAre("leave"));
  EXPECT_THAT(asked(1), ElementsAre("leave"));
}

}  // namespace

}  // namespace holdfast::engine
