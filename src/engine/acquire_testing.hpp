// SPDX-License-Identifier: Apache-2.0
// One acquire on a connection, and what became of it.
#pragma once

#include "engine/acquire.hpp"
#include "engine/call_testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine::acquire_testing {

// An acquire under way on a ready connection, its first request taken by the server.
class acquire_test : public call_testing::call_test {
protected:
  using call_test::call_test;

  void start(bool only_once = true) {
    call.emplace(calls.wire(), ear, wants(), rules(only_once), server.now, rng);
    calls.start(*call, server.now);
    server.connect();
    asked = server.take();
    ASSERT_FALSE(asked.empty());
    ASSERT_EQ(named(asked[0]), "acquire");
  }
  void TearDown() override {
    if (call) calls.stop(*call);
  }
  const core::got_lease* lease() const {
    return call->is_over() ? std::get_if<core::got_lease>(&call->end()) : nullptr;
  }
  std::optional<errc> failure() const {
    const auto* f = call->is_over() ? std::get_if<core::got_failure>(&call->end()) : nullptr;
    return f ? std::optional{f->code} : std::nullopt;
  }
  // EVALSHA digest 2 key key owner ttl not_after ...
  static const std::string& owner_of(const request& r) { return r.at(5); }
  static server_time not_after_of(const request& r) {
    return server_time{std::chrono::microseconds{std::stoll(r.at(7))}};
  }

  std::optional<acquire> call;
  std::vector<request> asked;
};

}  // namespace holdfast::engine::acquire_testing
