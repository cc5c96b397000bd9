// SPDX-License-Identifier: Apache-2.0
// What was said against locks of a majority of servers, R1 to R21 (docs/simulation.md, "The Redlock table").
#include "scenarios/quorum_story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;
using result = engine::quorum_acquire::result;
using script::id;

namespace {

const rule fence{.opposite = "the store takes a write with any token",
                 .broken = "expected",
                 .what = canary_switch::store_takes_any_token};
const rule gone_is_told{
    .opposite = "a renewal of a vote that is gone makes it anew",
    .broken = "expected",
    .texts = {
        {{id::renew},
         "if not is_ours then",
         "if not value then call('SET', KEYS[1], 'v1|' .. owner .. '|' .. token .. '|' .. ttl .. '|' .. now .. '|', "
         "'PX', ttl) return now end if not is_ours then"}}};
const rule quarantine{.opposite = "nobody asks whether a server has forgotten its vote",
                      .broken = "C1",
                      .what = canary_switch::no_quarantine};

void a_holds(quorum_story& s, const quorum_actor::wanted& what = {}) {
  s.a.tries(what);
  s.begins_within(1s, "A gets the free lock", [&] { return s.a.holds(); });
}

// Of five servers, 0 to 2 have voted for A, and the others will not hear of it for long.
void a_holds_three(quorum_story& s, const quorum_actor::wanted& what = {}) {
  s.a.is_cut_off_from({3, 4}, 10min);
  a_holds(s, what);
}

void a_is_cut_off(quorum_story& s) { s.a.is_cut_off_from({0, 1, 2, 3, 4}, 10min); }

}  // namespace

TEST(redlock, R1_who_paused_beyond_its_lease_writes_nothing) {
  play(fence, [](quorum_story& s) {
    a_holds(s);
    s.a.stops();
    s.b.waits();
    s.within(12s, "B has the lock when A's lease is over", [&] { return s.b.holds(); });
    s.expect(s.writes(s.b), "B writes");
    s.a.goes_on();
    s.expect(!s.writes(s.a), "what A wrote before it noticed is refused");
  });
}

TEST(redlock, R2_a_write_that_was_under_way_for_90_s_is_refused) {
  play(fence, [](quorum_story& s) {
    a_holds(s);
    s.a.releases();  // Its write left before.
    s.passes(1s);
    s.b.tries();
    s.within(100ms, "B has the lock", [&] { return s.b.holds(); });
    s.expect(s.writes(s.b), "B writes");
    s.passes(90s);
    s.expect(!s.writes(s.a), "A's write arrives and is refused");
  });
}

TEST(redlock, R3_a_server_whose_clock_jumped_has_no_vote) {
  const rule about{.opposite = "a vote counts whatever the server's clock shows",
                   .broken = "expected",
                   .what = canary_switch::any_clock_counts};
  play(about, [](quorum_story& s) {
    a_holds_three(s);
    a_is_cut_off(s);
    s.clock_steps(2, 1h);  // A's vote there is over.
    s.b.waits();
    s.passes(8s);
    s.expect(!s.b.holds(), "B, which 2, 3 and 4 vote for, does not have it");
  });
}

TEST(redlock, R3_a_server_whose_clock_fell_back_has_no_vote) {
  const rule about{.opposite = "a vote counts whatever the server's clock shows",
                   .broken = "expected",
                   .what = canary_switch::any_clock_counts};
  play(about, [](quorum_story& s) {
    s.clock_steps(2, -1h);
    s.b.is_cut_off_from({0, 1}, 10min);
    s.b.tries();
    s.within(6s, "B, whom only 3 and 4 can vote for, is refused in time", [&] { return s.b.was_refused(); });
  });
}

TEST(redlock, R3_a_jump_too_small_to_be_seen_leaves_the_order_of_tokens) {
  play(fence, [](quorum_story& s) {
    a_holds_three(s);
    a_is_cut_off(s);
    s.clock_steps(2, 15s);
    s.b.waits();
    s.within(3s, "B has it beside A, which docs/topologies.md says", [&] { return s.b.holds() && s.a.holds(); });
    s.expect(s.writes(s.b) && !s.writes(s.a), "only B can write");
  });
}

