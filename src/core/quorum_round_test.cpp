// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using refusal = quorum_round::refusal;
using result = quorum_round::result;

constexpr time_point t0{100s};
constexpr fencing_token proposed{1795212800000000};
constexpr fencing_token larger{1795212800000007};
constexpr duration patience = 50ms;

quorum_round round_of(int nodes) { return quorum_round{{nodes, 10s, {}, patience}, t0}; }

TEST(quorum_round, is_won_when_a_majority_gives_one_token_P23) {
  auto of_five = round_of(5);
  of_five.on_vote(4, proposed);
  of_five.on_vote(1, proposed);
  EXPECT_FALSE(of_five.decide(t0 + 1ms).is_over);
  of_five.on_vote(2, proposed);
  EXPECT_TRUE(of_five.decide(t0 + 1ms).is_over);
  EXPECT_EQ(of_five.outcome(), result::won);
  EXPECT_EQ(of_five.token(), proposed);
  EXPECT_TRUE(of_five.has_vote_of(4));
  EXPECT_FALSE(of_five.has_vote_of(0));
  EXPECT_TRUE(of_five.may_have_voted(0));
}

TEST(quorum_round, does_not_wait_for_the_silent_when_it_is_won_B56) {
  auto of_three = round_of(3);
  of_three.on_vote(0, proposed);
  of_three.on_vote(2, proposed);
  EXPECT_TRUE(of_three.decide(t0).is_over);
}

// Who stood still while they answered is too late for it, and has heard them.
TEST(quorum_round, that_is_read_too_late_was_answered_all_the_same) {
  auto of_votes = round_of(3);
  for (int node = 0; node < 3; ++node) of_votes.on_vote(node, proposed);
  EXPECT_TRUE(of_votes.decide(of_votes.deadline() + 1s).is_over);
  EXPECT_EQ(of_votes.outcome(), result::refused);
  EXPECT_TRUE(of_votes.had_enough_votes());
  auto of_busy = round_of(3);
  for (int node = 0; node < 3; ++node) of_busy.on_refusal(node, refusal::busy);
  EXPECT_TRUE(of_busy.decide(of_busy.deadline() + 1s).is_over);
  EXPECT_EQ(of_busy.outcome(), result::busy);
  EXPECT_FALSE(of_busy.had_enough_votes());
}

// B61: all nodes acquired, and what the slow one used up is missing.
TEST(quorum_round, counts_the_deadline_from_before_the_first_request_B61) {
  auto of_one = round_of(1);
  of_one.on_vote(0, proposed);
  (void)of_one.decide(t0 + 40ms);
  EXPECT_EQ(of_one.deadline(), deadline_of(t0, 10s, {}));
}

TEST(quorum_round, different_tokens_are_raised_to_the_largest_first_P23) {
  auto of_three = round_of(3);
  of_three.on_vote(0, proposed);
  of_three.on_vote(1, larger);
  const auto d = of_three.decide(t0 + 1ms);
  EXPECT_FALSE(d.is_over);
  EXPECT_THAT(d.raise, ElementsAre(0));
  EXPECT_EQ(of_three.token(), larger);
  EXPECT_THAT(of_three.decide(t0 + 1ms).raise, IsEmpty());
  of_three.on_raised(0);
  EXPECT_TRUE(of_three.decide(t0 + 2ms).is_over);
  EXPECT_EQ(of_three.outcome(), result::won);
}

TEST(quorum_round, a_vote_that_comes_in_the_second_phase_is_raised_too) {
  auto of_three = round_of(3);
  of_three.on_vote(0, proposed);
  of_three.on_vote(1, larger);
  (void)of_three.decide(t0 + 1ms);
  of_three.on_vote(2, proposed);
  EXPECT_THAT(of_three.decide(t0 + 2ms).raise, ElementsAre(2));
  of_three.on_raised(2);
  EXPECT_TRUE(of_three.decide(t0 + 3ms).is_over);
  EXPECT_TRUE(of_three.has_vote_of(2));
  EXPECT_FALSE(of_three.has_vote_of(0));
  EXPECT_TRUE(of_three.may_have_voted(0));
}

