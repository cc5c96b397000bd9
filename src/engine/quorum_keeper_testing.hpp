// SPDX-License-Identifier: Apache-2.0
// A keeper of a quorum, a peer for each of its servers, and one who writes down what becomes of the leases.
#pragma once

#include "engine/keeper_testing.hpp"
#include "engine/quorum_keeper.hpp"
#include "engine/quorum_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::engine::quorum_testing {

constexpr fencing_token token{1'795'212'800'000'042};

// The ttl is 9 s: renewed every 3 s; at_risk() 1.5 s before the deadline, lost() 450 ms before it. A vote that is
// missing is asked for every 500 ms.
class quorum_keeper_test : public testing::Test {
protected:
  explicit quorum_keeper_test(std::size_t nodes = 3, const channel::settings& how = {})
      : of_nodes(nodes), keeps{{std::vector(nodes, how), drift, "hf:", record, max_ttl}, rng, plain(), listens} {
    for (std::size_t i = 0; i < nodes; ++i) {
      servers.emplace_back(keeps.wire(i));
      if (!how.epoch.prefix.empty()) servers[i].epoch = done(servers[i]);
    }
  }

  time_point now() const { return servers[0].now; }
  time_point deadline_of_a_grant_now() const { return core::deadline_of(now(), ttl, drift); }

  // Granted now by these servers; the others were asked, and did not answer.
  std::shared_ptr<held_lease> held(const std::vector<std::size_t>& by, renewal mode = renewal::automatic,
                                   const script::lock_keys& of = keys, const script::part& what = {}) {
    auto lease = std::make_shared<held_lease>(of, somebody, token, ttl, deadline_of_a_grant_now());
    std::vector<quorum_vote> votes(servers.size(), {{}, servers[0].clock + 2 * patience, now() + 2 * patience, 1});
    for (const auto i : by) votes[i] = {token};
    keeps.keep(lease, "ann", votes, now(), mode, what);
    return lease;
  }
  // And on their connections, each with a first renewal that is unanswered.
  std::shared_ptr<held_lease> renewing(const std::vector<std::size_t>& by) {
    auto lease = held(by);
    wake_after(std::chrono::seconds{3});
    for (const auto i : by) {
      servers[i].connect();
      EXPECT_THAT(asked(i), testing::ElementsAre("renew"));
    }
    be_patient();
    return lease;
  }
  // No connection is called silent.
  void be_patient() {
    for (std::size_t i = 0; i < servers.size(); ++i) keeps.wire(i).set_least_silence(std::chrono::hours{1});
  }

  // Until nothing more is due.
  void wake() {
    for (int rounds = 0; rounds < 4; ++rounds) {
      for (std::size_t i = 0; i < servers.size(); ++i) (void)keeps.wire(i).on_wake(now());
      keeps.on_wake(now());
    }
  }
  void wake_after(duration time) {
    for (auto& one : servers) one.pass(time);
    wake();
  }
  void say(std::size_t i, const std::string& what) {
    servers[i].say(what);
    wake();
  }
  void renewed(std::size_t i) { say(i, done(servers[i])); }
  words asked(std::size_t i) { return servers[i].take_names(); }
  bool wants_connection(std::size_t i) { return keeps.wire(i).wants_connection(now()); }

  core::seeded_random rng{};
  keeper_testing::lease_news listens{};
  std::deque<keeper_testing::lease_news> of_nodes;
  quorum_keeper keeps;
  std::vector<peer> servers{};

private:
  std::vector<keeper_listener*> plain() {
    std::vector<keeper_listener*> out;
    for (auto& one : of_nodes) out.push_back(&one);
    return out;
  }
};

}  // namespace holdfast::engine::quorum_testing
