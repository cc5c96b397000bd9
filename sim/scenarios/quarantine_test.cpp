// SPDX-License-Identifier: Apache-2.0
// (f) of the attacks: a server that has forgotten locks (P17 to P19, P21). What needs a promotion (P20) is shown on a
// pair of real servers (tests/integration/quarantine_test.cpp).
#include "scenarios/story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using script::id;

namespace {

// max_ttl and what clocks may differ.
constexpr duration whole = 60s + 603ms;

bool is_kept(story& s, actor& who) { return !s.is_held() && !who.is_over() && !s.line().empty(); }

}  // namespace

TEST(quarantine, P17_a_server_that_restarted_without_its_data_grants_nothing_while_a_lease_may_live) {
  const rule about{.opposite = "nobody asks whether the server has forgotten locks",
                   .broken = "C1",
                   .what = canary_switch::no_quarantine};
  play(about, [](story& s) {
    a_holds(s, {.ttl = 20s});
    waits(s, s.b);
    waits(s, s.c);
    s.a.is_cut_off(30s);  // It cannot hear that its lease is gone.
    s.server_restarts({});
    s.d.tries();
    s.within(2s, "D is told that nothing is granted", [&] { return s.d.was_told(call_end::not_applied); });
    s.passes(10s);
    s.expect(is_kept(s, s.b) && s.line() == "BC", "B and C stand in line as before, and nobody has the lock");
    s.passes(45s);
    s.expect(is_kept(s, s.b), "B waits still");
    s.within(10s, "B is the first to have it", [&] { return s.b.holds(); });
    s.b.releases();
    s.within(100ms, "C is the second", [&] { return s.c.holds(); });
  });
}

TEST(quarantine, P17_an_old_server_has_no_wait_at_first_use) {
  const rule about{.opposite = "who finds no epoch begins one now",
                   .broken = "expected",
                   .texts = {{{id::epoch}, "if not was_promoted and tonumber(uptime) > 1 then", "if false then"}}};
  play(about, [](story& s) {
    s.operate({"DEL", "hf:epoch"});
    s.passes(2s);
    s.a.tries();
    s.within(50ms, "A has the lock at once", [&] { return s.a.holds(); });
  });
}

TEST(quarantine, P17_a_server_is_as_old_as_it_says_less_a_second) {
  const rule about{.opposite = "the uptime is taken to the letter",
                   .broken = "expected",
                   .texts = {{{id::epoch}, "(tonumber(uptime) - 1) * 1000000", "tonumber(uptime) * 1000000"}}};
  play(about, [](story& s) {
    // The start falls on the end of a second of its clock: the uptime is a second ahead soon.
    const auto into_second = s.server().clock_now().time_since_epoch() % 1s;
    s.passes(1s - into_second - 20ms);
    s.server_restarts({});
    s.passes(30s + 30ms);            // 31 to the letter.
    s.operate({"DEL", "hf:epoch"});  // Nobody has asked before.
    s.a.waits();
    s.passes(whole - 30s - 300ms);
    s.expect(!s.a.holds(), "A waits for all of it");
    s.within(2s, "and not much longer", [&] { return s.a.holds(); });
  });
}

TEST(quarantine, P18_it_lasts_for_the_longest_ttl_of_all_clients) {
  const rule about{
      .opposite = "it lasts for the ttl of whoever asks",
      .broken = "expected",
      .texts = {{{id::epoch}, "local kept = old_hold and #old_hold <= 12 and old_hold or '0'", "local kept = '0'"}}};
  play(about, {.max_ttl_of_d = 10min}, [](story& s) {
    s.server_restarts({});
    s.d.tries();
    s.passes(1s);
    s.expect(s.d.was_told(call_end::not_applied), "D, whose leases may be ten minutes long, has been there");
    s.a.waits();
    s.passes(2min);
    s.expect(!s.a.holds(), "A waits for a lease that may be D's");
    s.within(9min, "A has the lock then", [&] { return s.a.holds(); });
  });
}

TEST(quarantine, P19_a_first_replica_is_no_promotion) {
  const rule about{.opposite = "another replication id is another epoch",
                   .broken = "expected",
                   .texts = {{{id::epoch}, "old_id ~= id and was_promoted then", "old_id ~= id then"}}};
  play(about, [](story& s) {
    s.server_restarts({});
    // An operator knows that nothing was lost: holdfast init.
    s.operate({"EVAL", std::string{script::find(id::epoch).text}, "1", "hf:epoch", "60603", "first"});
    s.a.tries();
    s.within(1s, "A has the lock", [&] { return s.a.holds(); });
    s.a.releases();
    s.passes(2s);
    s.server().redis().set_replication(std::string(40, 'c'));
    s.b.tries();
    s.within(50ms, "B has it, too", [&] { return s.b.holds(); });
  });
}

TEST(quarantine, P20_a_primary_that_was_a_replica_for_a_time_has_forgotten) {
  const rule about{.opposite = "the same run is the same epoch",
                   .broken = "C1",
                   .texts = {{{id::epoch}, "old_id ~= id and was_promoted then", "false then"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.a.is_cut_off(15s);
    s.passes(2s);
    // Demoted, filled from another that knew nothing of A, promoted again; connections live through it.
    s.operate({"DEL", s.subject().keys.holder});
    s.server_was_a_replica();
    s.b.tries();
    s.within(100ms, "B, whose connection is old, is told", [&] { return s.b.was_told(call_end::not_applied); });
    s.passes(10ms);
    s.expect(!s.is_held(), "and what the server granted it is given back");
  });
}

TEST(quarantine, P21_a_release_of_a_lock_that_came_back_lets_nobody_in) {
  const rule about{.opposite = "a release moves the line, whatever the server has forgotten",
                   .broken = "expected",
                   .texts = {{{id::release}, "if not ARGV[3] then", "if true then"},
                             {{id::leave}, "and (was_there or was_waiting) and not ARGV[2] then", "then"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.d);
    s.a.is_cut_off(6s);
    s.server_restarts(s.all_data());  // As if A's release, and what came after it, had been lost with the file's tail.
    s.a.releases();
    s.passes(5900ms);  // D's heartbeat says that it hears.
    s.expect(s.is_held() && s.line() == "D", "A's lock is back, and D is in line again");
    bool is_always_in_line = true;
    for (int ms = 0; ms < 4000; ++ms) {
      s.passes(1ms);
      is_always_in_line = is_always_in_line && s.line() == "D";
    }
    s.expect(!s.is_held(), "A's release has arrived");
    s.expect(is_always_in_line, "it only deletes, and D keeps its place");
    s.passes(30s);
    s.expect(is_kept(s, s.d), "nobody is let in");
    s.within(30s, "D has the lock then", [&] { return s.d.holds(); });
  });
}

}  // namespace holdfast::sim