TEST(redlock, R4_answers_that_lay_in_the_socket_during_a_pause_are_too_old) {
  const rule about{
      .opposite = "the clock does not count a pause", .broken = "C1", .what = canary_switch::clock_stands_in_a_pause};
  play(about, [](quorum_story& s) {
    s.a.tries();
    s.passes(1ms);  // The requests are under way.
    s.a.stops();
    s.b.waits();
    s.within(12s, "B has the lock when A's votes are over", [&] { return s.b.holds(); });
    s.a.goes_on();
    s.expect(!s.a.holds(), "A, which reads five votes now, does not believe them");
  });
}

TEST(redlock, R5_a_pause_behind_the_last_look_at_the_time_is_for_the_fence) {
  play(fence, [](quorum_story& s) {
    a_holds(s);
    s.expect(s.a.holds(), "A looks whether its lease is valid, and is going to write");
    s.a.stops();
    s.b.waits();
    s.within(12s, "B has it", [&] { return s.b.holds(); });
    s.expect(s.writes(s.b) && !s.writes(s.a), "A's write comes behind B's and is refused");
  });
}

TEST(redlock, R6_clocks_that_were_set_back_keep_nobody_out_for_an_hour) {
  const rule about{.opposite = "what is left of another's vote is left as it is",
                   .broken = "expected",
                   .texts = {{{id::vote}, "if ours and (pttl == -1 or pttl > most) then", "if false then"}}};
  play(about, [](quorum_story& s) {
    a_holds(s);
    s.a.is_killed();
    for (std::size_t node = 0; node < quorum_story::nodes; ++node) s.clock_steps(node, -1h);
    s.b.waits();
    s.within(61s, "B has it when the longest lease that there may be is over", [&] { return s.b.holds(); });
  });
}

TEST(redlock, R6_clocks_that_were_set_forward_keep_no_client_out_P11) {
  const rule about{.opposite = "who comes late is not told the time",
                   .broken = "expected",
                   .texts = {{{id::vote}, "return {3, now}", "return {3, not_after}"}}};
  play(about, [](quorum_story& s) {
    for (std::size_t node = 0; node < quorum_story::nodes; ++node) s.clock_steps(node, 15s);
    s.a.tries();
    s.within(50ms, "A, whose connections are older than that, has the lock at its first try",
             [&] { return s.a.holds(); });
  });
}

TEST(redlock, R7_a_server_that_came_back_without_its_data_does_not_vote_twice) {
  play(quarantine, [](quorum_story& s) {
    a_holds_three(s, {.ttl = 30s});
    a_is_cut_off(s);
    s.restarts_empty(2);
    s.b.waits();
    s.passes(20s);
    s.expect(s.a.holds() && !s.b.holds(), "A holds it, and not B, which 3 and 4 vote for");
  });
}

