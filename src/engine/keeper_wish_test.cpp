// SPDX-License-Identifier: Apache-2.0
// Renewals that somebody asked for and waits for: how each of them ends.
#include "engine/keeper.hpp"

#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using keeper_testing::drift;
using keeper_testing::keeper_test;
using keeper_testing::ttl;
using testing::ElementsAre;
using testing::IsEmpty;

struct noted_wish final : renewal_wish {
  void on_refusal(const std::string& text) noexcept override { words = text; }
  void on_end(errc how) noexcept override {
    EXPECT_FALSE(end) << "told twice";
    end = how;
  }
  std::optional<errc> end;
  std::string words;
};

class keeper_wish_test : public keeper_test {
protected:
  std::shared_ptr<noted_wish> wish(const held_lease& lease, duration patience = 5s) {
    auto made = std::make_shared<noted_wish>();
    EXPECT_TRUE(keeps.renew_now(server.now, lease, server.now + patience, made));
    wake();
    return made;
  }
  // A lease on a connection that stands, with nothing due, and a wish that was sent.
  std::shared_ptr<held_lease> connected(renewal mode = renewal::none) {
    auto lease = held(0, mode);
    auto first = wish(*lease);
    server.connect();
    EXPECT_THAT(server.take_names(), ElementsAre("renew"));
    server.say(done());
    EXPECT_EQ(first->end, errc{});
    listens.take();
    return lease;
  }
};

TEST_F(keeper_wish_test, a_lease_without_renewal_is_renewed_once_for_each_wish) {
  const auto lease = connected();
  server.pass(2s);
  const auto sent_at = server.now;
  const auto one = wish(*lease);
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  EXPECT_FALSE(one->end);
  server.pass(400ms);
  server.say(done());
  EXPECT_EQ(one->end, errc{});
  EXPECT_EQ(lease->deadline.left(server.now), core::deadline_of(sent_at, ttl, drift) - server.now);
  drive_until(core::deadline_of(sent_at, ttl, drift) - 450ms, true, [&](const request&) {
    ADD_FAILURE() << "renewed by itself";
    return done();
  });
  EXPECT_THAT(listens.take(), ElementsAre("renewed", "at_risk", "lost lease_expired"));
}

// The machine stood still: neither was told in time.
TEST_F(keeper_wish_test, a_wish_whose_time_was_over_with_that_of_its_lease_ends_as_a_loss_C4) {
  const auto lease = connected();
  const auto one = wish(*lease, 5s);
  server.pass(ttl + 1s);
  wake();
  EXPECT_EQ(one->end, errc::lease_expired);
}

TEST_F(keeper_wish_test, an_answer_behind_the_deadline_meets_no_wish_C4) {
  const auto lease = connected();
  const auto one = wish(*lease, 1h);
  server.pass(ttl + 1s);
  server.say(done());
  EXPECT_EQ(one->end, errc::lease_expired);
}

TEST_F(keeper_wish_test, what_is_said_of_one_request_is_not_told_of_another_under_way_C5) {
  const auto lease = connected();
  const auto one = wish(*lease);
  const auto other = wish(*lease);
  ASSERT_THAT(server.take_names(), ElementsAre("renew", "renew"));
  server.say(refusal("LOADING Redis is loading the dataset in memory"));
  EXPECT_EQ(one->words, "");
  server.say(refusal("LOADING Redis is loading the dataset in memory"));
  EXPECT_NE(one->words, "");
}

TEST_F(keeper_wish_test, a_single_server_that_sends_elsewhere_ends_a_wish_at_once) {
  const auto lease = connected();
  const auto one = wish(*lease);
  server.say(refusal("MOVED 77 10.0.0.2:7000"));
  EXPECT_EQ(one->end, errc::wrong_server);
}

TEST_F(keeper_wish_test, a_refusal_is_told_with_the_servers_words_H31) {
  const auto lease = connected();
  const auto one = wish(*lease);
  server.take();
  server.say(refusal("LOADING Redis is loading"));
  EXPECT_EQ(one->words, "LOADING Redis is loading");
  EXPECT_FALSE(one->end);
  wake_after(1s);
  EXPECT_EQ(one->words, "") << "another try is under way, and that is not its answer";
  server.take();
  server.say(refusal("NOREPLICAS Not enough good replicas to write."));
  EXPECT_EQ(one->end, errc::server_refused);
  EXPECT_EQ(one->words, "NOREPLICAS Not enough good replicas to write.");
}

TEST_F(keeper_wish_test, wishes_that_come_while_two_are_under_way_share_the_next_and_do_not_wait_for_a_timer) {
  const auto lease = connected();
  std::vector<std::shared_ptr<noted_wish>> wishes;
  for (int i = 0; i < 5; ++i) {
    server.pass(1ms);
    wishes.push_back(wish(*lease));
  }
  EXPECT_THAT(server.take_names(), ElementsAre("renew", "renew"));
  server.pass(1ms);
  server.say(done());
  EXPECT_EQ(wishes[0]->end, errc{});
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(done());
  EXPECT_EQ(wishes[1]->end, errc{});
  EXPECT_FALSE(wishes[2]->end);
  server.say(done());
  for (const auto& one : wishes) EXPECT_EQ(one->end, errc{});
  EXPECT_THAT(server.take_names(), IsEmpty());
}

