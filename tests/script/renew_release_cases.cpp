// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

namespace holdfast::tests {

namespace {

const shape gone = list({number(5), now(), text("gone")});
const shape taken = list({number(5), now(), text("taken")});
const shape not_mine = list({number(5), now()});

shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }

step renew_for(const std::string& who, const std::string& token, const std::string& ttl, shape expected) {
  return run(id::renew, {holder, broken}, {who, token, ttl}, std::move(expected));
}

std::vector<script_case> renew_cases() {
  return {
      {"renews_what_is_ours",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "3000"}, number(1)), renew("<A>", "<t>", now()),
        left_is(holder, 9000, 10000), value_is(holder, text("v1|<A>|<t>|10000|<t>|ann")),
        value_is(fence, text("<t>|<A>"))}},
      {"renews_for_less_when_less_is_asked",
       {acquire("<A>", now("t")), renew_for("<A>", "<t>", "4000", now()), left_is(holder, 3000, 4000)}},
      {"never_renews_for_more_than_the_ttl_in_the_value_P13",
       {acquire("<A>", now("t")), renew_for("<A>", "<t>", "50000", now()), left_is(holder, 9000, 10000)}},
      {"does_not_renew_anothers_C9",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "3000"}, number(1)), renew("<B>", "<t>", taken),
        left_is(holder, 1, 3000)}},
      // P9: the same owner id, granted again after a loss; the old token must not be kept alive by it.
      {"compares_the_token_too_P9",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "3000"}, number(1)), renew("<A>", "<t-1>", taken),
        renew("<A>", "<t+1>", taken), left_is(holder, 1, 3000)}},
      {"never_makes_a_lost_lock_again_B13",
       {acquire("<A>", now("t")), send({"DEL", holder}, number(1)), renew("<A>", "<t>", gone), is_absent(holder)}},
      {"leaves_a_foreign_value_alone",
       {send({"SET", holder, "theirs", "PX", "3000"}), renew("<A>", "1795212800000000", taken),
        left_is(holder, 1, 3000)}},
      {"does_not_trust_a_value_that_only_begins_like_ours",
       {send({"SET", holder, "v1|<A>|17952128000000001", "PX", "3000"}), renew("<A>", "1795212800000000", taken),
        send({"SET", holder, "v1|<A>|1795212800000000", "PX", "3000"}), renew("<A>", "1795212800000000", taken),
        left_is(holder, 1, 3000)}},
      {"finds_a_list_taken_not_gone_H71",
       {send({"RPUSH", holder, "data"}, number(1)), renew("<A>", "1795212800000000", taken)},
       {holder}},
      {"a_broken_lease_is_not_renewed_P13d",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "3000"}, number(1)), break_lock("<t>", "expiry", now()),
        renew("<A>", "<t>", list({number(6), now()})), left_is(holder, 1, 3000)}},
      {"a_lease_broken_before_another_is_told_so_P13d",
       {acquire("<A>", now("t")), break_lock("<t>", "now", now()), acquire("<B>", now("u")),
        renew("<A>", "<t>", list({number(6), now()})), break_lock("<u>", "now", now()),
        renew("<A>", "<t>", list({number(6), now()})), acquire("<C>", now()),
        renew("<A>", "<t>", list({number(6), now()})), renew("<D>", "<t>", taken)}},
      // A waiter whose grant was broken in its claim window asks again under its owner id.
      {"who_was_broken_and_granted_again_is_renewed_P13d",
       {acquire("<A>", now("t")), break_lock("<t>", "now", now()), leave("<B>", list({number(5), now()})),
        acquire("<A>", now("u")), renew("<A>", "<u>", now()), renew("<A>", "<t>", list({number(6), now()}))}},
      {"a_record_of_an_older_break_does_not_stop_renewal_P13d",
       {acquire("<A>", now("t")), break_lock("<t>", "now", now()), acquire("<B>", now("u")),
        send({"PEXPIRE", holder, "3000"}, number(1)), renew("<B>", "<u>", now()), left_is(holder, 9000, 10000)}},
      // B39: PEXPIRE of zero or less deletes the lock and answers 1.
      {"refuses_a_ttl_that_would_delete_B39",
       {acquire("<A>", now("t")), renew_for("<A>", "<t>", "0", bad("ttl")), renew_for("<A>", "<t>", "-5", bad("ttl")),
        renew_for("<A>", "<t>", "", bad("ttl")), renew_for("<A>", "<t>", "1.5", bad("ttl")), is_there(holder)}},
      {"refuses_arguments_that_are_none",
       {renew("short", "1795212800000000", bad("owner id")), renew("<A>", "17", bad("token")),
        renew("<A>", "", bad("token"))}},
      {"renews_with_a_full_memory_H29_B70",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "3000"}, number(1)), memory_full(),
        renew("<A>", "<t>", now()), left_is(holder, 9000, 10000)}},
  };
}

