// SPDX-License-Identifier: Apache-2.0
// A keeper, its peer, and one who writes down what becomes of the leases.
#pragma once

#include "core/random_testing.hpp"
#include "engine/keeper.hpp"
#include "engine/peer_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine::keeper_testing {

using words = std::vector<std::string>;

constexpr auto ttl =
    std::chrono::seconds{9};  // Renewed every 3 s; lost() 450 ms before the deadline; at_risk() 1.5 s before.
constexpr core::clock_drift drift{10'000};
constexpr fencing_token token{1'795'212'800'000'042};
inline const owner_id somebody{std::array<unsigned char, 16>{}};

inline script::lock_keys keys_of(int i) { return {"hf:{" + std::to_string(i) + "}"}; }

struct lease_news final : keeper_listener {
  void on_at_risk(const std::shared_ptr<held_lease>&) override { news.push_back("at_risk"); }
  void on_lost(const std::shared_ptr<held_lease>& lease, errc reason) override {
    news.push_back(std::string{"lost "} + to_string(reason));
    lost.push_back(lease.get());
    EXPECT_EQ(lease->lost_reason, reason) << "who looks hears it no later than who is told";
  }
  void on_renewed(const std::shared_ptr<held_lease>&, duration margin) override {
    news.push_back("renewed");
    last_margin = margin;
  }
  void on_renew_failed(const std::shared_ptr<held_lease>&, errc reason) override {
    news.push_back(std::string{"renew_failed "} + to_string(reason));
  }
  void on_up() override { news.push_back("up"); }
  void on_down(const connection_failure& f) override { news.push_back(std::string{"down "} + to_string(f.code)); }
  void on_clock_step(duration) override { news.push_back("step"); }

  words take() { return std::exchange(news, {}); }
  words news;
  std::vector<const held_lease*> lost;
  duration last_margin{};
};

class keeper_test : public testing::Test {
protected:
  explicit keeper_test(channel::settings how = {}) : keeps{std::move(how), drift, rng, listens} {}

  core::seeded_random rng;
  lease_news listens;
  keeper keeps;
  peer server{keeps.wire()};

  std::shared_ptr<held_lease> held(int i = 0, renewal mode = renewal::automatic,
                                   std::chrono::milliseconds lasts = ttl) {
    const auto ends = core::deadline_of(server.now, lasts, drift);
    auto lease = std::make_shared<held_lease>(keys_of(i), somebody, token, lasts, ends);
    keeps.keep(lease, server.now, ends, mode);
    return lease;
  }
  void wake() {
    (void)keeps.wire().on_wake(server.now);
    keeps.on_wake(server.now);
  }
  void wake_after(duration time) {
    server.pass(time);
    wake();
  }
  // Up to the first renewal, on the wire.
  std::shared_ptr<held_lease> renewing() {
    auto lease = held();
    wake_after(std::chrono::seconds{3});
    server.connect();
    EXPECT_THAT(server.take_names(), testing::ElementsAre("renew"));
    listens.take();
    return lease;
  }
  // As a driver does it: wakes when it is told to, connects when it is wanted and `may_connect`, answers with `answer`.
  void drive_until(time_point end, bool may_connect, const std::function<std::string(const request&)>& answer) {
    for (int rounds = 0; rounds < 100'000; ++rounds) {
      wake();
      if (keeps.wire().wants_connection(server.now)) may_connect ? server.connect() : server.refuse();
      wake();
      for (const auto& r : server.take()) {
        if (const auto said = answer(r); !said.empty()) server.say(said);
      }
      const auto next = std::min(keeps.wake_at(), end);
      if (next <= server.now && server.now < end) continue;
      if (server.now >= end) return;
      server.pass(next - server.now);
    }
    ADD_FAILURE() << "the driver span";
  }
  std::string done() { return stamp(server.clock); }
  std::string not_mine(const std::string& why = "") {
    return why.empty() ? list({integer(5), stamp(server.clock)}) : list({integer(5), stamp(server.clock), bulk(why)});
  }
  keeper::background_release a_release() {
    return {keys_of(0), somebody, token, {}, {}, server.now + std::chrono::seconds{10}};
  }
};

}  // namespace holdfast::engine::keeper_testing
