// SPDX-License-Identifier: Apache-2.0
// Votes of a lease that were missing: from when on they count, and under which token they are kept.
#include "engine/quorum_mend_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(quorum_mend_test, a_vote_that_is_given_again_does_not_count_before_its_first_renewal_R18_B57) {
  const auto lease = mended();
  wake_after(2s);
  renew_others();
  renewed(0);
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_gone"));
}

// Another may have been granted the lock by 1 and 2 meanwhile.
TEST_F(quorum_mend_test, a_vote_that_was_not_given_before_does_not_count_before_the_others_were_renewed_C1_R18) {
  const auto lease = mended();
  renewed(2);
  wake_after(2s);
  renew_others();
  renewed(0);
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.take(), Contains("lost lease_gone"));
}

// As if its answer had been slow. (What is left open by that: spec/README.md.)
TEST_F(quorum_mend_test, a_vote_of_the_round_that_was_not_heard_of_counts_from_its_first_renewal_B57) {
  const auto lease = mending();
  wake_after(1ms);
  say(2, mine(servers[2], token, 4000));
  EXPECT_THAT(asked(2), ElementsAre("renew"));
  be_patient();
  renewed(2);
  wake_after(2s);
  renew_others();
  renewed(0);
  say(1, lost(servers[1], "gone"));
  EXPECT_TRUE(keeps.is_kept(*lease));
}

TEST_F(quorum_mend_test, a_vote_that_may_be_of_a_copy_of_our_request_waits_for_the_others_C1_R18) {
  const auto lease = mending();
  servers[2].cut();
  wake_after(500ms);
  servers[2].connect();
  wake_after(500ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  say(2, mine(servers[2], token, 4000));
  EXPECT_THAT(asked(2), ElementsAre("renew"));
  be_patient();
  renewed(2);
  wake_after(1s);
  renew_others();
  renewed(0);
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.take(), Contains("lost lease_gone"));
}

TEST_F(quorum_mend_test, a_vote_that_was_not_given_before_counts_when_the_others_were_renewed_R18_B57) {
  const auto lease = mended();
  renew_others();
  renewed(2);
  wake_after(1ms);
  renewed(0);
  renewed(1);
  EXPECT_THAT(asked(2), ElementsAre("renew"));
  renewed(2);
  wake_after(4s);
  for (const std::size_t i : {0u, 1u}) renew_others({i});
  renewed(0);
  say(1, lost(servers[1], "gone"));
  EXPECT_TRUE(keeps.is_kept(*lease));
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
  EXPECT_THAT(asked(1), ElementsAre("vote")) << "and now that one is asked for";
}

struct noted_wish final : renewal_wish {
  void on_end(errc how) noexcept override { end = how; }
  std::optional<errc> end{};
};

// Else somebody is told "renewed" whose deadline stays.
TEST_F(quorum_mend_test, a_vote_that_does_not_count_yet_makes_no_wish_come_true_C5_R18) {
  const auto lease = mended();
  renewed(2);
  const auto had = lease->deadline.at();
  const auto wish = std::make_shared<noted_wish>();
  EXPECT_TRUE(keeps.renew_now(now(), *lease, now() + 5s, wish));
  wake();
  renew_others();
  EXPECT_THAT(asked(2), IsEmpty());
  renewed(0);
  EXPECT_FALSE(wish->end);
  EXPECT_EQ(lease->deadline.at(), had);
  renewed(1);
  EXPECT_EQ(wish->end, errc{});
  EXPECT_GT(lease->deadline.at(), had);
}

class quorum_mend_of_five : public quorum_mend_test {
protected:
  quorum_mend_of_five() : quorum_mend_test{5} {}
};

TEST_F(quorum_mend_of_five, a_vote_that_was_given_and_lost_again_is_not_renewed_with_those_that_count_now_B57) {
  const auto lease = held({0, 1, 2});
  wake_after(500ms);
  for (const std::size_t i : {3u, 4u}) servers[i].connect();
  wake_after(500ms);
  be_patient();
  for (const std::size_t i : {3u, 4u}) {
    EXPECT_THAT(asked(i), ElementsAre("vote"));
    say(i, granted(servers[i], token));
  }
  say(4, lost(servers[4], "gone"));
  renewed(3);
  for (const std::size_t i : {3u, 4u}) (void)asked(i);
  renew_others({0, 1, 2});
  for (const std::size_t i : {0u, 1u, 2u}) renewed(i);
  EXPECT_THAT(asked(3), ElementsAre("renew")) << "now it is worth it";
  EXPECT_TRUE(keeps.is_kept(*lease));
}