TEST(redlock, R8_the_wait_after_a_restart_counts_with_clocks_that_differ) {
  const rule about{.opposite = "the wait is max_ttl by whatever clock",
                   .broken = "expected",
                   .what = canary_switch::quarantine_ignores_drift};
  play(about, {.clock_of_a_ppm = -9'900, .list_of_b = {}, .max_ttl = 2min}, [](quorum_story& s) {
    a_holds_three(s, {.ttl = 2min});
    s.a.is_cut_off_from({0, 1, 2, 3, 4}, 1h);
    s.restarts_empty(2);
    s.clock_runs(2, 9'900);
    s.b.waits();
    s.passes(2min);
    s.expect(!s.b.holds(), "two minutes by a true clock are not over for A, whose clock is slow");
    s.within(10s, "B has it then", [&] { return s.b.holds(); });
  });
}

TEST(redlock, R9_a_majority_that_came_back_empty_costs_the_longest_ttl_and_no_more) {
  play(quarantine, [](quorum_story& s) {
    a_holds(s, {.ttl = 30s});
    a_is_cut_off(s);
    for (const std::size_t node : {0u, 1u, 2u}) s.restarts_empty(node);
    s.b.waits();
    s.within(3s, "B is told why", [&] { return s.b.was_told(result::quarantined); });
    s.within(62s, "and has it after max_ttl", [&] { return s.b.holds(); });
  });
}

TEST(redlock, R10_tokens_increase_over_majorities_that_share_one_server) {
  const rule about{.opposite = "a server takes any token that is proposed",
                   .broken = "C2",
                   .texts = {{{id::vote}, "if proposal > stamp then", "if true then"}}};
  play(about, [](quorum_story& s) {
    const auto ahead = s.server(0).clock_now().time_since_epoch() + 20s;
    a_holds_three(s, {.min_fence = fencing_token{static_cast<std::uint64_t>(ahead.count())}});
    s.a.releases();
    s.passes(100ms);
    s.b.is_cut_off_from({0, 1}, 10min);
    s.b.tries();
    s.within(1s, "B has it with the votes of 2, 3 and 4", [&] { return s.b.holds(); });
    s.b.releases();
    s.passes(100ms);
    s.c.is_cut_off_from({1, 2}, 10min);
    s.c.tries();
    s.within(1s, "C has it with those of 0, 3 and 4", [&] { return s.c.holds(); });
    s.expect(s.a.token() < s.b.token() && s.b.token() < s.c.token(), "their tokens increase");
  });
}

// Server 0 is ahead: it needs another token than the one that A proposes, and 1 and 2 would have taken that one.
TEST(redlock, P23_a_token_that_a_majority_did_not_take_is_raised_there_before_it_counts) {
  const rule about{.opposite = "a server says that it has raised its token, and has not",
                   .broken = "expected",
                   .texts = {{{id::raise}, "if not last or sub(last, 1, 16) < token then", "if false then"}}};
  play(about, [](quorum_story& s) {
    s.clock_steps(0, 15s);
    a_holds_three(s);
    s.a.releases();
    s.passes(100ms);
    s.b.is_cut_off_from({0, 1}, 10min);
    s.b.tries();
    s.within(1s, "B has it with the votes of 2, 3 and 4", [&] { return s.b.holds(); });
    s.expect(s.b.token() > s.a.token(), "and a larger token than A's, which came from 0");
  });
}

// Only 2 was asked by both, and it has forgotten what it gave.
TEST(redlock, P24_tokens_increase_over_a_server_that_lost_its_data) {
  const rule about{.opposite = "nobody asks whether a server has forgotten its vote",
                   .broken = "expected",
                   .what = canary_switch::no_quarantine};
  play(about, [](quorum_story& s) {
    s.clock_steps(0, 15s);
    a_holds_three(s);
    s.a.releases();
    s.passes(100ms);
    s.restarts_empty(2);
    s.b.is_cut_off_from({0, 1}, 10min);
    s.b.waits();
    s.passes(50s);
    s.expect(!s.b.holds(), "B, which 3 and 4 vote for, does not have it yet");
    s.within(12s, "B has it with the vote of 2, too", [&] { return s.b.holds(); });
    s.expect(s.b.token() > s.a.token(), "by now their clocks are ahead of A's token");
  });
}

TEST(redlock, P26_a_list_that_is_closed_on_a_majority_lets_nobody_in) {
  const rule about{.opposite = "a server votes for clients of any list",
                   .broken = "expected",
                   .texts = {{{id::vote}, "return kept ~= record and (kept or generation ~= '1')", "return false"}}};
  play(about, [](quorum_story& s) {
    for (const std::size_t node : {0u, 1u, 2u}) s.is_closed(node);
    s.a.tries();
    s.within(3s, "A, of the list before, is refused", [&] { return s.a.was_refused(); });
  });
}

TEST(redlock, P26_a_lease_of_a_list_that_is_closed_ends_before_the_next_list_begins) {
  const rule about{.opposite = "a closed server renews",
                   .broken = "expected",
                   .texts = {{{id::renew}, "if kept and kept ~= ARGV[4] then", "if false then"}}};
  play(about, [](quorum_story& s) {
    a_holds(s);
    for (const std::size_t node : {0u, 1u, 2u}) s.is_closed(node);
    s.within(11s, "A is told that it is over", [&] { return !s.a.holds(); });
  });
}

TEST(redlock, R12_three_that_share_the_votes_between_them_do_not_block_each_other) {
  const rule about{.opposite = "who did not win keeps the votes that he has",
                   .broken = "expected",
                   .texts = {{{id::leave}, "local token = held_token(owner)", "local token = nil"}}};
  play(about, [](quorum_story& s) {
    // Each is near to servers of its own.
    s.a.is_far_from({2, 3, 4}, 20ms);
    s.b.is_far_from({0, 1, 4}, 20ms);
    s.c.is_far_from({0, 1, 2, 3}, 20ms);
    for (auto* who : {&s.a, &s.b, &s.c}) who->waits({.ttl = 30s});
    s.within(5s, "one of them has it soon", [&] { return s.a.holds() || s.b.holds() || s.c.holds(); });
  });
}

// Nobody waits: each is told that the others have it, who have it no more than he has.
TEST(redlock, R12_of_three_that_try_once_at_the_same_time_one_has_it) {
  const rule about{.opposite = "a server does not say whom it has voted for",
                   .broken = "expected",
                   .texts = {{{id::vote}, "return {2, now, sub(value, 1, 1024), pttl}", "return {2, now, '', pttl}"}}};
  play(about, [](quorum_story& s) {
    s.a.is_far_from({2, 3, 4}, 20ms);
    s.b.is_far_from({0, 1, 4}, 20ms);
    s.c.is_far_from({0, 1, 2, 3}, 20ms);
    for (auto* who : {&s.a, &s.b, &s.c}) who->tries({.ttl = 30s});
    s.within(2s, "one of them has it", [&] { return s.a.holds() || s.b.holds() || s.c.holds(); });
  });
}

// A has no time to think: whenever it has released it asks again, and it is as near as B.
TEST(redlock, P25_who_waits_is_let_in_before_who_takes_it_again_and_again) {
  const rule about{.opposite = "who stands first in line does not keep others out",
                   .broken = "expected",
                   .texts = {{{id::vote}, "if wanted and standing == '-' then", "if false then"}}};
  play(about, [](quorum_story& s) {
    a_holds(s);
    s.b.waits();
    s.passes(1s);
    s.a.releases();
    s.a.waits();
    s.within(1s, "B has it, who came first", [&] { return s.b.holds(); });
    s.b.releases();
    s.within(1s, "and then A", [&] { return s.a.holds(); });
  });
}

TEST(redlock, P25_who_waited_and_was_killed_costs_a_second_and_no_more) {
  const rule about{.opposite = "who stood first in line keeps others out for long",
                   .broken = "expected",
                   .texts = {{{id::vote}, "'PX', '1000'", "'PX', '60000'"}}};
  play(about, [](quorum_story& s) {
    a_holds(s);
    s.b.waits();
    s.passes(1s);
    s.b.is_killed();
    s.a.releases();
    s.c.tries();
    s.within(1s, "C is told that it is busy", [&] { return s.c.was_refused(); });
    s.passes(1s);
    s.c.tries();
    s.within(1s, "C has it", [&] { return s.c.holds(); });
  });
}

TEST(redlock, R13_who_is_cut_off_before_its_release_costs_a_ttl_and_no_more) {
  const rule about{.opposite = "a vote does not end by itself",
                   .broken = "expected",
                   .texts = {{{id::vote}, "grant, 'PX', ttl)", "grant)"}}};
  play(about, [](quorum_story& s) {
    a_holds(s);
    a_is_cut_off(s);
    s.a.releases();
    s.b.waits();
    s.within(11s, "B has it when A's votes are over", [&] { return s.b.holds(); });
  });
}

TEST(redlock, R14_who_hangs_and_is_renewed_for_ever_loses_it_when_its_longest_hold_is_over) {
  const rule about{.opposite = "a renewal always moves the deadline",
                   .broken = "expected",
                   .what = canary_switch::leases_have_no_last_instant};
  play(about, [](quorum_story& s) {
    a_holds(s, {.ttl = 10s, .max_hold = 60s});
    s.b.waits();
    s.passes(50s);
    s.expect(s.a.holds(), "A has it still, by renewals");
    s.within(10s, "A has lost it before the minute is over", [&] { return !s.a.holds(); });
    s.within(15s, "B has it a ttl later", [&] { return s.b.holds(); });
  });
}

TEST(redlock, R17_a_request_that_comes_behind_its_withdrawal_leaves_no_vote) {
  const rule about{.opposite = "a request takes effect however late it comes",
                   .broken = "expected",
                   .texts = {{{id::vote}, "if now > not_after then", "if false then"}}};
  play(about, [](quorum_story& s) {
    s.a.is_cut_off_from({1, 2, 3, 4}, 3s);
    s.a.requests_are_held_back(0, 20s);
    s.a.tries({.ttl = 30s});
    s.passes(1ms);
    s.a.is_killed();  // Nobody withdraws it.
    s.passes(21s);
    s.expect(s.votes() == 0, "what arrived late has no effect");
  });
}

TEST(redlock, P27_a_repair_that_comes_behind_the_end_of_its_lease_leaves_no_vote) {
  const rule about{.opposite = "a request takes effect however late it comes",
                   .broken = "expected",
                   .texts = {{{id::vote}, "if now > not_after then", "if false then"}}};
  play(about, [](quorum_story& s) {
    a_holds_three(s);
    s.passes(900ms);
    for (const std::size_t node : {3u, 4u}) s.a.is_cut_off_from({node}, 0s);
    s.within(2s, "A has the votes of all, which it asked for again", [&] { return s.votes() == 5; });
    s.loses_the_vote(4);
    s.passes(800ms);
    s.expect(s.votes() == 4, "a renewal has found that it is gone, and when asked again the server said SPENT");
    s.a.requests_are_held_back(4, 20s);
    s.passes(300ms);
    s.a.is_killed();
    s.passes(25s);
    s.expect(s.votes() == 0, "nothing of A is left when its lease is long over");
  });
}

TEST(redlock, R18_votes_that_were_lost_are_not_made_up_for_by_a_renewal) {
  play(gone_is_told, [](quorum_story& s) {
    a_holds_three(s);
    for (const std::size_t node : {0u, 1u, 2u}) s.loses_the_vote(node);
    s.within(11s, "A, which has no vote any more, is told so", [&] { return !s.a.holds(); });
  });
}

// By then the servers are asked at different times, and each has said that its vote is gone before the next is asked.
TEST(redlock, R18_votes_that_were_lost_are_not_made_good_one_after_another) {
  play(gone_is_told, [](quorum_story& s) {
    a_holds(s);
    for (int i = 0; i < 5; ++i) s.passes(1min);
    for (const std::size_t node : {0u, 1u, 2u, 3u, 4u}) s.loses_the_vote(node);
    s.within(11s, "A, which has no vote any more, is told so", [&] { return !s.a.holds(); });
  });
}

TEST(redlock, R18_what_somebody_broke_is_not_made_good) {
  const rule about{.opposite = "a renewal does not look whether somebody broke it",
                   .broken = "expected",
                   .texts = {{{id::renew}, "return {6, now}", "return now"}}};
  play(about, [](quorum_story& s) {
    a_holds(s);
    for (int i = 0; i < 5; ++i) s.passes(1min);
    for (const std::size_t node : {0u, 1u, 2u, 3u, 4u}) s.is_broken_now(node);
    s.within(11s, "A is told that its lock was broken", [&] { return !s.a.holds(); });
    s.expect(s.votes() == 0, "nobody has a vote");
  });
}

TEST(redlock, R19_two_lists_of_servers_have_no_lock_in_common) {
  const rule about{.opposite = "a server votes for clients of any list",
                   .broken = "expected",
                   .texts = {{{id::vote}, "return kept ~= record and (kept or generation ~= '1')", "return false"}}};
  play(about, {.clock_of_a_ppm = 0, .list_of_b = "n0:6379,n5:6379,n6:6379", .max_ttl = 60s}, [](quorum_story& s) {
    s.b.tries();
    s.within(3s, "B, whose list is another one, gets no vote of a free lock", [&] { return s.b.was_refused(); });
  });
}

TEST(redlock, R20_one_server_behind_three_addresses_is_no_majority_of_five) {
  const rule about{.opposite = "nobody can tell that it is one server",
                   .broken = "expected",
                   .what = canary_switch::each_address_is_another_server};
  play(about, [](quorum_story& s) {
    s.are_one_server({0, 1, 2});
    s.a.is_cut_off_from({3, 4}, 10min);
    s.a.tries();
    s.within(3s, "A, for whom one server would vote three times, is refused",
             [&] { return s.a.was_told(result::refused) && s.a.was_refused(); });
    s.expect(s.votes() == 0, "and was not voted for");
  });
}

TEST(redlock, R21_a_failover_inside_of_one_server_is_a_loss_of_its_vote) {
  const rule about{.opposite = "the same run is the same epoch",
                   .broken = "C1",
                   .texts = {{{id::epoch}, "old_id ~= id and was_promoted then", "false then"}}};
  play(about, [](quorum_story& s) {
    a_holds_three(s, {.ttl = 30s});
    a_is_cut_off(s);
    s.passes(2s);
    s.fails_over_empty(2);
    s.b.tries();
    s.within(3s, "B, which 3 and 4 vote for, is refused", [&] { return s.b.was_refused(); });
  });
}

}  // namespace holdfast::sim