TEST(quorum_round, the_second_phase_has_its_own_patience_and_ends_with_it_B54_B56) {
  const auto begun = [] {
    auto of_three = round_of(3);
    of_three.on_vote(0, proposed);
    of_three.on_refusal(2, refusal::other);
    EXPECT_EQ(of_three.decide(t0 + 40ms).wake_at, t0 + patience);
    of_three.on_vote(1, larger);
    EXPECT_THAT(of_three.decide(t0 + 40ms).raise, ElementsAre(0));
    const auto later = of_three.decide(t0 + patience);
    EXPECT_FALSE(later.is_over);
    EXPECT_EQ(later.wake_at, t0 + 40ms + patience);
    return of_three;
  };
  auto raised = begun();
  raised.on_raised(0);
  EXPECT_TRUE(raised.decide(t0 + 40ms + patience - 1ns).is_over);
  EXPECT_EQ(raised.outcome(), result::won);
  auto silent = begun();
  EXPECT_TRUE(silent.decide(t0 + 40ms + patience).is_over);
  EXPECT_EQ(silent.outcome(), result::unreachable);
}

// Nobody is waited for: a token above the round's is none of its votes.
TEST(quorum_round, a_vote_above_the_round_s_token_cannot_make_it_B54) {
  auto of_three = round_of(3);
  of_three.on_vote(0, proposed);
  of_three.on_vote(1, larger);
  EXPECT_THAT(of_three.decide(t0).raise, ElementsAre(0));
  of_three.on_vote(2, fencing_token{larger.value() + 1});
  EXPECT_THAT(of_three.decide(t0).raise, IsEmpty());
  of_three.on_cut(0);
  EXPECT_TRUE(of_three.decide(t0 + 1ms).is_over);
  EXPECT_EQ(of_three.outcome(), result::unreachable) << "nobody else has it";
}

// Else somebody could be told the first token of a round in which nodes know the second one only.
TEST(quorum_round, the_second_phase_does_not_go_back_to_a_smaller_token_C2) {
  auto of_five = round_of(5);
  of_five.on_vote(0, proposed);
  of_five.on_vote(1, larger);
  of_five.on_vote(2, proposed);
  EXPECT_THAT(of_five.decide(t0).raise, ElementsAre(0, 2));
  of_five.on_vote(3, proposed);
  of_five.on_vote(4, proposed);
  EXPECT_THAT(of_five.decide(t0).raise, ElementsAre(3, 4));
  EXPECT_FALSE(of_five.decide(t0).is_over);
}

TEST(quorum_round, is_busy_as_soon_as_no_majority_is_left) {
  auto of_five = round_of(5);
  for (int node = 0; node < 2; ++node) of_five.on_refusal(node, refusal::busy);
  EXPECT_FALSE(of_five.decide(t0).is_over);
  of_five.on_refusal(2, refusal::busy);
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::busy);
  EXPECT_FALSE(of_five.may_have_voted(0));
  EXPECT_TRUE(of_five.may_have_voted(4));
}

// Three who try at once, each with the vote of the server next to it: all would be told that somebody has it, and a job
// that is started at the same second everywhere would run nowhere.
TEST(quorum_round, nobody_has_what_several_have_between_them_R12_C5) {
  auto of_three = round_of(3);
  of_three.on_vote(0, proposed);
  of_three.on_refusal(1, refusal::busy, "x");
  EXPECT_FALSE(of_three.decide(t0).is_over);
  of_three.on_refusal(2, refusal::busy, "y");
  EXPECT_TRUE(of_three.decide(t0).is_over);
  EXPECT_EQ(of_three.outcome(), result::tied);
  EXPECT_TRUE(of_three.may_have_voted(0));
  auto of_others = round_of(3);
  for (const int node : {0, 1, 2}) of_others.on_refusal(node, refusal::busy, std::string(1, "xyz"[node]));
  EXPECT_TRUE(of_others.decide(t0).is_over);
  EXPECT_EQ(of_others.outcome(), result::tied);
}

