// SPDX-License-Identifier: Apache-2.0
// (a) of the attacks, second half: the silent, the slow, ghosts, hints out of order, and a line that was lost (P3 to
// P8).
#include "scenarios/story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using script::id;

namespace {

const std::vector<id> with_line{id::wait, id::look, id::release, id::leave};

}  // namespace

TEST(the_line, P3_two_silent_waiters_cost_one_window_and_a_little) {
  const rule about{.opposite = "nobody stands by behind a grant",
                   .broken = "expected",
                   .texts = {{with_line, "elseif silence_of(entry) <= dead_us and", "elseif false and"}}};
  play(about, [](story& s) {
    a_holds(s);
    for (actor* who : {&s.b, &s.c, &s.d}) waits(s, *who);
    for (actor* who : {&s.b, &s.c}) who->stops();
    s.passes(100ms);
    s.a.releases();
    s.within(1800ms, "D has the lock behind the two who do not claim it", [&] { return s.d.holds(); });
  });
}

TEST(the_line, P3_who_missed_a_look_is_passed_over_while_a_fresher_one_waits) {
  const rule about{.opposite = "how long somebody was silent is not looked at",
                   .broken = "expected",
                   .texts = {{with_line, "entry.id ~= me and (silence > silent_us or me and has_missed(entry)) then",
                              "false then"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    waits(s, s.c);
    s.b.stops();
    s.passes(11s);
    s.a.releases();
    s.within(100ms, "C does not wait for a claim of B, who was silent for a look", [&] { return s.c.holds(); });
  });
}

TEST(the_line, P4_a_slow_waiter_has_time_for_its_claim) {
  const rule about{.opposite = "a grant waits a second for its claim, whoever it is for",
                   .broken = "expected",
                   .texts = {{{id::wait},
                              "local entry = {'v1', process, ear_of(told), ttl, window,",
                              "local entry = {'v1', process, ear_of(told), ttl, '1000',"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.b.moves_away(240ms);
    s.b.waits();
    s.passes(3s);  // It subscribes, and knows then how far away it is.
    waits(s, s.c);
    s.expect(s.line() == "BC", "B stands before C");
    s.b.stops();
    s.a.releases();
    s.passes(1s);
    s.b.goes_on();
    s.within(500ms, "B claims its grant, 1.24 s after it was made", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P5_a_look_that_comes_behind_the_leave_queues_nobody) {
  const rule about{.opposite = "a look puts into the line who is not there",
                   .broken = "expected",
                   .texts = {{{id::look},
                              "if held or not entry or not call('ZSCORE', KEYS[3], owner) then\nreturn {15, now}",
                              "if held or not entry or not call('ZSCORE', KEYS[3], owner) then\n"
                              "entry = 'v1|' .. process .. '|s|10000|1000|0|0|' .. now .. '|x|p1.ghost'\n"
                              "call('ZADD', KEYS[3], now, owner) call('HSET', KEYS[4], owner, entry)"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    s.passes(4900ms);
    s.b.requests_are_held_back(1900ms);  // Its heartbeat, which is due in half a second at most.
    s.passes(1200ms);                    // It has another connection by now, and has looked again.
    s.b.gives_up();
    s.passes(100ms);
    s.expect(s.line().empty(), "B has left");
    s.passes(800ms);  // Its clean-up comes a little later once more.
    s.expect(s.line().empty(), "B is not in line again");
  });
}

TEST(the_line, P5_a_ghost_is_let_go_when_the_line_calls_it) {
  const rule about{.opposite = "a hint for nobody is nobody's business",
                   .broken = "expected",
                   .what = canary_switch::ignores_stray_hints};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    s.b.gives_up();  // From now on it is subscribed.
    s.passes(50ms);
    s.b.waits();
    s.passes(1500us);
    s.b.requests_are_held_back(1200ms);  // The first copy of its `wait`.
    s.passes(700ms);
    s.expect(s.line() == "B", "the second copy has queued it");
    s.b.gives_up();
    s.passes(100ms);
    s.expect(s.line().empty(), "B has left");
    s.passes(200ms);  // And has said so three times.
    s.c.requests_are_held_back(100ms);
    s.c.tries();
    s.passes(50ms);
    s.c.gives_up();  // Its leave takes the place where B's owner id was spent.
    s.passes(350ms);
    s.expect(s.line() == "B", "B stands in line by its first copy, and nobody waits there");
    waits(s, s.d);
    s.a.releases();
    s.within(100ms, "B's turn is passed on at once", [&] { return s.d.holds(); });
  });
}

TEST(the_line, P6_a_hint_that_overtakes_its_answer_is_kept) {
  const rule about{
      .opposite = "a hint to who does not know yet that it stands in line is lost",
      .broken = "expected",
      .texts = {{with_line, "if not tell(entry.process, 'v1|grant|'", "if not tell('nobody', 'v1|grant|'"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    s.b.gives_up();  // From now on it is subscribed.
    s.passes(50ms);
    s.b.waits();
    s.passes(2500us);
    s.b.replies_are_held_back(300ms);  // That it stands in line now.
    s.passes(50ms);
    s.expect(s.line() == "B", "B stands in line");
    s.a.releases();
    s.within(400ms, "B looks as soon as it knows that it stood in line", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P7_a_line_that_was_lost_is_built_anew_in_the_old_order) {
  const rule about{.opposite = "who comes back into the line comes last",
                   .broken = "expected",
                   .texts = {{{id::wait}, "if ticket == '0' or ticket > stamp then", "if true then"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    waits(s, s.c);
    s.loses(s.subject().keys.line());
    s.loses(s.subject().keys.waiters());
    s.passes(4800ms);
    s.b.is_cut_off(1500ms);  // So that C comes back first.
    s.passes(1s);
    s.expect(s.line() == "C", "C is back with its next look");
    s.passes(2s);
    s.expect(s.line() == "BC", "B is back, and before C");
  });
}

TEST(the_line, P8_who_gave_up_by_the_servers_clock_is_not_granted) {
  const rule about{.opposite = "how long somebody wants to wait is not looked at",
                   .broken = "expected",
                   .texts = {{with_line, "if not process or wait_until ~= '0' and (at or now) > wait_until then",
                              "if not process then"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.b.waits_for(2s);
    s.passes(50ms);
    waits(s, s.c);
    s.b.stops();
    s.passes(3s);
    s.a.releases();
    s.within(100ms, "C does not wait for a claim of B, whose time is up", [&] { return s.c.holds(); });
  });
}

// ---- kinds and weights ----

TEST(the_line, Pkinds_permits_are_renewed_with_a_full_memory) {
  const rule about{.opposite = "the sorted set is written before its expiry",
                   .broken = "H29",
                   .texts = {{{id::renew_counted},
                              "call('PEXPIRE', KEYS[1], lives)\ncall('PEXPIRE', KEYS[3], lives)\n",
                              "call('ZADD', KEYS[1], string.format('%.0f', tonumber(now) + ttl * 1000), owner)\n"
                              "call('PEXPIRE', KEYS[1], lives)\n"}}};
  play(about, {.kind = lock_kind::semaphore, .size = 2}, [](story& s) {
    a_holds(s, {.ttl = 3s});
    s.server().redis().set_memory_full(true);
    s.passes(10s);
    s.expect(s.a.holds() && s.is_held(), "A holds its permit still");
  });
}

}  // namespace holdfast::sim
