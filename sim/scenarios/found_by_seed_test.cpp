// SPDX-License-Identifier: Apache-2.0
// Each seed that found a bug in what we ship, as a story: what happened there and nothing else. The opposite of the
// rule is the code as it was (docs/simulation.md, track record).
#include "scenarios/story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using script::id;

namespace {

const std::vector<id> with_line{id::wait, id::look, id::release, id::leave};
const std::vector<id> of_a_counted_kind{id::wait_counted, id::look_counted, id::leave_counted};

}  // namespace

TEST(found_by_seed, seed_128_a_grant_that_came_too_late_to_be_of_use_is_unknown) {
  const rule about{.opposite = "a try whose grant is given back is told that nothing was done",
                   .broken = "expected",
                   .what = canary_switch::calls_a_lost_reply_not_applied};
  play(about, [](story& s) {
    s.a.replies_are_held_back(450ms);
    s.a.tries({.ttl = 600ms});
    s.within(460ms, "A has its answer, with a quarter of the ttl left", [&] { return s.a.is_over(); });
    s.expect(s.a.was_told(call_end::unknown), "the server holds the lock for A, who does not want it any more");
    s.within(20ms, "A gives it back", [&] { return !s.is_held(); });
  });
}

TEST(found_by_seed, seed_1591_a_leave_before_anything_else_does_not_decide_the_kind) {
  const rule about{.opposite = "a fence without a kind is that of an exclusive lock",
                   .broken = "expected",
                   .texts = {{of_a_counted_kind, "kept = last and #last ~= 50 and sub(last, 51) or",
                              "kept = last and sub(last, 51) or"}}};
  play(about, {.kind = lock_kind::semaphore, .size = 3}, [](story& s) {
    s.a.requests_are_held_back(300ms);
    s.a.tries();
    s.passes(100ms);
    s.a.gives_up();  // The leave is the first that the server hears of this name.
    s.passes(50ms);
    s.b.tries();
    s.within(50ms, "B gets a permit, and not `wrong kind`", [&] { return s.b.holds(); });
  });
}

TEST(found_by_seed, seed_1010377_a_dead_waiter_that_looked_in_the_future_does_not_stop_the_line) {
  const rule about{.opposite = "who looked in the future is as fresh as can be",
                   .broken = "expected",
                   .texts = {{with_line, "silence < 0 and silent_us + 1 or silence", "silence"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.server().deny_subscribe(true);
    s.b.waits();
    s.passes(300ms);
    s.server().deny_subscribe(false);
    waits(s, s.c);
    s.b.loses_its_host();
    s.server_clock_steps(-1h);
    s.a.releases();
    s.within(6s, "C has the free lock with its next look", [&] { return s.c.holds(); });
  });
}

TEST(found_by_seed, seed_6074170_whom_nobody_looks_for_does_not_stop_the_line_while_its_process_lives_P5) {
  const rule about{.opposite = "a waiter is there while its process looks for another",
                   .broken = "expected",
                   .texts = {{with_line, "entry.told ~= 's' and entry.looked or call", "call"}}};
  play(about, [](story& s) {
    s.b.tries();
    s.within(1s, "B holds the lock", [&] { return s.b.holds(); });
    s.server().deny_subscribe(true);
    s.a.waits({.ttl = 1s});
    s.within(1s, "A stands in line, and cannot be told", [&] { return s.line() == "A"; });
    const auto before = s.all_data();
    s.a.gives_up();
    s.passes(10s);
    s.server_restarts(before, 1s);
    s.passes(2s);
    s.expect(s.line() == "A", "the server has forgotten that A has left");
    s.other_thread_of_a.waits();
    s.passes(1s);
    s.b.releases();
    s.within(90s, "A's process has the lock that nobody holds", [&] { return s.other_thread_of_a.holds(); });
  });
}

// Of `--replicas any`; here the server itself goes back to what it was.
TEST(found_by_seed, seed_33500_whom_nobody_looks_for_and_who_never_fits_does_not_stop_the_line_P5) {
  const rule about{.opposite = "who wants more permits than there are is waited for",
                   .broken = "expected",
                   .texts = {{{id::wait_counted, id::look_counted, id::release_counted, id::leave_counted, id::resize},
                              "elseif is_too_large(entry) then",
                              "elseif false then"}}};
  play(about, {.kind = lock_kind::semaphore, .size = 3}, [](story& s) {
    s.b.tries({.permits = 1});
    s.within(1s, "B has a permit", [&] { return s.b.holds(); });
    s.a.waits({.ttl = 1s, .permits = 3});
    s.within(1s, "A stands in line for all of them", [&] { return s.line() == "A"; });
    s.a.is_cut_off(100ms);
    s.c.of().resize(s.subject().number, 1);
    s.passes(50ms);
    const auto before = s.all_data();
    s.a.gives_up();
    s.passes(10s);
    s.server_restarts(before, 1s);
    s.passes(2s);
    s.expect(s.line() == "A", "the server has forgotten that A has left");
    s.other_thread_of_a.waits({.permits = 1});
    s.passes(1s);
    s.b.releases();
    s.within(90s, "A's process has the permit", [&] { return s.other_thread_of_a.holds(); });
  });
}

TEST(found_by_seed, seed_10306167_a_break_in_the_last_millisecond_leaves_no_key_for_ever_C8) {
  const rule about{.opposite = "keys are given the time that is left, also when that is none",
                   .broken = "C8",
                   .texts = {{{id::break_counted}, "math.max(left, ms, 10)", "math.max(left, ms)"}}};
  play(about, {.kind = lock_kind::semaphore, .size = 2}, [](story& s) {
    const auto left = [&] { return *s.operate({"PTTL", s.subject().keys.holder}).as_integer(); };
    s.a.tries({.ttl = 1s, .permits = 1});
    s.begins_within(1s, "A has a permit", [&] { return s.a.holds(); });
    s.a.is_killed();
    while (left() > 0) s.passes(10us);
    s.expect(left() == 0, "its keys are in their last millisecond");
    s.operator_breaks();
    s.passes(1s);
  });
}

}  // namespace holdfast::sim
