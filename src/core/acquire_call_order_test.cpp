// SPDX-License-Identifier: Apache-2.0
// acquire_call under any order of events, against a ledger of what the server may have done.
#include "core/acquire_call.hpp"

#include "core/acquire_course_testing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using course_testing::drift;
using course_testing::once;
using course_testing::owners;
using course_testing::stranger;
using course_testing::t0;
using course_testing::timeout;
using course_testing::token;
using course_testing::ttl;
using course_testing::waits;
using course_testing::waits_for_ever;
using std::chrono::milliseconds;

// ---- any order of events ----

// What is known of the server, kept apart from the call that is tested: which owner ids may hold the lock or yet take
// it. Every one of them must be handed out for clean-up, and no other.
struct ledger {
  owners possible;
  owners used;
  std::optional<owner_id> current;
  bool is_given_back = false;  // The last answer was a grant of which too little was left.
  bool is_cut = false;         // What became of a cut copy of the current id is not known.
  bool has_copies = false;     // One was cut at all.
  bool is_in_line = false;

  void retire(bool may_have_effect) {
    if (may_have_effect) possible.push_back(*current);
    used.push_back(*current);
    current.reset();
    is_cut = has_copies = is_in_line = false;
  }
  void retire() { retire(has_copies || is_in_line); }
};

bool is_unknown(errc code) {
  return code == errc::reply_lost || code == errc::unexpected_reply || code == errc::cancelled_in_flight;
}

enum class step { sleep, answer, cut, no_connection, connect, cancel, hint, hearing_change };
enum class form { ask, stand, look };

