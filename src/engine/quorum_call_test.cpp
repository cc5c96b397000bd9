// SPDX-License-Identifier: Apache-2.0
// The servers of a quorum as whoever asks them sees them, and what becomes of a call that goes away.
#include "engine/quorum_call.hpp"

#include "engine/quorum_acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;

// ---- how many votes ----

TEST(quorum_votes_needed, are_a_majority_and_of_a_semaphore_as_many_as_its_places_take_H59) {
  EXPECT_EQ(votes_needed(3, {}), 2);
  EXPECT_EQ(votes_needed(5, {'w', 100, 100}), 3);
  EXPECT_EQ(votes_needed(5, {'r', 1, 100}), 3);
  EXPECT_EQ(votes_needed(5, {'p', 1, 1}), 3);
  EXPECT_EQ(votes_needed(5, {'p', 1, 2}), 4);
  EXPECT_EQ(votes_needed(5, {'p', 1, 4}), 5);
}

// ---- a server ----

class quorum_voter_test : public testing::Test {
protected:
  core::seeded_random rng{};
  words heard{};
  voter one{"10.0.0.1:6379",
            {},
            rng,
            {[this] { heard.push_back("up"); },
             [this](const connection_failure& why) { heard.push_back(std::string{"down "} + to_string(why.code)); },
             [this](duration, const core::server_clock&) { heard.push_back("clock step"); }}};
  peer server{one.wire()};
};

TEST_F(quorum_voter_test, wants_a_connection_before_anybody_asks_it) {
  EXPECT_TRUE(one.wire().wants_connection(server.now));
  EXPECT_EQ(one.trouble(), "no connection yet");
}

TEST_F(quorum_voter_test, tells_of_a_connection_that_stood_and_of_the_servers_clock) {
  server.refuse();
  EXPECT_EQ(one.trouble(), "Connection refused");
  EXPECT_TRUE(one.take_news());
  EXPECT_FALSE(one.take_news());
  server.pass(1min);
  server.connect();
  EXPECT_EQ(one.trouble(), "");
  EXPECT_EQ(one.connection(), 1u);
  one.wire().observe_clock(server.clock + 10s, server.now, server.now);
  server.cut();
  EXPECT_EQ(one.trouble(), "reset");
  EXPECT_THAT(heard, ElementsAre("up", "clock step", "down connection_lost"));
}

// ---- a call that goes away ----

using quorum_call_test = quorum_acquire_test;

TEST_F(quorum_call_test, what_is_answered_to_a_call_that_has_gone_is_nobody_elses_P30) {
  start_voting();
  const auto old = votes;
  round.reset();
  start();
  take_votes();
  for (std::size_t i = 0; i < 3; ++i) say(i, granted(servers[i], proposal_of(old[i])));
  EXPECT_FALSE(round->is_over());
  grant(0);
  grant(1);
  EXPECT_TRUE(is_over(result::won));
}

TEST_F(quorum_call_test, the_driver_that_leaves_hears_of_nothing_any_more) {
  start_voting();
  round->forget_all();
  servers[0].say(busy(servers[0]));
  servers[1].cut();
  EXPECT_FALSE(round->has_news());
}

}  // namespace

}  // namespace holdfast::engine
