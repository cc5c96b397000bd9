// SPDX-License-Identifier: Apache-2.0
// Semaphores and shared locks: what several hold together, each on its own.
#include "cases.hpp"

namespace holdfast::tests {

namespace {

const std::string ear = "hf:wake:p";
const std::string other_ear = "hf:wake:q";
const std::string third_ear = "hf:wake:r";
const std::vector<std::string> keys{holder, fence, line, waiters, holders};

struct entry {
  std::string mode = "p";
  std::string permits = "1";
  std::string kind = "s3";
  std::string told = "s";
  std::string process = ear;
  std::string ttl = "10000";
  std::string window = "1000";
  std::string ticket = "0";
};
const entry reader{.mode = "r", .permits = "1", .kind = "w1000000"};
const entry writer{.mode = "w", .permits = "1000000", .kind = "w1000000"};

step wait(const std::string& who, shape expected, const entry& e = {}) {
  return run(
      id::wait_counted, keys,
      {who, e.ttl, "0", "60000", "ann", "0", e.process, e.told, e.window, "0", e.ticket, e.mode, e.permits, e.kind},
      std::move(expected));
}
entry as_try(entry e) {
  e.told = "t";
  return e;
}
step look(const std::string& who, shape expected, const std::string& kind = "s3") {
  return run(id::look_counted, keys, {who, "0", "60000", ear, "s", kind}, std::move(expected));
}
step renew_part(const std::string& who, const std::string& token, shape expected) {
  return run(id::renew_counted, {holder, broken, holders}, {who, token, "10000"}, std::move(expected));
}
step release_part(const std::string& who, const std::string& token, shape expected = now()) {
  return run(id::release_counted, keys, {who, token}, std::move(expected));
}
step leave_part(const std::string& who, shape expected = now()) {
  return run(id::leave_counted, keys, {who}, std::move(expected));
}
step downgrade(const std::string& who, const std::string& token, shape expected = now()) {
  return run(id::downgrade, keys, {who, token}, std::move(expected));
}
step resize(const std::string& kind, shape expected = now(), const std::string& not_after = "0") {
  return run(id::resize, keys, {kind, not_after}, std::move(expected));
}
step break_one(const std::string& token, const std::string& mode, shape expected = now()) {
  auto all = keys;
  all.push_back(broken);
  return run(id::break_counted, all, {token, mode, "op", "why not"}, std::move(expected));
}

shape granted(const std::string& name = {}) { return list({number(0), now(), now(name)}); }
const shape granted_and_unseen = list({number(0), now(), {shape::kind::token}, number(1)});
step let_go_on(shape expected) { return run(id::go_on_counted, keys, {}, std::move(expected)); }
shape claimed() { return list({number(1), now(), {shape::kind::token}, number(10000)}); }
shape queued(std::int64_t ahead, std::int64_t look_least = 0, std::int64_t look_most = 5000) {
  return list({number(7),
               now(),
               {shape::kind::token},
               number(ahead),
               number(look_least, look_most),
               {shape::kind::anything},
               number(-2, 60000)});
}
const shape busy = list({number(2), now(), {shape::kind::anything}, number(1, 60000)});
const shape lined = list({number(14), now()});
const shape not_mine = list({number(5), now()});
const shape gone = list({number(5), now(), text("gone")});
shape other_size(std::int64_t size) { return list({number(16), now(), number(size)}); }
shape wrong(const std::string& what) { return list({number(9), now(), text(what)}); }
shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }
step taken(const std::string& permits) { return send({"HGET", holders, "used"}, text(permits)); }
step holding(std::int64_t count) { return send({"ZCARD", holder}, number(count)); }
// Somebody takes the expiry of what its holders are in, not of who has how much.
const step persist = send({"PERSIST", holder}, number(1));
step waiting(std::int64_t count) { return send({"ZCARD", line}, number(count)); }

}  // namespace

