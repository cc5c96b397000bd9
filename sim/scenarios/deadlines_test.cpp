// SPDX-License-Identifier: Apache-2.0
// (e), (b), (c) and (h) of the attacks: who may touch an expiry, what a break ends, stamps, blocks of tokens, and
// messages (P13 to P16, P28); and (j), as far as it is the engine's (P30).
#include "scenarios/story.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using script::id;

namespace {

const std::vector<id> with_line{id::wait, id::look, id::release, id::leave};

}  // namespace

// ---- (e) expiries ----

TEST(deadlines, P13_a_foreign_lock_keeps_its_expiry) {
  const rule about{
      .opposite = "whatever holds the key is cut to max_ttl",
      .broken = "expected",
      .texts = {
          {{id::acquire}, "if ours and (pttl == -1 or pttl > most_ms) then", "if pttl == -1 or pttl > most_ms then"}}};
  play(about, [](story& s) {
    s.operate({"SET", s.subject().keys.holder, "another library's", "PX", "3600000"});
    s.a.tries();
    s.within(50ms, "A is told that it is held", [&] { return s.a.was_told(call_end::busy); });
    s.passes(2min);
    const auto left = s.operate({"PTTL", s.subject().keys.holder});
    s.expect(*left.as_integer() > 3'000'000, "it is held still, for the hour that its owner wanted");
  });
}

// D is configured for longer leases than the others, which is allowed: quarantine goes by the largest (P18).
TEST(deadlines, P13_whoever_knocks_leaves_a_holder_what_it_was_granted) {
  const rule about{.opposite = "what is left is cut to the max_ttl of whoever knocks",
                   .broken = "C1",
                   .texts = {{{id::acquire}, "local most = math.max(most_ms,", "local most = math.min(most_ms,"}}};
  play(about, {.max_ttl_of_d = 10min}, [](story& s) {
    s.d.tries({.ttl = 5min});
    s.within(1s, "D has the lock", [&] { return s.d.holds(); });
    s.d.is_cut_off(3min);
    s.a.tries();
    s.within(50ms, "A is told that it is held", [&] { return s.a.was_told(call_end::busy); });
    s.passes(61s);
    s.b.tries();
    s.passes(1s);
    s.expect(s.d.holds() && !s.b.holds(), "D holds it still, and nobody else");
  });
}

// The answer lies in the socket when A runs again, behind the deadline and before the one that it speaks of. Which of
// its threads then comes first is chance: so it happens to A several times.
TEST(deadlines, P13c_an_answer_that_is_read_behind_the_deadline_revives_nothing) {
  const rule about{.opposite = "an answer counts from when it came, however late it is read",
                   .broken = "C4",
                   .what = canary_switch::answers_count_from_when_they_came};
  play(about, [](story& s) {
    for (int i = 0; i < 8; ++i) {
      a_holds(s);
      s.a.stops_while_it_renews();
      s.passes(4s);
      s.expect(!s.a.of().is_running(), "A stands still with a renewal on its way");
      s.passes(7s);
      s.a.goes_on();
      s.expect(!s.a.holds() && s.a.has_lost(), "A has lost it");
      s.passes(10s);
    }
  });
}

