// SPDX-License-Identifier: Apache-2.0
// One node's part in a semaphore or a shared lock of a quorum.
#include "cases.hpp"

namespace holdfast::tests {

namespace {

const std::string quorum = "hf:quorum";
const std::string wanted = "hf:{x}:wanted";
const std::string ours = "v1|1|open|a:1,b:1,c:1";
const std::string theirs = "v1|1|open|a:1,b:1,d:1";
const std::string later = "v1|3|open|a:1,b:1,c:1";
const std::string earlier = "v1|2|open|a:1,b:1,d:1";
const std::string past = "1000000000000000";
constexpr auto long_ms = 34'560'000'000;  // 400 days.
const std::vector<std::string> keys{holder, fence, line, waiters, holders};

const shape busy = list({number(2), now(), {shape::kind::anything}, number(1, 60000)});
const shape not_mine = list({number(5), now()});
shape granted(const std::string& token) { return list({number(0), now(), text(token)}); }
shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }
shape wrong(const std::string& what) { return list({number(9), now(), text(what)}); }
shape other_quorum(const std::string& record) { return list({number(17), now(), text(record)}); }
shape other_size(std::int64_t size) { return list({number(16), now(), number(size)}); }

struct ballot {
  std::string mode = "p";
  std::string permits = "1";
  std::string kind = "s2";
  std::string standing = "-";
  std::string proposal = past;
  std::string record = ours;
  std::string ttl = "10000";
  std::string not_after = "0";
  std::string min_fence = "0";
};
const ballot reader{.mode = "r", .permits = "1", .kind = "w1000000"};
const ballot writer{.mode = "w", .permits = "1000000", .kind = "w1000000"};
ballot as(ballot b, const std::string& standing) {
  b.standing = standing;
  return b;
}
ballot proposing(const std::string& token, ballot b = {}) {
  b.proposal = token;
  return b;
}

step vote(const std::string& who, shape expected, const ballot& b = {}) {
  auto all = keys;
  all.push_back(quorum);
  all.push_back(wanted);
  std::vector<std::string> args{who,        b.ttl,    b.not_after, "60000",   "ann",  b.min_fence,
                                b.proposal, b.record, b.mode,      b.permits, b.kind, b.standing};
  if (b.standing == "k") all.push_back(broken);
  return run(id::vote_counted, all, std::move(args), std::move(expected));
}
step raise(const std::string& who, const std::string& token, shape expected = now(), const std::string& kind = "s2") {
  return run(id::raise_counted, {holder, fence, holders}, {who, token, kind}, std::move(expected));
}
step renew_vote(const std::string& who, const std::string& token, shape expected = now(),
                const std::string& record = ours) {
  return run(id::renew_counted, {holder, broken, holders, quorum}, {who, token, "10000", record}, std::move(expected));
}
step release_part(const std::string& who, const std::string& token, shape expected = now()) {
  return run(id::release_counted, keys, {who, token}, std::move(expected));
}
step break_part(const std::string& token, const std::string& mode = "now") {
  return run(id::break_counted, {holder, fence, line, waiters, holders, broken}, {token, mode, "op", "why"}, now());
}
step leave_part(const std::string& who, shape expected = now()) {
  return run(id::leave_counted, keys, {who}, std::move(expected));
}
step plain_vote(const std::string& who, shape expected) {
  return run(id::vote, {holder, fence, quorum, wanted}, {who, "10000", "0", "60000", "ann", "0", past, ours, "-"},
             std::move(expected));
}
step taken(const std::string& permits) { return send({"HGET", holders, "used"}, text(permits)); }
step holding(std::int64_t count) { return send({"ZCARD", holder}, number(count)); }
step record_is(const std::string& record) { return send({"SET", quorum, record, "PX", "3000"}); }
// The server's time as <t>.
step look_at_the_clock() { return leave_part("<D>", list({saved("five"), now("t")})); }

std::vector<script_case> room_cases() {
  return {
      {"a_node_votes_for_as_many_as_there_are_places_H59",
       {vote("<A>", now()), vote("<B>", now()), vote("<C>", busy), holding(2), taken("2"), left_is(holder, 5000, 10000),
        left_is(holders, 5000, 10000), left_is(fence, week_ms - 5000, week_ms + 1), value_is(quorum, text(ours)),
        left_is(quorum, week_ms - 5000, week_ms)}},
      {"weights_are_counted_on_each_node_H59",
       {vote("<A>", now(), {.permits = "2", .kind = "s3"}), vote("<B>", busy, {.permits = "2", .kind = "s3"}),
        vote("<C>", now(), {.kind = "s3"}), taken("3")}},
      {"a_place_comes_back_when_a_vote_ends",
       {vote("<A>", now("ta")), vote("<B>", now()), release_part("<A>", "<ta>"), vote("<C>", now()), leave_part("<B>"),
        vote("<D>", now()), holding(2)}},
      {"a_dead_holder_s_vote_comes_back_while_others_renew_B7",
       {vote("<A>", now("ta"), {.ttl = "150"}), vote("<B>", now("tb")), send({"SET", "hf:{t}", "1", "PX", "200"}),
        renew_vote("<B>", "<tb>"), until_gone("hf:{t}"),
        renew_vote("<A>", "<ta>", list({number(5), now(), text("gone")})), vote("<C>", now()), holding(2)}},
      {"a_node_s_votes_of_300_dead_at_once_come_back_B7",
       {vote("<A>", now(), {.kind = "s301"}), dead_holders(300), vote("<B>", now(), {.permits = "300", .kind = "s301"}),
        holding(2), taken("301")}},
      {"a_node_s_votes_of_3000_dead_at_once_come_back_B7",
       {vote("<A>", now("ta"), reader), dead_holders(3000), vote("<B>", busy, writer), taken("1"),
        release_part("<A>", "<ta>"), vote("<B>", now(), writer)}},
      {"a_vote_behind_5000_dead_at_once_tells_of_a_living_one_B7",
       {vote("<A>", now(), {.kind = "s5001"}), dead_holders(5000),
        vote("<B>", busy, {.permits = "5000", .kind = "s5001"}),
        vote("<B>", now(), {.permits = "5000", .kind = "s5001"}), holding(2)}},
      {"a_vote_that_ended_is_not_raised_C1",
       {vote("<A>", now("ta"), {.ttl = "150"}), vote("<B>", now("tb")), send({"SET", "hf:{t}", "1", "PX", "200"}),
        until_gone("hf:{t}"), raise("<A>", "<tb>", list({number(5), now()}))}},
      {"readers_have_a_node_s_votes_together", {vote("<A>", now(), reader), vote("<B>", now(), reader), holding(2)}},
      {"a_node_with_readers_has_no_vote_for_a_writer_H59",
       {vote("<A>", now("ta"), reader), vote("<B>", now("tb"), reader), vote("<C>", busy, writer),
        release_part("<A>", "<ta>"), vote("<C>", busy, writer), release_part("<B>", "<tb>"), vote("<C>", now(), writer),
        holding(1)}},
      {"a_node_with_a_writer_has_no_vote_for_anybody_else_H59",
       {vote("<A>", now("ta"), writer), vote("<B>", busy, reader), vote("<B>", busy, writer), renew_vote("<A>", "<ta>"),
        release_part("<A>", "<ta>"), vote("<B>", now(), reader)}},
      {"another_size_is_refused_and_named",
       {vote("<A>", now("ta")), vote("<B>", other_size(2), {.kind = "s3"}), release_part("<A>", "<ta>"),
        vote("<B>", other_size(2), {.kind = "s3"}), vote("<B>", other_size(2), {.permits = "3"})}},
      {"a_lock_of_a_quorum_is_no_semaphore_of_it",
       {plain_vote("<A>", now("ta")), vote("<B>", wrong("lock")),
        run(id::release, {holder, fence, line, waiters}, {"<A>", "<ta>"}, now()), vote("<B>", wrong("lock")),
        vote("<B>", wrong("lock"), reader)}},
      {"a_semaphore_of_a_quorum_is_no_lock_of_it",
       {vote("<A>", now("ta")), plain_vote("<B>", wrong("zset")), release_part("<A>", "<ta>"),
        plain_vote("<B>", wrong("semaphore")), vote("<B>", wrong("semaphore"), reader)}},
      {"a_shared_lock_of_a_quorum_is_no_lock_of_it",
       {vote("<A>", now("ta"), reader), release_part("<A>", "<ta>"), plain_vote("<B>", wrong("shared lock"))}},
      {"a_vote_for_permits_with_a_full_memory_changes_nothing_B70",
       {memory_full(), vote("<A>", error("OOM")), memory_free(), is_absent(holder), is_absent(holders),
        is_absent(fence), is_absent(quorum)}},
      {"a_vote_for_permits_that_may_not_expire_is_none_C8",
       {deny("PEXPIRE"), vote("<A>", denied()), allow_all(), is_absent(holder), is_absent(holders), is_absent(quorum)}},
      {"a_vote_for_permits_over_a_list_is_refused_H71",
       {send({"RPUSH", holders, "data"}, number(1)), vote("<A>", wrong("list")), is_absent(holder)},
       {holders}},
      {"refuses_a_vote_for_permits_with_arguments_that_are_none",
       {vote("short", bad("owner id")), vote("<A>", bad("mode"), {.permits = "0"}),
        vote("<A>", bad("mode"), {.permits = "1.5"}), vote("<A>", bad("mode"), {.mode = "x"}),
        vote("<A>", bad("kind"), {.kind = "w2"}), vote("<A>", bad("kind"), {.kind = "s"}),
        vote("<A>", bad("kind"), {.kind = "s0"}), vote("<A>", bad("kind"), {.mode = "r"}),
        vote("<A>", bad("standing"), as({}, "x")), vote("<A>", bad("proposal"), proposing("17")),
        vote("<A>", bad("ttl"), {.ttl = "70000"}), vote("<A>", bad("not_after"), {.not_after = "7"}),
        vote("<A>", bad("min_fence"), {.min_fence = "x"}), is_absent(holder), is_absent(quorum)}},
  };
}

std::vector<script_case> counted_token_cases() {
  return {
      {"a_vote_for_permits_takes_the_proposal_P23",
       {look_at_the_clock(), vote("<A>", granted("<t+60000000>"), proposing("<t+60000000>")),
        value_is(fence, text("<t+60000000>|<A>|s2")),
        send({"EVAL", "return string.sub(redis.call('HGET', KEYS[1], ARGV[1]), 1, 64)", "1", holders, "<A>"},
             text("1|p|-|v1|<A>|<t+60000000>|10000"))}},
      {"a_proposal_for_permits_behind_the_clock_gets_the_clock_P24", {vote("<A>", now("t"))}},
      {"each_of_several_holders_is_above_the_last_stamp_C2",
       {look_at_the_clock(), vote("<A>", granted("<t+60000000>"), proposing("<t+60000000>", reader)),
        vote("<B>", granted("<t+60000001>"), proposing("<t+60000000>", reader)),
        value_is(fence, text("<t+60000001>|<B>|w1000000"))}},
      {"a_writer_is_above_the_readers_before_it_C2",
       {look_at_the_clock(), vote("<A>", granted("<t+60000000>"), proposing("<t+60000000>", reader)),
        release_part("<A>", "<t+60000000>"), vote("<B>", granted("<t+60000001>"), writer)}},
      {"raising_a_vote_for_permits_writes_both_and_leaves_the_expiry_P23",
       {vote("<A>", now("t"), {.ttl = "3000"}), raise("<A>", "<t+7>"),
        send({"HGET", holders, "<A>"}, text("1|p|-|v1|<A>|<t+7>|3000|<t>|ann")), left_is(holder, 1, 3000),
        value_is(fence, text("<t+7>|<A>|s2")), left_is(fence, week_ms - 5000, week_ms + 1),
        renew_vote("<A>", "<t>", list({number(5), now(), text("taken")})), renew_vote("<A>", "<t+7>"),
        release_part("<A>", "<t+7>"), is_absent(holder)}},
      {"raising_one_holder_leaves_the_larger_stamp_of_another_C2",
       {vote("<A>", now("t")), vote("<B>", granted("<t+60000000>"), proposing("<t+60000000>")), raise("<A>", "<t+7>"),
        value_is(fence, text("<t+60000000>|<B>|s2")),
        send({"HGET", holders, "<A>"}, text("1|p|-|v1|<A>|<t+7>|10000|<t>|ann"))}},
      {"raises_no_vote_for_permits_back_and_nobody_elses_C2_C9",
       {vote("<A>", now("t")), raise("<A>", "<t-1>", not_mine), raise("<B>", "<t+7>", not_mine),
        value_is(fence, text("<t>|<A>|s2")), release_part("<A>", "<t>"), raise("<A>", "<t+7>", not_mine),
        is_absent(holder)}},
      {"raises_no_vote_for_permits_that_is_none",
       {raise("short", past, bad("owner id")), raise("<A>", "17", bad("token")), raise("<A>", past, bad("kind"), "x"),
        raise("<A>", past, not_mine)}},
      {"a_repeated_vote_for_permits_is_mine_and_takes_nothing_more_H11",
       {vote("<A>", now("t")), vote("<A>", list({number(1), now(), text("<t>"), number(1, 10000)})), taken("1")}},
      {"a_late_vote_for_permits_has_no_effect_H12_P10",
       {vote("<A>", list({number(3), now()}), {.not_after = "<now-1>"}), is_absent(holder), is_absent(quorum)}},
      {"a_withdrawn_vote_for_permits_is_spent_P9_B55",
       {vote("<A>", now()), leave_part("<A>"), is_absent(holder), vote("<A>", list({number(4), now()})),
        is_absent(holder)}},
      {"a_vote_for_permits_that_was_withdrawn_before_it_came_is_spent_P9_B55",
       {leave_part("<A>", not_mine), vote("<A>", list({number(4), now()})), vote("<B>", now()), taken("1")}},
      {"a_demand_for_permits_a_year_ahead_is_refused",
       {vote("<A>", list({number(11), now()}), {.min_fence = "<now+31536100000000>"}), is_absent(holder)}},
  };
}

std::vector<script_case> standing_cases() {
  const shape free_but_wanted = list({number(2), now(), text(""), number(-2)});
  return {
      {"who_is_first_in_line_is_not_overtaken_H63",
       {vote("<A>", now("ta"), reader), vote("<B>", busy, as(writer, "h")), left_is(wanted, 1, 1000),
        vote("<C>", busy, reader), release_part("<A>", "<ta>"), vote("<C>", free_but_wanted, reader),
        vote("<B>", now("tb"), as(writer, "h")), is_absent(wanted), release_part("<B>", "<tb>"),
        vote("<C>", now(), reader)}},
      {"a_large_request_first_in_line_is_not_overtaken_H63",
       {vote("<A>", now("ta")), vote("<B>", busy, as({.permits = "2"}, "h")), vote("<C>", busy),
        release_part("<A>", "<ta>"), vote("<B>", now(), as({.permits = "2"}, "h"))}},
      {"who_is_first_in_line_and_does_not_come_again_is_forgotten_C8",
       {vote("<A>", now(), reader), vote("<B>", busy, as(writer, "h")), send({"PEXPIRE", wanted, "50"}, number(1)),
        until_gone(wanted), vote("<C>", now(), reader)}},
      {"a_vote_that_is_taken_back_is_gone_though_the_hash_is_evicted_C5_seed_60113683",
       {vote("<A>", now()), send({"DEL", holders}, number(1)),
        vote("<B>", list({number(2), now(), text(""), number(1, 60000)})), leave_part("<A>", not_mine),
        is_absent(holder), vote("<B>", now())}},
      {"a_holder_that_lost_its_vote_gets_it_again_whoever_waits_R18",
       {vote("<A>", now(), reader), vote("<B>", busy, as(writer, "h")), vote("<C>", now(), as(reader, "k")),
        is_there(wanted)}},
      {"a_place_that_is_given_again_has_its_lease_s_token_again",
       {look_at_the_clock(), send({"DEL", fence}, number(1)),
        vote("<A>", granted("<t-60000000>"), as(proposing("<t-60000000>"), "k")),
        send({"HGET", holders, "<A>"}, text("1|p|-|v1|<A>|<t-60000000>|10000|<t-60000000>|ann")),
        value_is(fence, text("<t-60000000>|<A>|s2")), left_is(fence, week_ms - 5000, week_ms)}},
      {"a_place_that_is_given_again_is_above_a_larger_stamp_C2",
       {look_at_the_clock(), vote("<B>", granted("<t+60000005>"), proposing("<t+60000005>")),
        vote("<A>", granted("<t+60000006>"), as(proposing("<t+60000000>"), "k")),
        value_is(fence, text("<t+60000006>|<A>|s2"))}},
      {"what_somebody_broke_is_not_given_again_whoever_came_since_P13d_seed_60001835",
       {vote("<A>", now("ta")), break_part("<ta>"), vote("<B>", now()),
        vote("<A>", list({number(6), now()}), as(proposing("<ta>"), "k")),
        vote("<C>", granted("<ta+60000000>"), as(proposing("<ta+60000000>"), "k"))}},
      {"a_vote_that_a_reader_finds_as_the_writers_that_it_was_is_a_readers_H63",
       {vote("<A>", now("ta"), writer), vote("<B>", busy, reader),
        vote("<A>", list({number(1), now(), text("<ta>"), number(1, 10000)}), as(reader, "k")),
        vote("<B>", now(), reader)}},
      // Of several who hold at once the record may name another one, and a younger.
      {"what_somebody_broke_of_another_is_given_again_P13d",
       {vote("<A>", now("ta"), reader), vote("<B>", now("tb"), reader), break_part("<tb>"),
        send({"ZREM", holder, "<A>"}, number(1)), send({"HDEL", holders, "<A>"}, number(1)),
        vote("<A>", now(), as(proposing("<ta>", reader), "k")),
        vote("<B>", list({number(6), now()}), as(proposing("<tb>", reader), "k"))}},
      {"what_somebody_broke_under_a_token_that_was_not_heard_of_is_not_given_again_P13d",
       {vote("<A>", now("ta")), vote("<B>", granted("<ta+60000000>"), proposing("<ta+60000000>")),
        break_part("<ta+60000000>"), vote("<B>", list({number(6), now()}), as(proposing("<ta>"), "k"))}},
      // The round went on under another server's larger token, and nobody had heard of this one's vote.
      {"permits_of_the_round_that_somebody_broke_are_not_given_again_P13d",
       {vote("<A>", now("ta")), break_part("<ta>"),
        vote("<A>", list({number(6), now()}), as(proposing("<ta+60000000>"), "k")), leave_part("<B>", not_mine),
        vote("<A>", list({number(6), now()}), as(proposing("<ta+60000000>"), "k"))}},
      {"permits_of_two_holders_that_somebody_broke_are_not_given_again_P13d",
       {vote("<A>", now("ta")), vote("<B>", now("tb")), break_part("<ta>"), break_part("<tb>"),
        vote("<A>", list({number(6), now()}), as(proposing("<ta>"), "k")),
        vote("<B>", list({number(6), now()}), as(proposing("<tb>"), "k")),
        vote("<C>", granted("<tb+60000000>"), as(proposing("<tb+60000000>"), "k"))}},
      {"raises_no_permits_that_were_broken_meanwhile_P13d",
       {vote("<A>", now("ta")), break_part("<ta>", "expiry"), raise("<A>", "<ta+60000000>", not_mine),
        renew_vote("<A>", "<ta>", list({number(6), now()}))}},
      {"who_finds_no_room_and_is_not_first_wants_nothing",
       {vote("<A>", now(), writer), vote("<B>", busy, reader), vote("<B>", busy, as(reader, "k")), is_absent(wanted)}},
  };
}

std::vector<script_case> record_cases() {
  return {
      {"another_list_of_servers_gets_no_vote_for_permits_R19_P26",
       {record_is(theirs), vote("<A>", other_quorum(theirs)), is_absent(holder), value_is(quorum, text(theirs))}},
      {"a_later_generation_is_not_begun_by_a_vote_for_permits_P26",
       {vote("<A>", other_quorum(""), {.record = later}), is_absent(quorum), record_is(earlier),
        vote("<A>", other_quorum(earlier), {.record = later}), is_absent(holder), value_is(quorum, text(earlier))}},
      {"permits_of_an_opened_generation_count_and_those_of_the_one_before_it_do_not_P26",
       {record_is(later), vote("<A>", now(), {.record = later}), left_is(quorum, long_ms - 5000, long_ms),
        vote("<B>", other_quorum(later), {.record = earlier}), vote("<B>", other_quorum(later))}},
      {"a_vote_for_permits_is_not_renewed_on_another_list_s_server_P26",
       {vote("<A>", now("t"), {.ttl = "3000"}), record_is(theirs), renew_vote("<A>", "<t>", other_quorum(theirs)),
        left_is(holder, 1, 3000), record_is(earlier), renew_vote("<A>", "<t>", now(), later),
        left_is(quorum, long_ms - 5000, long_ms)}},
      {"a_renewal_without_a_record_asks_for_none",
       {vote("<A>", now("t")), record_is(theirs),
        run(id::renew_counted, {holder, broken, holders}, {"<A>", "<t>", "10000"}, now())}},
  };
}

}  // namespace

std::vector<script_case> quorum_counted_cases() {
  auto all = room_cases();
  for (auto&& more : {counted_token_cases(), standing_cases(), record_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace holdfast::tests