std::vector<script_case> semaphore_cases() {
  return {
      {"semaphore_lets_in_as_many_as_it_has",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), wait("<C>", granted("tc")),
        wait("<D>", busy, as_try({})), taken("3"), holding(3), is_absent(line)}},
      {"semaphore_lets_the_next_in_when_one_leaves_H21",
       {listen(ear), wait("<A>", granted("ta")), wait("<B>", granted(), {.permits = "2"}), wait("<C>", queued(0)),
        wait("<D>", queued(1)), release_part("<A>", "<ta>"), hears({shape::kind::anything}), holding(2), waiting(1),
        look("<C>", claimed()), release_part("<A>", "<ta>", not_mine)}},
      {"weights_count",
       {wait("<A>", granted("ta"), {.permits = "2"}), wait("<B>", busy, as_try({.permits = "2"})),
        wait("<C>", granted("tc")), taken("3"), release_part("<A>", "<ta>"), taken("1"), release_part("<C>", "<tc>"),
        is_absent(holder), is_absent(holders)}},
      {"a_large_request_is_not_overtaken_H63",
       {listen(ear), wait("<A>", granted("ta")), wait("<B>", queued(0), {.permits = "3"}), wait("<C>", queued(1)),
        wait("<D>", busy, as_try({})), release_part("<A>", "<ta>"), hears({shape::kind::anything}),
        look("<B>", claimed()), holding(1), look("<C>", queued(0)), taken("3")}},
      {"a_leaving_large_request_lets_those_behind_it_in_P2",
       {listen(ear), wait("<A>", granted("ta")), wait("<B>", queued(0), {.permits = "3"}), wait("<C>", queued(1)),
        leave_part("<B>"), hears({shape::kind::anything}), look("<C>", claimed()), holding(2), is_absent(line)}},
      {"between_crowds_that_are_not_there_whoever_gave_a_permit_back_goes_on_P2",
       {listen(ear), wait("<A>", granted("ta"), {.kind = "s1"}), crowd(400), wait("<B>", queued(400), {.kind = "s1"}),
        crowd(20, "<now+1000000>"), release_part("<A>", "<ta>", unseen), hears(none()), let_go_on(now()), holding(1),
        hears({shape::kind::anything}), look("<B>", claimed(), "s1"), let_go_on(now())}},
      {"whoever_is_granted_a_permit_before_a_crowd_that_is_not_there_goes_on_P2",
       {wait("<A>", granted("ta"), {.permits = "3"}), wait("<B>", queued(0)), crowd(300, "<now+1000000>"),
        send({"HSET", waiters, ear, "<now>"}, number(0)), send({"ZREM", holder, "<A>"}, number(1)),
        send({"DEL", holders}, number(1)), look("<B>", granted_and_unseen), let_go_on(now()), holding(1)}},
      {"a_writer_who_reads_on_lets_readers_behind_a_crowd_in_P2",
       {listen(ear), wait("<A>", granted("ta"), writer), crowd(400), wait("<B>", queued(400), reader),
        crowd(20, "<now+1000000>"), downgrade("<A>", "<ta>", unseen), hears(none()), let_go_on(now()), holding(2)}},
      {"another_size_is_an_error_that_says_which_it_has",
       {wait("<A>", granted("ta")), wait("<B>", other_size(3), {.kind = "s5"}), release_part("<A>", "<ta>"),
        wait("<B>", other_size(3), {.kind = "s5"}), wait("<B>", granted())}},
      {"the_size_is_known_as_long_as_somebody_holds_also_without_the_fence_C1",
       {wait("<A>", granted("ta"), {.kind = "s1"}), send({"DEL", fence}, number(1)),
        inspect(list({number(0), now(), none(), number(-2), none(), number(0), list({}), text("s1"), number(1),
                      list({{shape::kind::anything}, number(1, 10000)})})),
        wait("<B>", other_size(1), {.kind = "s2"}), wait("<B>", wrong("semaphore"), reader),
        wait("<B>", busy, as_try({.kind = "s1"})), release_part("<A>", "<ta>"),
        wait("<B>", other_size(1), {.kind = "s2"}), wait("<B>", granted(), {.kind = "s1"})}},
      {"a_new_size_is_known_as_long_as_somebody_holds_also_without_the_fence_C1",
       {wait("<A>", granted("ta")), resize("s5"), send({"DEL", fence}, number(1)), wait("<B>", other_size(5)),
        wait("<B>", granted(), {.kind = "s5"}), holding(2)}},
      {"a_holder_who_was_granted_more_is_not_cut_P13",
       {run(id::wait_counted, keys,
            {"<A>", "90000", "0", "90000", "ann", "0", ear, "s", "1000", "0", "0", "p", "1", "s1"}, granted("ta")),
        wait("<B>", list({number(2), now(), {shape::kind::anything}, number(80'000, 90'000)}), as_try({.kind = "s1"})),
        send({"EVAL", "return redis.call('ZADD', KEYS[1], '<now+3600000000>', ARGV[1])", "1", holder, "<A>"},
             number(0)),
        wait("<B>", list({number(2), now(), {shape::kind::anything}, number(90'000)}), as_try({.kind = "s1"}))}},
      // The danger: the first acquire of all is lost on its way and cleaned up. Its mark must not take the name.
      {"a_leave_before_anything_else_does_not_decide_the_kind_P9",
       {leave_part("<A>", not_mine), wait("<A>", list({number(4), now()})), wait("<B>", granted("tb")),
        wait("<C>", other_size(3), {.kind = "s5"}), release_part("<B>", "<tb>"),
        wait("<D>", wrong("semaphore"), writer)}},
      {"more_than_there_can_ever_be_is_refused", {wait("<A>", other_size(3), {.permits = "4"}), is_absent(holder)}},
      {"resize_lets_those_in_who_fit_now_B34",
       {listen(ear), wait("<A>", granted(), {.permits = "3"}), wait("<B>", queued(0)), wait("<C>", queued(1)),
        wait("<D>", queued(2)), resize("s5"), hears({shape::kind::anything}), hears({shape::kind::anything}),
        holding(3), waiting(1), look("<B>", claimed(), "s3"), look("<C>", claimed(), "s3"),
        look("<D>", queued(0), "s3")}},
      {"resize_to_less_takes_nothing_from_anybody",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), wait("<C>", granted("tc")), resize("s1"), holding(3),
        release_part("<A>", "<ta>"), release_part("<B>", "<tb>"), wait("<D>", busy, as_try({.kind = "s1"})),
        release_part("<C>", "<tc>"), wait("<D>", granted(), {.kind = "s1"})}},
      // What each of them holds was lost with the hash.
      {"resize_lets_nobody_in_while_it_is_not_known_who_holds_what",
       {listen(ear), wait("<A>", granted("ta"), {.permits = "2", .ttl = "150", .window = "100"}),
        wait("<B>", queued(0), {.permits = "2"}), send({"DEL", holders}, number(1)), resize("s5"), is_absent(holders),
        waiting(1), until_gone(holder), look("<B>", granted(), "s5"), taken("2")}},
      {"resize_tells_who_waits_for_more_than_there_is",
       {listen(ear), wait("<A>", granted(), {.permits = "3"}), wait("<B>", queued(0), {.permits = "3"}), resize("s2"),
        hears({shape::kind::anything}), look("<B>", other_size(2)), is_absent(line)}},
      // B may be nobody's, and look for itself never.
      {"who_waits_for_more_than_there_can_be_stops_nobody_P5",
       {listen(ear), wait("<A>", granted("ta"), {.permits = "3"}), wait("<B>", queued(0), {.permits = "3"}),
        wait("<C>", queued(1)), resize("s2"), hears({shape::kind::anything}), waiting(2), release_part("<A>", "<ta>"),
        hears({shape::kind::anything}), hears({shape::kind::anything}), holding(1), is_absent(line),
        look("<B>", list({number(15), now()})), wait("<B>", other_size(2), {.permits = "3"}),
        look("<C>", claimed(), "s3")}},
      {"a_look_for_others_names_who_waits_for_more_than_there_is_P8",
       {listen(ear), wait("<A>", granted(), {.permits = "3"}), wait("<B>", queued(0)),
        wait("<C>", queued(1), {.permits = "3"}), wait("<D>", queued(2)),
        send(
            {"EVAL",
             "return redis.call('SET', KEYS[1], (string.gsub(redis.call('GET', KEYS[1]), '|s3$', '|s2')), 'PX', 60000)",
             "1", fence}),
        run(id::look_counted, keys, {"<B>", "0", "60000", ear, "s", "s2", "<C>", "<D>"},
            list({number(7),
                  now(),
                  {shape::kind::token},
                  number(0),
                  number(0, 5000),
                  {shape::kind::anything},
                  number(1, 10000),
                  list({number(1)})}))}},
      {"resize_that_comes_late_has_no_effect_B72",
       {resize("s3", list({number(3), now()}), "<now-1000000>"), is_absent(fence), resize("s3", now(), "<now+1000000>"),
        resize("s5", list({number(3), now()}), "<now-1000000>"), wait("<A>", granted())}},
      {"resize_works_where_the_fence_has_our_layout_and_no_stamp",
       {send({"SET", fence, "xxxxxxxxxxxxxxxx|<A>|s3", "PX", "60000"}, status("OK")), resize("s5"),
        wait("<B>", other_size(5))}},
      {"resize_checks_its_arguments",
       {resize("s3", bad("not_after"), "1"), resize("s0", bad("size")), resize("s1000001", bad("size")),
        resize("w3", bad("size")), resize("", bad("size")), is_absent(fence)}},
      {"a_dead_holder_s_place_comes_back_while_others_renew_B7",
       {wait("<A>", granted("ta"), {.ttl = "150", .window = "100"}), wait("<B>", granted("tb")),
        wait("<C>", granted("tc")), send({"SET", "hf:{t}", "1", "PX", "200"}), renew_part("<B>", "<tb>", now()),
        until_gone("hf:{t}"), renew_part("<A>", "<ta>", gone), renew_part("<C>", "<tc>", now()), wait("<D>", granted()),
        holding(3), taken("3")}},
      {"places_of_300_dead_at_once_come_back_B7",
       {wait("<A>", granted(), {.kind = "s301"}), dead_holders(300),
        wait("<B>", granted(), as_try({.permits = "300", .kind = "s301"})), taken("301"), holding(2)}},
      {"places_of_3000_dead_at_once_come_back_B7",
       {wait("<A>", granted(), {.kind = "s3001"}), dead_holders(3000),
        wait("<B>", granted(), as_try({.permits = "3000", .kind = "s3001"})), taken("3001"), holding(2)}},
      // One step takes out 4096 of them.
      {"who_tries_behind_5000_dead_at_once_is_told_of_a_living_one_B7",
       {wait("<A>", granted(), {.kind = "s5001"}), dead_holders(5000),
        wait("<B>", busy, as_try({.permits = "5000", .kind = "s5001"})),
        wait("<B>", granted(), as_try({.permits = "5000", .kind = "s5001"})), holding(2)}},
      {"who_waits_behind_5000_dead_at_once_looks_soon_B7",
       {listen(ear), wait("<A>", granted(), {.kind = "s5001"}), dead_holders(5000),
        wait("<B>", queued(0, 0, 10), {.permits = "5000", .kind = "s5001"}),
        look("<B>", list({number(0), now(), {shape::kind::token}}), "s5001"), taken("5001"), holding(2)}},
      {"renew_is_for_the_token_only_P9",
       {wait("<A>", granted("ta")), renew_part("<A>", "0000000000000007", list({number(5), now(), text("taken")})),
        renew_part("<B>", "<ta>", gone), renew_part("<A>", "<ta>", now())}},
      {"renew_works_with_a_full_memory",
       {wait("<A>", granted("ta")), memory_full(), renew_part("<A>", "<ta>", now()), memory_free(), holding(1)}},
      {"release_and_leave_work_with_a_full_memory",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), memory_full(), release_part("<A>", "<ta>"),
        leave_part("<B>"), memory_free(), is_absent(holder), is_absent(holders)}},
      {"a_grant_that_does_not_fit_the_memory_changes_nothing_H29",
       {memory_full(), wait("<A>", error("OOM")), memory_free(), is_absent(holder), is_absent(holders)}},
      {"a_grant_that_may_not_expire_is_none_C8",
       {deny("PEXPIRE"), wait("<A>", denied()), allow_all(), is_absent(holder), is_absent(holders), is_absent(fence)}},
      {"a_grant_that_may_not_expire_takes_nothing_from_others_C8",
       {wait("<A>", granted()), deny("PEXPIRE"), wait("<B>", denied()), allow_all(), taken("1"), holding(1),
        send({"HEXISTS", holders, "<B>"}, number(0)), wait("<B>", granted())}},
      {"a_grant_whose_expiry_may_not_be_reckoned_is_none_C8",
       {deny("PTTL"), wait("<A>", denied()), allow_all(), is_absent(holder), is_absent(holders), deny("ZRANGE"),
        wait("<A>", denied()), allow_all(), is_absent(holder), is_absent(holders)}},
      {"a_copy_of_a_granted_request_is_mine_and_takes_nothing_more",
       {wait("<A>", granted("ta")), wait("<A>", claimed()), taken("1"), holding(1)}},
      {"a_copy_behind_the_release_is_spent_P9",
       {wait("<A>", granted("ta")), release_part("<A>", "<ta>"), wait("<A>", list({number(4), now()})),
        is_absent(holder)}},
      {"release_is_for_the_token_only_P9",
       {wait("<A>", granted("ta")), release_part("<A>", "0000000000000007", not_mine), holding(1),
        release_part("<A>", "<ta>")}},
      // B was granted last, so that only the release says that A had its turn.
      {"a_copy_behind_the_release_is_spent_also_when_others_came_P9",
       {wait("<A>", granted("ta")), wait("<B>", granted()), release_part("<A>", "<ta>"),
        wait("<A>", list({number(4), now()})), holding(1)}},
      {"leave_releases_what_nobody_heard_of",
       {wait("<A>", granted()), leave_part("<A>"), is_absent(holder), leave_part("<A>", not_mine)}},
      {"leave_gives_back_what_it_holds_where_its_place_may_not_be_taken_C5",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), deny("HDEL"), leave_part("<A>", denied()), taken("1"),
        holding(1), allow_all()}},
      {"leave_and_look_find_nothing_in_somebody_else_s_key_H71",
       {send({"SET", holder, "theirs", "PX", "9000"}), leave_part("<A>", not_mine), look("<A>", wrong("lock")),
        value_is(holder, text("theirs")), is_absent(fence)}},
      // Nobody can be let in then; but what is held does not depend on these keys.
      {"what_is_given_back_is_gone_where_another_key_is_somebody_else_s_C5",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), wait("<C>", granted("tc")),
        send({"SET", line, "theirs", "PX", "9000"}), release_part("<A>", "<ta>"), taken("2"),
        send({"SET", waiters, "theirs", "PX", "9000"}), leave_part("<B>"), taken("1"), send({"DEL", fence}, number(1)),
        send({"RPUSH", fence, "theirs"}, number(1)), release_part("<C>", "<tc>"), is_absent(holder),
        wait("<D>", wrong("list")), send({"DEL", fence, line, waiters}, number(3)), wait("<D>", granted())}},
      {"tokens_increase_from_holder_to_holder_C2",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")),
        send({"EVAL", "return ARGV[2] > ARGV[1] and 1 or 0", "0", "<ta>", "<tb>"}, number(1))}},
      // C needs more room than there is, and has it when B is done. Nobody had to take B's place.
      {"whoever_stood_by_keeps_its_turn_when_the_grant_was_claimed_P3",
       {listen(ear), listen(other_ear), wait("<A>", granted("ta"), {.permits = "3"}), wait("<B>", queued(0)),
        wait("<C>", queued(1), {.permits = "3", .process = other_ear}), wait("<D>", queued(2)),
        release_part("<A>", "<ta>"), holding(1),
        send({"HSET", waiters, "standby", "<now-1000000>|<C>|<now-500000>|<B>", other_ear, "<now-2000000>"}, number(0)),
        look("<B>", claimed()), wait("<E>", busy, as_try({})), holding(1), waiting(2)}},
      {"stand_bys_are_of_two_processes_P3_C7",
       {listen(ear), listen(other_ear), listen(third_ear), wait("<A>", granted("ta"), {.permits = "3"}),
        wait("<B>", queued(0), {.permits = "3"}), wait("<C>", queued(1), {.process = other_ear}),
        wait("<D>", queued(2), {.process = other_ear}), wait("<E>", queued(3), {.process = third_ear}),
        release_part("<A>", "<ta>"), holding(1), stand_by_is("<C> <E>")}},
      {"stand_bys_are_of_one_process_where_there_is_no_other_P3_C7",
       {listen(ear), listen(other_ear), wait("<A>", granted("ta"), {.permits = "3"}),
        wait("<B>", queued(0), {.permits = "3"}), wait("<C>", queued(1), {.process = other_ear}),
        wait("<D>", queued(2)), wait("<E>", queued(3), {.process = other_ear}),
        wait("<F>", queued(4), {.process = other_ear}), release_part("<A>", "<ta>"), holding(1),
        stand_by_is("<C> <E>")}},
      // Whichever of the two is dead.
      {"of_several_that_are_granted_each_has_somebody_of_another_process_stand_by_P3_C7",
       {listen(ear), listen(other_ear), listen(third_ear), wait("<A>", granted("ta"), {.permits = "3"}),
        wait("<B>", queued(0), {.permits = "2"}), wait("<C>", queued(1), {.process = other_ear}),
        wait("<D>", queued(2)), wait("<E>", queued(3)), wait("<F>", queued(4), {.process = third_ear}),
        release_part("<A>", "<ta>"), holding(2), stand_by_is("<D> <F>")}},
      {"of_two_processes_that_are_granted_both_stand_by_P3_C7",
       {listen(ear), listen(other_ear), wait("<A>", granted("ta"), {.permits = "3"}),
        wait("<B>", queued(0), {.permits = "2"}), wait("<C>", queued(1), {.process = other_ear}),
        wait("<D>", queued(2), {.process = other_ear}), wait("<E>", queued(3)), release_part("<A>", "<ta>"), holding(2),
        stand_by_is("<D> <E>")}},
      // B, which needs more room than there is, was in its way until then, and calls nobody.
      {"who_comes_back_with_its_ticket_has_the_room_that_there_is_C7_P4_seed_50114471",
       {listen(ear), wait("<A>", granted("ta")), wait("<B>", queued(0), {.permits = "3"}),
        wait("<C>", list({number(0), now(), {shape::kind::token}}), {.ticket = "<ta>"}),
        wait("<D>", queued(0), {.permits = "2", .ticket = "<ta>"}), wait("<E>", queued(2)), holding(2), waiting(3)}},
      {"an_unclaimed_grant_ends_with_its_window",
       {listen(ear), wait("<A>", granted("ta"), {.permits = "3"}), wait("<B>", queued(0), {.window = "100"}),
        send({"SET", "hf:{t}", "1", "PX", "150"}), release_part("<A>", "<ta>"), hears({shape::kind::anything}),
        holding(1), until_gone("hf:{t}"), wait("<C>", granted(), {.permits = "3"}), holding(1)}},
      // Nobody tells the first in line that what was given back meanwhile leaves only A in its way.
      {"look_waits_for_the_lease_that_ends_first_P2",
       {listen(ear), wait("<A>", granted(), {.ttl = "3000"}),
        wait("<B>", granted("tb"), {.permits = "2", .ttl = "60000"}), wait("<C>", queued(0, 2900, 3010)),
        leave_part("<C>"), wait("<D>", queued(0, 2900, 3010), {.permits = "3"}), release_part("<B>", "<tb>"),
        look("<D>", queued(0, 2800, 3010))}},
      {"who_would_have_room_but_for_one_before_it_looks_every_second_P2",
       {listen(ear), wait("<A>", granted()), wait("<B>", queued(0, 5000, 5000), {.permits = "3"}),
        wait("<C>", queued(1, 1000, 1000)), wait("<D>", queued(2, 5000, 5000)), look("<C>", queued(1, 1000, 1000)),
        wait("<E>", queued(3, 5000, 5000), {.permits = "3"})}},
      // B may be nobody's: its process lives, and its leave was lost. Nothing else would ever call it.
      {"who_would_have_room_but_for_one_before_it_has_that_one_look_P5",
       {listen(other_ear), listen(ear), wait("<A>", granted()), wait("<B>", queued(0), {.permits = "3"}),
        wait("<C>", queued(1), {.process = other_ear}), hears(saved("hint")), is_for("<B>", "<hint>"), hears(none()),
        run(id::look_counted, keys, {"<C>", "0", "60000", other_ear, "s", "s3"}, queued(1, 1000, 1000)),
        hears(saved("hint")), is_for("<B>", "<hint>"), hears(none()), look("<B>", queued(0)), hears(none()),
        leave_part("<B>"), hears({shape::kind::anything}), holding(2)}},
      {"who_would_have_room_but_for_several_before_it_has_the_first_look_P5",
       {listen(ear), wait("<A>", granted()), wait("<B>", queued(0), {.permits = "3"}),
        wait("<C>", queued(1), {.permits = "3"}), hears(none()), wait("<D>", queued(2, 5000, 5000)),
        hears(saved("hint")), is_for("<B>", "<hint>"), hears(none())}},
      {"a_mark_of_the_kind_that_was_lost_is_written_again_by_who_looks_C7",
       {listen(ear), wait("<A>", granted("ta"), {.permits = "3"}), wait("<B>", queued(0)),
        send({"DEL", fence}, number(1)), memory_full(), look("<B>", queued(0)), memory_free(),
        send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]), 50)", "1", fence}, text("|s3")),
        left_is(fence, week_ms - 60'000, week_ms)}},
      {"an_evicted_hash_lets_nobody_in",
       {wait("<A>", granted("ta")), send({"DEL", holders}, number(1)), wait("<B>", lined, as_try({})),
        renew_part("<A>", "<ta>", gone), release_part("<A>", "<ta>", not_mine)}},
      {"who_leaves_keeps_nobody_out_though_the_hash_is_evicted_P2_C5",
       {wait("<A>", granted()), wait("<B>", granted()), send({"DEL", holders}, number(1)), leave_part("<A>", not_mine),
        holding(1), wait("<C>", lined, as_try({})), leave_part("<B>", not_mine), is_absent(holder),
        wait("<C>", granted())}},
      {"break_ends_one_hold_at_once_and_the_next_is_let_in",
       {listen(ear), wait("<A>", granted("ta"), {.permits = "2"}), wait("<B>", granted("tb")), wait("<C>", queued(0)),
        break_one("<ta>", "now"), hears({shape::kind::anything}), renew_part("<A>", "<ta>", list({number(6), now()})),
        renew_part("<B>", "<tb>", now()), look("<C>", claimed()), is_there(broken)}},
      {"break_at_expiry_stops_the_renewal_of_one",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), break_one("<ta>", "expiry"),
        break_one("<ta>", "expiry"), renew_part("<A>", "<ta>", list({number(6), now()})),
        renew_part("<B>", "<tb>", now()), holding(2)}},
      {"holders_of_permits_broken_one_after_another_are_told_so_P13d",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")), break_one("<ta>", "now"), break_one("<tb>", "now"),
        renew_part("<A>", "<ta>", list({number(6), now()})), wait("<C>", granted("tc")),
        renew_part("<A>", "<ta>", list({number(6), now()})), renew_part("<B>", "<tb>", list({number(6), now()})),
        renew_part("<D>", "<ta>", gone)}},
      {"who_is_named_in_the_words_of_a_break_is_not_broken_C9",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb")),
        run(id::break_counted, {holder, fence, line, waiters, holders, broken}, {"<ta>", "now", "<B>", "like <B>"},
            now()),
        renew_part("<B>", "<tb>", now())}},
      {"a_claim_of_permits_that_were_broken_at_expiry_does_not_lengthen_them_P13d",
       {listen(ear), wait("<A>", granted("ta"), {.permits = "3"}), wait("<B>", queued(0)), release_part("<A>", "<ta>"),
        send({"EVAL", "return string.match(redis.call('HGET', KEYS[1], ARGV[1]), '|v1|%x+|(%d+)|')", "1", holders,
              "<B>"},
             saved("tb")),
        break_one("<tb>", "expiry"), look("<B>", list({number(1), now(), text("<tb>"), number(500, 1000)})),
        left_is(holder, 500, 1000),
        send({"EVAL", "return ARGV[2] > redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0", "1", holder, "<B>",
              "<now+1000000>"},
             number(1))}},
      {"a_claim_of_permits_that_were_broken_is_written_for_WAIT_to_wait_for_P13d",
       {wait("<A>", granted("ta")), break_one("<ta>", "expiry"), persist,
        wait("<A>", list({number(1), now(), text("<ta>"), number(9000, 10000)})), left_is(holder, 9000, 10000)}},
      {"the_next_token_is_above_what_was_broken_also_when_nobody_is_left_C2",
       {wait("<A>", granted("ta")), break_one("<ta>", "expiry"),
        send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]), 1, 16) > ARGV[1] and 1 or 0", "1", fence, "<ta>"},
             number(1))}},
      {"a_break_behind_a_persist_ends_nobody_else_s_hold_C1",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb"), {.ttl = "50000"}), persist, break_one("<ta>", "expiry"),
        left_is(holder, 40000, 50000), left_is(holders, 40000, 50000), renew_part("<B>", "<tb>", now())}},
      {"a_renewal_behind_a_persist_ends_nobody_else_s_hold_C1",
       {wait("<A>", granted("ta")), wait("<B>", granted("tb"), {.ttl = "50000"}), persist,
        renew_part("<A>", "<ta>", now()), left_is(holder, 40000, 50000), left_is(holders, 40000, 50000)}},
      {"a_grant_behind_a_persist_ends_nobody_else_s_hold_C1",
       {wait("<A>", granted(), {.ttl = "50000"}), persist, wait("<B>", granted()), left_is(holder, 40000, 50000),
        left_is(holders, 40000, 50000)}},
      {"a_break_survives_another_type_in_the_record_s_place_H35",
       {wait("<A>", granted("ta")), send({"RPUSH", broken, "data"}, number(1)), break_one("<ta>", "now", wrong("list")),
        break_one("<ta>", "expiry", wrong("list")), send({"TYPE", broken}, status("list")), holding(1),
        renew_part("<A>", "<ta>", now())},
       {broken}},
      {"a_sorted_set_of_another_program_loses_nothing_C9",
       {send({"ZADD", holder, "5", "player", "7", "p2"}, number(2)), wait("<A>", wrong("sorted set")),
        wait("<A>", wrong("sorted set"), as_try(reader)), break_one("0000000000000007", "now", wrong("sorted set")),
        resize("s3", wrong("sorted set")), leave_part("<A>", not_mine), inspect(wrong("sorted set")), holding(2),
        send({"SET", fence, "1795212800000001|<A>"}), break_one("0000000000000007", "now", wrong("sorted set")),
        holding(2), send({"DEL", holder, fence}, number(2)), wait("<A>", granted())}},
      {"break_of_a_token_that_nobody_holds",
       {wait("<A>", granted()), break_one("0000000000000007", "now", list({number(12), now()})), holding(1)}},
      {"inspect_shows_all_of_them",
       {wait("<A>", granted("ta"), {.permits = "2"}), wait("<B>", queued(0), {.permits = "3"}),
        inspect(list({number(0), now(), none(), number(-2), none(), number(1), list({{shape::kind::anything}}),
                      text("s3"), number(2), list({text("2|p|-|v1|<A>|<ta>|10000|<ta>|ann"), number(1, 10000)})}))}},
      {"inspect_shows_that_it_is_full_where_nobody_knows_who_has_how_much_C1",
       {wait("<A>", granted("ta")), send({"DEL", holders}, number(1)),
        inspect(list({number(0), now(), none(), number(-2), none(), number(0), list({}), text("s3"), number(3),
                      list({text(""), number(1, 10000)})})),
        send({"HSET", holders, "used", "garbage", "<A>", "of another"}, number(2)),
        inspect(list({number(0), now(), none(), number(-2), none(), number(0), list({}), text("s3"), number(3),
                      list({text("of another"), number(1, 10000)})})),
        send({"DEL", holders}, number(1)), send({"RPUSH", holders, "data"}, number(1)),
        inspect(list({number(0), now(), none(), number(-2), none(), number(0), list({}), text("s3"), number(3),
                      list({text(""), number(1, 10000)})}))},
       {holders}},
      {"inspect_shows_nobody_whose_lease_has_ended_where_nobody_knows_who_has_how_much",
       {wait("<A>", granted("ta")), send({"DEL", holders}, number(1)), send({"ZADD", holder, "5", "<A>"}, number(0)),
        inspect(list(
            {number(0), now(), none(), number(-2), none(), number(0), list({}), text("s3"), number(0), list({})}))}},
      {"wait_checks_its_arguments",
       {wait("<A>", bad("mode"), {.permits = "0"}), wait("<A>", bad("mode"), {.permits = "x"}),
        wait("<A>", bad("mode"), {.mode = "|"}), is_absent(holder)}},
      {"a_lock_s_name_is_no_semaphore",
       {acquire("<A>", now("ta")), wait("<B>", wrong("lock")),
        run(id::release, {holder, fence, line, waiters}, {"<A>", "<ta>"}, now()), wait("<B>", wrong("lock"))}},
      {"a_semaphore_s_name_is_no_lock",
       {wait("<A>", granted("ta")), acquire("<B>", lined), release_part("<A>", "<ta>"), acquire("<B>", lined),
        run(id::wait, {holder, fence, line, waiters},
            {"<B>", "10000", "0", "60000", "ann", "0", ear, "t", "1000", "0", "0", "x"}, wrong("semaphore")),
        wait("<B>", wrong("semaphore"), reader)}},
  };
}