// What the server may say to each form of request.
acquire_answer any_answer(form asked, base::random_source& rng) {
  if (asked == form::ask && rng.between(0, 3) == 0) return was_lined{};
  if (asked != form::ask && rng.between(0, 1) == 0) return was_queued{42, milliseconds{rng.between(0, 5'000)}};
  if (asked == form::look && rng.between(0, 3) == 0) return was_not_in_line{};
  switch (rng.between(0, 7)) {
    case 0: return was_granted{token};
    case 1: return was_mine{token, milliseconds{rng.between(0, 10'000)}};
    case 2:
    case 3:
      if (asked == form::look) return was_not_in_line{};
      return was_busy{};
    case 4: return was_late{};
    case 5: return was_spent{};
    case 6: return was_refused{errc::server_loading, true};
    default:
      return rng.between(0, 1) ? was_refused{errc::no_permission, false} : was_refused{errc::unexpected_reply, false};
  }
}

// Takes the answer down in the ledger; the call has heard it already.
void enter(ledger& known, const acquire_call& call, const acquire_answer& what, bool had_enough_left,
           bool is_first_try) {
  known.is_given_back = false;
  if (std::holds_alternative<was_granted>(what) || std::holds_alternative<was_mine>(what)) {
    known.is_given_back = !had_enough_left;
    if (!had_enough_left) return known.retire(true);
    const auto* got = call.is_over() ? std::get_if<got_lease>(&call.end()) : nullptr;
    RC_ASSERT(got);
    RC_ASSERT(call.owner() == *known.current);
    RC_ASSERT(got->was_repeated == known.has_copies);
    return known.retire(false);
  }
  if (std::holds_alternative<was_queued>(what)) {
    known.is_cut = false;
    known.is_in_line = true;
    return;
  }
  if (std::holds_alternative<was_lined>(what)) {
    // A single try goes on with its id, a waiter takes a new one.
    if (!is_first_try) known.retire();
    return;
  }
  if (std::holds_alternative<was_not_in_line>(what)) return known.retire(known.has_copies);
  if (std::holds_alternative<was_busy>(what)) return known.retire();
  if (std::holds_alternative<was_spent>(what)) return known.retire(known.has_copies);
  const auto* refused = std::get_if<was_refused>(&what);
  if (refused && refused->code == errc::unexpected_reply) known.is_cut = known.has_copies = true;
  if (refused && refused->code == errc::no_permission) known.has_copies = true;
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
    form asked = form::ask;

    const auto wake = [&] {
      for (;;) {
        const auto told = *rc::gen::element(hearing::pending, hearing::yes, hearing::no);
        const auto action = call.on_wake(now, is_connected, told);
        if (const auto* s = std::get_if<sleep_until>(&action)) return RC_ASSERT(s->at > now);
        if (std::holds_alternative<finish>(action)) return;
        owner_id owner{{}};
        duration may_take{};
        if (const auto* a = std::get_if<ask>(&action)) {
          std::tie(owner, may_take, asked) = std::tuple{a->owner, a->may_take, form::ask};
        } else if (const auto* st = std::get_if<stand>(&action)) {
          std::tie(owner, may_take, asked) = std::tuple{st->owner, st->may_take, form::stand};
          RC_ASSERT(st->only_try == settings.only_once);
        } else if (const auto* l = std::get_if<look>(&action)) {
          std::tie(owner, may_take, asked) = std::tuple{l->owner, l->may_take, form::look};
          RC_ASSERT(known.is_in_line);
        }
        RC_ASSERT(is_connected && !is_asked);
        RC_ASSERT(now < deadline);
        RC_ASSERT(may_take > duration{0} && may_take <= timeout && now + may_take <= deadline);
        if (known.current) RC_ASSERT(owner == *known.current);
        RC_ASSERT(std::find(known.used.begin(), known.used.end(), owner) == known.used.end());
        known.current = owner;
        sent_at = now;
        is_asked = true;
      }
    };

    wake();
    for (const auto s :
         *rc::gen::container<std::vector<step>>(rc::gen::weightedElement<step>({{4, step::sleep},
                                                                                {8, step::answer},
                                                                                {2, step::cut},
                                                                                {2, step::no_connection},
                                                                                {3, step::connect},
                                                                                {1, step::cancel},
                                                                                {3, step::hint},
                                                                                {1, step::hearing_change}}))) {
      if (call.is_over()) break;
      now += duration{rng.between(0, rng.between(0, 9) ? 60'000'000 : 8'000'000'000)};
      if (s == step::answer && is_asked) {
        is_asked = false;
        const auto what =
            settings.only_once && asked == form::stand ? any_answer(form::ask, rng) : any_answer(asked, rng);
        const auto* mine = std::get_if<was_mine>(&what);
        const time_point ends = deadline_of(sent_at, mine ? mine->remaining : ttl, drift);
        call.on_answer(now, sent_at, what);
        enter(known, call, what, ends - now >= least_useful(ttl), settings.only_once && asked == form::ask);
      } else if (s == step::cut && is_connected) {
        is_connected = false;
        if (is_asked) known.is_cut = known.has_copies = true;
        is_asked = false;
        call.on_cut(now);
      } else if (s == step::no_connection && !is_connected) {
        call.on_no_connection(now, errc::cannot_connect, rng.between(0, 9) == 0, true);
      } else if (s == step::connect) {
        is_connected = true;
        call.on_connected(now);
      } else if (s == step::hint) {
        call.on_hint(now, duration{rng.between(0, rng.between(0, 1) ? 9 : 2'000'000'000)});
      } else if (s == step::hearing_change) {
        call.on_hearing_changed(now);
      } else if (s == step::cancel && rng.between(0, 3) == 0) {
        call.on_cancel(now);
      }
      wake();
    }
    if (!call.is_over()) call.on_cancel(now);

    // C5: a copy of the last id is out, or is not: the outcome says so.
    const bool is_open = known.current && (is_asked || known.is_cut);
    if (const auto* failed = std::get_if<got_failure>(&call.end())) {
      RC_ASSERT(is_unknown(failed->code) == (is_open || known.is_given_back));
    }
    if (const auto* failed = std::get_if<got_failure>(&call.end())) {
      RC_ASSERT(failed->code != errc::timed_out || settings.wait);
    }
    if (std::holds_alternative<got_busy>(call.end())) RC_ASSERT(settings.only_once);
    if (known.current) known.retire(is_open || known.has_copies || known.is_in_line);
    owners left;
    for (const auto& u : call.take_clean_ups()) left.push_back(u.owner);
    RC_ASSERT(left == known.possible);
    RC_ASSERT(call.take_clean_ups().empty());
  }));
}

}  // namespace

}  // namespace holdfast::core
