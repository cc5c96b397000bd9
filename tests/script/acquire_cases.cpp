// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

namespace holdfast::tests {

namespace {

// acquire with every argument of its own.
step acquire_with(std::vector<std::string> args, shape expected) {
  return run(id::acquire, {holder, fence}, std::move(args), std::move(expected));
}
step acquire_above(const std::string& who, const std::string& min_fence, shape expected) {
  return acquire_with({who, "10000", "0", "60000", "ann", min_fence}, std::move(expected));
}
step acquire_before(const std::string& who, const std::string& not_after, shape expected) {
  return acquire_with({who, "10000", not_after, "60000", "ann"}, std::move(expected));
}
step last_stamp_is_above(const std::string& token, std::int64_t by) {
  return send(
      {"EVAL", "return tonumber(string.sub(redis.call('GET', KEYS[1]), 1, 16)) - tonumber(ARGV[1])", "1", fence, token},
      number(by));
}
step seeded_fence(const std::string& value) { return send({"SET", fence, value, "PX", "600000"}); }

const shape late = list({number(3), now()});
const shape spent = list({number(4), now()});

shape wrong_kind(const std::string& type) { return list({number(9), now(), text(type)}); }
shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }

std::vector<script_case> grant_cases() {
  return {
      {"reserves_a_block_of_tokens_behind_its_own_P14",
       {acquire_with({"<A>", "10000", "0", "60000", "ann", "0", "16"}, now("t")), last_stamp_is_above("<t>", 16),
        left_is(fence, week_ms - 5000, week_ms + 1)}},
      {"checks_the_block",
       {acquire_with({"<A>", "10000", "0", "60000", "ann", "0", "x"}, bad("block")),
        acquire_with({"<A>", "10000", "0", "60000", "ann", "0", "10000"}, bad("block")), is_absent(holder)}},
      {"grants_a_free_lock_and_writes_all_of_it",
       {acquire("<A>", now("t")), value_is(holder, text("v1|<A>|<t>|10000|<t>|ann")), left_is(holder, 5000, 10000),
        value_is(fence, text("<t>|<A>")), left_is(fence, week_ms - 5000, week_ms)}},
      {"says_busy_with_the_holder_and_changes_nothing",
       {acquire("<A>", now("t")),
        acquire("<B>", list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(5000, 10000)})),
        value_is(holder, text("v1|<A>|<t>|10000|<t>|ann")), value_is(fence, text("<t>|<A>"))}},
      {"is_free_again_after_the_ttl_P13",
       {acquire_with({"<A>", "20", "0", "60000", "ann"}, now("t")), until_gone(holder), acquire("<B>", now("u")),
        value_is(holder, text("v1|<B>|<u>|10000|<u>|ann"))}},
      // H11: the reply was lost and the same id asks again.
      {"a_retry_of_the_same_id_is_mine_and_changes_nothing_H11",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "5000"}, number(1)),
        acquire("<A>", list({number(1), now(), text("<t>"), number(1000, 5000)})), left_is(holder, 1000, 5000),
        value_is(fence, text("<t>|<A>"))}},
      {"compares_the_whole_owner_id_not_a_prefix",
       {send({"SET", holder, "v1|<A>a|1795212800000000|10000", "PX", "5000"}),
        acquire("<A>", list({number(2), now(), text("v1|<A>a|1795212800000000|10000"), number(1, 5000)}))}},
      {"keeps_a_label_with_escapes_as_it_is",
       {acquire_with({"<A>", "10000", "0", "60000", "a%7Cb"}, now("t")),
        value_is(holder, text("v1|<A>|<t>|10000|<t>|a%7Cb"))}},
  };
}

std::vector<script_case> late_and_spent_cases() {
  return {
      // H12: delayed in the network beyond its deadline.
      {"a_late_copy_has_no_effect_H12_P10",
       {acquire_before("<A>", "<now-1>", late), is_absent(holder), is_absent(fence)}},
      {"late_comes_before_mine_P10",
       {acquire("<A>", now("t")), acquire_before("<A>", "<now-1>", late), is_there(holder)}},
      {"is_in_time_before_not_after", {acquire_before("<A>", "<now+5000000>", now("t")), is_there(holder)}},
      {"a_finished_id_is_spent_P9",
       {acquire("<A>", now("t")), release("<A>", "<t>", now()), acquire("<A>", spent), is_absent(holder),
        acquire("<B>", now())}},
      {"an_expired_id_is_spent_P9",
       {acquire_with({"<A>", "20", "0", "60000", "ann"}, now("t")), until_gone(holder), acquire("<A>", spent),
        is_absent(holder)}},
      {"a_clean_up_that_overtakes_makes_the_acquire_spent_P9",
       {leave("<A>", list({number(5), now()})), value_is(fence, text("0000000000000000|<A>")),
        left_is(fence, week_ms - 5000, week_ms), acquire("<A>", spent), is_absent(holder)}},
      {"spent_also_while_another_holds_P9",
       {acquire("<B>", now("t")), leave("<A>", list({number(5), now()})), value_is(fence, text("<t>|<A>")),
        acquire("<A>", spent), value_is(holder, text("v1|<B>|<t>|10000|<t>|ann"))}},
  };
}

