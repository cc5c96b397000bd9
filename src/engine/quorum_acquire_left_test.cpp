// SPDX-License-Identifier: Apache-2.0
// What one try for a lock of a quorum may have left with the servers, as whoever tries again remembers it (C5).
#include "engine/quorum_acquire.hpp"

#include "engine/quorum_acquire_testing.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;

class quorum_acquire_left : public quorum_acquire_test {
protected:
  // Nobody has voted in time, and nobody listens any more: what it may have left.
  std::vector<core::quorum_search::leftover> end_unheard() {
    start_voting();
    pass(patience);
    EXPECT_TRUE(is_over(result::unreachable));
    auto told = round->left();
    round->forget_all();
    for (auto& one : servers) one.take();
    return told;
  }
  void start_again() {
    start();
    take_votes();
  }
};

TEST_F(quorum_acquire_left, what_may_be_left_is_told_with_where_it_was_told_to_leave_C5) {
  start_voting();
  const time_point late = now() + 2 * patience;
  grant(0);
  servers[1].cut();
  pass(patience);
  say(0, done(servers[0]));
  ASSERT_TRUE(is_over(result::unreachable));
  const auto left = round->left();
  EXPECT_EQ(left[0].until, time_point{}) << "it has left";
  EXPECT_EQ(left[0].heard_over.connection, all[0]->connection());
  EXPECT_GE(left[1].until, late + ttl) << "a whole ttl behind the last instant";
  EXPECT_EQ(left[1].told_over.connection, 0u) << "its connection ended";
  EXPECT_EQ(left[2].until, left[1].until);
  EXPECT_EQ(left[2].told_over.connection, all[2]->connection());
  EXPECT_EQ(left[2].heard_over.connection, 0u);
}

TEST_F(quorum_acquire_left, who_answers_a_withdrawal_with_an_error_was_not_told_to_leave_C5) {
  start_voting();
  grant(0);
  say(1, busy(servers[1]));
  say(2, busy(servers[2]));
  say(0, refusal("LOADING Redis is loading the dataset in memory"));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_GT(round->left()[0].until, now());
  EXPECT_EQ(round->left()[0].told_over.connection, 0u);
}

// Behind the end, and before the servers were told that nobody listens.
TEST_F(quorum_acquire_left, a_leave_that_is_refused_behind_the_end_is_no_leave_C5) {
  start_voting();
  pass(patience);
  ASSERT_TRUE(is_over(result::unreachable));
  say(0, granted(servers[0], proposal_of(votes[0])));
  say(0, refusal("MISCONF Redis is configured to save RDB snapshots"));
  EXPECT_GT(round->left()[0].until, now());
  EXPECT_EQ(round->left()[0].told_over.connection, 0u);
  EXPECT_NE(round->left()[1].told_over.connection, 0u);
}

// A vote that nobody waits for any more, and that is refused, was never given.
TEST_F(quorum_acquire_left, a_vote_that_is_refused_unheard_says_nothing_of_the_leave_C5) {
  const auto told = end_unheard();
  say(0, refusal("OOM command not allowed when used memory > 'maxmemory'."));
  say(0, done(servers[0]));
  start_again();
  say(0, busy(servers[0]));
  say(1, granted(servers[1], proposal_of(votes[1])));
  pass(patience);
  EXPECT_EQ(round->left()[0].heard_over, told[0].told_over);
}

// It leaves behind what the try before had left, so nothing of that may still be there: else the end of all tries, that
// the list was replaced, would be told as `unknown`.
TEST_F(quorum_acquire_left, who_answers_a_withdrawal_has_left_what_was_told_before_C5) {
  const auto told = end_unheard();
  start_again();
  say(2, busy(servers[2]));
  say(2, done(servers[2]));
  say(2, other_list(servers[2], "v1|2|open|a:1,b:1,c:1"));
  ASSERT_FALSE(round->is_over()) << "both others may have voted";
  say(0, busy(servers[0]) + done(servers[0]) + busy(servers[0]) + done(servers[0]));
  ASSERT_TRUE(round->is_over()) << "one alone is no majority";
  EXPECT_EQ(round->final_reason(), errc::other_quorum);
  const auto left = round->left();
  EXPECT_EQ(left[0].until, time_point{});
  EXPECT_EQ(left[0].heard_over, told[0].told_over);
  EXPECT_NE(left[1].heard_over, told[1].told_over) << "it has not answered";
  EXPECT_EQ(left[2].heard_over, told[2].told_over);
}

// The leave of the try before was refused, and only this one's is done. Or it goes out once more, perhaps behind that.
TEST_F(quorum_acquire_left, a_withdrawal_says_nothing_of_a_leave_that_was_refused_or_comes_again_C5) {
  const auto told = end_unheard();
  start_again();
  say(2, busy(servers[2]) + done(servers[2]) + other_list(servers[2], "v1|2|open|a:1,b:1,c:1"));
  ASSERT_FALSE(round->is_over());
  const std::string granted_late = granted(servers[0], proposal_of(votes[0]));
  say(0, granted_late + refusal("MISCONF Redis is configured to save RDB snapshots"));
  say(1, granted_late + refusal("NOSCRIPT No matching script."));
  for (std::size_t i : {1u, 0u}) say(i, busy(servers[i]) + done(servers[i]));
  ASSERT_TRUE(round->is_over());
  for (std::size_t i : {0u, 1u}) EXPECT_NE(round->left()[i].heard_over, told[i].told_over) << i;
  EXPECT_EQ(round->left()[1].until, time_point{}) << "its answer was heard";
}

// It goes out once more, ahead of the next question: then the answer to that is as good as ever; behind it, it is none.
TEST_F(quorum_acquire_left, a_leave_that_is_sent_again_is_done_behind_that_C5) {
  const auto told = end_unheard();
  for (std::size_t i : {0u, 1u}) say(i, granted(servers[i], proposal_of(votes[i])));
  say(0, refusal("NOSCRIPT No matching script."));
  EXPECT_EQ(servers[0].take().size(), 1u);
  start_again();
  say(1, refusal("NOSCRIPT No matching script."));
  EXPECT_EQ(servers[1].take().size(), 1u);
  say(0, done(servers[0]));
  for (std::size_t i : {0u, 1u}) say(i, busy(servers[i]));
  ASSERT_TRUE(is_over(result::busy));
  EXPECT_EQ(round->left()[0].heard_over, told[0].told_over);
  EXPECT_EQ(round->left()[1].heard_over.connection, 0u);
}

// The vote came too late to be waited for, the leave behind it was refused when nobody listened any more, and the next
// try is told that the lock is busy: for a vote of the first one.
TEST_F(quorum_acquire_left, a_leave_that_is_refused_unheard_is_no_leave_C5) {
  const auto told = end_unheard();
  for (std::size_t i : {0u, 1u}) say(i, granted(servers[i], proposal_of(votes[i])));
  for (std::size_t i : {0u, 1u}) say(i, refusal("MISCONF Redis is configured to save RDB snapshots"));
  start_again();
  for (std::size_t i : {0u, 1u}) say(i, busy(servers[i]));
  ASSERT_TRUE(is_over(result::busy));
  const auto heard = round->left();
  for (std::size_t i : {0u, 1u}) {
    EXPECT_EQ(heard[i].heard_over.connection, told[i].told_over.connection);
    EXPECT_NE(heard[i].heard_over, told[i].told_over) << i;
  }
}

}  // namespace

}  // namespace holdfast::engine