TEST_F(keeper_wish_test, a_wish_makes_the_connection_that_it_needs) {
  const auto lease = held(0, renewal::none);
  const auto one = wish(*lease);
  EXPECT_TRUE(keeps.wire().wants_connection(server.now));
}

// The danger: what was sent before the wish is taken for its answer, though the server may have lost the lock between.
TEST_F(keeper_wish_test, an_answer_to_an_older_renewal_does_not_meet_a_wish) {
  const auto lease = renewing();
  server.pass(1ms);
  const auto one = wish(*lease);
  server.say(done());
  EXPECT_FALSE(one->end);
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(done());
  EXPECT_EQ(one->end, errc{});
}

TEST_F(keeper_wish_test, one_answer_meets_all_wishes_that_came_before_it_was_sent) {
  const auto lease = connected();
  const auto one = std::make_shared<noted_wish>();
  ASSERT_TRUE(keeps.renew_now(server.now, *lease, server.now + 5s, one));
  const auto two = wish(*lease);
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(done());
  EXPECT_EQ(one->end, errc{});
  EXPECT_EQ(two->end, errc{});
}

TEST_F(keeper_wish_test, a_loss_ends_a_wish_with_its_reason) {
  const auto lease = connected();
  const auto one = wish(*lease);
  server.say(not_mine("taken"));
  EXPECT_EQ(one->end, errc::lease_taken);
  EXPECT_THAT(listens.take(), ElementsAre("lost lease_taken"));
  EXPECT_FALSE(keeps.renew_now(server.now, *lease, server.now + 5s, one));
}

TEST_F(keeper_wish_test, a_deadline_that_passes_ends_a_wish_as_a_loss) {
  const auto lease = connected();
  const auto one = wish(*lease, 1min);
  drive_until(server.now + ttl, false, [](const request&) { return ""; });
  EXPECT_EQ(one->end, errc::lease_expired);
}

TEST_F(keeper_wish_test, letting_go_ends_a_wish_and_nothing_is_sent_any_more_C6) {
  const auto lease = connected();
  const auto one = wish(*lease);
  server.take();
  EXPECT_TRUE(keeps.let_go(*lease));
  EXPECT_EQ(one->end, errc::empty_handle);
  drive_until(server.now + ttl, true, [&](const request&) {
    ADD_FAILURE() << "renewed after it was let go";
    return done();
  });
}

TEST_F(keeper_wish_test, a_wish_whose_answer_never_comes_is_unknown_and_the_lease_stays) {
  const auto lease = connected();
  const auto one = wish(*lease, 1s);
  server.take();
  drive_until(server.now + 1s, false, [](const request&) { return ""; });
  EXPECT_EQ(one->end, errc::reply_lost);
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));
  EXPECT_THAT(listens.lost, IsEmpty());
}

TEST_F(keeper_wish_test, a_wish_that_was_never_sent_says_what_the_connection_fails_of) {
  const auto lease = held(0, renewal::none);
  const auto one = wish(*lease, 1s);
  drive_until(server.now + 1s, false, [](const request&) { return ""; });
  EXPECT_EQ(one->end, errc::cannot_connect);
}

TEST_F(keeper_wish_test, a_refusal_that_will_stay_ends_a_wish_at_once_and_one_that_passes_does_not) {
  const auto lease = connected();
  const auto refused = wish(*lease);
  server.take();
  server.say("-NOPERM this user has no permissions to run the 'evalsha' command\r\n");
  EXPECT_EQ(refused->end, errc::no_permission);
  EXPECT_TRUE(lease->deadline.is_ahead(server.now));

  const auto patient = wish(*lease);
  server.take();
  server.say("-BUSY Redis is busy running a script.\r\n");
  EXPECT_FALSE(patient->end);
  drive_until(server.now + 100ms, true, [&](const request&) { return done(); });
  EXPECT_EQ(patient->end, errc{});
}

TEST_F(keeper_wish_test, a_cancelled_wish_says_whether_its_request_was_under_way) {
  const auto lease = held(0, renewal::none);
  const auto unsent = wish(*lease);
  keeps.cancel(*lease, *unsent);
  EXPECT_EQ(unsent->end, errc::cancelled);

  server.pass(1s);
  const auto sent = wish(*lease);
  server.connect();
  wake();
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  keeps.cancel(*lease, *sent);
  EXPECT_EQ(sent->end, errc::cancelled_in_flight);
  server.pass(100ms);
  server.say(done());
  EXPECT_THAT(listens.take(), testing::Contains("renewed")) << "its answer counts nevertheless";
  keeps.cancel(*lease, *sent);
}

}  // namespace

}  // namespace holdfast::engine