// ---- reserve ----

// By <A>, which has the lock under <t>; its last token is a millisecond old.
step its_last_is(const std::string& stamp, const std::string& mark = "") {
  return send({"SET", fence, stamp + "|<A>" + mark, "PX", "600000"});
}
step reserve(const std::string& who, const std::string& token, const std::string& last, const std::string& block,
             shape expected) {
  return run(id::reserve, {holder, fence, broken}, {who, token, last, block}, std::move(expected));
}
step reserve_more(shape expected) { return reserve("<A>", "<t>", "<t-1000>", "16", std::move(expected)); }

std::vector<script_case> reserve_cases() {
  return {
      {"reserves_more_tokens_for_who_has_the_lock_P14",
       {acquire("<A>", now("t")), its_last_is("<t-1000>"), reserve_more(now()), value_is(fence, text("<t-984>|<A>")),
        left_is(fence, week_ms - 5000, week_ms), value_is(holder, text("v1|<A>|<t>|10000|<t>|ann"))}},
      {"reserves_no_more_where_somebody_may_wait_P14_C7",
       {acquire("<A>", now("t")), its_last_is("<t-1000>", "|q"), reserve_more(not_mine),
        value_is(fence, text("<t-1000>|<A>|q"))}},
      {"a_late_copy_reserves_nothing_P9_P14",
       {acquire("<A>", now("t")), its_last_is("<t-1000>"), reserve_more(now()), reserve_more(not_mine),
        value_is(fence, text("<t-984>|<A>"))}},
      {"reserves_nothing_behind_what_another_left_there_P14b",
       {acquire("<A>", now("t")), send({"SET", fence, "<t-1000>|<B>", "PX", "600000"}), reserve_more(not_mine),
        send({"DEL", fence}, number(1)), reserve_more(not_mine), is_absent(fence)}},
      {"reserves_nothing_for_who_has_not_the_lock_C9",
       {acquire("<A>", now("t")), its_last_is("<t-1000>"), reserve("<B>", "<t>", "<t-1000>", "16", not_mine),
        reserve("<A>", "<t-1>", "<t-1000>", "16", not_mine), send({"DEL", holder}, number(1)), reserve_more(not_mine),
        value_is(fence, text("<t-1000>|<A>"))}},
      // Or a server that lost them would grant smaller ones behind its quarantine.
      {"reserves_none_ahead_of_the_clock_C2",
       {acquire("<A>", now("t")), its_last_is("1999999999999990"),
        reserve("<A>", "<t>", "1999999999999990", "1", not_mine), value_is(fence, text("1999999999999990|<A>"))}},
      {"reserves_nothing_for_who_is_being_broken_P13d",
       {acquire("<A>", now("t")), break_lock("<t>", "expiry", now()), its_last_is("<t-1000>"), reserve_more(not_mine)}},
      {"a_full_memory_reserves_nothing_H29",
       {acquire("<A>", now("t")), its_last_is("<t-1000>"), memory_full(), reserve_more(error("OOM")), memory_free(),
        value_is(fence, text("<t-1000>|<A>"))}},
      {"does_not_reserve_in_a_list_H35",
       {acquire("<A>", now("t")), send({"DEL", fence}, number(1)), send({"RPUSH", fence, "data"}, number(1)),
        reserve_more(not_mine), send({"TYPE", fence}, status("list"))},
       {fence}},
      {"refuses_to_reserve_with_arguments_that_are_none",
       {reserve("short", "1795212800000000", "1795212800000000", "16", bad("owner id")),
        reserve("<A>", "17", "1795212800000000", "16", bad("token")),
        reserve("<A>", "1795212800000000", "17", "16", bad("last")),
        reserve("<A>", "1795212800000000", "179521280000000x", "16", bad("last")),
        reserve("<A>", "1795212800000000", "1795212800000000", "10000", bad("block")),
        reserve("<A>", "1795212800000000", "1795212800000000", "x", bad("block"))}},
  };
}