TEST(deadlines, P13d_a_break_does_not_let_the_next_one_in_while_the_broken_one_is_valid) {
  const rule about{.opposite = "a break frees the lock at once, whatever was asked",
                   .broken = "C1",
                   .texts = {{{id::break_lock},
                              "local token, mode, by, why = ARGV[1], ARGV[2],",
                              "local token, mode, by, why = ARGV[1], 'now',"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    s.operator_breaks();
    s.within(4s, "A is told with its next renewal", [&] { return s.a.has_lost(); });
    s.expect(!s.b.holds(), "B waits for the end of A's lease");
    s.within(11s, "B has the lock when it has ended", [&] { return s.b.holds(); });
  });
}

TEST(deadlines, P13d_a_broken_lease_is_not_renewed) {
  const rule about{.opposite = "a renewal does not look at breaks",
                   .broken = "expected",
                   .texts = {{{id::renew}, "if record and (sub(record, 4, 19)", "if false and (sub(record, 4, 19)"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.operator_breaks();
    s.within(11s, "A's lease ends", [&] { return !s.is_held(); });
  });
}

// ---- (c) blocks of tokens ----

TEST(deadlines, P14_the_next_grant_is_above_all_of_a_block) {
  const rule about{
      .opposite = "the last stamp is the first token of a block",
      .broken = "expected",
      .texts = {{with_line,
                 "write_fence(has_block and string.format('%.0f', tonumber(stamp) + entry.permits) or stamp,",
                 "write_fence(stamp,"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b, {.permits = 16});  // B may hand it on 16 times in its process.
    s.a.releases();
    s.within(50ms, "B has the lock", [&] { return s.b.holds(); });
    s.server_clock_steps(-1h);  // So that nothing but the last stamp keeps tokens growing.
    s.b.releases();
    s.passes(50ms);
    s.c.tries();
    s.within(50ms, "C has the lock", [&] { return s.c.holds(); });
    s.expect(s.c.token() > s.b.token() + 16, "C's token is above all that B could give to its threads");
  });
}

// ---- (b) stamps, and a release that always works ----

TEST(deadlines, P15_a_release_needs_no_memory) {
  const rule about{
      .opposite = "release writes before it deletes",
      .broken = "H29",
      .texts = {{{id::release},
                 "call('DEL', KEYS[1])\nif fence and",
                 "call('SET', KEYS[2], fence or now, 'PX', 604800000) call('DEL', KEYS[1])\nif fence and"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.server().redis().set_memory_full(true);
    s.a.releases();
    s.passes(50ms);
    s.expect(s.a.was_released() && !s.is_held(), "A has given it back");
  });
}

TEST(deadlines, P16_a_stamp_ahead_of_the_clock_is_kept_until_the_clock_is_past_it) {
  const rule about{.opposite = "the last stamp is kept for a week, whatever it is",
                   .broken = "C2",
                   .texts = {{{id::acquire}, "string.format('%.0f', 604800000 + ahead)", "'604800000'"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.a.releases();
    s.passes(50ms);
    s.server_clock_steps(-30 * 24h);
    a_holds(s);  // Its token is a month ahead of the clock.
    s.a.releases();
    s.passes(8 * 24h);
    s.b.tries();
    s.within(5s, "B has the lock", [&] { return s.b.holds(); });
  });
}

TEST(deadlines, P16_a_demand_for_a_token_far_ahead_is_refused) {
  const rule about{.opposite = "any min_fence is taken",
                   .broken = "C2",
                   .texts = {{{id::acquire}, "return {11, now}", "floor = tonumber(min_fence)"}}};
  play(about, [](story& s) {
    s.a.tries({.min_fence = fencing_token{9'007'199'254'740'991}});
    s.within(50ms, "A has its answer", [&] { return s.a.is_over(); });
    s.a.releases();
    s.passes(50ms);
    for (actor* who : {&s.b, &s.c}) {
      who->tries();
      s.within(50ms, "the lock is in order", [&] { return who->holds(); });
      who->releases();
      s.passes(50ms);
    }
  });
}

// ---- (h) messages ----

TEST(deadlines, P28_a_message_grants_nothing) {
  const rule about{.opposite = "a message is believed without asking the server",
                   .broken = "C1",
                   .what = canary_switch::message_is_grant};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    const auto place = line_of(s.server().redis(), s.subject()).at(0);
    const auto now = s.server().now().time_since_epoch().count();
    s.server().forge(place.channel, fmt::format("v1|look|{}|{:016}|{:016}", place.owner, now, now + 20'000));
    s.passes(200ms);
    s.expect(!s.b.holds() && s.line() == "B", "B has looked, and waits on");
  });
}

// ---- (j) one connection for all ----

TEST(deadlines, P30_who_gives_up_does_not_end_the_connection_of_the_others) {
  const rule about{.opposite = "a request that nobody waits for any more ends its connection",
                   .broken = "expected",
                   .what = canary_switch::cancel_ends_the_connection};
  play(about, [](story& s) {
    s.other_thread_of_a.wants_from_now_on(s.another());
    const int connection = s.a.connection();
    s.a.replies_are_held_back(300ms);
    s.a.tries();
    s.other_thread_of_a.tries();
    s.passes(100ms);
    s.a.gives_up();
    s.within(250ms, "the other thread has its answer when it is there", [&] { return s.other_thread_of_a.holds(); });
    s.expect(s.a.connection() == connection, "on the same connection");
    s.passes(20ms);
    s.expect(!s.is_held(), "and what A gave up is let go");
  });
}

}  // namespace holdfast::sim
