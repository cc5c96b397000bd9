// SPDX-License-Identifier: Apache-2.0
#include "core/acquire_call.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr time_point t0{1h};
constexpr milliseconds ttl = 10s;
constexpr clock_drift drift{10'000};
constexpr duration timeout = 500ms;
constexpr fencing_token token{1'795'212'800'000'042};

acquire_settings once() { return {ttl, drift, true, {}, timeout, true}; }
acquire_settings waits(duration wait) { return {ttl, drift, false, wait, timeout, true}; }
acquire_settings waits_for_ever() { return {ttl, drift, false, {}, timeout, true}; }
acquire_settings stranger(acquire_settings s) {
  s.had_contact = false;
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
  time_point sleeps(bool can_send = true) {
    const auto action = call.on_wake(now, can_send);
    const auto* s = std::get_if<sleep_until>(&action);
    EXPECT_TRUE(s) << "it does not sleep";
    return s ? s->at : time_point{};
  }
  void hears(const acquire_answer& what, duration after = 1ms) {
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
  acquire_call call;
};

using owners = std::vector<owner_id>;

// ---- granted ----

TEST(acquire_call, granted_is_a_lease_that_counts_from_the_send_instant_B19) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_granted{token}, 400ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.lease()->owner, me);
  EXPECT_EQ(c.lease()->token, token);
  EXPECT_EQ(c.lease()->deadline, deadline_of(t0, ttl, drift));
  EXPECT_FALSE(c.lease()->was_repeated);
  EXPECT_TRUE(c.call.take_clean_ups().empty());
  EXPECT_TRUE(std::holds_alternative<finish>(c.call.on_wake(c.now, true)));
}

TEST(acquire_call, waits_for_the_answer_until_its_deadline) {
  course c{once()};
  c.asks();
  EXPECT_EQ(c.sleeps(), t0 + timeout);
}

// H16, B61: the answer took 7 s of a 10 s lease. It is given back, whatever the caller's patience.
TEST(acquire_call, a_grant_with_too_little_left_is_given_back_H16_B61) {
  auto settings = once();
  settings.timeout = 20s;
  course c{settings};
  const auto me = c.asks();
  c.hears(was_granted{token}, deadline_of(t0, ttl, drift) - t0 - 3s + 1ns);
  EXPECT_EQ(c.failure(), errc::server_silent);
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

TEST(acquire_call, a_grant_with_just_enough_left_is_kept_H16) {
  auto settings = once();
  settings.timeout = 20s;
  course c{settings};
  c.asks();
  c.hears(was_granted{token}, deadline_of(t0, ttl, drift) - t0 - 3s);
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call, a_waiter_asks_for_a_fresh_lease_when_too_little_is_left_H16) {
  course c{waits_for_ever()};
  const auto first = c.asks();
  c.hears(was_granted{token}, 8s);
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.call.take_clean_ups(), owners{first});
  EXPECT_NE(c.asks(), first);
}

// ---- a lost reply ----

// H11: the request was carried out and its reply was lost. The same owner id asks again and hears "mine".
TEST(acquire_call, a_cut_is_repeated_at_once_with_the_same_owner_id_H11) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  EXPECT_EQ(c.sleeps(false), t0 + timeout) << "there is no connection yet";
  EXPECT_EQ(c.asks(), me);
  EXPECT_EQ(c.call.attempts(), 2);
}

