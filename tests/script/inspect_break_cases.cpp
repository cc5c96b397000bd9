// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

namespace holdfast::tests {

namespace {

shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }
shape wrong_kind(const std::string& type) { return list({number(9), now(), text(type)}); }
const shape not_held = list({number(12), now()});
const shape changed_hands = list({number(13), now()});

std::vector<script_case> inspect_cases() {
  return {
      {"sees_nobody", {inspect(list({number(0), now(), none(), number(-2), none(), number(0), list({})}))}},
      {"sees_the_holder_and_changes_nothing",
       {acquire("<A>", now("t")),
        inspect(list(
            {number(0), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(5000, 10000), none(), number(0), list({})})),
        is_there(holder)}},
      {"sees_a_foreign_value_without_expiry",
       {send({"SET", holder, "theirs"}),
        inspect(list({number(0), now(), text("theirs"), number(-1), none(), number(0), list({})}))},
       {holder}},
      {"names_a_wrong_type_H71", {send({"RPUSH", holder, "data"}, number(1)), inspect(wrong_kind("list"))}, {holder}},
      {"sees_a_break_after_it",
       {acquire("<A>", now("t")), break_lock("<t>", "now", now("n")),
        inspect(list({number(0), now(), none(), number(-2), text("v1|<t>|<n>|<A>|op|why not"), number(0), list({})}))}},
      {"looks_with_a_full_memory_H29",
       {memory_full(), inspect(list({number(0), now(), none(), number(-2), none(), number(0), list({})}))}},
  };
}

std::vector<script_case> break_cases() {
  return {
      {"break_at_expiry_leaves_the_holder_and_records_who_and_why_P13d",
       {acquire("<A>", now("t")), break_lock("<t>", "expiry", now("n")),
        send({"EVAL", "return (string.gsub(redis.call('GET', KEYS[1]), '^(v1|%x+|%d+|)%d+|', '%1TTL|'))", "1", holder},
             text("v1|<A>|<t>|TTL|<t>|ann")),
        left_is(holder, 5000, 10000), value_is(broken, text("v1|<t>|<n>|<A>|op|why not")),
        left_is(broken, week_ms - 5000, week_ms)}},
      {"break_now_frees_at_once_and_records_who_and_why_P13d",
       {acquire("<A>", now("t")), break_lock("<t>", "now", now("n")), is_absent(holder),
        value_is(broken, text("v1|<t>|<n>|<A>|op|why not")), left_is(broken, week_ms - 5000, week_ms)}},
      {"break_spends_the_id_P9",
       {acquire("<A>", now("t")), break_lock("<t>", "now", now("n")), acquire("<A>", list({number(4), now()})),
        is_absent(holder)}},
      {"break_raises_the_stamp_C2",
       {send({"SET", fence, "1999999999999998|<B>", "PX", "600000"}),
        acquire("<A>", list({number(0), now(), text("1999999999999999")})),
        break_lock("1999999999999999", "expiry", now()), value_is(fence, text("2000000000000000|<A>")),
        left_is(fence, week_ms + 600'000, week_ms * 1000)}},
      {"break_raises_the_stamp_above_the_token_when_the_fence_was_lost_C2",
       {send({"SET", holder, "v1|<A>|1999999999999999|10000|<now>|ann", "PX", "5000"}),
        break_lock("1999999999999999", "now", now()), value_is(fence, text("2000000000000000|<A>"))}},
      {"does_not_break_what_changed_hands_C9",
       {acquire("<A>", now("t")), release("<A>", "<t>", now()), acquire("<B>", now("u")),
        break_lock("<t>", "now", changed_hands), break_lock("<t>", "expiry", changed_hands), is_there(holder),
        is_absent(broken), value_is(fence, text("<u>|<B>"))}},
      {"does_not_break_what_nobody_holds",
       {break_lock("1795212800000000", "now", not_held), is_absent(fence), is_absent(broken)}},
      {"never_breaks_a_foreign_value",
       {send({"SET", holder, "theirs"}), break_lock("1795212800000000", "now", wrong_kind("string")),
        value_is(holder, text("theirs")), is_absent(fence)},
       {holder}},
      {"never_breaks_an_unknown_version",
       {send({"SET", holder, "v2|<A>|1795212800000000|x"}), break_lock("1795212800000000", "now", wrong_kind("string")),
        is_there(holder)},
       {holder}},
      {"never_breaks_what_only_begins_like_ours",
       {send({"SET", holder, "v1|aaaaaaaaaa"}), break_lock("1795212800000000", "now", wrong_kind("string")),
        value_is(holder, text("v1|aaaaaaaaaa")), send({"SET", holder, "v1|<A>|17952128000000001|10000|1|ann"}),
        break_lock("1795212800000000", "now", wrong_kind("string")), is_there(holder),
        send({"SET", holder, "v1|<A>a|1795212800000000|10000|1|ann"}),
        break_lock("1795212800000000", "now", wrong_kind("string")),
        break_lock("9795212800000000", "expiry", wrong_kind("string")), is_there(holder), is_absent(fence),
        is_absent(broken)},
       {holder}},
      {"never_breaks_a_list_H71",
       {send({"RPUSH", holder, "data"}, number(1)), break_lock("1795212800000000", "now", wrong_kind("list")),
        send({"TYPE", holder}, status("list"))},
       {holder}},
      {"checks_the_side_keys_before_the_first_write_H35",
       {acquire("<A>", now("t")), send({"RPUSH", broken, "data"}, number(1)),
        break_lock("<t>", "now", wrong_kind("list")), is_there(holder), value_is(fence, text("<t>|<A>"))},
       {broken}},
      {"a_repeated_break_keeps_the_first_record",
       {acquire("<A>", now("t")), break_lock("<t>", "expiry", now("n")), break_lock("<t>", "expiry", now()),
        value_is(broken, text("v1|<t>|<n>|<A>|op|why not")), break_lock("<t>", "now", now()), is_absent(holder),
        value_is(broken, text("v1|<t>|<n>|<A>|op|why not"))}},
      {"break_at_expiry_fails_as_a_whole_when_memory_is_full_H29",
       {acquire("<A>", now("t")), memory_full(), break_lock("<t>", "expiry", error("OOM ")), memory_free(),
        is_absent(broken), value_is(fence, text("<t>|<A>"))}},
      {"break_now_works_with_a_full_memory_H29",
       {acquire("<A>", now("t")), memory_full(), break_lock("<t>", "now", now()), is_absent(holder)}},
      {"break_now_is_not_half_said_when_set_is_denied_H35",
       {acquire("<A>", now("t")), deny("SET"), break_lock("<t>", "now", now()), allow_all(), is_absent(holder)}},
      {"refuses_to_break_with_arguments_that_are_none",
       {break_lock("17", "now", bad("token")), break_lock("1795212800000000", "soon", bad("mode")),
        run(id::break_lock, {holder, fence, broken}, {"1795212800000000", "now", "a|b", "why"}, bad("by")),
        run(id::break_lock, {holder, fence, broken}, {"1795212800000000", "now", "op", "a\nb"}, bad("why"))}},
  };
}

}  // namespace

std::vector<script_case> inspect_break_cases() {
  auto all = inspect_cases();
  for (auto& more : break_cases()) all.push_back(std::move(more));
  return all;
}

}  // namespace holdfast::tests