std::vector<script_case> release_cases() {
  return {
      {"frees_what_is_ours_and_keeps_the_fence",
       {acquire("<A>", now("t")), release("<A>", "<t>", now()), is_absent(holder), value_is(fence, text("<t>|<A>")),
        left_is(fence, week_ms - 5000, week_ms)}},
      {"never_frees_anothers_B42_C9",
       {acquire("<A>", now("t")), release("<B>", "<t>", not_mine), leave("<B>", not_mine), is_there(holder)}},
      // B42: expire, another locks, the first releases.
      {"never_frees_the_successors_B42",
       {run(id::acquire, {holder, fence}, {"<A>", "20", "0", "60000", "ann"}, now("t")), until_gone(holder),
        acquire("<B>", now("u")), release("<A>", "<t>", not_mine), value_is(holder, text("v1|<B>|<u>|10000|<u>|ann"))}},
      {"release_compares_the_token_too_P9",
       {acquire("<A>", now("t")), release("<A>", "<t-1>", not_mine), release("<A>", "<t+1>", not_mine),
        is_there(holder)}},
      {"frees_by_owner_id_alone_when_the_token_is_unknown",
       {acquire("<A>", now("t")), leave("<A>", now()), is_absent(holder)}},
      {"does_not_free_a_value_that_only_begins_like_ours",
       {send({"SET", holder, "v1|<A>a|1795212800000000|1", "PX", "3000"}), leave("<A>", not_mine),
        send({"SET", holder, "v1|<A>|17952128000000001|1", "PX", "3000"}), release("<A>", "1795212800000000", not_mine),
        is_there(holder)}},
      {"releases_where_the_fence_has_our_layout_and_no_stamp",
       {acquire("<A>", now("t")), send({"SET", fence, "xxxxxxxxxxxxxxxx|<A>|q", "PX", "600000"}, status("OK")),
        release("<A>", "<t>", now()), is_absent(holder), acquire("<B>", now())}},
      {"a_second_release_is_not_mine_P12",
       {acquire("<A>", now("t")), release("<A>", "<t>", now()), release("<A>", "<t>", not_mine)}},
      {"leaves_a_foreign_value_or_type_alone",
       {send({"SET", holder, "theirs"}), leave("<A>", not_mine), value_is(holder, text("theirs")),
        send({"DEL", holder}, number(1)), send({"RPUSH", holder, "data"}, number(1)), leave("<A>", not_mine),
        send({"TYPE", holder}, status("list"))},
       {holder}},
      {"does_not_overwrite_a_list_in_the_fence_key_H35",
       {acquire("<A>", now("t")), send({"DEL", fence}, number(1)), send({"RPUSH", fence, "data"}, number(1)),
        release("<A>", "<t>", now()), is_absent(holder), send({"TYPE", fence}, status("list"))},
       {fence}},
      {"keeps_the_stamp_of_its_own_grant_when_the_fence_was_lost_C2",
       {acquire("<A>", now("t")), send({"DEL", fence}, number(1)), release("<A>", "<t>", now()),
        value_is(fence, text("<t>|<A>")), left_is(fence, week_ms - 5000, week_ms)}},
      // Who leaves without having been there, or looks, has written one for the fence that was lost.
      {"keeps_the_stamp_of_its_own_grant_when_a_smaller_one_is_in_the_fence_C2",
       {acquire("<A>", now("t")), send({"DEL", fence}, number(1)), leave("<B>", not_mine), release("<A>", "<t>", now()),
        value_is(fence, text("<t>|<A>"))}},
      {"keeps_a_larger_stamp_when_it_marks_the_id_P9",
       {send({"SET", fence, "1999999999999999|<B>", "PX", "600000"}), leave("<A>", not_mine),
        value_is(fence, text("1999999999999999|<A>")), left_is(fence, week_ms + 600'000, week_ms * 1000)}},
      {"releases_with_a_full_memory_H29_B70",
       {acquire("<A>", now("t")), memory_full(), release("<A>", "<t>", now()), is_absent(holder)}},
      // The mark of the spent id is a SET behind the DEL: it may fail, the release may not.
      {"releases_when_the_spent_mark_cannot_be_written_H35",
       {acquire("<A>", now("t")), send({"DEL", fence}, number(1)), deny("SET"), release("<A>", "<t>", now()),
        allow_all(), is_absent(holder), is_absent(fence)}},
      {"a_clean_up_with_a_full_memory_still_answers_H29",
       {memory_full(), leave("<A>", not_mine), memory_free(), is_there(fence)}},
      {"refuses_to_release_with_arguments_that_are_none",
       {release("short", "1795212800000000", bad("owner id")), leave("short", bad("owner id")),
        release("<A>", "17", bad("token"))}},
  };
}

}  // namespace

std::vector<script_case> renew_release_cases() {
  auto all = renew_cases();
  for (auto& more : reserve_cases()) all.push_back(std::move(more));
  for (auto& more : release_cases()) all.push_back(std::move(more));
  return all;
}

}  // namespace holdfast::tests