TEST(acquire_call, mine_counts_what_is_left_from_this_request_H11_B19) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut(100ms);
  c.asks();
  c.hears(was_mine{token, 9'900ms}, 50ms);
  ASSERT_TRUE(c.lease());
  EXPECT_EQ(c.lease()->owner, me);
  EXPECT_EQ(c.lease()->deadline, deadline_of(t0 + 100ms, 9'900ms, drift));
}

// P9: the lost copy may still arrive after this lease was released, and lock again.
TEST(acquire_call, a_lease_after_a_cut_says_that_a_copy_is_out_P9) {
  course c{once()};
  c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_granted{token});
  ASSERT_TRUE(c.lease());
  EXPECT_TRUE(c.lease()->was_repeated);
}

TEST(acquire_call, mine_without_expiry_is_not_trusted_C8) {
  course c{once()};
  c.asks();
  c.hears(was_mine{token, -1ms});
  EXPECT_FALSE(c.lease());
}

// C5: nobody knows, and so it is said.
TEST(acquire_call, no_answer_by_the_deadline_is_unknown_C5) {
  for (const auto& settings : {once(), waits(200ms), waits_for_ever()}) {
    course c{settings};
    const auto me = c.asks();
    c.now = c.sleeps();
    c.call.on_wake(c.now, true);
    EXPECT_EQ(c.failure(), errc::reply_lost);
    EXPECT_EQ(c.call.take_clean_ups(), owners{me});
  }
}

TEST(acquire_call, no_connection_after_a_cut_is_unknown_C5) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

TEST(acquire_call, a_final_refusal_to_connect_after_a_cut_is_unknown_C5) {
  course c{once()};
  c.asks();
  c.is_cut();
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_EQ(c.failure(), errc::reply_lost);
}

// The danger: the first copy was granted and its reply lost; the repeat is refused. "Denied, not applied" would be
// untrue: there is a lock, and it is ours.
TEST(acquire_call, a_refusal_after_a_cut_is_unknown_C5) {
  for (const auto code : {errc::no_permission, errc::out_of_memory, errc::wrong_kind, errc::fence_too_far}) {
    course c{once()};
    const auto me = c.asks();
    c.is_cut();
    c.asks();
    c.hears(was_refused{code, false});
    EXPECT_EQ(c.failure(), errc::reply_lost);
    EXPECT_EQ(c.call.take_clean_ups(), owners{me});
  }
}

TEST(acquire_call, late_for_ever_after_a_cut_is_unknown_C5_P10) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  for (int i = 0; i < 3; ++i) {
    c.asks();
    c.hears(was_late{});
  }
  EXPECT_EQ(c.failure(), errc::reply_lost);
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

// ---- busy ----

TEST(acquire_call, busy_ends_a_single_try) {
  course c{once()};
  c.asks();
  c.hears(was_busy{5s});
  EXPECT_TRUE(c.is_busy());
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

TEST(acquire_call, a_waiter_asks_again_after_50_to_100_ms_with_a_fresh_id) {
  course c{waits(10s)};
  const auto first = c.asks();
  c.hears(was_busy{5s});
  const auto at = c.sleeps();
  EXPECT_GE(at, c.now + 50ms);
  EXPECT_LE(at, c.now + 100ms);
  c.now = at;
  EXPECT_NE(c.asks(), first);
}

// design 5: and at the holder's expiry; 2 ms later, because Redis counts whole milliseconds.
TEST(acquire_call, a_waiter_asks_again_when_the_holder_expires) {
  course c{waits(10s)};
  c.asks();
  c.hears(was_busy{10ms});
  EXPECT_EQ(c.sleeps(), c.now + 12ms);
}

TEST(acquire_call, a_holder_without_expiry_is_asked_about_all_the_same) {
  course c{waits(10s)};
  c.asks();
  c.hears(was_busy{});
  EXPECT_LE(c.sleeps(), c.now + 100ms);
}

TEST(acquire_call, busy_to_the_end_is_timed_out) {
  course c{waits(1s)};
  int asked = 0;
  while (!c.call.is_over()) {
    const auto action = c.call.on_wake(c.now, true);
    if (std::holds_alternative<ask>(action)) {
      ++asked;
      c.sent_at = c.now;
      c.hears(was_busy{5s});
    } else if (const auto* s = std::get_if<sleep_until>(&action)) {
      c.now = s->at;
    }
  }
  EXPECT_EQ(c.now, t0 + 1s);
  EXPECT_EQ(c.failure(), errc::timed_out);
  EXPECT_GE(asked, 9);
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

// A request that leaves just before the deadline is answered after it, and turns "timed out" into "unknown".
TEST(acquire_call, the_last_request_leaves_a_few_round_trips_before_the_deadline) {
  course c{waits(60ms)};
  c.asks();
  c.hears(was_busy{5s}, 5ms);
  EXPECT_EQ(c.sleeps(), t0 + 60ms - 4 * 5ms);
  c.now = c.sleeps();
  c.asks();
  c.hears(was_busy{5s}, 5ms);
  EXPECT_EQ(c.sleeps(), t0 + 60ms) << "nothing is asked any more";
}

TEST(acquire_call, busy_after_a_cut_leaves_the_copy_to_be_cleaned_up_P9) {
  course c{once()};
  const auto me = c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_busy{5s});
  EXPECT_TRUE(c.is_busy());
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

// ---- late, spent, refused ----

TEST(acquire_call, late_is_asked_again_at_once_and_is_not_no_P10) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_late{});
  EXPECT_FALSE(c.call.is_over());
  EXPECT_EQ(c.asks(), me);
  c.hears(was_mine{token, 9s});
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call, late_three_times_in_a_row_is_a_clock_step_P11) {
  course c{once()};
  for (int i = 0; i < 2; ++i) {
    c.asks();
    c.hears(was_late{});
  }
  EXPECT_FALSE(c.call.is_over());
  c.asks();
  c.hears(was_late{});
  EXPECT_EQ(c.failure(), errc::clock_stepped);
  EXPECT_TRUE(c.call.take_clean_ups().empty()) << "no copy of it can have had an effect";
}

TEST(acquire_call, lates_are_counted_in_a_row_only_P11) {
  course c{waits(10s)};
  for (int i = 0; i < 6; ++i) {
    c.asks();
    c.hears(was_late{});
    c.asks();
    c.hears(was_busy{5s});
    c.now = c.sleeps();
  }
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call, spent_is_asked_again_with_a_fresh_id_P9) {
  course c{once()};
  const auto first = c.asks();
  c.is_cut();
  c.asks();
  c.hears(was_spent{});
  EXPECT_NE(c.asks(), first);
  EXPECT_TRUE(c.call.take_clean_ups().empty()) << "a spent id cannot lock again";
}

TEST(acquire_call, a_refusal_that_stays_ends_it) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_refused{errc::no_permission, false});
  EXPECT_EQ(c.failure(), errc::no_permission);
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

TEST(acquire_call, a_refusal_that_passes_is_asked_again) {
  course c{once()};
  c.asks();
  c.hears(was_refused{errc::server_loading, true});
  EXPECT_EQ(c.sleeps(), c.now + 25ms);
  c.now += 25ms;
  c.asks();
  c.hears(was_granted{token});
  EXPECT_TRUE(c.lease());
}

TEST(acquire_call, a_refusal_that_does_not_pass_in_time_is_reported_as_itself) {
  course c{once()};
  while (!c.call.is_over()) {
    const auto action = c.call.on_wake(c.now, true);
    if (std::holds_alternative<ask>(action)) {
      c.sent_at = c.now;
      c.hears(was_refused{errc::server_loading, true});
    } else if (const auto* s = std::get_if<sleep_until>(&action)) {
      c.now = s->at;
    }
  }
  EXPECT_EQ(c.failure(), errc::server_loading);
}

// An answer that we cannot read says nothing about what the server did.
TEST(acquire_call, an_unexpected_reply_is_cleaned_up_C5) {
  course c{once()};
  const auto me = c.asks();
  c.hears(was_refused{errc::unexpected_reply, false});
  EXPECT_EQ(c.failure(), errc::unexpected_reply);
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

// ---- no connection ----

TEST(acquire_call, three_refusals_end_a_call_that_never_had_contact) {
  course c{stranger(waits_for_ever())};
  for (int i = 0; i < 2; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
  c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_EQ(c.failure(), errc::cannot_connect);
}

TEST(acquire_call, refusals_may_be_a_restart_when_there_was_contact) {
  course c{waits(10s)};
  for (int i = 0; i < 20; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call, an_answer_is_contact) {
  course c{stranger(waits(10s))};
  c.asks();
  c.hears(was_busy{5s});
  for (int i = 0; i < 20; ++i) c.call.on_no_connection(c.now, errc::cannot_connect, false, true);
  EXPECT_FALSE(c.call.is_over());
}

TEST(acquire_call, a_final_refusal_to_connect_ends_it_at_once) {
  course c{waits_for_ever()};
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_EQ(c.failure(), errc::wrong_password);
}

TEST(acquire_call, the_last_trouble_is_named_at_the_deadline) {
  course c{once()};
  EXPECT_EQ(c.sleeps(false), t0 + timeout);
  c.call.on_no_connection(c.now, errc::cannot_resolve, false, false);
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::cannot_resolve);
}

TEST(acquire_call, an_unbounded_wait_does_not_outlive_a_silent_server) {
  course c{waits_for_ever()};
  c.now = t0 + timeout;
  c.call.on_wake(c.now, false);
  EXPECT_EQ(c.failure(), errc::server_silent);
}

TEST(acquire_call, a_bounded_wait_lasts_as_long_as_it_was_told_to) {
  course c{waits(3s)};
  while (!c.call.is_over() && c.now < t0 + 1h) {
    const auto action = c.call.on_wake(c.now, false);
    if (const auto* s = std::get_if<sleep_until>(&action)) c.now = s->at;
  }
  EXPECT_EQ(c.now, t0 + 3s);
}

// ---- deadlines ----

TEST(acquire_call, a_request_may_take_effect_no_later_than_the_deadline_C5_H12) {
  course single{once()};
  single.now += 200ms;
  single.asks();
  EXPECT_EQ(single.may_take, 300ms);

  course patient{waits(10s)};
  patient.asks();
  EXPECT_EQ(patient.may_take, timeout);
}

TEST(acquire_call, nothing_is_asked_at_the_deadline) {
  course c{once()};
  c.now = t0 + timeout;
  EXPECT_TRUE(std::holds_alternative<finish>(c.call.on_wake(c.now, true)));
  EXPECT_EQ(c.call.attempts(), 0);
}

// ---- cancel (H50, B46) ----

TEST(acquire_call, cancel_before_anything_was_asked_leaves_nothing_H50) {
  course c{waits_for_ever()};
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled);
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

TEST(acquire_call, cancel_between_two_requests_leaves_nothing_H50) {
  course c{waits_for_ever()};
  c.asks();
  c.hears(was_busy{5s});
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled);
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

TEST(acquire_call, cancel_while_asked_is_cleaned_up_H50_B46) {
  course c{waits_for_ever()};
  const auto me = c.asks();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

TEST(acquire_call, cancel_after_a_cut_is_cleaned_up_H50_B46) {
  course c{waits_for_ever()};
  const auto me = c.asks();
  c.is_cut();
  c.call.on_cancel(c.now);
  EXPECT_EQ(c.failure(), errc::cancelled_in_flight);
  EXPECT_EQ(c.call.take_clean_ups(), owners{me});
}

TEST(acquire_call, cancel_after_the_end_changes_nothing_H50) {
  course c{once()};
  c.asks();
  c.hears(was_granted{token});
  c.call.on_cancel(c.now);
  EXPECT_TRUE(c.lease());
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

TEST(acquire_call, what_comes_after_the_end_changes_nothing) {
  course c{once()};
  c.asks();
  c.hears(was_busy{5s});
  c.call.on_answer(c.now, t0, was_granted{token});
  c.call.on_cut(c.now);
  c.call.on_no_connection(c.now, errc::wrong_password, true, false);
  EXPECT_TRUE(c.is_busy());
  EXPECT_TRUE(c.call.take_clean_ups().empty());
}

// ---- any order of events ----

// What is known of the server, kept apart from the call that is tested: which owner ids may hold the lock or yet take
// it. Every one of them must be handed out for clean-up, and no other.
struct ledger {
  owners possible;
  owners used;
  std::optional<owner_id> current;
  bool is_cut = false;  // A copy of the current id is unanswered.

  void retire(bool may_have_effect) {
    if (may_have_effect) possible.push_back(*current);
    used.push_back(*current);
    current.reset();
    is_cut = false;
  }
};

bool is_unknown(errc code) {
  return code == errc::reply_lost || code == errc::unexpected_reply || code == errc::cancelled_in_flight;
}

enum class step { sleep, answer, cut, no_connection, connect, cancel };

acquire_answer any_answer(base::random_source& rng) {
  switch (rng.between(0, 7)) {
    case 0: return was_granted{token};
    case 1: return was_mine{token, milliseconds{rng.between(0, 10'000)}};
    case 2: return was_busy{};
    case 3: return was_busy{milliseconds{rng.between(0, 3'000)}};
    case 4: return was_late{};
    case 5: return was_spent{};
    case 6: return was_refused{errc::server_loading, true};
    default:
      return rng.between(0, 1) ? was_refused{errc::no_permission, false} : was_refused{errc::unexpected_reply, false};
  }
}

// Takes the answer down in the ledger; the call has heard it already.
void enter(ledger& known, const acquire_call& call, const acquire_answer& what, bool had_enough_left) {
  if (std::holds_alternative<was_granted>(what) || std::holds_alternative<was_mine>(what)) {
    if (!had_enough_left) return known.retire(true);
    const auto* got = call.is_over() ? std::get_if<got_lease>(&call.end()) : nullptr;
    RC_ASSERT(got);
    RC_ASSERT(got->owner == *known.current);
    RC_ASSERT(got->was_repeated == known.is_cut);
    return known.retire(false);
  }
  if (std::holds_alternative<was_busy>(what)) return known.retire(known.is_cut);
  if (std::holds_alternative<was_spent>(what)) return known.retire(false);
  const auto* refused = std::get_if<was_refused>(&what);
  if (refused && refused->code == errc::unexpected_reply) known.is_cut = true;
}

TEST(acquire_call, invariants_hold_for_any_events_C5_P9_P10_H11_H50_B46) {
  EXPECT_TRUE(rc::check("random events", [](std::uint64_t seed) {
    seeded_random rng{seed};
    const auto settings = *rc::gen::element(once(), waits(2s), waits_for_ever(), stranger(waits(2s)));
    const time_point deadline = settings.only_once ? t0 + timeout : settings.wait ? t0 + *settings.wait : never;
    acquire_call call{settings, t0, rng};
    ledger known;
    time_point now = t0;
    time_point sent_at{};
    bool is_connected = true;
    bool is_asked = false;

    const auto wake = [&] {
      for (;;) {
        const auto action = call.on_wake(now, is_connected);
        if (const auto* s = std::get_if<sleep_until>(&action)) return RC_ASSERT(s->at > now);
        const auto* a = std::get_if<ask>(&action);
        if (!a) return;
        RC_ASSERT(is_connected && !is_asked);
        RC_ASSERT(now < deadline);
        RC_ASSERT(a->may_take > duration{0} && a->may_take <= timeout && now + a->may_take <= deadline);
        if (known.current) RC_ASSERT(a->owner == *known.current);
        RC_ASSERT(std::find(known.used.begin(), known.used.end(), a->owner) == known.used.end());
        known.current = a->owner;
        sent_at = now;
        is_asked = true;
      }
    };

    wake();
    for (const auto s : *rc::gen::container<std::vector<step>>(rc::gen::weightedElement<step>({{4, step::sleep},
                                                                                               {8, step::answer},
                                                                                               {2, step::cut},
                                                                                               {2, step::no_connection},
                                                                                               {3, step::connect},
                                                                                               {1, step::cancel}}))) {
      if (call.is_over()) break;
      now += duration{rng.between(0, rng.between(0, 9) ? 60'000'000 : 8'000'000'000)};
      if (s == step::answer && is_asked) {
        is_asked = false;
        const auto what = any_answer(rng);
        const auto* mine = std::get_if<was_mine>(&what);
        const time_point ends = deadline_of(sent_at, mine ? mine->remaining : ttl, drift);
        call.on_answer(now, sent_at, what);
        enter(known, call, what, ends - now >= least_useful(ttl));
      } else if (s == step::cut && is_connected) {
        is_connected = false;
        if (is_asked) known.is_cut = true;
        is_asked = false;
        call.on_cut(now);
      } else if (s == step::no_connection && !is_connected) {
        call.on_no_connection(now, errc::cannot_connect, rng.between(0, 9) == 0, true);
      } else if (s == step::connect) {
        is_connected = true;
      } else if (s == step::cancel && rng.between(0, 3) == 0) {
        call.on_cancel(now);
      }
      wake();
    }
    if (!call.is_over()) call.on_cancel(now);

    // C5: a copy of the last id is out, or is not: the outcome says so.
    const bool is_open = known.current && (is_asked || known.is_cut);
    if (const auto* failed = std::get_if<got_failure>(&call.end())) RC_ASSERT(is_unknown(failed->code) == is_open);
    if (std::holds_alternative<got_busy>(call.end())) RC_ASSERT(settings.only_once);
    if (known.current) known.retire(is_open);
    RC_ASSERT(call.take_clean_ups() == known.possible);
    RC_ASSERT(call.take_clean_ups().empty());
  }));
}

}  // namespace

}  // namespace holdfast::core