TEST(quorum_round, who_has_not_answered_yet_says_whether_one_of_several_has_it_R12_C5) {
  auto of_five = round_of(5);
  of_five.on_vote(0, proposed);
  of_five.on_refusal(1, refusal::busy, "x");
  of_five.on_refusal(2, refusal::busy, "y");
  of_five.on_refusal(3, refusal::busy, "x");
  const auto d = of_five.decide(t0);
  EXPECT_FALSE(d.is_over);
  EXPECT_EQ(d.wake_at, t0 + patience);
  auto held = of_five;
  held.on_refusal(4, refusal::busy, "x");
  EXPECT_TRUE(held.decide(t0).is_over);
  EXPECT_EQ(held.outcome(), result::busy);
  auto silent = of_five;
  EXPECT_TRUE(silent.decide(t0 + patience).is_over);
  EXPECT_EQ(silent.outcome(), result::busy) << "x may have it";
  auto unnamed = of_five;
  unnamed.on_refusal(4, refusal::busy);
  EXPECT_TRUE(unnamed.decide(t0).is_over);
  EXPECT_EQ(unnamed.outcome(), result::busy) << "x may have it";
  of_five.on_refusal(4, refusal::busy, "y");
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::tied);
}

TEST(quorum_round, what_one_other_has_is_busy_before_the_rest_answer_B54) {
  auto of_five = round_of(5);
  for (const int node : {0, 2, 4}) of_five.on_refusal(node, refusal::busy, "x");
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::busy);
}

// R12, B54: two clients have a vote each, and the third node is gone.
TEST(quorum_round, a_tie_ends_R12_B54) {
  auto of_three = round_of(3);
  of_three.on_vote(0, proposed);
  of_three.on_refusal(1, refusal::busy);
  const auto d = of_three.decide(t0);
  EXPECT_FALSE(d.is_over);
  EXPECT_EQ(d.wake_at, t0 + patience);
  EXPECT_TRUE(of_three.decide(t0 + patience).is_over);
  EXPECT_EQ(of_three.outcome(), result::split);
  EXPECT_TRUE(of_three.may_have_voted(0));
  EXPECT_TRUE(of_three.may_have_voted(2));
}

TEST(quorum_round, too_few_that_answer_are_not_busy) {
  auto of_three = round_of(3);
  of_three.on_refusal(0, refusal::unreachable);
  of_three.on_vote(1, proposed);
  EXPECT_FALSE(of_three.decide(t0).is_over);
  of_three.on_cut(2);
  EXPECT_TRUE(of_three.decide(t0).is_over);
  EXPECT_EQ(of_three.outcome(), result::unreachable);
  EXPECT_FALSE(of_three.may_have_voted(0));
  EXPECT_TRUE(of_three.may_have_voted(2));
}

TEST(quorum_round, a_node_in_quarantine_does_not_vote_H24) {
  auto of_three = round_of(3);
  of_three.on_refusal(0, refusal::quarantined);
  of_three.on_refusal(1, refusal::quarantined);
  EXPECT_TRUE(of_three.decide(t0).is_over);
  EXPECT_EQ(of_three.outcome(), result::quarantined);
}

// It passes, and silence may not: whoever waits waits for the one and gives the other up.
TEST(quorum_round, who_has_not_answered_yet_says_whether_it_is_a_quarantine_H24) {
  const auto two_fail = [] {
    auto of_three = round_of(3);
    of_three.on_refusal(0, refusal::unreachable);
    of_three.on_refusal(1, refusal::quarantined);
    const auto d = of_three.decide(t0);
    EXPECT_FALSE(d.is_over);
    EXPECT_EQ(d.wake_at, t0 + patience);
    return of_three;
  };
  auto voted = two_fail();
  voted.on_vote(2, proposed);
  EXPECT_TRUE(voted.decide(t0 + 1ms).is_over);
  EXPECT_EQ(voted.outcome(), result::quarantined);
  auto was_cut = two_fail();
  was_cut.on_cut(2);
  EXPECT_TRUE(was_cut.decide(t0 + 1ms).is_over);
  EXPECT_EQ(was_cut.outcome(), result::unreachable);
  auto is_silent = two_fail();
  EXPECT_TRUE(is_silent.decide(t0 + patience).is_over);
  EXPECT_EQ(is_silent.outcome(), result::unreachable);
}

