// SPDX-License-Identifier: Apache-2.0
// The waiting line: wait, look, leave, and what release, break and acquire do when somebody waits.
#include "cases.hpp"

namespace holdfast::tests {

namespace {

const std::string ear = "hf:wake:p";
const std::string other_ear = "hf:wake:q";
const std::string silent_ear = "hf:wake:silent";
const std::string sharded_ear = "hf:wake:p:{7}";  // As at a node of a cluster.

struct entry {
  std::string block{};
  std::string ttl = "10000";
  std::string not_after = "0";
  std::string min_fence = "0";
  std::string process = ear;
  std::string told = "s";
  std::string window = "1000";
  std::string wait_until = "0";
  std::string ticket = "0";
};

step wait(const std::string& who, shape expected, const entry& e = {}) {
  if (!e.block.empty()) {
    return run(id::wait, {holder, fence, line, waiters},
               {who, e.ttl, e.not_after, "60000", "ann", e.min_fence, e.process, e.told, e.window, e.wait_until,
                e.ticket, "x", e.block},
               std::move(expected));
  }
  return run(
      id::wait, {holder, fence, line, waiters},
      {who, e.ttl, e.not_after, "60000", "ann", e.min_fence, e.process, e.told, e.window, e.wait_until, e.ticket, "x"},
      std::move(expected));
}
step look(const std::string& who, shape expected, const std::string& process = ear, const std::string& told = "s",
          const std::string& not_after = "0") {
  return run(id::look, {holder, fence, line, waiters}, {who, not_after, "60000", process, told}, std::move(expected));
}
step look_for(const std::string& who, const std::vector<std::string>& others, shape expected,
              const std::string& told = "s") {
  std::vector<std::string> args{who, "0", "60000", ear, told, ""};
  args.insert(args.end(), others.begin(), others.end());
  return run(id::look, {holder, fence, line, waiters}, std::move(args), std::move(expected));
}
step release_with_line(const std::string& who, const std::string& token) { return release(who, token, now()); }

// {7, now, ticket, ahead, look_ms, value, pttl}, the ticket kept under `name`.
shape queued(const std::string& name, std::int64_t ahead, std::int64_t look_least = 0, std::int64_t look_most = 5000) {
  return list({number(7), now(), now(name), number(ahead), number(look_least, look_most),
               text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000)});
}
shape still_queued(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), text("<" + ticket + ">"), number(ahead), number(0, 5000),
               text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000)});
}
shape looked_for(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), text("<" + ticket + ">"), number(ahead), number(0, 5000),
               text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000), list({})});
}
// The same of the first in line, who looked for others, too.
shape queued_for(const std::string& ticket, std::vector<shape> missing, std::int64_t look_most = 5000) {
  return list({number(7), now(), text("<" + ticket + ">"), number(0), number(0, look_most),
               text("v1|<A>|<t>|" + std::string{look_most < 5000 ? "3000" : "10000"} + "|<t>|ann"), number(1, 10000),
               list(std::move(missing))});
}
// In line for a lock that nobody holds.
shape queued_free(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), text("<" + ticket + ">"), number(ahead), number(0, 700), text(""), number(-2)});
}
// The same, and there is room for somebody whom this look did not see.
shape goes_on(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), ticket.empty() ? now() : text("<" + ticket + ">"), number(ahead), number(0), text(""),
               number(-2)});
}
step wait_behind_short(const std::string& who, const std::string& ticket = {}) {
  return wait(who, list({number(7), now(), now(ticket), number(0, 9), number(0, 5000), text("v1|<A>|<t>|3000|<t>|ann"),
                         number(1, 3000)}));
}
shape claimed() { return list({number(1), now(), {shape::kind::token}, number(10000)}); }
shape granted(const std::string& name = {}) { return list({number(0), now(), now(name)}); }
const shape not_in_line = list({number(15), now()});
const shape lined = list({number(14), now()});
const shape late = list({number(3), now()});
const shape not_mine = list({number(5), now()});
shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }
step held_by(const std::string& who) {
  return send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]) or '', 4, 35)", "1", holder}, text(who));
}
step hears_something() { return hears({shape::kind::anything}); }