std::vector<script_case> stamp_cases() {
  return {
      // C2: a counter would start again at 1 when its key is lost; the clock's floor does not.
      {"tokens_increase_when_the_fence_is_lost_C2",
       {acquire("<A>", now("t")), release("<A>", "<t>", now()), send({"DEL", fence}, number(1)),
        acquire_above("<B>", "<t>", now("u")), value_is(fence, text("<u>|<B>"))}},
      // 0.7: tostring() of the next stamp would be 1.7e+15.
      {"counts_on_from_a_stamp_ahead_of_the_clock_in_16_digits",
       {seeded_fence("1999999999999999|<B>"), acquire("<A>", list({number(0), now("n"), text("2000000000000000")})),
        value_is(holder, text("v1|<A>|2000000000000000|10000|<n>|ann")),
        value_is(fence, text("2000000000000000|<A>"))}},
      // P16: forgotten before the clock is past it, the next stamp would be lower.
      {"a_stamp_ahead_of_the_clock_is_kept_for_longer_P16",
       {acquire_above("<A>", "<now+86400000000>", list({number(0), now(), text("<now+86400000001>")})),
        left_is(fence, week_ms + 86'390'000, week_ms + 86'401'000)}},
      {"a_token_is_above_a_min_fence_that_is_the_next_stamp_C2",
       {send({"EVAL", "return ARGV[1]", "0", "<now+5000000>"}, saved("f")), seeded_fence("<f>|<B>"),
        acquire_above("<A>", "<f+1>", list({number(0), now(), text("<f+2>")}))}},
      {"min_fence_below_the_clock_changes_nothing", {acquire_above("<A>", "0000000000000007", now("t"))}},
      {"min_fence_a_year_ahead_is_refused_P16",
       {acquire_above("<A>", "<now+31536100000000>", list({number(11), now()})), is_absent(holder), is_absent(fence)}},
      {"min_fence_of_2_to_the_53_is_refused_P16",
       {acquire_above("<A>", "9007199254740991", list({number(11), now()})), is_absent(holder)}},
      {"min_fence_that_is_no_number_is_refused_H76",
       {acquire_above("<A>", "1e15", bad("min_fence")), acquire_above("<A>", "-1", bad("min_fence")),
        acquire_above("<A>", "", bad("min_fence")), is_absent(holder)}},
      {"a_fence_that_is_no_stamp_counts_as_absent",
       {seeded_fence("zebra"), acquire("<A>", now("t")), value_is(fence, text("<t>|<A>"))}},
      {"a_fence_beyond_what_lua_can_count_counts_as_absent",
       {seeded_fence("9999999999999999|<B>"), acquire("<A>", now("t")), value_is(fence, text("<t>|<A>"))}},
  };
}