// Else it would be asked for again and again instead of waited for in line, and given up although somebody has it
// (P25). Whatever keeps the third from voting: it may be away, and with a split second between two answers.
TEST(quorum_round, who_has_not_answered_yet_says_whether_it_is_busy_P25) {
  for (const auto why : {refusal::quarantined, refusal::unreachable, refusal::other, refusal::late}) {
    auto of_three = round_of(3);
    of_three.on_refusal(0, why);
    of_three.on_refusal(1, refusal::busy);
    const auto d = of_three.decide(t0);
    EXPECT_FALSE(d.is_over) << static_cast<int>(why);
    EXPECT_EQ(d.wake_at, t0 + patience);
    of_three.on_refusal(2, refusal::busy);
    EXPECT_TRUE(of_three.decide(t0 + 1ms).is_over);
    EXPECT_EQ(of_three.outcome(), result::busy) << static_cast<int>(why);
  }
}

TEST(quorum_round, nobody_is_waited_for_when_it_is_known_what_it_is_lost_to_B54) {
  const std::pair<refusal, result> all[] = {{refusal::busy, result::busy},
                                            {refusal::quarantined, result::quarantined},
                                            {refusal::other, result::refused},
                                            {refusal::unreachable, result::unreachable}};
  for (const auto& [why, end] : all) {
    auto of_five = round_of(5);
    of_five.on_refusal(0, refusal::quarantined);
    for (const int node : {1, 2, 3}) of_five.on_refusal(node, why);
    EXPECT_TRUE(of_five.decide(t0).is_over) << static_cast<int>(why);
    EXPECT_EQ(of_five.outcome(), end) << static_cast<int>(why);
  }
}

TEST(quorum_round, too_many_that_will_not_vote_are_no_quarantine) {
  auto of_five = round_of(5);
  of_five.on_refusal(0, refusal::quarantined);
  of_five.on_refusal(1, refusal::other);
  of_five.on_refusal(2, refusal::other);
  of_five.on_refusal(3, refusal::unreachable);
  of_five.on_vote(4, proposed);
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::unreachable);
}

TEST(quorum_round, a_late_vote_of_a_silent_node_still_counts) {
  auto of_five = round_of(5);
  of_five.on_vote(0, proposed);
  of_five.on_vote(1, proposed);
  of_five.on_vote(2, larger);
  EXPECT_THAT(of_five.decide(t0 + patience - 1ms).raise, ElementsAre(0, 1));
  of_five.on_cut(0);
  of_five.on_raised(1);
  of_five.on_vote(3, larger);
  EXPECT_TRUE(of_five.decide(t0 + patience + 1ms).is_over);
  EXPECT_EQ(of_five.outcome(), result::won);
}

TEST(quorum_round, what_is_worth_little_is_not_won_H16) {
  auto of_one = round_of(1);
  of_one.on_vote(0, proposed);
  EXPECT_TRUE(of_one.decide(of_one.deadline() - least_useful(10s) + 1ms).is_over);
  EXPECT_EQ(of_one.outcome(), result::refused);
  EXPECT_TRUE(of_one.may_have_voted(0));
}

// A semaphore of two: four of five, three of three (core/quorum_votes.hpp).
quorum_round round_of(int nodes, int needed) { return quorum_round{{nodes, 10s, {}, patience, needed}, t0}; }

TEST(quorum_round, a_majority_is_not_enough_for_what_needs_more_H59) {
  auto of_five = round_of(5, 4);
  for (int node = 0; node < 3; ++node) of_five.on_vote(node, proposed);
  EXPECT_FALSE(of_five.decide(t0).is_over);
  of_five.on_vote(4, proposed);
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::won);
}