entry with_block(std::string block) {
  entry e;
  e.block = std::move(block);
  return e;
}
entry with_ticket(std::string ticket) {
  entry e;
  e.ticket = std::move(ticket);
  return e;
}
entry from(std::string process, std::string window = "1000") {
  entry e;
  e.process = std::move(process);
  e.window = std::move(window);
  return e;
}
entry until_time(std::string at) {
  entry e;
  e.wait_until = std::move(at);
  return e;
}
entry gives_up_at(std::string at, std::string process) {
  entry e = until_time(std::move(at));
  e.process = std::move(process);
  return e;
}
entry not_after(std::string at) {
  entry e;
  e.not_after = std::move(at);
  return e;
}
entry above(std::string fence) {
  entry e;
  e.min_fence = std::move(fence);
  return e;
}
entry short_window() {
  entry e;
  e.window = "20";
  return e;
}
// So many processes have waited here and looked last at that time.
step processes(int count, const std::string& looked_at) {
  return send({"EVAL",
               "for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], 'hf:wake:gone' .. i, ARGV[2]) end "
               "return redis.call('HEXISTS', KEYS[1], 'hf:wake:gone1')",
               "1", waiters, std::to_string(count), looked_at},
              number(1));
}
step wait_try(const std::string& who, shape expected) {
  entry e;
  e.told = "t";
  return wait(who, std::move(expected), e);
}
step nobody_waits() { return is_absent(line); }
step wait_silently(const std::string& who, shape expected) {
  entry e;
  e.process = silent_ear;
  return wait(who, std::move(expected), e);
}
entry deaf(const std::string& process = ear) {
  entry e;
  e.process = process;
  e.told = "-";
  return e;
}
// It had subscribed when it came, and nobody listens any more.
step has_had_an_ear(const std::string& who) {
  return send({"EVAL",
               "local entry = redis.call('HGET', KEYS[1], ARGV[1])\n"
               "return redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(entry, '|%-%d+|', '|s|')))",
               "1", waiters, who},
              number(0));
}
// Its entry says that it can be told (`s`), or that it cannot.
step ear_is(const std::string& who, const std::string& told) {
  return send(
      {"EVAL", "return string.match(redis.call('HGET', KEYS[1], ARGV[1]), '^v1|[^|]+|([s-])')", "1", waiters, who},
      text(told));
}
// One who cannot be told: so it stands in its entry.
step last_looked_for(const std::string& who, const std::string& at) {
  return send({"EVAL",
               "local entry = redis.call('HGET', KEYS[1], ARGV[1])\n"
               "return redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(entry, '|%-%d+|', '|-' .. ARGV[2] .. '|')))",
               "1", waiters, who, at},
              number(0));
}

std::vector<script_case> order_cases() {
  return {
      {"a_grant_of_the_line_reserves_its_block_P14",
       {listen(ear), acquire("<A>", now("t")), wait("<B>", queued("q", 0), with_block("16")),
        release_with_line("<A>", "<t>"), hears_something(), held_by("<B>"),
        send({"EVAL",
              "return tonumber(string.sub(redis.call('GET', KEYS[1]), 1, 16)) - "
              "tonumber(string.sub(redis.call('GET', KEYS[2]), 37, 52))",
              "2", fence, holder},
             number(16))}},
      {"wait_takes_a_free_lock_and_leaves_no_line",
       {wait("<A>", granted("t")), value_is(holder, text("v1|<A>|<t>|10000|<t>|ann")), left_is(holder, 9000, 10000),
        value_is(fence, text("<t>|<A>")), nobody_waits(), is_absent(waiters)}},
      {"wait_queues_behind_the_holder_in_the_order_of_tickets_C7",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        send({"ZRANGE", line, "0", "-1"}, list({text("<B>"), text("<C>")})), left_is(line, 55'000, 60'000),
        left_is(waiters, 55'000, 60'000), value_is(fence, text("<c>|<A>|q"))}},
      {"a_second_copy_of_wait_changes_nothing_H11",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        wait("<B>", still_queued("b", 0)), send({"ZCARD", line}, number(2))}},
      {"release_grants_the_first_for_its_claim_window_and_says_so_C7",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        release_with_line("<A>", "<t>"), held_by("<B>"), left_is(holder, 500, 1000),
        send({"ZRANGE", line, "0", "-1"}, list({text("<C>")})),
        send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]), 50)", "1", fence}, text("|q"))}},
      {"look_of_the_granted_is_the_claim_and_gives_the_whole_ttl",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), release_with_line("<A>", "<t>"),
        look("<B>", claimed()), left_is(holder, 9000, 10000), nobody_waits()}},
      {"wait_of_the_granted_is_a_claim_too_H11",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), release_with_line("<A>", "<t>"),
        wait("<B>", claimed()), left_is(holder, 9000, 10000)}},
      {"a_claim_works_with_a_full_memory_H29",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), release_with_line("<A>", "<t>"),
        memory_full(), look("<B>", claimed()), left_is(holder, 9000, 10000)}},
      {"a_heartbeat_works_with_a_full_memory_H29",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1), deaf()),
        send({"HSET", waiters, ear, "<now-5000000>"}, number(0)), memory_full(), look("<B>", still_queued("b", 0)),
        send({"HGET", waiters, ear}, saved("beat")), look("<C>", still_queued("c", 1), ear, "-"),
        release_with_line("<A>", "<t>"), held_by("<B>"),
        send({"EVAL", "return ARGV[1] > ARGV[2] and 1 or 0", "0", "<beat>", "<t>"}, number(1))}},
      {"a_new_entry_does_not_fit_a_full_memory_H29",
       {acquire("<A>", now("t")), memory_full(), wait("<B>", error("OOM ")), memory_free(), nobody_waits(),
        is_absent(waiters)}},
      {"a_release_grants_with_a_full_memory_H29",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), memory_full(),
        release_with_line("<A>", "<t>"), held_by("<B>")}},
      {"acquire_does_not_go_before_those_who_wait_P2",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), deaf(silent_ear)),
        release_with_line("<A>", "<t>"), is_absent(holder), acquire("<C>", lined), wait_try("<C>", lined),
        is_absent(holder)}},
      {"a_try_takes_a_free_lock_whose_line_has_only_dead_in_it_P2",
       {acquire("<A>", now("t")), wait_silently("<B>", queued("b", 0)), has_had_an_ear("<B>"),
        release_with_line("<A>", "<t>"), is_absent(holder), acquire("<C>", lined), wait_try("<C>", granted()),
        held_by("<C>")}},
      {"a_try_of_a_held_lock_is_busy_and_does_not_queue",
       {acquire("<A>", now("t")),
        wait_try("<B>", list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000)})), nobody_waits(),
        is_absent(waiters)}},
      {"the_mark_of_a_line_goes_with_the_line",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), leave("<B>", now()), release_with_line("<A>", "<t>"),
        acquire("<C>", now())}},
      {"a_ticket_that_was_had_before_is_taken_back_but_not_above_a_fresh_one_P4_P7",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)), leave("<B>", now()),
        wait("<D>", still_queued("b", 0), with_ticket("<b>")), leave("<D>", now()),
        wait("<D>", queued("d", 1), with_ticket("8999999999999999"))}},
  };
}

