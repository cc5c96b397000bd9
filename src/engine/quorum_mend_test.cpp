// SPDX-License-Identifier: Apache-2.0
// Votes of a lease that are missing: when they are asked for, and as what.
#include "engine/quorum_mend_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// ---- asking ----

TEST_F(quorum_mend_test, a_vote_that_was_not_given_is_asked_for_when_the_lease_has_lasted_a_while_B57) {
  const auto lease = held({0, 1});
  wake_after(500ms - 1ns);
  EXPECT_FALSE(wants_connection(2)) << "what is released soon costs nothing";
  wake_after(1ns);
  EXPECT_TRUE(wants_connection(2));
  EXPECT_FALSE(wants_connection(0)) << "nor is another server asked";
}

// Until it has a vote of this one, too, the lease is lost with any of the others.
TEST_F(quorum_mend_test, it_is_asked_for_as_soon_as_there_is_a_connection_B57) {
  const auto lease = held({0, 1});
  wake_after(500ms);
  servers[2].connect();
  wake_after(1ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  wake_after(500ms - 1ms);
  EXPECT_THAT(asked(2), IsEmpty());
}

// It would count from renewals that are not sent any more, and only keep the next one waiting.
TEST_F(quorum_mend_test, nobody_is_asked_when_the_longest_hold_ends_before_it_could_count_R14_R18) {
  auto lease = std::make_shared<held_lease>(keys, somebody, token, ttl, deadline_of_a_grant_now());
  lease->last = now() + ttl + 1s;
  keeps.keep(lease, "ann", {{token}, {token}, {{}, servers[2].clock + patience, now() + patience, 1}}, now(),
             renewal::automatic);
  wake_after(500ms);
  servers[2].connect();
  wake_after(1ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  say(2, busy(servers[2]));
  wake_after(1500ms);
  EXPECT_THAT(asked(2), IsEmpty());
}

// Else what a seed of the simulator plays would depend on where they lie in memory.
TEST_F(quorum_mend_test, they_are_asked_for_in_the_order_in_which_the_leases_came) {
  std::vector<std::shared_ptr<held_lease>> leases;
  std::vector<std::string> came;
  for (int i = 0; i < 20; ++i) {
    leases.push_back(held({0, 1}, renewal::automatic, keeper_testing::keys_of(i)));
    came.push_back(keeper_testing::keys_of(i).holder);
  }
  wake_after(500ms);
  servers[2].connect();
  wake_after(1ms);
  std::vector<std::string> asked_for;
  for (const auto& one : servers[2].take()) asked_for.push_back(one.at(3));
  EXPECT_EQ(asked_for, came);
}

// With 100,000 leases that would be a core's work for as long as a server is away.
TEST_F(quorum_mend_test, nobody_looks_for_a_server_that_is_away_between_the_renewals) {
  const auto lease = renewing({0, 1});
  renewed(0);
  renewed(1);
  wake_after(500ms);
  ASSERT_TRUE(wants_connection(2));
  keeps.wire(2).on_connecting(now());
  wake_after(500ms);
  EXPECT_EQ(keeps.wake_at(), keeps.wire(2).wake_at()) << "nothing but the end of connecting";
}

// C2: whoever comes next must find our token or a larger one on any majority.
TEST_F(quorum_mend_test, a_vote_is_asked_for_under_no_smaller_token_C2_P23) {
  const auto lease = mending();
  EXPECT_EQ(vote.at(8), somebody.hex());
  EXPECT_EQ(vote.at(13), fencing_token{token.value() - 1}.to_string());
  EXPECT_EQ(proposal_of(vote), token);
  EXPECT_EQ(not_after_of(vote), servers[2].clock + 1s);
}

TEST_F(quorum_mend_test, a_vote_that_is_lost_is_asked_for_at_once_B57) {
  const auto lease = renewing({0, 1, 2});
  renewed(0);
  renewed(1);
  say(2, lost(servers[2], "gone"));
  EXPECT_THAT(asked(2), ElementsAre("vote"));
}

TEST_F(quorum_mend_test, who_does_not_give_it_is_asked_again_after_a_pause) {
  const auto lease = mending();
  say(2, busy(servers[2]));
  EXPECT_THAT(asked(2), IsEmpty());
  wake_after(500ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  wake_after(500ms);
  EXPECT_THAT(asked(2), IsEmpty()) << "it has not answered yet";
}

// What is left of it may be too little to renew it by, or for ever (-1): the renewal says whether it stands.
TEST_F(quorum_mend_test, a_vote_that_is_found_with_little_left_is_renewed_and_not_asked_for_again_and_again) {
  for (const int left : {1, 40, -1}) {
    const auto lease = mending();
    wake_after(1ms);
    say(2, mine(servers[2], token, left));
    EXPECT_THAT(asked(2), ElementsAre("renew")) << left;
    renewed(2);
    wake_after(500ms);
    EXPECT_THAT(asked(2), IsEmpty()) << left;
    keeps.let_go(*lease);
    servers[2].cut();
  }
}

// Each time all of them are renewed.
TEST_F(quorum_mend_test, a_vote_that_is_lost_as_soon_as_it_is_given_is_asked_for_after_a_pause) {
  const auto lease = mended();
  say(2, lost(servers[2], "gone"));
  EXPECT_THAT(asked(2), IsEmpty());
  wake_after(498ms);
  EXPECT_THAT(asked(2), IsEmpty());
  wake_after(1ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
}

TEST_F(quorum_mend_test, who_was_cut_off_is_connected_and_asked_again) {
  const auto lease = mending();
  servers[2].cut();
  wake_after(500ms);
  ASSERT_TRUE(wants_connection(2));
  servers[2].connect();
  wake_after(500ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
}

// ---- what is in the way ----

// Our own owner id is what the server remembers: another's leave is remembered instead.
TEST_F(quorum_mend_test, a_server_that_remembers_our_end_is_made_to_forget_it) {
  const auto lease = mending();
  say(2, spent(servers[2]));
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(named(said[0]), "leave");
  EXPECT_THAT(said[0], Not(Contains(std::string{somebody.hex()})));
  servers[2].say(done(servers[2]));
  wake_after(500ms);
  EXPECT_THAT(asked(2), ElementsAre("vote"));
}

TEST_F(quorum_mend_test, a_server_where_our_list_is_not_open_yet_is_opened_P26) {
  const auto lease = mending();
  say(2, other_list(servers[2], "v1|1|closed|" + record.servers));
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(named(said[0]), "quorum_record");
  EXPECT_EQ(said[0].at(4), text_of(record));
}

TEST_F(quorum_mend_test, an_earlier_list_that_is_open_is_left_alone_P26) {
  const auto lease = mending();
  say(2, other_list(servers[2], "v1|0|open|10.0.0.2:6379,10.1.1.1:6379,10.1.1.2:6379"));
  EXPECT_THAT(asked(2), IsEmpty());
}

TEST_F(quorum_mend_test, a_server_of_a_later_list_is_left_alone_P26) {
  const auto lease = mending();
  say(2, other_list(servers[2], "v1|2|open|a:1,b:1,c:1"));
  EXPECT_THAT(asked(2), IsEmpty());
}

TEST_F(quorum_mend_test, a_writer_that_became_a_reader_asks_for_a_readers_place) {
  auto counted = keys;
  counted.is_counted = true;
  const auto lease = held({0, 1}, renewal::automatic, counted, {'w', 100, 100});
  keeps.begin_narrowing(*lease);
  keeps.end_narrowing(*lease, script::part{'r', 1, 100});
  wake_after(500ms);
  servers[2].connect();
  wake_after(500ms);
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  ASSERT_EQ(named(said[0]), "vote_counted");
  EXPECT_EQ(said[0].at(19), "r");
  EXPECT_EQ(said[0].at(20), "1");
  EXPECT_EQ(said[0].at(22), "k") << "it goes before whoever is first in line";
}

TEST_F(quorum_mend_test, a_reader_s_vote_that_was_missing_is_kept_B57) {
  auto shared = keys;
  shared.is_counted = true;
  const auto lease = held({0, 1}, renewal::automatic, shared, {'r', 1, script::most_permits});
  wake_after(500ms);
  servers[2].connect();
  wake_after(500ms);
  EXPECT_THAT(asked(2), ElementsAre("vote_counted"));
  say(2, granted(servers[2], token));
  EXPECT_THAT(asked(2), ElementsAre("renew_counted"));
  EXPECT_EQ(keeps.let_go(*lease).of_each[2].token, token);
}

// It was asked for before, and given behind that.
TEST_F(quorum_mend_test, a_vote_that_was_given_to_the_writer_is_asked_for_by_the_reader_H63) {
  const script::part writing{'w', script::most_permits, script::most_permits};
  const script::part reading{'r', 1, script::most_permits};
  auto shared = keys;
  shared.is_counted = true;
  const auto lease = held({0, 1}, renewal::automatic, shared, writing);
  wake_after(500ms);
  servers[2].connect();
  wake_after(1ms);
  EXPECT_THAT(asked(2), ElementsAre("vote_counted"));
  (void)keeps.begin_narrowing(*lease);
  keeps.end_narrowing(*lease, reading);
  wake();
  say(2, granted(servers[2], token));
  wake_after(500ms);
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(named(said[0]), "vote_counted");
  EXPECT_THAT(said[0], Contains("r"));
}

// So is one that the round had given, while it got the token of the others.
TEST_F(quorum_mend_test, a_vote_that_was_raised_for_the_writer_is_asked_for_by_the_reader_H63) {
  const script::part reading{'r', 1, script::most_permits};
  auto shared = keys;
  shared.is_counted = true;
  const auto lease = held({0, 1}, renewal::automatic, shared, {'w', script::most_permits, script::most_permits});
  wake_after(500ms);
  servers[2].connect();
  wake_after(1ms);
  say(2, mine(servers[2], fencing_token{token.value() - 5}, 4000));
  ASSERT_THAT(asked(2), ElementsAre("vote_counted", "raise_counted"));
  (void)keeps.begin_narrowing(*lease);
  keeps.end_narrowing(*lease, reading);
  wake();
  say(2, done(servers[2]));
  wake_after(500ms);
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u) << "it was kept as it is";
  EXPECT_EQ(named(said[0]), "vote_counted");
  EXPECT_THAT(said[0], Contains("r"));
}

// Its downgrade was refused by all: as a reader's the vote would let others read beside the writer.
TEST_F(quorum_mend_test, a_writer_that_stays_one_asks_for_a_writers_place) {
  auto counted = keys;
  counted.is_counted = true;
  const auto lease = held({0, 1}, renewal::automatic, counted, {'w', 100, 100});
  wake_after(500ms);
  servers[2].connect();
  keeps.begin_narrowing(*lease);
  wake_after(500ms);
  EXPECT_THAT(asked(2), IsEmpty()) << "nobody knows as what, until the others have answered";
  keeps.end_narrowing(*lease, std::nullopt);
  wake();
  const auto said = servers[2].take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].at(19), "w");
  EXPECT_EQ(said[0].at(20), "100");
}

// A vote that came behind its round, or was given again, has a token of its own.
TEST_F(quorum_mend_test, whoever_becomes_less_hears_the_token_of_each_vote) {
  const auto lease = mending();
  EXPECT_THAT(keeps.begin_narrowing(*lease), ElementsAre(token, token, fencing_token{}));
  keeps.end_narrowing(*lease, std::nullopt);  // All have refused it.
  wake_after(1ms);
  const fencing_token its_own{token.value() + 5};
  say(2, granted(servers[2], its_own));
  EXPECT_THAT(keeps.begin_narrowing(*lease), ElementsAre(token, token, its_own));
  keeps.let_go(*lease);
  EXPECT_THAT(keeps.begin_narrowing(*lease), IsEmpty());
}

// ---- the end of what it is for ----

TEST_F(quorum_mend_test, a_vote_that_may_be_given_behind_the_loss_is_withdrawn_until_it_cannot_be_P27) {
  const auto lease = mending();
  wake_after(2s);
  renew_others();
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_gone"));
  EXPECT_TRUE(keeps.has_background_releases());
  EXPECT_THAT(asked(2), ElementsAre("leave"));
  say(2, granted(servers[2], token));
  EXPECT_THAT(asked(2), IsEmpty()) << "nobody wants it any more";
  say(2, done(servers[2]));
  EXPECT_FALSE(keeps.has_background_releases());
}

TEST_F(quorum_mend_test, a_vote_whose_request_was_cut_off_is_withdrawn_behind_the_loss_too_P27_R17) {
  const auto lease = renewing({0, 1, 2});
  say(2, lost(servers[2], "gone"));
  EXPECT_THAT(asked(2), ElementsAre("vote"));
  servers[2].cut();
  say(1, lost(servers[1], "gone"));
  EXPECT_THAT(listens.take(), Contains("lost lease_gone"));
  ASSERT_TRUE(keeps.has_background_releases());
  servers[2].connect();
  wake();
  EXPECT_THAT(asked(2), ElementsAre("leave"));
  say(2, not_mine(servers[2]));
  EXPECT_TRUE(keeps.has_background_releases()) << "it may still be read";
  wake_after(1001ms);
  EXPECT_THAT(asked(2), ElementsAre("leave"));
  say(2, not_mine(servers[2]));
  EXPECT_FALSE(keeps.has_background_releases());
}

TEST_F(quorum_mend_test, letting_go_tells_of_a_vote_that_is_being_asked_for_P27) {
  const auto lease = mending();
  const auto votes = keeps.let_go(*lease).of_each;
  EXPECT_FALSE(votes[2].token);
  EXPECT_EQ(votes[2].not_after, servers[2].clock + 1s);
  EXPECT_EQ(votes[2].not_after_local, now() + 1s);
  EXPECT_EQ(votes[2].asked_over, 0u) << "over no connection of a voter";
  say(2, granted(servers[2], token));
  EXPECT_THAT(asked(2), IsEmpty());
}

// ---- quarantine ----

class quorum_mend_quarantine : public quorum_mend_test {
protected:
  quorum_mend_quarantine() : quorum_mend_test{3, as_a_keeper()} {}
  static channel::settings as_a_keeper() {
    auto s = watching();
    s.epoch.may_be_unknown = true;
    return s;
  }
};

TEST_F(quorum_mend_quarantine, a_server_that_may_have_forgotten_is_not_asked_for_a_vote_R7) {
  servers[2].epoch = in_quarantine(servers[2], 7000);
  const auto lease = held({0, 1});
  wake_after(500ms);
  servers[2].connect();
  wake_after(500ms);
  EXPECT_THAT(asked(2), ElementsAre("epoch by text")) << "is it over?";
  say(2, done(servers[2]));
  wake_after(500ms);
  EXPECT_THAT(asked(2), Contains("vote"));
}

TEST_F(quorum_mend_quarantine, a_vote_of_a_server_that_has_just_forgotten_is_not_kept_R7) {
  const auto lease = held({0, 1});
  wake_after(500ms);
  servers[2].connect();
  wake_after(500ms);
  ASSERT_THAT(asked(2), ElementsAre("vote")) << "the greeting's answer is fresh";
  say(2, busy(servers[2]));
  wake_after(1s);
  ASSERT_THAT(asked(2), ElementsAre("epoch by text", "vote"));
  say(2, in_quarantine(servers[2], 9000) + granted(servers[2], token));
  EXPECT_THAT(asked(2), Not(Contains("renew")));
  EXPECT_FALSE(keeps.let_go(*lease).of_each[2].token);
}

}  // namespace

}  // namespace holdfast::engine
