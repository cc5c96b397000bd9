// SPDX-License-Identifier: Apache-2.0
// Leases at a primary that sentinels name: what it renews counts for as long as it was named, and where it has moved to
// another one, or to another node, only from when what the one before granted does not count any more (P22).
#include "engine/named_testing.hpp"

#include "engine/keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::engine {
namespace {

using namespace named_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;

class a_named_keeper : public named {
protected:
  time_point ends(held_lease& lease) const { return named::ends(lease, server); }

  keeper_testing::lease_news listens;
  keeper keeps{naming(primary), keeper_testing::drift, rng, listens};
  peer server{keeps.wire()};
};

TEST_F(a_named_keeper, renews_for_no_longer_than_its_server_was_named_P22) {
  using keeper_testing::ttl;
  name(server);
  const auto granted_at = server.now;
  const auto first = core::deadline_of(granted_at, ttl, keeper_testing::drift);
  const auto lease = std::make_shared<held_lease>(keeper_testing::keys_of(0), keeper_testing::somebody,
                                                  keeper_testing::token, ttl, first);
  keeps.keep(lease, granted_at, first, renewal::automatic);
  server.pass(3s);
  keeps.on_wake(server.now);
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  // As if it had been named so long ago that this is all that is left.
  primary->name("10.0.0.1:6379", first + 1s - worth, server.now);
  server.say(stamp(server.clock));
  EXPECT_TRUE(lease->deadline.is_ahead(first + 1s - 1ns));
  EXPECT_FALSE(lease->deadline.is_ahead(first + 1s));
}

struct noted_wish final : renewal_wish {
  void on_end(errc how) noexcept override { end = how; }
  void on_refusal(const std::string& text) noexcept override { said = text; }
  std::optional<errc> end{};
  std::string said{};
};

TEST_F(a_named_keeper, whose_server_writes_nothing_any_more_says_that_there_is_no_primary) {
  using keeper_testing::ttl;
  name(server);
  const auto deadline = core::deadline_of(server.now, ttl, keeper_testing::drift);
  const auto lease = std::make_shared<held_lease>(keeper_testing::keys_of(0), keeper_testing::somebody,
                                                  keeper_testing::token, ttl, deadline);
  keeps.keep(lease, server.now, deadline, renewal::none);
  const auto wish = std::make_shared<noted_wish>();
  ASSERT_TRUE(keeps.renew_now(server.now, *lease, server.now + 1s, wish));
  keeps.on_wake(server.now);
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(refusal("READONLY You can't write against a read only replica."));
  EXPECT_FALSE(wish->end) << "there may be one soon";
  EXPECT_TRUE(keeps.wire().must_close());
  server.pass(1s);
  keeps.on_wake(server.now);
  EXPECT_EQ(wish->end, errc::no_primary);
}

class a_named_keeper_that_moves : public a_named_keeper {
protected:
  // `held_for`: since the primary before has granted it, and 9 s long.
  void moves_after(duration held_for) {
    name(server);
    keeps.keep(lease, granted_at, deadline, renewal::automatic);
    server.pass(held_for);
    name(server, "10.0.0.2:6379");
    counts_from = server.now + primary->moving_takes();
    keeps.on_wake(server.now);
    server.connect();
  }
  void renews() {
    keeps.on_wake(server.now);
    ASSERT_THAT(server.take_names(), ElementsAre("renew"));
    server.say(stamp(server.clock));
  }