std::vector<script_case> absent_cases() {
  return {
      {"whoever_does_not_listen_is_passed_over_and_keeps_its_place_P1",
       {acquire("<A>", now("t")), listen(ear), wait_silently("<B>", queued("b", 0)), has_had_an_ear("<B>"),
        wait("<C>", queued("c", 1)), release_with_line("<A>", "<t>"), held_by("<C>"),
        send({"ZRANGE", line, "0", "-1"}, list({text("<B>")}))}},
      {"whoever_cannot_be_told_is_waited_for_P1",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), deaf(silent_ear)),
        wait("<C>", queued("c", 1)), release_with_line("<A>", "<t>"), is_absent(holder),
        look("<C>", queued_free("c", 1)), look("<B>", granted(), silent_ear, "-"), held_by("<B>"),
        left_is(holder, 9000, 10000)}},
      // Its subscription ended at the server alone, behind a proxy; as one of those who hear each release passed it
      // over.
      {"who_says_that_it_hears_and_is_not_heard_of_is_waited_for_P1",
       {acquire("<A>", now("t")), listen(other_ear), wait_silently("<B>", queued("b", 0, 0, 500)), ear_is("<B>", "-"),
        wait("<C>", queued("c", 1), from(other_ear)), release_with_line("<A>", "<t>"), is_absent(holder),
        look("<B>", granted(), silent_ear)}},
      {"whose_subscription_ended_while_it_waits_is_waited_for_from_its_next_look_on_P1",
       {acquire("<A>", now("t")), listen(other_ear), wait_silently("<B>", queued("b", 0)), has_had_an_ear("<B>"),
        wait("<C>", queued("c", 1), from(other_ear)), look("<B>", still_queued("b", 0), silent_ear), ear_is("<B>", "-"),
        release_with_line("<A>", "<t>"), is_absent(holder), look("<B>", granted(), silent_ear)}},
      {"who_says_that_it_hears_is_believed_where_nobody_may_ask_P1",
       {acquire("<A>", now("t")), deny("PUBSUB"), wait_silently("<B>", queued("b", 0, 501)), ear_is("<B>", "s"),
        look("<B>", still_queued("b", 0), silent_ear), ear_is("<B>", "s"), allow_all()}},
      {"who_hears_a_sharded_channel_is_told_there_and_no_other_is_P1",
       {acquire("<A>", now("t")), listen(sharded_ear), wait("<B>", queued("b", 0), from("hf:wake:q:{7}")),
        has_had_an_ear("<B>"), wait("<C>", queued("c", 1), from(sharded_ear)), release_with_line("<A>", "<t>"),
        held_by("<C>"), hears_something(), hears(none()), send({"ZRANGE", line, "0", "-1"}, list({text("<B>")}))}},
      {"spublish_denied_keeps_the_lock_free_for_the_first_P1",
       {acquire("<A>", now("t")), listen(sharded_ear), wait("<B>", queued("b", 0), from(sharded_ear)), deny("SPUBLISH"),
        release_with_line("<A>", "<t>"), is_absent(holder), send({"HEXISTS", waiters, "deaf"}, number(1)),
        look("<B>", granted(), sharded_ear), held_by("<B>"), allow_all()}},
      {"who_may_not_say_anything_to_a_shard_looks_twice_a_second_P1",
       {acquire("<A>", now("t")), listen(sharded_ear), deny("SPUBLISH"),
        wait("<B>", queued("b", 0, 0, 500), from(sharded_ear)), allow_all()}},
      {"publish_denied_keeps_the_lock_free_for_the_first_P1",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        deny("PUBLISH"), release_with_line("<A>", "<t>"), allow_all(), is_absent(holder),
        send({"HEXISTS", waiters, "deaf"}, number(1)), look("<B>", granted()), held_by("<B>")}},
      {"a_message_that_was_refused_is_forgotten_after_ten_minutes_P1",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)),
        send({"HSET", waiters, "deaf", "<now-599000000>"}, number(1)),
        look(
            "<B>",
            list(
                {number(7), now(), text("<b>"), number(0), number(0, 500), {shape::kind::anything}, number(1, 10000)})),
        send({"HSET", waiters, "deaf", "<now-601000000>"}, number(0)),
        look("<B>", list({number(7),
                          now(),
                          text("<b>"),
                          number(0),
                          number(501, 5000),
                          {shape::kind::anything},
                          number(1, 10000)}))}},
      {"pubsub_denied_counts_as_alive_P1",
       {acquire("<A>", now("t")), listen(ear), wait_silently("<B>", queued("b", 0)), has_had_an_ear("<B>"),
        wait("<C>", queued("c", 1)), deny("PUBSUB"), release_with_line("<A>", "<t>"), allow_all(), held_by("<B>")}},
      // Else the first in line stands beside a free lock, and newcomers take it.
      {"who_asks_is_told_that_the_line_cannot_be_read_and_a_release_is_done_C7",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), deny("ZRANGE"),
        release_with_line("<A>", "<t>"), is_absent(holder), look("<B>", denied()), wait("<C>", denied()), allow_all(),
        is_absent(holder), look("<B>", granted())}},
      {"who_was_silent_for_a_look_is_passed_over_while_a_fresher_one_waits_P3",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0), from(other_ear)),
        wait("<C>", queued("c", 1)), send({"HSET", waiters, other_ear, "<now-7000000>"}, number(0)),
        release_with_line("<A>", "<t>"), held_by("<C>"), send({"ZRANGE", line, "0", "-1"}, list({text("<B>")}))}},
      // The clock went back by an hour behind the look of one that died: it is not there for an hour more.
      {"who_looked_in_the_future_is_passed_over_while_a_fresher_one_waits_H5",
       {listen(ear), listen(other_ear), acquire("<A>", now("t")), wait("<B>", queued("b", 0), from(other_ear)),
        wait("<C>", queued("c", 1)), send({"HSET", waiters, other_ear, "<now+3600000000>"}, number(0)),
        release_with_line("<A>", "<t>"), held_by("<C>")}},
      // Its process looks for others, and nothing would call it.
      {"whom_nobody_looks_for_is_passed_over_when_it_cannot_be_told_P5",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), deaf()), wait("<C>", queued("c", 1)),
        last_looked_for("<B>", "<now-7000000>"), look("<C>", still_queued("c", 1)), release_with_line("<A>", "<t>"),
        held_by("<C>"), send({"ZRANGE", line, "0", "-1"}, list({text("<B>")}))}},
      {"whom_nobody_looked_for_three_times_is_out_of_the_line_when_it_cannot_be_told_P5",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), deaf()), wait("<C>", queued("c", 1)),
        last_looked_for("<B>", "<now-17000000>"), look("<C>", still_queued("c", 1)), release_with_line("<A>", "<t>"),
        held_by("<C>"), nobody_waits()}},
      {"a_look_for_others_is_a_look_for_those_who_cannot_be_told_P5",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        wait("<D>", queued("d", 2)), wait("<E>", queued("e", 3), deaf()), wait("<F>", queued("f", 4), deaf()),
        last_looked_for("<F>", "<now-17000000>"), look_for("<E>", {"<F>"}, looked_for("e", 3), "-"),
        leave("<B>", now()), leave("<C>", now()), leave("<D>", now()), leave("<E>", now()),
        release_with_line("<A>", "<t>"), is_absent(holder), send({"ZRANGE", line, "0", "-1"}, list({text("<F>")}))}},
      {"a_wait_that_is_repeated_is_a_look_P5",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), deaf()), wait("<C>", queued("c", 1)),
        last_looked_for("<B>", "<now-7000000>"), wait("<B>", still_queued("b", 0), deaf()),
        release_with_line("<A>", "<t>"), is_absent(holder)}},
      {"who_was_silent_is_better_than_nobody_P3",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)),
        send({"HSET", waiters, ear, "<now-7000000>"}, number(0)), release_with_line("<A>", "<t>"), held_by("<B>")}},
      {"three_looks_missed_and_it_is_out_of_the_line_P1",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)),
        send({"HSET", waiters, ear, "<now-17000000>"}, number(0)), release_with_line("<A>", "<t>"), is_absent(holder),
        nobody_waits(), look("<B>", not_in_line)}},
      {"who_has_given_up_by_the_servers_clock_is_not_granted_P8",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), until_time("<now+100>")),
        wait("<C>", queued("c", 1)), release_with_line("<A>", "<t>"), held_by("<C>"), nobody_waits()}},
      {"half_an_entry_is_dead_P8",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        send({"HDEL", waiters, "<B>"}, number(1)), release_with_line("<A>", "<t>"), held_by("<C>")}},
      // Its window is not so short that a busy machine sees nothing of it.
      {"a_claim_that_was_missed_frees_the_lock_for_the_next_look_P2",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), from(ear, "500")),
        wait("<C>", queued("c", 1)), release_with_line("<A>", "<t>"), held_by("<B>"), until_gone(holder),
        look("<C>", granted()), held_by("<C>"), look("<B>", not_in_line)}},
      {"stand_by_is_told_to_the_next_of_another_process_P3",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0)),
        wait("<C>", queued("c", 1), from(other_ear)), release_with_line("<A>", "<t>"), hears_something(),
        hears_something(), hears(none()),
        send({"EVAL", "return string.sub(redis.call('HGET', KEYS[1], 'standby'), 17, 49)", "1", waiters},
             text("|<C>"))}},
      {"whoever_stood_by_and_did_not_look_costs_no_window_P3",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0), short_window()),
        wait("<C>", queued("c", 1), from(other_ear)), wait("<D>", queued("d", 2)), release_with_line("<A>", "<t>"),
        until_gone(holder),
        send({"HSET", waiters, "standby", "<now-1000000>|<C>|<now-500000>", other_ear, "<now-2000000>"}, number(0)),
        look("<D>", granted()), held_by("<D>")}},
      {"whoever_stands_by_from_far_away_has_time_to_look_P3_P4",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0), short_window()),
        wait("<C>", queued("c", 1), from(other_ear, "3000")), wait("<D>", queued("d", 2)),
        release_with_line("<A>", "<t>"), until_gone(holder),
        send({"HSET", waiters, "standby", "<now-1000000>|<C>|<now-300000>", other_ear, "<now-2000000>"}, number(0)),
        look("<D>", {shape::kind::anything}), held_by("<C>")}},
      {"behind_a_crowd_that_is_not_there_the_line_goes_on_P2_P7",
       {acquire("<A>", now("t")), listen(ear), crowd(300), wait("<B>", queued("b", 300)), release("<A>", "<t>", unseen),
        is_absent(holder), hears_something(), look("<B>", granted()), held_by("<B>"),
        send({"ZCARD", line}, number(64))}},
      {"between_crowds_that_are_not_there_whoever_released_goes_on_P2",
       {acquire("<A>", now("t")), listen(ear), crowd(800), wait("<B>", queued("b", 800)), crowd(20, "<now+1000000>"),
        release("<A>", "<t>", unseen), hears(none()), go_on(unseen), go_on(unseen), hears(none()), go_on(now()),
        held_by("<B>"), hears_something(), go_on(now()), held_by("<B>"), hears(none())}},
      {"who_goes_on_changes_nothing_where_nobody_waits_P2",
       {go_on(now()), is_absent(holder), is_absent(fence), acquire("<A>", now("t")), go_on(now()), held_by("<A>"),
        send({"RPUSH", line, "data"}, number(1)), send({"DEL", holder}, number(1)), go_on(now()), is_absent(holder),
        send({"DEL", line}, number(1))}},
      {"leave_and_break_say_that_the_line_goes_on_P2",
       {acquire("<A>", now("t")), crowd(700), break_lock("<t>", "now", unseen), wait("<B>", goes_on("", 308)),
        leave("<B>", unseen), go_on(now()), send({"ZCARD", line}, number(64))}},
      {"a_try_asks_again_behind_a_crowd_that_is_not_there_P2",
       {acquire("<A>", now("t")), crowd(500), wait("<B>", queued("b", 500)), leave("<B>", now()),
        release("<A>", "<t>", unseen), wait_try("<C>", unseen), wait_try("<C>", granted()), held_by("<C>")}},
      {"nobody_overtakes_whom_one_script_does_not_see_C7",
       {acquire("<A>", now("t")), listen(ear), crowd(900), wait("<B>", queued("b", 900)), release("<A>", "<t>", unseen),
        wait_try("<C>", unseen), look("<B>", goes_on("b", 312)), wait("<C>", goes_on("", 117)),
        look("<C>", {shape::kind::anything}), held_by("<B>")}},
      {"the_fence_stays_above_all_tickets_and_below_the_next_token_C2",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), release_with_line("<A>", "<t>"),
        send({"EVAL", "return redis.call('GET', KEYS[1]) > ARGV[1] and 1 or 0", "1", fence, "<b>|"}, number(1))}},
      {"a_min_fence_of_a_waiter_is_kept_for_its_grant",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), above("<now+5000000>")),
        release_with_line("<A>", "<t>"),
        send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]), 37, 52) > ARGV[1] and 1 or 0", "1", holder,
              "<now+4000000>"},
             number(1))}},
  };
}