std::vector<script_case> foreign_cases() {
  return {
      {"a_foreign_value_is_busy_and_left_alone_P13",
       {send({"SET", holder, "redis-py", "PX", "90000"}),
        acquire("<A>", list({number(2), now(), text("redis-py"), number(80000, 90000)})), left_is(holder, 80000, 90000),
        is_absent(fence)}},
      {"a_foreign_value_without_expiry_is_busy_for_ever_P13",
       {send({"SET", holder, "theirs"}), acquire("<A>", list({number(2), now(), text("theirs"), number(-1)})),
        left_is(holder, -1, -1)},
       {holder}},
      {"an_unknown_version_is_left_alone",
       {send({"SET", holder, "v2|<A>|more"}), acquire("<A>", list({number(2), now(), text("v2|<A>|more"), number(-1)})),
        left_is(holder, -1, -1)},
       {holder}},
      {"a_long_foreign_value_is_cut_in_the_reply",
       {send({"SET", holder, std::string(5000, 'x'), "PX", "5000"}),
        acquire("<A>", list({number(2), now(), text(std::string(1024, 'x')), number(1, 5000)}))}},
      // B96: SET NX on a list just says nil.
      {"a_list_in_the_holder_key_is_a_wrong_kind_H71_B96",
       {send({"RPUSH", holder, "data"}, number(1)), acquire("<A>", wrong_kind("list")),
        send({"TYPE", holder}, status("list")), is_absent(fence)},
       {holder}},
      {"a_list_in_the_fence_key_is_a_wrong_kind_H35",
       {send({"RPUSH", fence, "data"}, number(1)), acquire("<A>", wrong_kind("list")), is_absent(holder),
        send({"TYPE", fence}, status("list"))},
       {fence}},
      {"clamps_our_own_to_max_ttl_when_the_clock_stepped_back_H5",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "3600000"}, number(1)),
        acquire("<B>", list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(60000)})),
        left_is(holder, 50000, 60000)}},
      {"never_clamps_to_less_than_was_granted_P13",
       {acquire_with({"<A>", "90000", "0", "90000", "ann"}, now("t")),
        acquire("<B>", list({number(2), now(), text("v1|<A>|<t>|90000|<t>|ann"), number(80'000, 90'000)})),
        left_is(holder, 80'000, 90'000), send({"PEXPIRE", holder, "3600000"}, number(1)),
        acquire("<B>", list({number(2), now(), text("v1|<A>|<t>|90000|<t>|ann"), number(90'000)})),
        left_is(holder, 80'000, 90'000)}},
      {"clamps_our_own_without_an_expiry_C8",
       {acquire("<A>", now("t")), send({"PERSIST", holder}, number(1)),
        acquire("<B>", list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(60000)})),
        left_is(holder, 50000, 60000)}},
      // P13: the holder may have renewed to any ttl up to max_ttl; cutting that would make two valid leases.
      {"never_clamps_to_the_ttl_in_the_value_P13",
       {acquire("<A>", now("t")), send({"PEXPIRE", holder, "50000"}, number(1)),
        acquire("<B>", list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(40000, 50000)})),
        left_is(holder, 40000, 50000)}},
  };
}

std::vector<script_case> refusal_cases() {
  const auto odd_ttl = [](const std::string& ms) {
    return acquire_with({"<A>", ms, "0", "60000", "ann"}, error("ERR value is not an integer or out of range"));
  };
  const auto ttl = [](const std::string& ms) { return acquire_with({"<A>", ms, "0", "60000", "ann"}, bad("ttl")); };
  return {
      {"refuses_every_ttl_it_cannot_keep_H9_B39",
       {ttl("0"), ttl("-1"), ttl("1.5"), ttl(""), ttl("60001"), ttl("9223370000000000000"), is_absent(holder)}},
      // Redis is stricter than Lua about what a number is; its SET is the first write, so nothing has happened.
      {"a_ttl_that_only_lua_can_read_is_an_error_and_changes_nothing_H9",
       {odd_ttl("1e3"), odd_ttl("0x10"), odd_ttl(" 1"), is_absent(holder), is_absent(fence)}},
      {"takes_a_ttl_of_exactly_max_ttl_H9", {acquire_with({"<A>", "60000", "0", "60000", "ann"}, now())}},
      {"refuses_an_owner_id_that_is_none_H76",
       {acquire_with({"short", "10000", "0", "60000", "ann"}, bad("owner id")),
        acquire_with({std::string(33, 'a'), "10000", "0", "60000", "ann"}, bad("owner id")), is_absent(holder)}},
      {"refuses_a_not_after_that_is_none",
       {acquire_before("<A>", "17", bad("not_after")), acquire_before("<A>", "", bad("not_after")), is_absent(holder)}},
      {"refuses_a_label_beyond_measure",
       {acquire_with({"<A>", "10000", "0", "60000", std::string(769, 'x')}, bad("owner label")), is_absent(holder)}},
      {"fails_as_a_whole_when_memory_is_full_H29",
       {memory_full(), acquire("<A>", error("OOM ")), is_absent(holder), is_absent(fence), memory_free(),
        acquire("<A>", now())}},
      {"a_missing_permission_is_an_error_and_changes_nothing_H35",
       {deny("SET"), acquire("<A>", denied()), allow_all(), is_absent(holder), is_absent(fence)}},
  };
}

}  // namespace

std::vector<script_case> acquire_cases() {
  std::vector<script_case> all;
  for (auto&& part : {grant_cases(), late_and_spent_cases(), stamp_cases(), foreign_cases(), refusal_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace holdfast::tests
