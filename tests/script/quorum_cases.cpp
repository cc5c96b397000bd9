// SPDX-License-Identifier: Apache-2.0
// One node's part in a quorum: its vote, the token that is raised, and to which list of servers it belongs.
#include "cases.hpp"

#include <fmt/format.h>

namespace holdfast::tests {

namespace {

const std::string quorum = "hf:quorum";
const std::string wanted = "hf:{x}:wanted";
const std::string past = "1000000000000000";
const std::string ours = "v1|1|open|a:1,b:1,c:1";
const std::string theirs = "v1|1|open|a:1,b:1,d:1";
const std::string later = "v1|3|open|a:1,b:1,c:1";
const std::string earlier = "v1|2|open|a:1,b:1,d:1";
const std::string closed = "v1|3|closed|a:1,b:1,c:1";
constexpr auto long_ms = 34'560'000'000;  // 400 days.

const shape late = list({number(3), now()});
const shape spent = list({number(4), now()});
const shape not_mine = list({number(5), now()});
const shape was_broken = list({number(6), now()});

shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }
shape granted(const std::string& token) { return list({number(0), now(), text(token)}); }
shape other_quorum(const std::string& record) { return list({number(17), now(), text(record)}); }

step vote_with(std::vector<std::string> args, shape expected, const std::string& standing = "-") {
  args.push_back(standing);
  std::vector<std::string> keys{holder, fence, quorum, wanted};
  if (standing == "k") keys.push_back(broken);
  return run(id::vote, keys, std::move(args), std::move(expected));
}
step vote(const std::string& who, const std::string& proposal, shape expected, const std::string& record = ours) {
  return vote_with({who, "10000", "0", "60000", "ann", "0", proposal, record}, std::move(expected));
}
step vote_as(const std::string& standing, const std::string& who, shape expected) {
  return vote_with({who, "10000", "0", "60000", "ann", "0", past, ours}, std::move(expected), standing);
}
// Of the holder of a lease with this token.
step again(const std::string& who, const std::string& token, shape expected) {
  return vote_with({who, "10000", "0", "60000", "ann", "0", token, ours}, std::move(expected), "k");
}
// One more than the record remembers, one after another: the second of them gets no vote again, and the first does.
std::vector<step> seventeen_breaks() {
  std::vector<step> all;
  std::string ids;
  const auto id_of = [](int i) { return fmt::format("{:032x}", i); };
  const auto token_of = [](int i) { return fmt::format("t{}", static_cast<char>('a' + i)); };
  for (int i = 0; i < 17; ++i) {
    all.push_back(vote(id_of(i), past, now(token_of(i))));
    all.push_back(break_lock(fmt::format("<{}>", token_of(i)), "now", now("n")));
    if (i > 0) ids = id_of(i) + (ids.empty() ? "" : ",") + ids;
  }
  all.push_back(value_is(broken, text(fmt::format("v1|<{}>|<n>|{}|op|why not", token_of(16), ids))));
  all.push_back(again(id_of(1), "<tb>", was_broken));
  all.push_back(again(id_of(0), "<tq+60000000>", granted("<tq+60000000>")));
  return all;
}
step raise(const std::string& who, const std::string& token, shape expected) {
  return run(id::raise, {holder, fence}, {who, token}, std::move(expected));
}
step renew_vote(const std::string& token, shape expected, const std::string& record = ours) {
  return run(id::renew, {holder, broken, quorum}, {"<A>", token, "10000", record}, std::move(expected));
}
step inspect_vote(shape expected, const std::string& record = ours) {
  return run(id::inspect, {holder, broken, line, waiters, holders, fence, quorum}, {record}, std::move(expected));
}
step record_is(const std::string& record) { return send({"SET", quorum, record, "PX", "3000"}); }
// The server's time as <t>.
step look_at_the_clock() { return leave("<D>", list({saved("five"), now("t")})); }

std::vector<script_case> token_cases() {
  return {
      {"a_vote_takes_the_proposal_P23",
       {look_at_the_clock(), vote("<A>", "<t+60000000>", granted("<t+60000000>")),
        send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]), 1, 59)", "1", holder},
             text("v1|<A>|<t+60000000>|10000|")),
        left_is(holder, 5000, 10000), value_is(fence, text("<t+60000000>|<A>")),
        left_is(fence, week_ms + 50'000, week_ms + 60'001), value_is(quorum, text(ours)),
        left_is(quorum, week_ms - 5000, week_ms)}},
      {"a_vote_is_clamped_to_max_ttl_and_not_to_less_than_was_given_P13",
       {vote_with({"<A>", "90000", "0", "90000", "ann", "0", past, ours}, now("t")),
        vote("<B>", past, list({number(2), now(), text("v1|<A>|<t>|90000|<t>|ann"), number(80'000, 90'000)})),
        left_is(holder, 80'000, 90'000), send({"PEXPIRE", holder, "3600000"}, number(1)),
        vote("<B>", past, list({number(2), now(), text("v1|<A>|<t>|90000|<t>|ann"), number(90'000)}))}},
      {"a_proposal_behind_its_clock_gets_the_clock_P24",
       {vote("<A>", past, now("t")), value_is(fence, text("<t>|<A>"))}},
      {"a_proposal_not_above_the_last_stamp_gets_the_next_C2",
       {look_at_the_clock(), send({"SET", fence, "<t+60000000>|<B>", "PX", "600000"}),
        vote("<A>", "<t+60000000>", granted("<t+60000001>")), value_is(fence, text("<t+60000001>|<A>"))}},
      {"a_vote_that_is_given_again_has_its_lease_s_token_again",
       {look_at_the_clock(), send({"DEL", fence}, number(1)), again("<A>", "<t-60000000>", granted("<t-60000000>")),
        value_is(holder, text("v1|<A>|<t-60000000>|10000|<t-60000000>|ann")), value_is(fence, text("<t-60000000>|<A>")),
        left_is(fence, week_ms - 5000, week_ms), send({"DEL", holder}, number(1)), again("<A>", "<t-60000000>", spent),
        leave("<B>", not_mine), again("<A>", "<t-60000000>", granted("<t-60000000>")),
        value_is(fence, text("<t-60000000>|<A>")), renew_vote("<t-60000000>", now()),
        release("<A>", "<t-60000000>", now()), vote("<C>", past, now())}},
      {"a_vote_that_is_given_again_is_above_a_larger_stamp_C2",
       {look_at_the_clock(), send({"SET", fence, "<t+60000005>|<B>", "PX", "600000"}),
        again("<A>", "<t+60000000>", granted("<t+60000006>")), value_is(fence, text("<t+60000006>|<A>"))}},
      {"a_vote_that_is_given_again_is_above_its_min_fence_C2",
       {look_at_the_clock(), vote_with({"<A>", "10000", "0", "60000", "ann", "<t+60000000>", "<t+60000000>", ours},
                                       granted("<t+60000001>"), "k")}},
      {"a_lease_s_token_that_its_owner_id_is_none_of_is_given_to_nobody_new_C2",
       {look_at_the_clock(), send({"SET", fence, "<t+60000000>|<A>", "PX", "600000"}),
        vote_with({"<B>", "10000", "0", "60000", "ann", "0", "<t+60000000>", ours}, granted("<t+60000001>"), "h")}},
      {"a_proposal_not_above_min_fence_gets_the_next",
       {look_at_the_clock(), vote_with({"<A>", "10000", "0", "60000", "ann", "<t+60000000>", "<t+59000000>", ours},
                                       granted("<t+60000001>"))}},
      {"a_vote_is_above_a_min_fence_that_is_its_next_stamp_C2",
       {look_at_the_clock(), send({"SET", fence, "<t+60000000>|<B>", "PX", "600000"}),
        vote_with({"<A>", "10000", "0", "60000", "ann", "<t+60000001>", past, ours}, granted("<t+60000002>"))}},
      {"a_proposal_or_a_demand_a_year_ahead_is_refused",
       {vote("<A>", "<now+31536100000000>", list({number(11), now()})),
        vote_with({"<A>", "10000", "0", "60000", "ann", "<now+31536100000000>", past, ours}, list({number(11), now()})),
        is_absent(holder), is_absent(fence), is_absent(quorum)}},
      {"raising_writes_the_larger_token_and_leaves_the_expiry_P23",
       {vote("<A>", past, now("t")), send({"PEXPIRE", holder, "3000"}, number(1)), raise("<A>", "<t+7>", now()),
        value_is(holder, text("v1|<A>|<t+7>|10000|<t>|ann")), left_is(holder, 1, 3000),
        value_is(fence, text("<t+7>|<A>")), left_is(fence, week_ms - 5000, week_ms + 1)}},
      {"raising_twice_is_raising_once",
       {vote("<A>", past, now("t")), raise("<A>", "<t+7>", now()), raise("<A>", "<t+7>", now()),
        value_is(holder, text("v1|<A>|<t+7>|10000|<t>|ann"))}},
      {"raises_nothing_back_C2",
       {vote("<A>", past, now("t")), raise("<A>", "<t-1>", not_mine),
        value_is(holder, text("v1|<A>|<t>|10000|<t>|ann")), value_is(fence, text("<t>|<A>"))}},
      {"raises_nobody_elses_vote_C9",
       {vote("<A>", past, now("t")), raise("<B>", "<t+7>", not_mine), value_is(fence, text("<t>|<A>")),
        release("<A>", "<t>", now()), raise("<A>", "<t+7>", not_mine), is_absent(holder),
        value_is(fence, text("<t>|<A>"))}},
      {"raises_nothing_that_was_broken_meanwhile_P13d",
       {vote("<A>", past, now("t")), break_lock("<t>", "expiry", now()), raise("<A>", "<t+60000000>", not_mine),
        leave("<B>", not_mine), raise("<A>", "<t+60000000>", not_mine), renew_vote("<t>", list({number(6), now()})),
        release("<A>", "<t>", now()), is_absent(holder)}},
      {"raises_nothing_that_is_none",
       {raise("short", past, bad("owner id")), raise("<A>", "17", bad("token")),
        raise("<A>", "9999999999999999", bad("token"))}},
      {"a_raised_vote_is_renewed_and_released_by_its_new_token_P9",
       {vote("<A>", past, now("t")), raise("<A>", "<t+7>", now()),
        renew_vote("<t>", list({number(5), now(), text("taken")})), renew_vote("<t+7>", now()),
        release("<A>", "<t>", not_mine), release("<A>", "<t+7>", now()), is_absent(holder)}},
      {"the_next_vote_is_above_what_was_raised_C2",
       {vote("<A>", past, now("t")), raise("<A>", "<t+60000000>", now()), release("<A>", "<t+60000000>", now()),
        vote("<B>", past, granted("<t+60000001>"))}},
  };
}

std::vector<script_case> vote_cases() {
  return {
      {"a_vote_for_another_is_busy_and_changes_nothing",
       {vote("<A>", past, now("t")),
        vote("<B>", past, list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(5000, 10000)})),
        value_is(fence, text("<t>|<A>"))}},
      {"a_lock_of_ours_is_a_vote_for_another",
       {acquire("<A>", now("t")),
        vote("<B>", past, list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(5000, 10000)})),
        is_absent(quorum)}},
      {"a_repeated_vote_is_mine_under_the_token_that_it_has_H11",
       {vote("<A>", past, now("t")),
        vote("<A>", "<now+60000000>", list({number(1), now(), text("<t>"), number(1, 10000)})),
        value_is(fence, text("<t>|<A>"))}},
      {"a_late_vote_has_no_effect_H12_P10",
       {vote_with({"<A>", "10000", "<now-1>", "60000", "ann", "0", past, ours}, late), is_absent(holder),
        is_absent(quorum)}},
      {"a_withdrawn_vote_is_spent_P9_B55",
       {vote("<A>", past, now("t")), leave("<A>", now()), is_absent(holder), vote("<A>", past, spent),
        is_absent(holder)}},
      {"a_vote_that_was_withdrawn_before_it_came_is_spent_P9_B55",
       {leave("<A>", not_mine), vote("<A>", past, spent), is_absent(holder)}},
      {"a_vote_without_an_expiry_gets_one_C8",
       {vote("<A>", past, now("t")), send({"PERSIST", holder}, number(1)),
        vote("<B>", past, list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(60000)})),
        left_is(holder, 50000, 60000)}},
      {"a_vote_with_a_full_memory_changes_nothing_B70",
       {memory_full(), vote("<A>", past, error("OOM")), memory_free(), is_absent(holder), is_absent(fence),
        is_absent(quorum)}},
      {"a_vote_over_a_list_is_refused_H71",
       {send({"RPUSH", fence, "data"}, number(1)), vote("<A>", past, list({number(9), now(), text("list")})),
        is_absent(holder)},
       {fence}},
      {"refuses_a_vote_with_arguments_that_are_none",
       {vote("short", past, bad("owner id")), vote("<A>", "17", bad("proposal")),
        vote("<A>", past, bad("quorum record"), ""), vote("<A>", past, bad("quorum record"), closed),
        vote("<A>", past, bad("quorum record"), "v1|0000000001|open|a"),
        vote_with({"<A>", "70000", "0", "60000", "ann", "0", past, ours}, bad("ttl")),
        vote_with({"<A>", "10000", "7", "60000", "ann", "0", past, ours}, bad("not_after")),
        vote_with({"<A>", "10000", "0", "60000", "ann", "x", past, ours}, bad("min_fence")),
        vote_as("x", "<A>", bad("standing")), is_absent(holder)}},
  };
}