std::vector<script_case> leave_and_look_cases() {
  return {
      {"look_never_adds_an_entry_P5",
       {acquire("<A>", now("t")), look("<B>", not_in_line), nobody_waits(), is_absent(waiters)}},
      {"look_says_the_place_and_refreshes_everything",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        send({"PEXPIRE", line, "3000"}, number(1)), send({"PEXPIRE", waiters, "3000"}, number(1)),
        look("<C>", still_queued("c", 1)), left_is(line, 55'000, 60'000), left_is(waiters, 55'000, 60'000)}},
      {"one_look_is_for_others_of_the_process_too_P8",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        wait("<D>", queued("d", 2)), send({"PEXPIRE", waiters, "3000"}, number(1)),
        look_for("<B>", {"<C>", "<D>"}, queued_for("b", {})), left_is(waiters, 55'000, 60'000)}},
      {"a_look_for_others_names_those_who_are_not_in_line_P8",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        wait("<D>", queued("d", 2)), leave("<C>", now()),
        look_for("<B>", {"<C>", "<D>", "<E>"}, queued_for("b", {number(1), number(3)})),
        send({"HDEL", waiters, "<D>"}, number(1)), look_for("<B>", {"<D>"}, queued_for("b", {number(1)}))}},
      {"a_look_for_others_names_those_who_can_be_told_otherwise_now",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)),
        wait("<C>", queued("c", 1), from(other_ear)), wait("<D>", queued("d", 2)),
        look_for("<B>", {"<C>", "<D>"}, queued_for("b", {number(1)}))}},
      {"a_look_for_others_names_the_first_four_when_an_expiry_is_near_P2",
       {listen(ear), run(id::acquire, {holder, fence}, {"<A>", "3000", "0", "60000", "ann"}, now("t")),
        wait_behind_short("<B>", "b"), wait_behind_short("<C>"), wait_behind_short("<D>"), wait_behind_short("<E>"),
        wait_behind_short("<F>"),
        look_for("<B>", {"<C>", "<D>", "<E>", "<F>"}, queued_for("b", {number(1), number(2), number(3)}, 3002))}},
      {"a_look_that_is_answered_otherwise_says_nothing_of_others",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        release_with_line("<A>", "<t>"), look_for("<B>", {"<C>"}, claimed()), look_for("<D>", {"<C>"}, not_in_line)}},
      {"look_that_is_late_has_no_effect_P10",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), release_with_line("<A>", "<t>"),
        look("<B>", late, ear, "s", "<now-1000000>"), left_is(holder, 0, 1000)}},
      {"wait_that_is_late_does_not_queue_P10",
       {acquire("<A>", now("t")), wait("<B>", late, not_after("<now-1000000>")), nobody_waits()}},
      {"leave_of_the_granted_passes_the_lock_on_P2",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        release_with_line("<A>", "<t>"), leave("<B>", now()), held_by("<C>")}},
      {"leave_of_the_first_lets_the_next_have_a_free_lock_P2",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0), deaf(silent_ear)),
        wait("<C>", queued("c", 1)), release_with_line("<A>", "<t>"), is_absent(holder), leave("<B>", now()),
        held_by("<C>")}},
      {"leave_before_its_wait_arrives_leaves_no_ghost_P5_P9",
       {acquire("<A>", now("t")), leave("<B>", not_mine), wait("<B>", list({number(4), now()})), nobody_waits()}},
      {"leave_twice_is_nothing_the_second_time",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), leave("<B>", now()), leave("<B>", not_mine),
        is_there(holder)}},
      {"leave_is_an_error_where_its_place_stays_for_want_of_replicas_P2",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), must_have_replicas(1), leave("<B>", error("NOREPLICAS")),
        must_have_replicas(0), wait("<B>", still_queued("b", 0)), leave("<B>", now()), nobody_waits()}},
      {"leave_before_anything_else_is_an_error_where_nothing_can_be_written_P9",
       {must_have_replicas(1), leave("<A>", error("NOREPLICAS")), must_have_replicas(0), is_absent(fence),
        leave("<A>", not_mine), is_there(fence)}},
      {"leave_is_an_error_where_its_place_may_not_be_taken_P2",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)), deny("ZREM"),
        leave("<B>", denied()), allow_all(), leave("<B>", now()), deny("HDEL"), leave("<C>", denied()), allow_all(),
        leave("<C>", now()), nobody_waits()}},
      {"leave_gives_back_what_it_holds_where_the_line_is_somebody_else_s_C5",
       {acquire("<A>", now("t")), send({"SET", line, "theirs", "PX", "9000"}),
        send({"SET", waiters, "theirs", "PX", "9000"}), leave("<A>", now()), is_absent(holder)}},
      {"break_now_lets_the_line_move_P13d",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), break_lock("<t>", "now", now()),
        held_by("<B>")}},
      {"break_at_expiry_lets_nobody_in_yet_P13d",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), break_lock("<t>", "expiry", now()),
        held_by("<A>")}},
      {"a_claim_of_what_was_broken_at_expiry_does_not_lengthen_it_P13d",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), release_with_line("<A>", "<t>"),
        send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]), 37, 52)", "1", holder}, saved("u")),
        break_lock("<u>", "expiry", now()), left_is(holder, 500, 1000),
        look("<B>", list({number(1), now(), {shape::kind::token}, number(500, 1000)})), left_is(holder, 500, 1000),
        wait("<B>", list({number(1), now(), {shape::kind::token}, number(500, 1000)})), left_is(holder, 500, 1000)}},
      {"a_foreign_holder_makes_the_first_look_often_also_if_it_can_be_told",
       {listen(ear), send({"SET", holder, "theirs"}),
        wait("<B>", list({number(7), now(), now("b"), number(0), number(500), text("theirs"), number(-1)})),
        send({"DEL", holder}, number(1))}},
      {"stand_by_passes_over_others_of_the_process_that_was_granted_P3",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0)),
        wait("<D>", queued("d", 1)), wait("<C>", queued("c", 2), from(other_ear)), release_with_line("<A>", "<t>"),
        hears_something(), hears_something(), hears(none()),
        send({"EVAL", "return string.sub(redis.call('HGET', KEYS[1], 'standby'), 17, 49)", "1", waiters},
             text("|<C>"))}},
      {"stand_by_passes_over_who_gives_up_before_it_P3_C7",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0)),
        wait("<D>", queued("d", 1), gives_up_at("<now+1100000>", other_ear)),
        wait("<C>", queued("c", 2), from(other_ear)),
        wait("<E>", queued("e", 3), gives_up_at("<now+9000000>", other_ear)), release_with_line("<A>", "<t>"),
        send({"EVAL",
              "local s, sub = redis.call('HGET', KEYS[1], 'standby'), string.sub "
              "return sub(s, 17, 49) .. sub(s, 67, 99) .. sub(s, 117)",
              "1", waiters},
             text("|<C>|<E>|<B>"))}},
      {"stand_by_passes_over_who_is_gone_P1_P3_C7",
       {acquire("<A>", now("t")), listen(ear), listen(other_ear), wait("<B>", queued("b", 0)),
        wait_silently("<D>", queued("d", 1)), has_had_an_ear("<D>"), wait_silently("<E>", queued("e", 2)),
        has_had_an_ear("<E>"), wait("<C>", queued("c", 3), from(other_ear)), release_with_line("<A>", "<t>"),
        send({"EVAL", "return string.sub(redis.call('HGET', KEYS[1], 'standby'), 17, 49)", "1", waiters},
             text("|<C>"))}},
      {"who_is_granted_leaves_nothing_among_those_who_wait",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), wait("<C>", queued("c", 1)),
        release_with_line("<A>", "<t>"), held_by("<B>"), send({"HEXISTS", waiters, "<B>"}, number(0)),
        send({"HEXISTS", waiters, "<C>"}, number(1))}},
      {"an_owner_id_stays_spent_when_its_line_is_over_P9",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), leave("<B>", now()), release_with_line("<A>", "<t>"),
        acquire("<A>", list({number(4), now()})), is_absent(holder)}},
      {"who_was_silent_and_is_gone_costs_no_window_P1",
       {acquire("<A>", now("t")), wait_silently("<B>", queued("b", 0)), has_had_an_ear("<B>"),
        send({"HSET", waiters, silent_ear, "<now-7000000>"}, number(0)), release_with_line("<A>", "<t>"),
        is_absent(holder)}},
      {"a_token_of_the_line_is_above_a_min_fence_that_is_the_next_stamp_C2",
       {send({"EVAL", "return ARGV[1]", "0", "<now+5000000>"}, saved("f")),
        send({"SET", fence, "<f>|<C>", "PX", "600000"}),
        wait("<A>", list({number(0), now(), text("<f+2>")}), above("<f+1>"))}},
      {"a_wait_with_a_min_fence_a_year_ahead_is_refused_P16",
       {acquire("<A>", now("t")), wait("<B>", list({number(11), now()}), above("<now+31536100000000>")), nobody_waits(),
        release_with_line("<A>", "<t>"), wait("<B>", list({number(11), now()}), above("<now+31536100000000>")),
        is_absent(holder)}},
      {"a_waiter_clamps_what_has_no_expiry_C8",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), send({"PERSIST", holder}, number(1)),
        look("<B>", list({number(7), now(), text("<b>"), number(0), number(5000), text("v1|<A>|<t>|10000|<t>|ann"),
                          number(60'000)})),
        left_is(holder, 50'000, 60'000)}},
      {"break_of_a_token_above_the_last_stamp_is_refused_C9",
       {acquire("<A>", now("t")), break_lock("<t+1>", "now", list({number(13), now()})), is_there(holder),
        break_lock("<t+1>", "expiry", list({number(13), now()})), is_absent(broken)}},
      {"leave_of_a_holder_spends_its_id_also_behind_another_s_leave_P9",
       {acquire("<A>", now("t")), leave("<B>", not_mine), leave("<A>", now()), acquire("<A>", list({number(4), now()})),
        is_absent(holder)}},
      {"inspect_shows_the_line",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)),
        inspect(list({number(0), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000), none(), number(1),
                      list({text("v1|hf:wake:p|s|10000|1000|0|0|<b>|x|ann")})}))}},
      {"a_foreign_holder_makes_the_first_look_often",
       {send({"SET", holder, "theirs"}),
        wait("<B>", list({number(7), now(), now("b"), number(0), number(500), text("theirs"), number(-1)})),
        send({"DEL", holder}, number(1)), look("<B>", granted()), held_by("<B>")}},
      {"a_waiter_clamps_to_max_ttl_and_not_to_the_ttl_in_the_value_P13",
       {acquire("<A>", now("t")), listen(ear), send({"PEXPIRE", holder, "50000"}, number(1)),
        wait("<B>", list({number(7), now(), now(), number(0), number(5000), text("v1|<A>|<t>|10000|<t>|ann"),
                          number(49'000, 50'000)})),
        send({"PEXPIRE", holder, "3600000"}, number(1)),
        look("<B>", list({number(7),
                          now(),
                          {shape::kind::token},
                          number(0),
                          number(5000),
                          text("v1|<A>|<t>|10000|<t>|ann"),
                          number(60'000)}))}},
      {"a_waiter_never_clamps_to_less_than_was_granted_P13",
       {listen(ear), run(id::acquire, {holder, fence}, {"<A>", "90000", "0", "90000", "ann"}, now("t")),
        wait("<B>", list({number(7), now(), now(), number(0), number(5000), text("v1|<A>|<t>|90000|<t>|ann"),
                          number(80'000, 90'000)})),
        left_is(holder, 80'000, 90'000)}},
      // Or the mark of the line is gone with it, and who finds the lock free does not ask the line (C7).
      {"the_fence_lives_as_long_as_somebody_waits",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), send({"PEXPIRE", fence, "60000"}, number(1)),
        look("<B>", still_queued("b", 0)), left_is(fence, 604'700'000, 604'800'000)}},
      {"a_fence_that_is_ahead_of_the_clock_is_not_cut_P16",
       {acquire("<A>", now("t")), wait("<B>", queued("b", 0)), send({"PEXPIRE", fence, "904800000"}, number(1)),
        look("<B>", still_queued("b", 0)), left_is(fence, 904'700'000, 904'800'000)}},
      {"a_mark_of_the_line_that_was_lost_is_written_again_by_who_looks_C7",
       {listen(ear), acquire("<A>", now("t")), wait("<B>", queued("b", 0)), send({"DEL", fence}, number(1)),
        memory_full(), look("<B>", still_queued("b", 0)), memory_free(), left_is(fence, week_ms - 60'000, week_ms),
        send({"DEL", holder}, number(1)), acquire("<C>", lined), look("<B>", granted()), held_by("<B>")}},
      {"processes_that_are_gone_do_not_stay_in_a_line_that_is_never_empty",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)),
        wait("<C>", queued("c", 1), from(other_ear)), processes(70, "<now-20000000>"),
        send({"HSET", waiters, other_ear, "<now-16000000>"}, number(0)), look("<B>", still_queued("b", 0)),
        send({"HEXISTS", waiters, "hf:wake:gone1"}, number(0)), send({"HEXISTS", waiters, other_ear}, number(1)),
        send({"HLEN", waiters}, number(5)), look("<C>", still_queued("c", 1), other_ear)}},
      {"processes_that_are_gone_are_looked_for_now_and_then",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), processes(70, "<now-20000000>"),
        send({"HSET", waiters, "swept", "<now-16000000>"}, number(1)), look("<B>", still_queued("b", 0)),
        send({"HLEN", waiters}, number(73)), send({"HSET", waiters, "swept", "<now+3600000000>"}, number(0)),
        look("<B>", still_queued("b", 0)), send({"HLEN", waiters}, number(3))}},
      {"a_look_works_where_processes_that_are_gone_may_not_be_looked_for",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), processes(70, "<now-20000000>"),
        deny("HGETALL"), look("<B>", still_queued("b", 0)), deny("HLEN"), look("<B>", still_queued("b", 0)),
        allow_all()}},
      {"another_type_in_the_lines_place_is_named_H71",
       {send({"RPUSH", line, "data"}, number(1)), wait("<A>", list({number(9), now(), text("list")}))},
       {line}},
      {"a_release_survives_another_type_in_the_lines_place_H35",
       {acquire("<A>", now("t")), send({"SET", fence, "<t>|<A>|q", "PX", "600000"}),
        send({"RPUSH", line, "data"}, number(1)), release_with_line("<A>", "<t>"), is_absent(holder)},
       {line}},
      {"a_release_with_somebody_in_line_survives_another_type_in_the_fence_s_place_H35",
       {acquire("<A>", now("t")), listen(ear), wait("<B>", queued("b", 0)), send({"DEL", fence}, number(1)),
        send({"RPUSH", fence, "data"}, number(1)), release_with_line("<A>", "<t>"), is_absent(holder),
        send({"TYPE", fence}, status("list")), hears(none())},
       {fence}},
      {"wait_refuses_arguments_that_are_none",
       {wait("short", bad("owner id")),
        wait("<A>", bad("told"),
             [] {
               entry e;
               e.told = "x";
               return e;
             }()),
        wait("<A>", bad("window"),
             [] {
               entry e;
               e.window = "10001";
               return e;
             }()),
        wait("<A>", bad("ticket"), with_ticket("12")), wait("<A>", bad("wait_until"), until_time("12")),
        look("short", bad("owner id")), leave("short", bad("owner id")), is_absent(fence), nobody_waits()}},
  };
}

}  // namespace

std::vector<script_case> line_cases() {
  auto cases = order_cases();
  for (auto&& more : {absent_cases(), leave_and_look_cases()}) cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

}  // namespace holdfast::tests
