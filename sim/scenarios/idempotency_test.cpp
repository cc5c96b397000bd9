// SPDX-License-Identifier: Apache-2.0
// (d) of the attacks: copies that come late, answers that are lost, clocks that step in between (P9 to P12).
#include "scenarios/story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using script::id;

namespace {

// Its first copy is under way for so long; the second, on a new connection, is granted.
void a_holds_by_its_second_copy(story& s, duration first_takes, const wanted& what = {}) {
  s.a.requests_are_held_back(first_takes);
  s.a.tries(what);
  s.begins_within(1s, "A's second copy is granted", [&] { return s.a.holds(); });
}

// Its only copy is under way for so long, on a connection that it has closed; its clean-up goes ahead of it, by the
// keeper's. 1.85 s have passed then.
void a_gives_up_while_its_copy_is_under_way(story& s, duration takes) {
  s.a.requests_are_held_back(takes);
  s.a.tries();
  s.passes(450ms);
  s.a.moves_away(200ms);  // It takes long to connect again.
  s.passes(200ms);
  s.a.gives_up();
  s.passes(1200ms);
  s.expect(s.a.is_over() && !s.a.holds(), "A's call is over");
}

// The fence has room for one owner id: whoever was granted last.
void b_takes_the_place_where_an_id_was_spent(story& s) {
  s.b.tries();
  s.within(50ms, "B gets the lock, which is free", [&] { return s.b.holds(); });
  s.b.releases();
  s.passes(50ms);
}

// In between A's clean-up comes again, and puts its own id there once more.
void a_copy_is_granted_for_nobody(story& s) {
  a_gives_up_while_its_copy_is_under_way(s, 2500ms);
  s.passes(400ms);
  b_takes_the_place_where_an_id_was_spent(s);
  s.begins_within(500ms, "A's copy is granted, for nobody", [&] { return s.is_held(); });
}

}  // namespace

TEST(idempotency, P9_a_copy_that_arrives_behind_the_release_is_spent) {
  const rule about{.opposite = "an owner id that was granted and has ended is forgotten",
                   .broken = "expected",
                   .texts = {{{id::acquire}, "if sub(last, 18) == owner then\nreturn {4, now}\nend\n", ""}}};
  play(about, [](story& s) {
    a_holds_by_its_second_copy(s, 2s);
    s.a.releases();
    s.passes(50ms);
    s.expect(s.a.was_released(), "A has given the lock back");
    s.passes(2s);
    s.expect(!s.is_held(), "A's first copy did not lock it again");
  });
}

TEST(idempotency, P9_a_copy_that_arrives_behind_the_leave_is_spent) {
  const rule about{
      .opposite = "a leave that meets nothing leaves no mark",
      .broken = "expected",
      .texts = {{{id::leave}, "if not was_waiting and not wrong and (not last or", "if false and (not last or"}}};
  play(about, [](story& s) {
    a_gives_up_while_its_copy_is_under_way(s, 3s);
    s.passes(1500ms);
    s.expect(!s.is_held(), "what A asked for before it gave up is not granted behind its back");
  });
}

TEST(idempotency, P9_who_is_granted_twice_does_not_renew_its_first_grant) {
  const rule about{.opposite = "renew compares the owner id and not the token",
                   .broken = "expected",
                   .texts = {{{id::renew},
                              "sub(value, 1, 53) == 'v1|' .. owner .. '|' .. token .. '|'",
                              "sub(value, 1, 36) == 'v1|' .. owner .. '|'"}}};
  play(about, [](story& s) {
    a_holds_by_its_second_copy(s, 2s, {.ttl = 9s});
    const auto first = s.a.token();
    s.loses(s.subject().keys.holder);
    s.loses(s.subject().keys.fence());
    s.b.tries();
    s.within(50ms, "B gets the lock that the server has forgotten", [&] { return s.b.holds(); });
    s.expect(s.b.token() > first, "B's token is larger");
    s.b.releases();
    s.passes(2s);
    s.expect(s.is_held(), "A's first copy is granted: B's release has taken the place where A's id was spent");
    s.passes(2s);
    s.expect(s.a.has_lost(), "A hears with its next renewal that somebody was in between");
  });
}

TEST(idempotency, P10_a_copy_that_comes_too_late_has_no_effect) {
  const rule about{.opposite = "a request takes effect however late it comes",
                   .broken = "C5",
                   .texts = {{{id::acquire, id::wait}, "if now > not_after then", "if false then"}}};
  play(about, {.timeout = 700ms}, [](story& s) {
    a_gives_up_while_its_copy_is_under_way(s, 5s);
    b_takes_the_place_where_an_id_was_spent(s);
    s.passes(30s);
    s.expect(!s.is_held(), "nobody locks for A, who has long forgotten it");
  });
}

TEST(idempotency, P10_a_late_answer_is_not_no) {
  const rule about{.opposite = "LATE does not say what time it is",
                   .broken = "expected",
                   .texts = {{{id::acquire}, "return {3, now}", "return {3, not_after}"}}};
  play(about, [](story& s) {
    s.passes(100ms);
    s.server_clock_steps(1h);  // P11: all that A believes about the server's time is an hour old.
    s.a.tries();
    s.within(100ms, "A asks again with what the server has told it", [&] { return s.a.holds(); });
  });
}

TEST(idempotency, P10_a_clean_up_does_not_end_before_the_last_copy_can) {
  const rule about{.opposite = "any answer to the clean-up is believed",
                   .broken = "expected",
                   .what = canary_switch::believes_any_answer_to_a_clean_up};
  play(about, {.timeout = 3s}, [](story& s) {
    a_copy_is_granted_for_nobody(s);
    s.passes(2s);
    s.expect(!s.is_held(), "A has let it go as soon as no copy could follow");
  });
}

TEST(idempotency, P10_what_a_copy_took_for_nobody_is_found_before_its_time_is_over) {
  const rule about{.opposite = "between the first clean-up and the end of the last copy's time nobody looks",
                   .broken = "expected",
                   .what = canary_switch::looks_for_a_copy_only_at_the_end};
  play(about, {.timeout = 10s}, [](story& s) {
    a_copy_is_granted_for_nobody(s);
    s.within(1s, "A lets it go, 7 s before no copy could come any more", [&] { return !s.is_held(); });
  });
}

TEST(idempotency, P11_a_clock_that_went_back_does_not_keep_a_lock_for_as_long) {
  const rule about{.opposite = "whoever finds a lock leaves its expiry alone",
                   .broken = "expected",
                   .texts = {{{id::acquire}, "if ours and (pttl == -1 or pttl > most_ms) then", "if false then"},
                             {{id::wait, id::look}, "if ours and (pttl == -1 or pttl > most) then", "if false then"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.a.loses_its_host();
    s.server_clock_steps(-1h);
    s.b.waits();
    s.within(61s, "A's lease lives for max_ttl at most", [&] { return s.b.holds(); });
  });
}

TEST(idempotency, P12_a_release_that_was_repeated_is_a_release) {
  const rule about{.opposite = "a release does not know until when nobody else can hold the lock",
                   .broken = "expected",
                   .what = canary_switch::release_has_no_deadline};
  play(about, [](story& s) {
    a_holds(s);
    s.a.replies_are_held_back(3s);
    s.a.releases();
    s.passes(20ms);
    s.expect(!s.is_held(), "the release took effect");
    s.within(2s, "A is told so, by the answer to its second copy", [&] { return s.a.was_released(); });
  });
}

}  // namespace holdfast::sim
