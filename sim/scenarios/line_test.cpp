// SPDX-License-Identifier: Apache-2.0
// (a) of the attacks, first half: who is told, who is passed over, and who lets the line move (P1, P2).
#include "scenarios/story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using script::id;

namespace {

const std::vector<id> with_line{id::wait, id::look, id::release, id::leave, id::go_on};

// So many waiters of one process, all before whoever waits by now, or all behind. It was killed just now: nobody is
// silent yet.
constexpr std::int64_t before_all = 0;
constexpr std::int64_t behind_all = 9'000'000'000'000'000;
void a_crowd_is_killed(story& s, int count, std::int64_t where = before_all) {
  const auto& keys = s.subject().keys;
  const auto time = s.operate({"TIME"});
  const auto micros = *(*time.as_array())[1].as_bulk();
  const auto now = *(*time.as_array())[0].as_bulk() + std::string(6 - micros.size(), '0') + micros;
  s.operate({"HSET", keys.waiters(), "hf:wake:killed", now});
  for (int i = 0; i < count; ++i) {
    const auto id = std::string(28, where == before_all ? 'd' : 'e') + std::to_string(1000 + i);
    s.operate({"ZADD", keys.line(), std::to_string(where + i), id});
    s.operate({"HSET", keys.waiters(), id, "v1|hf:wake:killed|s|10000|1000|0|0|" + now + "|x|"});
  }
}

}  // namespace

// ---- P1: what PUBLISH counts is not who lives ----