TEST(quorum_round, what_needs_more_is_raised_on_so_many_H59) {
  auto of_five = round_of(5, 4);
  for (int node = 0; node < 3; ++node) of_five.on_vote(node, proposed);
  of_five.on_vote(3, larger);
  EXPECT_THAT(of_five.decide(t0).raise, ElementsAre(0, 1, 2));
  of_five.on_raised(0);
  of_five.on_raised(1);
  EXPECT_FALSE(of_five.decide(t0).is_over);
  of_five.on_raised(2);
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::won);
}

TEST(quorum_round, what_needs_more_fails_with_fewer_refusals) {
  auto of_five = round_of(5, 4);
  of_five.on_refusal(0, refusal::unreachable);
  EXPECT_FALSE(of_five.decide(t0).is_over);
  of_five.on_refusal(1, refusal::unreachable);
  EXPECT_TRUE(of_five.decide(t0).is_over);
  EXPECT_EQ(of_five.outcome(), result::unreachable);
}

TEST(quorum_round, is_busy_when_no_node_has_room) {
  auto of_three = round_of(3, 3);
  for (int node = 0; node < 3; ++node) of_three.on_refusal(node, refusal::busy);
  EXPECT_TRUE(of_three.decide(t0).is_over);
  EXPECT_EQ(of_three.outcome(), result::busy);
}

// Every vote is needed, so the first refusal ends it, and its reason is the reason.
TEST(quorum_round, what_one_node_refuses_for_good_is_refused_before_the_others_answer) {
  auto of_three = round_of(3, 3);
  of_three.on_refusal(1, refusal::other);
  EXPECT_TRUE(of_three.decide(t0).is_over);
  EXPECT_EQ(of_three.outcome(), result::refused);
  auto restarted = round_of(3, 3);
  restarted.on_refusal(1, refusal::quarantined);
  EXPECT_TRUE(restarted.decide(t0).is_over);
  EXPECT_EQ(restarted.outcome(), result::quarantined);
}

// Split would end a try as busy, though nobody has it.
TEST(quorum_round, votes_beside_what_is_no_holder_are_not_split_C5) {
  const std::pair<refusal, result> all[] = {{refusal::quarantined, result::quarantined},
                                            {refusal::other, result::refused},
                                            {refusal::unreachable, result::unreachable}};
  for (const auto& [why, end] : all) {
    auto of_three = round_of(3, 3);
    of_three.on_vote(0, proposed);
    of_three.on_vote(1, proposed);
    of_three.on_refusal(2, why);
    EXPECT_TRUE(of_three.decide(t0).is_over) << static_cast<int>(why);
    EXPECT_EQ(of_three.outcome(), end) << static_cast<int>(why);
  }
  auto too_late = round_of(3);
  too_late.on_vote(0, proposed);
  too_late.on_vote(1, larger);
  EXPECT_THAT(too_late.decide(t0).raise, ElementsAre(0));
  for (const int node : {0, 2}) too_late.on_cut(node);
  EXPECT_TRUE(too_late.decide(t0).is_over);
  EXPECT_EQ(too_late.outcome(), result::unreachable);
}

// What passes and what does not: neither is said of answers that were only late.
TEST(quorum_round, what_came_too_late_is_no_quarantine_and_no_silence_C5) {
  auto of_three = round_of(3);
  of_three.on_refusal(0, refusal::late);
  of_three.on_refusal(1, refusal::late);
  of_three.on_vote(2, proposed);
  EXPECT_TRUE(of_three.decide(t0).is_over);
  EXPECT_EQ(of_three.outcome(), result::refused);
}

// Two try for the last place: one has a node of it, the other two. Neither has it, and it is free.
TEST(quorum_round, two_who_tried_for_the_last_place_are_split_R12) {
  auto of_three = round_of(3, 3);
  of_three.on_vote(0, proposed);
  of_three.on_refusal(1, refusal::busy);
  EXPECT_TRUE(of_three.decide(t0).is_over) << "the third cannot change it";
  EXPECT_EQ(of_three.outcome(), result::split);
  EXPECT_TRUE(of_three.may_have_voted(0));
}

// H56, B54: every way in which up to five nodes can answer, the second phase included.
struct answers {
  enum what { votes, votes_larger, has_another, is_away, is_silent, count };
};