std::vector<script_case> shared_cases() {
  return {
      {"readers_read_together",
       {wait("<A>", granted(), reader), wait("<B>", granted(), reader), wait("<C>", busy, as_try(writer)), holding(2)}},
      {"a_writer_is_alone_C1",
       {wait("<A>", granted("ta"), writer), wait("<B>", busy, as_try(reader)), wait("<C>", busy, as_try(writer)),
        release_part("<A>", "<ta>"), wait("<B>", granted(), reader)}},
      {"a_writer_waits_for_the_living_and_not_for_300_dead_at_once_B7",
       {listen(ear), wait("<A>", granted("ta"), reader), dead_holders(300), wait("<B>", busy, as_try(writer)),
        wait("<C>", queued(0), writer), taken("1"), release_part("<A>", "<ta>"), hears({shape::kind::anything}),
        look("<C>", claimed(), "w1000000")}},
      {"a_writer_behind_5000_dead_at_once_looks_soon_B7",
       {listen(ear), wait("<A>", granted(), reader), dead_holders(5000), send({"ZREM", holder, "<A>"}, number(1)),
        wait("<C>", queued(0, 0, 10), writer), look("<C>", list({number(0), now(), {shape::kind::token}}), "w1000000"),
        holding(1)}},
      {"a_waiting_writer_is_not_overtaken_H63",
       {listen(ear), wait("<A>", granted("ta"), reader), wait("<B>", queued(0), writer),
        wait("<C>", busy, as_try(reader)), wait("<C>", queued(1), reader), release_part("<A>", "<ta>"),
        hears({shape::kind::anything}), look("<B>", claimed(), "w1000000"), holding(1)}},
      {"readers_behind_a_writer_enter_together",
       {listen(ear), wait("<A>", granted("ta"), writer), wait("<B>", queued(0), reader), wait("<C>", queued(1), reader),
        wait("<D>", queued(2), writer), release_part("<A>", "<ta>"), hears({shape::kind::anything}),
        hears({shape::kind::anything}), holding(2), waiting(1), look("<B>", claimed(), "w1000000"),
        look("<C>", claimed(), "w1000000")}},
      {"downgrade_keeps_the_place_and_lets_readers_in_H63",
       {listen(ear), wait("<A>", granted("ta"), writer), wait("<B>", queued(0), reader), wait("<C>", queued(1), writer),
        downgrade("<A>", "<ta>"), hears({shape::kind::anything}), holding(2), waiting(1),
        renew_part("<A>", "<ta>", now()), look("<B>", claimed(), "w1000000"), taken("2"), downgrade("<A>", "<ta>"),
        taken("2")}},
      {"a_downgrade_behind_a_persist_keeps_the_hold_C1",
       {wait("<A>", granted("ta"), writer), persist, downgrade("<A>", "<ta>"), left_is(holder, 5000, 10000),
        left_is(holders, 5000, 10000), wait("<B>", granted(), reader), renew_part("<A>", "<ta>", now()), holding(2)}},
      {"downgrade_is_for_the_token_only",
       {wait("<A>", granted(), writer), downgrade("<A>", "0000000000000007", not_mine),
        downgrade("<B>", "7", bad("token")), taken("1000000")}},
      {"downgrade_works_with_a_full_memory",
       {wait("<A>", granted("ta"), writer), memory_full(), downgrade("<A>", "<ta>"), memory_free(), taken("1")}},
      {"downgrade_works_where_another_key_is_somebody_else_s_C5",
       {wait("<A>", granted("ta"), writer), send({"SET", line, "theirs", "PX", "9000"}), downgrade("<A>", "<ta>"),
        taken("1")}},
      {"a_semaphore_is_not_downgraded",
       {wait("<A>", granted("ta"), {.permits = "2"}), downgrade("<A>", "<ta>", not_mine), taken("2")}},
      {"a_shared_lock_is_not_resized", {wait("<A>", granted(), reader), resize("s3", wrong("shared lock"))}},
      {"a_foreign_type_is_named",
       {send({"SET", holders, "x", "PX", "9000"}), wait("<A>", wrong("string"), reader),
        resize("s3", wrong("string"))}},
  };
}

}  // namespace holdfast::tests