TEST(the_line, P1_who_may_not_subscribe_is_waited_for) {
  const rule about{.opposite = "whoever is not subscribed counts as gone",
                   .broken = "expected",
                   .texts = {{with_line, "entry.id ~= me and entry.told == 's' and not listens(entry)",
                              "entry.id ~= me and not listens(entry)"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.server().deny_subscribe(true);
    s.b.waits();
    s.passes(300ms);
    s.server().deny_subscribe(false);
    waits(s, s.c);
    s.expect(s.line() == "BC", "B stands before C");
    s.a.releases();
    s.within(700ms, "B, who cannot be told, has the lock before C", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P1_who_reconnects_is_passed_over_once_and_keeps_its_place) {
  const rule about{.opposite = "whoever does not listen at a release is thrown out of the line",
                   .broken = "expected",
                   .texts = {{with_line,
                              "elseif entry.id ~= me and entry.told == 's' and not listens(entry) then\n"
                              "pass(entry)",
                              "elseif entry.id ~= me and entry.told == 's' and not listens(entry) then\n"
                              "call('ZREM', KEYS[3], entry.id)"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    waits(s, s.c);
    s.b.messages_are_held_back(20ms);  // It hears of the end of its subscription later than the server.
    s.b.loses_its_subscription();
    s.passes(1ms);
    s.a.releases();
    s.within(3ms, "C is granted instead of B", [&] { return s.is_held() && s.line().find('C') == std::string::npos; });
    s.expect(s.line() == "B", "B keeps its place");
    s.within(100ms, "C claims it", [&] { return s.c.holds(); });
    s.passes(100ms);
    s.c.releases();
    s.within(100ms, "B, who listens again, is next", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P1_a_dead_waiter_costs_nothing) {
  const rule about{.opposite = "nobody asks whether the next one listens",
                   .broken = "expected",
                   .texts = {{with_line, "return listening.err or tonumber(listening[2]) ~= 0", "return true"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    waits(s, s.c);
    s.b.is_killed();
    s.passes(100ms);
    s.a.releases();
    s.within(50ms, "C does not wait for a claim of the dead B", [&] { return s.c.holds(); });
  });
}

TEST(the_line, P1_a_release_is_whole_although_nobody_may_be_told) {
  const rule about{.opposite = "a PUBLISH that is refused ends the script, behind its DEL",
                   .broken = "expected",
                   .texts = {{with_line, "or pcall('PUBLISH', channel", "or call('PUBLISH', channel"}}};
  play(about, [](story& s) {
    a_holds(s);
    s.server().redis().deny("PUBLISH");
    waits(s, s.b);
    s.a.releases();
    s.within(50ms, "A is told that it released", [&] { return s.a.was_released(); });
    s.within(700ms, "B, who cannot be told, looks every half second", [&] { return s.b.holds(); });
  });
}

// ---- P2: not only a release must let the line move ----

TEST(the_line, P2_the_first_in_line_looks_when_the_holder_expires) {
  const rule about{.opposite = "the server does not say when the lease ends that is in the way",
                   .broken = "expected",
                   .texts = {{{id::wait, id::look},
                              "local room_at = live < 8 and staying < 4 and room_at_us(pttl)",
                              "local room_at = nil"}}};
  play(about, [](story& s) {
    a_holds(s, {.ttl = 3s});
    waits(s, s.b);
    s.a.loses_its_host();
    s.within(3050ms, "B has the lock when A's lease is over, and not a heartbeat later", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P2_who_leaves_lets_those_behind_it_in) {
  const rule about{.opposite = "a leave does not let the line move",
                   .broken = "expected",
                   .texts = {{{id::leave_counted},
                              "and not is_odd and (was_there or was_waiting) and not ARGV[2] then",
                              "and false then"}}};
  play(about, {.kind = lock_kind::semaphore, .size = 5}, [](story& s) {
    a_holds(s);
    waits(s, s.b, {.permits = 5});
    waits(s, s.c, {.permits = 1});
    s.expect(!s.c.holds(), "C does not overtake B");
    s.b.gives_up();
    s.within(50ms, "nobody is in C's way any more", [&] { return s.c.holds(); });
  });
}

TEST(the_line, P2_the_dead_in_line_do_not_make_a_free_lock_busy) {
  const rule about{.opposite = "a try does not look who is in line",
                   .broken = "expected",
                   .texts = {{{id::wait},
                              "if is_free() and not is_quarantine then\ntoken, more, kept = advance(owner)",
                              "if is_free() and told ~= 't' then\ntoken, more, kept = advance(owner)"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    s.b.is_killed();
    s.passes(50ms);
    s.a.releases();
    s.passes(50ms);
    s.c.tries();
    s.within(50ms, "C gets the lock that only a dead one waits for", [&] { return s.c.holds(); });
  });
}

TEST(the_line, P2_behind_more_dead_than_one_script_sees_somebody_goes_on) {
  const rule about{.opposite = "who stops at the limit tells nobody",
                   .broken = "expected",
                   .texts = {{with_line, "if more then\ngo_on_at(rank)", "if false then\ngo_on_at(rank)"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    for (int i = 100; i < 360; ++i) {
      s.operate({"ZADD", s.subject().keys.line(), std::to_string(i), std::string(29, 'd') + std::to_string(i)});
    }
    s.a.replies_are_held_back(1s);  // So that it does not go on itself.
    s.a.releases();
    s.within(100ms, "B goes on behind 260 dead entries, which one script sees", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P2_behind_a_crowd_of_one_killed_process_somebody_goes_on) {
  const rule about{.opposite = "whoever is not there keeps its place, however many there are",
                   .broken = "expected",
                   .texts = {{with_line, "if rank == most_passed then", "if false then"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    a_crowd_is_killed(s, 600);
    s.a.releases();
    s.within(100ms, "B, behind 600 who are not there and not silent yet, has it", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P2_between_the_dead_whom_nobody_finds_the_releaser_lets_the_line_go_on) {
  const rule about{.opposite = "whoever released is not told that there was more of the line than was seen",
                   .broken = "expected",
                   .texts = {{with_line, "return is_unseen and {18, now} or now", "return now"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    a_crowd_is_killed(s, 600);
    a_crowd_is_killed(s, 20, behind_all);
    s.a.releases();
    s.within(100ms, "B has it, whom no script finds among the dead", [&] { return s.b.holds(); });
  });
}

TEST(the_line, P2_a_try_finds_out_whether_more_dead_than_one_script_sees_are_all_of_the_line) {
  const rule about{.opposite = "a try ends when it has not seen all of the line",
                   .broken = "expected",
                   .texts = {{{id::wait}, "if more then\nreturn {18, now}", "if more then\nreturn {14, now}"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    a_crowd_is_killed(s, 600);
    s.b.is_killed();
    s.passes(50ms);
    s.a.replies_are_held_back(1s);  // As above.
    s.a.releases();
    s.passes(5ms);
    s.c.tries();
    s.within(50ms, "C gets the lock that only the dead wait for", [&] { return s.c.holds(); });
  });
}

TEST(the_line, C7_nobody_overtakes_those_who_were_not_seen) {
  const rule about{.opposite = "who sees nobody live in the part of the line that one script sees takes the lock",
                   .broken = "expected",
                   .texts = {{with_line, "return token, more, head ~= nil or grants == most_grants or more",
                              "return token, more, head ~= nil"}}};
  play(about, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    a_crowd_is_killed(s, 600);
    s.b.messages_are_held_back(50ms);
    s.a.replies_are_held_back(1s);  // As above.
    s.a.releases();
    s.passes(5ms);
    s.c.waits();
    s.within(100ms, "B, who was in line before C, has it before C", [&] { return s.b.holds() && !s.c.is_over(); });
  });
}

}  // namespace holdfast::sim