void play(int nodes, int script, int raises) {
  auto round = round_of(nodes);
  std::map<int, fencing_token> has;  // What the nodes know.
  for (int node = 0, left = script; node < nodes; ++node, left /= answers::count) {
    switch (left % answers::count) {
      case answers::votes: has[node] = proposed; break;
      case answers::votes_larger: has[node] = larger; break;
      case answers::has_another: round.on_refusal(node, refusal::busy); break;
      case answers::is_away: round.on_refusal(node, refusal::unreachable); break;
      default: break;
    }
    if (has.contains(node)) round.on_vote(node, has[node]);
    const auto d = round.decide(t0);
    for (const int one : d.raise) {
      if (raises >> one & 1) {
        has[one] = round.token();
        round.on_raised(one);
      } else {
        round.on_not_raised(one);
      }
    }
  }
  auto d = round.decide(t0 + patience);
  ASSERT_TRUE(d.is_over) << "it must not wait for what does not come";
  int ours = 0;
  for (int node = 0; node < nodes; ++node) {
    const bool counts = round.has_vote_of(node) && round.outcome() == result::won;
    if (counts) {
      EXPECT_EQ(has[node], round.token());
      ++ours;
    }
    EXPECT_TRUE(!has.contains(node) || round.may_have_voted(node)) << "it would be left behind";
  }
  EXPECT_EQ(round.outcome() == result::won, ours >= majority_of(nodes));
}

TEST(quorum_round, every_split_of_votes_ends_and_a_won_one_has_its_majority_B54_B55_H56) {
  for (const int nodes : {1, 3, 5}) {
    int scripts = 1;
    for (int i = 0; i < nodes; ++i) scripts *= answers::count;
    for (int script = 0; script < scripts; ++script) {
      for (int raises = 0; raises < 1 << nodes; ++raises) {
        play(nodes, script, raises);
        if (testing::Test::HasFailure()) FAIL() << nodes << " nodes, script " << script << ", raises " << raises;
      }
    }
  }
}

TEST(token_proposal, is_ahead_of_every_clock_and_above_min_fence_P23) {
  const std::array<std::optional<server_time>, 3> clocks{server_time{1795212800000000us}, std::nullopt,
                                                         server_time{1795212800000500us}};
  EXPECT_EQ(token_proposal(clocks, {}), fencing_token{1795212800005500});
  EXPECT_EQ(token_proposal(clocks, fencing_token{1795212900000000}), fencing_token{1795212900000001});
  EXPECT_EQ(token_proposal({}, {}), fencing_token{5000});
  EXPECT_EQ(token_proposal({}, fencing_token{fencing_token::max_value}), fencing_token{fencing_token::max_value});
}

TEST(out_of_step, names_whose_clock_is_far_from_the_median_P24) {
  const auto at = [](std::chrono::microseconds us) { return std::optional{server_time{1795212800000000us + us}}; };
  const std::array<std::optional<server_time>, 5> clocks{at(0us), at(31s), std::nullopt, at(2s), at(-40s)};
  EXPECT_THAT(out_of_step(clocks, 30s), ElementsAre(false, true, false, false, true));
  EXPECT_THAT(out_of_step({}, 30s), IsEmpty());
}

// The last instant that 16 digits say is so far away that it is no number of nanoseconds.
TEST(out_of_step, names_the_clock_that_is_farthest_away_P24) {
  const std::array<std::optional<server_time>, 3> clocks{server_time{0us}, server_time{0us},
                                                         server_time{9'999'999'999'999'999us}};
  EXPECT_THAT(out_of_step(clocks, 30s), ElementsAre(false, false, true));
}

TEST(out_of_step, counts_what_is_less_than_a_microsecond_as_it_is) {
  const std::array<std::optional<server_time>, 2> clocks{server_time{0us}, server_time{31us}};
  EXPECT_THAT(out_of_step(clocks, 31us - 1ns), ElementsAre(false, true));
  EXPECT_THAT(out_of_step(clocks, 31us + 1ns), ElementsAre(false, false));
}

}  // namespace

}  // namespace holdfast::core
