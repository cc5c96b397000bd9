// SPDX-License-Identifier: Apache-2.0
// The calls of one connection, their peer, and what it may answer.
#pragma once

#include "core/random_testing.hpp"
#include "engine/acquire.hpp"
#include "engine/caller.hpp"
#include "engine/peer_testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::engine::call_testing {

inline const script::lock_keys keys{"hf:{x}"};
inline const owner_id somebody{std::array<unsigned char, 16>{}};
constexpr fencing_token token{1'795'212'800'000'042};
constexpr auto timeout = std::chrono::milliseconds{500};

class call_test : public testing::Test {
protected:
  explicit call_test(channel::settings how = {}) : calls{std::move(how), rng, {}} {}

  core::seeded_random rng;
  caller calls;
  hints ear{{}, "hf:wake:me", calls.wire(), rng, {}};
  peer server{calls.wire()};

  static acquire::request wants() {
    return {keys, std::make_shared<const std::string>("ann"), std::chrono::seconds{60}, {}};
  }
  static core::acquire_settings rules(bool only_once = true) {
    return {std::chrono::seconds{10}, core::clock_drift{10'000}, only_once, {}, timeout, true};
  }
  std::string busy() {
    return list({integer(2), stamp(server.clock),
                 bulk("v1|" + std::string(32, 'b') + "|1795212800000041|10000|" + "1795212800000041|bob"),
                 integer(5000)});
  }
  std::string mine(int remaining_ms) {
    return list({integer(1), stamp(server.clock), bulk(token.to_string()), integer(remaining_ms)});
  }
  std::string late() { return list({integer(3), stamp(server.clock)}); }
  std::string not_mine() { return list({integer(5), stamp(server.clock)}); }
};

}  // namespace holdfast::engine::call_testing
