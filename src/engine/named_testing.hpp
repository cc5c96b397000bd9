// SPDX-License-Identifier: Apache-2.0
// A primary that sentinels name, and the peer that it is. For named_channel_test.cpp and named_keeper_test.cpp.
#pragma once

#include "core/random_testing.hpp"
#include "engine/keeper.hpp"
#include "engine/named_primary.hpp"
#include "engine/peer_testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::engine::named_testing {

constexpr std::chrono::seconds worth{60};

inline channel::settings naming(const std::shared_ptr<named_primary>& primary) {
  channel::settings s;
  s.primary = primary;
  return s;
}

class named : public testing::Test {
protected:
  void name(peer& server, const std::string& address = "10.0.0.1:6379") {
    primary->name(address, server.now, server.now);
    server.term = primary->term();
  }
  static time_point ends(held_lease& lease, const peer& server) { return server.now + lease.deadline.left(server.now); }

  std::shared_ptr<named_primary> primary = std::make_shared<named_primary>(worth);
  core::seeded_random rng;
};

}  // namespace holdfast::engine::named_testing