  time_point granted_at = server.now;
  time_point deadline = core::deadline_of(granted_at, keeper_testing::ttl, keeper_testing::drift);
  std::shared_ptr<held_lease> lease = std::make_shared<held_lease>(
      keeper_testing::keys_of(0), keeper_testing::somebody, keeper_testing::token, keeper_testing::ttl, deadline);
  time_point counts_from{};
};

// From the deadline on somebody may have it there.
TEST_F(a_named_keeper_that_moves, extends_nothing_while_a_grant_of_the_one_before_may_count_P22) {
  moves_after(3s);
  renews();
  while (server.now < counts_from) {
    server.pass(std::min(counts_from, keeps.wake_at()) - server.now);
    if (server.now < counts_from) renews();
    EXPECT_EQ(ends(*lease), deadline);
  }
  renews();
  EXPECT_GT(ends(*lease), deadline) << "without a pause";
}

TEST_F(a_named_keeper_that_moves, loses_what_ends_before_that_P22) {
  moves_after(7s);
  renews();
  while (listens.lost.empty() && server.now < deadline) {
    server.pass(keeps.wake_at() - server.now);
    keeps.on_wake(server.now);
    if (!server.take_names().empty()) server.say(stamp(server.clock));
  }
  EXPECT_THAT(listens.lost, ElementsAre(lease.get()));
  EXPECT_LT(server.now, deadline);
}

// A client with a larger max_ttl counts for longer what the one before grants; the server knows of the largest.
TEST_F(named, a_keeper_that_moves_waits_for_the_grants_of_clients_with_a_larger_max_ttl_P22_P18) {
  primary = std::make_shared<named_primary>(6s);
  auto how = naming(primary);
  how.epoch = {.prefix = "hf:", .hold = 6'062ms, .may_be_unknown = true, .is_first_run = {}};
  keeper_testing::lease_news listens;
  keeper keeps{how, keeper_testing::drift, rng, listens};
  peer server{keeps.wire()};
  name(server);
  const auto deadline = core::deadline_of(server.now, 5s, keeper_testing::drift);
  const auto lease = std::make_shared<held_lease>(keeper_testing::keys_of(0), keeper_testing::somebody,
                                                  keeper_testing::token, 5s, deadline);
  keeps.keep(lease, server.now, deadline, renewal::automatic);
  server.pass(1800ms);
  name(server, "10.0.0.2:6379");
  const auto moved_at = server.now;
  keeps.on_wake(server.now);
  server.epoch = list({integer(8), stamp(server.clock), integer(60'000), integer(600), bulk("promotion")});
  server.connect();
  EXPECT_GE(keeps.wire().moving_takes(server.now), 2s);
  EXPECT_EQ(keeps.wire().renewals_from(server.now), moved_at + keeps.wire().moving_takes(server.now));
  while (ends(*lease, server) == deadline && server.now < deadline) {
    server.pass(std::max<duration>(keeps.wake_at() - server.now, 1ms));
    name(server, "10.0.0.2:6379");
    keeps.on_wake(server.now);
    const auto sent_at = server.now;
    if (server.take_names().empty()) continue;
    server.say(stamp(server.clock));
    EXPECT_EQ(ends(*lease, server) > deadline, sent_at >= moved_at + 2s);
  }
  EXPECT_GT(ends(*lease, server), deadline);
}

TEST_F(a_named_keeper_that_moves, says_of_a_wish_that_was_too_early_that_it_was_answered_P22) {
  moves_after(3s);
  const auto wish = std::make_shared<noted_wish>();
  ASSERT_TRUE(keeps.renew_now(server.now, *lease, counts_from - 1ms, wish));
  while (!wish->end && server.now < deadline) {
    keeps.on_wake(server.now);
    if (!server.take_names().empty()) server.say(stamp(server.clock));
    server.pass(std::max<duration>(keeps.wake_at() - server.now, 1ms));
  }
  EXPECT_EQ(wish->end, errc::reply_lost);
  EXPECT_THAT(wish->said, testing::HasSubstr("renewed there"));
}

// To another node of a cluster, which has been named for long. What is granted there later was never at the one before.
TEST_F(a_named_keeper, extends_what_was_granted_where_an_earlier_lease_had_moved_to) {
  using keeper_testing::ttl;
  const auto deadline = core::deadline_of(server.now, ttl, keeper_testing::drift);
  const auto lease_of = [&](const owner_id& whose) {
    return std::make_shared<held_lease>(keeper_testing::keys_of(0), whose, keeper_testing::token, ttl, deadline);
  };
  keeper before{{}, keeper_testing::drift, rng, listens};
  const auto first = lease_of(keeper_testing::somebody);
  before.keep(first, server.now, deadline, renewal::none);
  name(server);
  for (auto& one : before.take_away(server.now, [](const auto&) { return true; }))
    keeps.adopt(server.now, std::move(one));
  ASSERT_TRUE(keeps.let_go(*first));
  const auto next = lease_of(owner_id{rng.bytes16()});
  keeps.keep(next, server.now, deadline, renewal::automatic);
  const auto wish = std::make_shared<noted_wish>();
  ASSERT_TRUE(keeps.renew_now(server.now, *next, server.now + 1s, wish));
  server.pass(1ms);
  keeps.on_wake(server.now);
  server.connect();
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(stamp(server.clock));
  EXPECT_GT(ends(*next), deadline);
}

// To another node of a cluster, which has been named for long. And there to another thread of the process.
TEST_F(a_named_keeper, extends_nothing_of_what_came_from_another_node_and_is_handed_on_P22) {
  using keeper_testing::ttl;
  const auto deadline = core::deadline_of(server.now, ttl, keeper_testing::drift);
  const auto lease_of = [&] {
    return std::make_shared<held_lease>(keeper_testing::keys_of(0), keeper_testing::somebody, keeper_testing::token,
                                        ttl, deadline);
  };
  keeper before{{}, keeper_testing::drift, rng, listens};
  const auto first = lease_of();
  before.keep(first, server.now, deadline, renewal::automatic);
  name(server);
  server.pass(3300ms);
  const auto counts_from = server.now + primary->moving_takes();
  for (auto& one : before.take_away(server.now, [](const auto&) { return true; }))
    keeps.adopt(server.now, std::move(one));
  keeps.on_wake(server.now);
  server.connect();
  const auto next = lease_of();
  ASSERT_TRUE(keeps.let_go(*first));
  keeps.keep(next, server.now, deadline, renewal::automatic);
  ASSERT_THAT(server.take_names(), ElementsAre("renew"));
  server.say(stamp(server.clock));  // To nobody.
  while (ends(*next) == deadline && server.now < deadline) {
    server.pass(std::max<duration>(keeps.wake_at() - server.now, 1ms));
    name(server);
    keeps.on_wake(server.now);
    const auto sent_at = server.now;
    if (server.take_names().empty()) continue;
    server.say(stamp(server.clock));
    EXPECT_EQ(ends(*next) > deadline, sent_at >= counts_from);
  }
  EXPECT_GT(ends(*next), deadline);
}

// A slot that goes to another node and back: the other one's grants may count meanwhile.
TEST_F(a_named_keeper, extends_nothing_of_what_comes_back_while_a_grant_of_the_other_may_count_P22) {
  using keeper_testing::ttl;
  const auto deadline = core::deadline_of(server.now, ttl, keeper_testing::drift);
  const auto lease = std::make_shared<held_lease>(keeper_testing::keys_of(0), keeper_testing::somebody,
                                                  keeper_testing::token, ttl, deadline);
  keeper other{{}, keeper_testing::drift, rng, listens};
  other.keep(lease, server.now, deadline, renewal::automatic);
  const auto move = [&](keeper& from, keeper& to) {
    for (auto& one : from.take_away(server.now, [](const auto&) { return true; })) to.adopt(server.now, std::move(one));
  };
  name(server);
  move(other, keeps);
  server.pass(1s);
  move(keeps, other);
  server.pass(1s);
  name(server);
  move(other, keeps);
  const auto counts_from = server.now + primary->moving_takes();
  keeps.on_wake(server.now);
  server.connect();
  while (ends(*lease) == deadline && server.now < deadline) {
    name(server);
    keeps.on_wake(server.now);
    const auto sent_at = server.now;
    if (!server.take_names().empty()) {
      server.say(stamp(server.clock));
      EXPECT_EQ(ends(*lease) > deadline, sent_at >= counts_from);
    }
    server.pass(std::max<duration>(keeps.wake_at() - server.now, 1ms));
  }
  EXPECT_GT(ends(*lease), deadline);
}

}  // namespace
}  // namespace holdfast::engine