// C1: the others may have lost theirs too, and just not have said so.
TEST_F(quorum_mend_test, votes_that_were_lost_are_not_made_good_one_after_another_C1_R18) {
  const auto lease = given_again();
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_gone"));
}

TEST_F(quorum_mend_test, a_vote_that_was_lost_and_is_given_again_counts_behind_a_renewal_of_enough_others_C1_R18) {
  const auto lease = given_again();
  renewed(1);
  EXPECT_THAT(asked(0), IsEmpty());
  wake_after(1ms);
  renewed(2);
  EXPECT_THAT(asked(0), ElementsAre("renew")) << "now it is worth it";
  renewed(0);
  wake_after(4s);
  renew_others({1});
  say(1, lost(servers[1], "gone"));
  EXPECT_TRUE(keeps.is_kept(*lease));
  EXPECT_TRUE(lease->deadline.is_ahead(now()));
}

// `holdfast break --now` would undo itself.
TEST_F(quorum_mend_test, a_vote_that_somebody_broke_is_not_asked_for_again) {
  const auto lease = renewing({0, 1, 2});
  renewed(1);
  renewed(2);
  say(0, broken(servers[0]));
  wake_after(500ms);
  EXPECT_THAT(asked(0), IsEmpty());
  EXPECT_TRUE(keeps.is_kept(*lease)) << "the others are enough";
  wake_after(3500ms);
  renew_others({1});
  say(1, broken(servers[1]));
  EXPECT_THAT(listens.take(), Contains("lost lease_broken"));
}

// Its server says so also to who did not know that he had lost it.
TEST_F(quorum_mend_test, a_vote_of_which_its_server_says_that_it_was_broken_is_not_asked_for_again_P13d_seed_60001835) {
  const auto lease = mending();
  say(2, broken(servers[2]));
  wake_after(500ms);
  EXPECT_THAT(asked(2), IsEmpty());
  EXPECT_TRUE(keeps.is_kept(*lease)) << "the others are enough";
}

// Broken at its expiry it is there still, and nobody else could have it.
TEST_F(quorum_mend_test, a_vote_that_somebody_broke_is_given_back_with_the_others_P13d_C5) {
  const auto lease = renewing({0, 1, 2});
  renewed(1);
  renewed(2);
  say(0, broken(servers[0]));
  EXPECT_EQ(keeps.let_go(*lease).of_each[0].token, token);
}

TEST_F(quorum_mend_test, a_vote_that_is_given_again_is_renewed_under_its_own_token_and_released_under_it_C2) {
  const auto lease = mending();
  const fencing_token larger{token.value() + 7};
  say(2, granted(servers[2], larger));
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], Contains(larger.to_string()));
  EXPECT_EQ(keeps.let_go(*lease).of_each[2].token, larger);
}

TEST_F(quorum_mend_test, a_vote_that_was_given_in_the_round_after_all_is_raised_before_it_is_kept_C2_P23) {
  const auto lease = mending();
  say(2, mine(servers[2], fencing_token{token.value() - 5}, 4000));
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(named(said[0]), "raise");
  EXPECT_THAT(said[0], Contains(token.to_string()));
  say(2, done(servers[2]));
  EXPECT_THAT(asked(2), ElementsAre("renew"));
}

TEST_F(quorum_mend_test, a_vote_that_cannot_be_raised_is_not_kept_C2_P23) {
  const auto lease = mending();
  say(2, mine(servers[2], fencing_token{token.value() - 5}, 4000));
  EXPECT_THAT(asked(2), ElementsAre("raise"));
  say(2, not_mine(servers[2]));
  EXPECT_THAT(asked(2), IsEmpty());
  EXPECT_FALSE(keeps.let_go(*lease).of_each[2].token);
}

TEST_F(quorum_mend_test, a_vote_that_it_has_under_our_token_is_renewed) {
  const auto lease = mending();
  say(2, mine(servers[2], token, 4000));
  EXPECT_THAT(asked(2), ElementsAre("renew"));
}

}  // namespace

}  // namespace holdfast::engine
