// SPDX-License-Identifier: Apache-2.0
// The small language in which the tests of quorum_search are told: one search, its clock, and what becomes of its
// tries.
#pragma once

#include "core/quorum_search.hpp"
#include "core/random_testing.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace holdfast::core::hunt_testing {

using namespace std::chrono_literals;
using result = quorum_round::result;

constexpr time_point t0{1h};
constexpr duration timeout = 2s;

// Of three servers.
inline quorum_search::settings once() { return {true, {}, timeout, false, 2}; }
inline quorum_search::settings waits(duration wait) { return {false, wait, timeout, false, 2}; }
inline quorum_search::settings waits_for_ever() { return {false, {}, timeout, false, 2}; }
inline quorum_search::settings with_patience(quorum_search::settings s, duration patience) {
  s.patience = patience;
  return s;
}
inline quorum_search::settings counted(quorum_search::settings s) {
  s.is_counted = true;
  return s;
}

// One search and its clock: what becomes of a try, and what is wanted then.
struct hunt {
  explicit hunt(const quorum_search::settings& how) : flow{how, t0, rng} {}

  void loses(result how) { loses(quorum_search::lost_round{.how = how}); }
  void loses(const quorum_search::lost_round& what) { next = flow.on_lost(now, what, has_turn); }
  // The pause that is wanted; none: something else is.
  std::optional<duration> pauses() const {
    const auto* p = std::get_if<quorum_search::pause>(&next);
    return p ? std::optional{p->until - now} : std::nullopt;
  }
  bool stands() const { return std::holds_alternative<quorum_search::stand_in_line>(next); }
  bool tries() const { return std::holds_alternative<quorum_search::try_now>(next); }
  std::optional<errc> ends() const {
    const auto* e = std::get_if<quorum_search::end>(&next);
    return e ? std::optional{e->code} : std::nullopt;
  }
  bool round_tells() const { return std::get<quorum_search::end>(next).round_tells; }
  // It stands in line and gets its turn.
  void gets_turn() {
    EXPECT_TRUE(stands());
    EXPECT_TRUE(flow.line_of({true, true, true}));
    next = flow.on_turn(now, errc{});
    has_turn = true;
  }

  seeded_random rng;
  quorum_search flow;
  time_point now = t0;
  bool has_turn = false;
  quorum_search::step next{};
};

}  // namespace holdfast::core::hunt_testing