std::vector<script_case> standing_cases() {
  const shape busy = list({number(2), now(), {shape::kind::anything}, number(1, 10000)});
  const shape free_but_wanted = list({number(2), now(), text(""), number(-2)});
  return {
      {"who_is_first_in_line_for_a_lock_is_not_overtaken_P25",
       {vote_as("-", "<A>", now("ta")), vote_as("h", "<B>", busy), left_is(wanted, 1, 1000),
        release("<A>", "<ta>", now()), vote_as("-", "<C>", free_but_wanted), is_absent(holder),
        vote_as("h", "<B>", now("tb")), is_absent(wanted), release("<B>", "<tb>", now()), vote_as("-", "<C>", now())}},
      {"who_is_first_in_line_for_a_lock_and_does_not_come_again_is_forgotten_C8",
       {vote_as("-", "<A>", now("ta")), vote_as("h", "<B>", busy), release("<A>", "<ta>", now()),
        send({"PEXPIRE", wanted, "50"}, number(1)), until_gone(wanted), vote_as("-", "<C>", now())}},
      {"a_holder_of_a_lock_that_lost_its_vote_gets_it_again_whoever_waits_R18",
       {vote_as("-", "<A>", now()), vote_as("h", "<B>", busy), send({"DEL", holder, fence}, number(2)),
        vote_as("k", "<A>", granted(past)), is_there(wanted)}},
      {"a_vote_that_somebody_broke_is_not_given_again_whoever_had_it_since_P13d_seed_60001835",
       {look_at_the_clock(), vote("<A>", past, now("ta")), break_lock("<ta>", "now", now()),
        vote("<B>", past, now("tb")), release("<B>", "<tb>", now()), again("<A>", "<ta>", was_broken),
        again("<A>", "<t>", was_broken), vote("<C>", past, now("tc")), release("<C>", "<tc>", now()),
        again("<D>", "<tc>", granted("<tc>"))}},
      // The round went on under another server's larger token, and nobody had heard of this one's vote.
      {"a_vote_of_the_round_that_somebody_broke_is_not_given_again_P13d",
       {vote("<A>", past, now("ta")), break_lock("<ta>", "now", now()), again("<A>", "<ta+60000000>", was_broken),
        leave("<B>", not_mine), again("<A>", "<ta+60000000>", was_broken)}},
      {"a_vote_for_who_holds_it_behind_a_broken_one_is_given_P13d",
       {vote("<A>", past, now("ta")), break_lock("<ta>", "now", now()), leave("<B>", not_mine),
        again("<C>", "<ta+60000000>", granted("<ta+60000000>"))}},
      // A try that has come to nothing held it with a larger token than that of the lease.
      {"a_vote_for_who_holds_it_before_a_broken_one_is_given_P13d",
       {vote("<A>", past, now("ta")), release("<A>", "<ta>", now()),
        vote("<B>", "<ta+60000000>", granted("<ta+60000000>")), break_lock("<ta+60000000>", "now", now()),
        leave("<D>", not_mine), again("<C>", "<ta>", granted("<ta+60000002>"))}},
      {"sixteen_votes_that_somebody_broke_are_remembered_P13d", seventeen_breaks()},
      {"none_of_the_votes_that_somebody_broke_is_given_again_P13d",
       {vote("<A>", past, now("ta")), break_lock("<ta>", "now", now()), vote("<B>", past, now("tb")),
        break_lock("<tb>", "now", now()), again("<A>", "<ta>", was_broken), again("<B>", "<tb>", was_broken),
        again("<C>", "<tb+60000000>", granted("<tb+60000000>"))}},
      {"a_vote_that_somebody_broke_at_its_expiry_is_there_until_then_P13d",
       {vote("<A>", past, now("ta")), break_lock("<ta>", "expiry", now()),
        again("<A>", "<ta>", list({number(1), now(), text("<ta>"), number(1, 10000)})),
        send({"PEXPIRE", holder, "50"}, number(1)), until_gone(holder), again("<A>", "<ta>", was_broken)}},
      {"who_finds_a_lock_busy_and_is_not_first_wants_nothing",
       {vote_as("-", "<A>", now()), vote_as("-", "<B>", busy), vote_as("k", "<B>", busy), is_absent(wanted)}},
      {"who_may_not_say_that_it_is_first_is_told_that_it_is_busy_H35",
       {vote_as("-", "<A>", now()), deny("SET"), vote_as("h", "<B>", busy), allow_all(), memory_full(),
        vote_as("h", "<B>", busy), memory_free(), is_absent(wanted)}},
      {"what_is_wanted_is_no_vote_over_a_list_H71",
       {send({"RPUSH", wanted, "data"}, number(1)), vote_as("h", "<A>", list({number(9), now(), text("list")})),
        is_absent(holder)},
       {wanted}},
  };
}

