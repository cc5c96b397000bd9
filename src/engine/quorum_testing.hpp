// SPDX-License-Identifier: Apache-2.0
// The servers of a quorum, a peer for each, and a driver of whatever asks them: it steps when it is told to, as
// client/vote_connections.cpp does, and not once more. So a call that forgets to say when it must be stepped hangs
// here.
#pragma once

#include "core/random_testing.hpp"
#include "engine/peer_testing.hpp"
#include "engine/quorum_call.hpp"
#include "engine/quorum_keeper.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::engine::quorum_testing {

using words = std::vector<std::string>;

constexpr auto ttl = std::chrono::seconds{9};
constexpr auto max_ttl = std::chrono::seconds{60};
constexpr auto patience = std::chrono::milliseconds{200};
constexpr core::clock_drift drift{10'000};
inline const owner_id somebody{std::array<unsigned char, 16>{}};
inline const script::lock_keys keys{"hf:{x}"};
inline const script::quorum_record record{1, true, "10.0.0.0:6379,10.0.0.1:6379,10.0.0.2:6379"};

// ---- what a server says to a request for its vote ----

inline std::string granted(const peer& by, fencing_token token) {
  return list({integer(0), stamp(by.clock), bulk(token.to_string())});
}
inline std::string mine(const peer& by, fencing_token token, int remaining_ms) {
  return list({integer(1), stamp(by.clock), bulk(token.to_string()), integer(remaining_ms)});
}
inline std::string busy(const peer& by, int remaining_ms = 5000, char whose = 'b') {
  const auto holder = fmt::format("v1|{}|1795212800000041|9000|1795212800000041|bob", std::string(32, whose));
  return list({integer(2), stamp(by.clock), bulk(holder), integer(remaining_ms)});
}
inline std::string late(const peer& by) { return list({integer(3), stamp(by.clock)}); }
inline std::string spent(const peer& by) { return list({integer(4), stamp(by.clock)}); }
inline std::string wrong_kind(const peer& by, std::string_view what) {
  return list({integer(9), stamp(by.clock), bulk(what)});
}
inline std::string bad_argument(const peer& by) { return list({integer(10), stamp(by.clock), bulk("ttl")}); }
inline std::string fence_too_far(const peer& by) { return list({integer(11), stamp(by.clock)}); }
inline std::string other_size(const peer& by, int size) { return list({integer(16), stamp(by.clock), integer(size)}); }
inline std::string other_list(const peer& by, std::string_view kept) {
  return list({integer(17), stamp(by.clock), bulk(kept)});
}

// ---- and to anything else ----

inline std::string done(const peer& by) { return stamp(by.clock); }
inline std::string not_mine(const peer& by) { return list({integer(5), stamp(by.clock)}); }
inline std::string broken(const peer& by) { return list({integer(6), stamp(by.clock)}); }
inline std::string lost(const peer& by, std::string_view why) { return list({integer(5), stamp(by.clock), bulk(why)}); }
inline std::string in_quarantine(const peer& by, int remaining_ms) {
  return list({integer(8), stamp(by.clock), integer(remaining_ms), integer(100), bulk("restart")});
}

// ---- what we ask ----

// EVALSHA digest count, so many keys, owner ttl not_after max_ttl label min_fence proposal record and more.
inline const std::string& argument_of(const request& vote, std::size_t i) {
  return vote.at(3 + std::stoull(vote.at(2)) + i);
}
inline server_time not_after_of(const request& vote) {
  return server_time{std::chrono::microseconds{std::stoll(argument_of(vote, 2))}};
}
inline fencing_token proposal_of(const request& vote) { return fencing_token{std::stoull(argument_of(vote, 6))}; }

// A quarantine is watched for.
inline channel::settings watching() {
  channel::settings s;
  s.epoch.prefix = "hf:";
  s.epoch.hold = std::chrono::milliseconds{60'602};
  return s;
}

class quorum_test : public testing::Test {
protected:
  explicit quorum_test(std::size_t nodes = 3, const channel::settings& how = {}) {
    for (std::size_t i = 0; i < nodes; ++i) {
      all.push_back(std::make_unique<voter>(fmt::format("10.0.0.{}:6379", i), how, rng, voter::hooks{}));
      servers.emplace_back(all[i]->wire());
      servers[i].run_id = fmt::format("run {}", i);
      if (!how.epoch.prefix.empty()) servers[i].epoch = done(servers[i]);
    }
  }

  time_point now() const { return servers[0].now; }

  // It then has the scripts that a connection is made for.
  void connect(std::size_t i) {
    servers[i].connect();
    EXPECT_THAT(servers[i].take_names(), testing::ElementsAre("SCRIPT", "SCRIPT"));
    servers[i].say(bulk("a digest") + bulk("a digest"));
  }
  void connect_all() {
    for (std::size_t i = 0; i < all.size(); ++i) connect(i);
  }
  words asked(std::size_t i) { return servers[i].take_names(); }

  void run(quorum_call& what) {
    call = &what;
    for (auto& one : all) (void)one->take_news();
    step();
  }
  // After something happened.
  void drive() {
    bool is_due = call->has_news() || now() >= call->wake_at();
    for (auto& one : all) is_due = one->take_news() || is_due;
    if (is_due && !call->is_over()) step();
  }
  void pass(duration time) {
    pass_quietly(time);
    for (auto& one : all) (void)one->wire().on_wake(now());
    drive();
  }
  // While nobody drives.
  void pass_quietly(duration time) {
    for (auto& one : servers) one.pass(time);
  }
  void say(std::size_t i, const std::string& what) {
    servers[i].say(what);
    drive();
  }

  core::seeded_random rng{};
  voters all{};
  std::vector<peer> servers{};
  quorum_call* call = nullptr;

private:
  void step() {
    call->forget_news();
    call->step(now());
    EXPECT_TRUE(call->is_over() || call->wake_at() > now()) << "the driver would spin";
  }
};

}  // namespace holdfast::engine::quorum_testing
