// SPDX-License-Identifier: Apache-2.0
// The small language in which the tests of acquire_call are told: one call, its clock, and what it wants.
#pragma once

#include "core/acquire_call.hpp"
#include "core/random_testing.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace holdfast::core::course_testing {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using owners = std::vector<owner_id>;

constexpr time_point t0{1h};
constexpr milliseconds ttl = 10s;
constexpr clock_drift drift{10'000};
constexpr duration timeout = 500ms;
constexpr duration round_trip = 1ms;  // Of an answer that a test says nothing else of.
constexpr fencing_token token{1'795'212'800'000'042};

inline acquire_settings once() { return {ttl, drift, true, {}, timeout, true}; }
inline acquire_settings waits(duration wait) { return {ttl, drift, false, wait, timeout, true}; }
inline acquire_settings waits_for_ever() { return {ttl, drift, false, {}, timeout, true}; }
inline acquire_settings stranger(acquire_settings s) {
  s.had_contact = false;
  return s;
}

inline acquire_settings with_alternative(acquire_settings s) {
  s.has_alternative = true;
  return s;
}

// Who asked before it has heard this, and an answer takes so long.
inline acquire_settings behind(acquire_settings s, errc heard, duration answer_takes) {
  s.heard = heard;
  s.round_trip = answer_takes;
  return s;
}

// One call and its clock: what a test says, and what the call wants.
struct course {
  explicit course(const acquire_settings& s) : call{s, t0, rng} {}

  // The request that goes out now.
  owner_id asks() {
    const auto action = call.on_wake(now, true);
    const auto* a = std::get_if<ask>(&action);
    EXPECT_TRUE(a) << "nothing is asked";
    if (!a) return owner_id{{}};
    sent_at = now;
    may_take = a->may_take;
    return a->owner;
  }
  // The request for a place in line, or with only_try for the lock if nobody is ahead.
  owner_id stands(hearing told = hearing::yes) {
    const auto action = call.on_wake(now, true, told);
    const auto* s = std::get_if<stand>(&action);
    EXPECT_TRUE(s) << "it does not stand in line";
    if (!s) return owner_id{{}};
    sent_at = now;
    stood = *s;
    may_take = s->may_take;
    return s->owner;
  }
  owner_id looks() {
    const auto action = call.on_wake(now, true, hearing::yes);
    const auto* l = std::get_if<look>(&action);
    EXPECT_TRUE(l) << "it does not look";
    if (!l) return owner_id{{}};
    sent_at = now;
    may_take = l->may_take;
    return l->owner;
  }
  // Busy, then in line, to look after `look_in`.
  owner_id queues(milliseconds look_in = 5s, std::uint64_t ticket = 42) {
    asks();
    hears(was_busy{});
    const auto me = stands();
    hears(was_queued{ticket, look_in});
    return me;
  }
  // Whoever must be let go in the background.
  owners left_behind() {
    owners all;
    for (const auto& u : call.take_clean_ups()) all.push_back(u.owner);
    return all;
  }
  time_point sleeps(bool can_send = true, hearing told = hearing::yes) {
    const auto action = call.on_wake(now, can_send, told);
    const auto* s = std::get_if<sleep_until>(&action);
    EXPECT_TRUE(s) << "it does not sleep";
    return s ? s->at : time_point{};
  }
  void hears(const acquire_answer& what, duration after = round_trip) {
    now += after;
    call.on_answer(now, sent_at, what);
  }
  void is_cut(duration after = 1ms) {
    now += after;
    call.on_cut(now);
  }
  void sleeps_and_wakes(bool can_send = true) { now = sleeps(can_send); }
  const got_lease* lease() const { return call.is_over() ? std::get_if<got_lease>(&call.end()) : nullptr; }
  bool is_busy() const { return call.is_over() && std::holds_alternative<got_busy>(call.end()); }
  std::optional<errc> failure() const {
    const auto* f = call.is_over() ? std::get_if<got_failure>(&call.end()) : nullptr;
    return f ? std::optional{f->code} : std::nullopt;
  }

  seeded_random rng;
  time_point now = t0;
  time_point sent_at{};
  duration may_take{};
  std::optional<stand> stood{};
  acquire_call call;
};

}  // namespace holdfast::core::course_testing