std::vector<script_case> record_cases() {
  return {
      {"another_list_of_servers_gets_no_vote_R19_P26",
       {record_is(theirs), vote("<A>", past, other_quorum(theirs)), is_absent(holder), is_absent(fence),
        value_is(quorum, text(theirs))}},
      {"whoever_looks_with_another_list_is_not_told_free_P26",
       {vote("<A>", past, now("t")), inspect_vote(shape{shape::kind::anything}),
        inspect_vote(other_quorum(ours), theirs), inspect_vote(other_quorum(ours), later), record_is(closed),
        inspect_vote(other_quorum(closed)), record_is(later), inspect_vote(other_quorum(later))}},
      {"of_a_later_generation_that_is_not_open_nothing_is_seen_P26",
       {inspect_vote(list({number(0), now(), none(), number(-2), none(), number(0), list({})})),
        inspect_vote(other_quorum(""), later), is_absent(quorum)}},
      {"a_closed_server_votes_for_nobody_P26",
       {record_is(closed), vote("<A>", past, other_quorum(closed)), vote("<A>", past, other_quorum(closed), later),
        is_absent(holder)}},
      {"a_later_generation_is_not_begun_by_a_vote_P26",
       {vote("<A>", past, other_quorum(""), later), is_absent(quorum), record_is(earlier),
        vote("<A>", past, other_quorum(earlier), later), is_absent(holder), value_is(quorum, text(earlier))}},
      {"a_vote_of_an_opened_generation_counts_and_the_one_before_it_does_not_P26",
       {record_is(later), vote("<A>", past, now(), later), left_is(quorum, long_ms - 5000, long_ms),
        vote("<B>", past, other_quorum(later), earlier), vote("<B>", past, other_quorum(later))}},
      {"what_is_no_record_gets_no_vote", {record_is("what is this"), vote("<A>", past, other_quorum("what is this"))}},
      {"every_vote_lets_the_record_live_on_C8",
       {record_is(ours), vote("<A>", past, now()), left_is(quorum, week_ms - 5000, week_ms)}},
      {"a_renewal_lets_the_record_live_on_P26",
       {vote("<A>", past, now("t")), record_is(ours), renew_vote("<t>", now()),
        left_is(quorum, week_ms - 5000, week_ms)}},
      {"a_renewal_of_a_later_generation_lets_its_record_live_longer_P26",
       {record_is(later), vote("<A>", past, now("t"), later), record_is(later), renew_vote("<t>", now(), later),
        left_is(quorum, long_ms - 5000, long_ms)}},
      {"a_vote_is_not_renewed_on_a_closed_server_P26",
       {vote("<A>", past, now("t")), record_is(closed), send({"PEXPIRE", holder, "3000"}, number(1)),
        renew_vote("<t>", other_quorum(closed)), left_is(holder, 1, 3000)}},
      {"a_vote_is_renewed_where_the_record_is_of_before_or_gone",
       {vote("<A>", past, now("t")), record_is(earlier), renew_vote("<t>", now(), later),
        send({"DEL", quorum}, number(1)), renew_vote("<t>", now())}},
      {"a_record_is_written_over_the_one_that_was_seen",
       {run(id::quorum_record, {quorum}, {closed, ""}, now()), run(id::quorum_record, {quorum}, {later, closed}, now()),
        value_is(quorum, text(later)), left_is(quorum, long_ms - 5000, long_ms)}},
      {"a_record_that_is_there_is_written_again",
       {record_is(later), run(id::quorum_record, {quorum}, {later, ""}, now()),
        left_is(quorum, long_ms - 5000, long_ms)}},
      {"a_record_that_nobody_saw_is_not_written_over",
       {record_is(theirs), run(id::quorum_record, {quorum}, {closed, ours}, other_quorum(theirs)),
        run(id::quorum_record, {quorum}, {closed, ""}, other_quorum(theirs)), value_is(quorum, text(theirs))}},
      {"a_record_is_not_written_over_none_when_one_was_seen",
       {run(id::quorum_record, {quorum}, {closed, ours}, other_quorum("")), is_absent(quorum)}},
      {"refuses_to_write_what_is_no_record",
       {run(id::quorum_record, {quorum}, {"v2|1|open|a", ""}, bad("quorum record")), is_absent(quorum)}},
      {"does_not_write_a_record_over_a_list_H71",
       {send({"RPUSH", quorum, "data"}, number(1)),
        run(id::quorum_record, {quorum}, {ours, ""}, list({number(9), now(), text("list")}))},
       {quorum}},
  };
}

}  // namespace

std::vector<script_case> quorum_cases() {
  auto all = token_cases();
  for (auto& more : vote_cases()) all.push_back(std::move(more));
  for (auto& more : standing_cases()) all.push_back(std::move(more));
  for (auto& more : record_cases()) all.push_back(std::move(more));
  return all;
}

}  // namespace holdfast::tests
