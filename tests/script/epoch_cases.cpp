// SPDX-License-Identifier: Apache-2.0
// The epoch of a server, and what all other scripts do not do in quarantine.
#include "cases.hpp"

namespace holdfast::tests {

namespace {

const std::string key = "hf:epoch";
const std::string ear = "hf:wake:p";
const std::string sixty_s = "60000";
// So long that it is not over on a server of a day.
const std::string ten_days = "864000000";
constexpr std::int64_t day_ms = 86'400'000;
constexpr std::int64_t life_ms = 400 * day_ms;

step epoch(const std::string& hold, shape expected) { return run(id::epoch, {key}, {hold}, std::move(expected)); }
step look(const std::string& hold, shape expected) {
  return run(id::epoch, {key}, {hold, "", "look"}, std::move(expected));
}
step declare(shape expected) { return run(id::epoch, {key}, {sixty_s, "first"}, std::move(expected)); }

shape quarantine(std::int64_t low, std::int64_t high, std::int64_t ago_low, std::int64_t ago_high) {
  return list({number(8), now(), number(low, high), number(ago_low, ago_high), text("restart")});
}
// About 55 of 60 s, since 5.
const shape fifty_five = quarantine(53'000, 55'000, 5'000, 7'000);

// What this server is, kept as <run> and <id>.
std::vector<step> known(std::vector<step> then) {
  std::vector<step> all{
      send({"EVAL", "return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')", "0"}, saved("run")),
      send({"EVAL", "return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')", "0"},
           saved("id"))};
  all.insert(all.end(), then.begin(), then.end());
  return all;
}
step is_kept(const std::string& value, std::int64_t lives_ms = life_ms) {
  return send({"SET", key, value, "PX", std::to_string(lives_ms)});
}
step kept_hold_is(const std::string& ms) {
  return send({"EVAL", "return string.match(redis.call('GET', KEYS[1]), '|(%d+)$')", "1", key}, text(ms));
}
// Since the key was written, or put off, up to a minute has passed.
step lives_on(std::int64_t lives_ms) { return left_is(key, lives_ms - 60'000, lives_ms); }

}  // namespace

std::vector<script_case> epoch_cases() {
  const std::string other(40, 'c');
  return {
      {"the_same_epoch_goes_on", known({is_kept("v1|<run>|<id>|<now-5000000>|60000"), epoch(sixty_s, fifty_five)})},
      {"an_epoch_that_is_older_than_its_hold_is_nothing_to_wait_for",
       known({is_kept("v1|<run>|<id>|<now-60001000>|60000"), epoch(sixty_s, now())})},
      {"the_largest_hold_of_all_clients_counts_P18",
       known({is_kept("v1|<run>|<id>|<now-5000000>|60000"), epoch("1000", fifty_five),
              is_kept("v1|<run>|<id>|<now-5000000>|1000"), epoch(sixty_s, fifty_five), epoch("1000", fifty_five)})},
      {"who_only_looks_makes_no_quarantine_longer_P18",
       known({is_kept("v1|<run>|<id>|<now-5000000>|1000"), look(sixty_s, now()), kept_hold_is("1000"),
              epoch(sixty_s, fifty_five)})},
      {"who_only_looks_goes_by_its_own_hold_where_nobody_said_one_and_keeps_it_to_itself",
       known({is_kept("v1|<run>|<id>|<now-5000000>|0"), look(sixty_s, fifty_five), kept_hold_is("0"),
              epoch("1000", now()), look(sixty_s, now()), run(id::epoch, {key}, {sixty_s, "first", "look"}, now()),
              value_is(key, text("v1|<run>|<id>|0000000000000000|1000"))})},
      {"another_run_is_a_new_epoch_and_keeps_the_largest_hold",
       known(
           {is_kept("v1|" + other + "|<id>|<now-5000000>|" + ten_days),
            epoch(sixty_s, quarantine(777'000'000, 864'000'000, 0, 87'000'000)),
            send({"EVAL", "return string.match(redis.call('GET', KEYS[1]), '^v1|(%x+)|')", "1", key}, text("<run>"))})},
      {"without_a_key_an_epoch_began_with_the_server_P17",
       {epoch(ten_days, quarantine(777'000'000, 864'000'000, 0, 87'000'000)), lives_on(life_ms)}},
      {"a_value_that_is_none_counts_as_absent",
       {is_kept("v2|what|is|this"), epoch(ten_days, quarantine(777'000'000, 864'000'000, 0, 87'000'000))}},
      {"another_replication_id_alone_is_the_same_epoch_P19",
       known({is_kept("v1|<run>|" + other + "|<now-5000000>|60000"), epoch(sixty_s, fifty_five),
              send({"EVAL", "return string.match(redis.call('GET', KEYS[1]), '^v1|%x+|(%x+)|')", "1", key},
                   text("<id>"))})},
      {"nothing_is_waited_for_when_somebody_says_that_nothing_is_forgotten",
       known({is_kept("v1|" + other + "|<id>|<now-5000000>|60000"), declare(now()), epoch(ten_days, now()),
              value_is(key, text("v1|<run>|<id>|0000000000000000|" + ten_days))})},
      {"a_clock_that_went_back_does_not_lengthen_it_H5",
       known({is_kept("v1|<run>|<id>|<now+3600000000>|60000"), epoch(sixty_s, quarantine(58'000, 60'000, 0, 2'000))})},
      {"the_epoch_key_lives_on_while_it_is_used_C8",
       known({is_kept("v1|<run>|<id>|<now-60001000>|60000", life_ms - day_ms - 1), epoch(sixty_s, now()),
              lives_on(life_ms)})},
      {"the_epoch_key_is_put_off_once_a_day",
       known({is_kept("v1|<run>|<id>|<now-60001000>|60000", life_ms - day_ms / 2), epoch(sixty_s, now()),
              lives_on(life_ms - day_ms / 2)})},
      {"an_epoch_is_known_with_a_full_memory_H29",
       {memory_full(), epoch(ten_days, quarantine(777'000'000, 864'000'000, 0, 87'000'000)), is_absent(key),
        memory_free()}},
      {"an_epoch_is_not_known_without_INFO", {deny("INFO"), epoch(sixty_s, denied()), is_absent(key), allow_all()}},
      {"an_epoch_key_of_another_type_is_refused",
       {send({"RPUSH", key, "a"}, number(1)), epoch(sixty_s, list({number(9), now(), text("list")}))},
       {key}},
      {"a_hold_that_is_no_number_is_refused",
       {epoch("1e3", list({number(10), now(), text("hold")})), epoch("", list({number(10), now(), text("hold")})),
        epoch("1234567890123", list({number(10), now(), text("hold")})), is_absent(key)}},
  };
}

namespace {

const std::vector<std::string> exclusive_keys{holder, fence, line, waiters};
const std::vector<std::string> counted_keys{holder, fence, line, waiters, holders};

step wait_as(const std::string& who, const std::string& told, shape expected) {
  return run(id::wait, exclusive_keys, {who, "10000", "0", "60000", "ann", "0", ear, told, "1000", "0", "0", "x"},
             std::move(expected));
}
step look_as(const std::string& who, const std::string& told, shape expected) {
  return run(id::look, exclusive_keys, {who, "0", "60000", ear, told}, std::move(expected));
}
step wait_counted(const std::string& who, shape expected, const std::string& told = "s", const std::string& mode = "p",
                  const std::string& permits = "1", const std::string& kind = "s1") {
  return run(id::wait_counted, counted_keys,
             {who, "10000", "0", "60000", "ann", "0", ear, told, "1000", "0", "0", mode, permits, kind},
             std::move(expected));
}
shape queued(std::int64_t ahead) {
  return list({number(7),
               now(),
               {shape::kind::token},
               number(ahead),
               number(0, 5000),
               {shape::kind::anything},
               number(-2, 10000)});
}
const shape granted = list({number(0), now(), now("t")});
const shape not_in_line = list({number(15), now()});
step stands(const std::string& who) { return send({"ZSCORE", line, who}, {shape::kind::anything}); }
step in_line(std::int64_t how_many) { return send({"ZCARD", line}, number(how_many)); }

}  // namespace

std::vector<script_case> quarantine_cases() {
  const step a_has_it = acquire("<A>", now("t"));
  const step b_waits = wait_as("<B>", "s", queued(0));
  const step a_has_the_permit = wait_counted("<A>", granted);
  const step b_waits_for_it = wait_counted("<B>", queued(0));
  return {
      {"wait_gives_places_and_nothing_else_in_quarantine_P21",
       {wait_as("<A>", "sq", queued(0)), wait_as("<B>", "-q", queued(1)), is_absent(holder), in_line(2),
        wait_as("<C>", "tq", list({number(14), now()})), in_line(2)}},
      {"a_try_in_quarantine_is_told_who_holds_it",
       {acquire("<A>", now("t")),
        wait_as("<B>", "tq", list({number(2), now(), text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000)}))}},
      {"wait_does_not_claim_in_quarantine_P21",
       {acquire("<A>", now("t")), wait_as("<A>", "sq", not_in_line), is_there(holder)}},
      {"look_grants_nothing_in_quarantine_P21",
       {wait_as("<A>", "sq", queued(0)), look_as("<A>", "sq", queued(0)), is_absent(holder),
        look_as("<A>", "s", list({number(0), now(), {shape::kind::token}})), is_there(holder)}},
      {"look_does_not_claim_what_came_back_P21",
       {acquire("<A>", now("t")), look_as("<A>", "sq", not_in_line), is_there(holder)}},
      {"a_look_in_quarantine_is_a_heartbeat",
       {wait_as("<A>", "sq", queued(0)), send({"HDEL", waiters, ear}, number(1)), look_as("<A>", "sq", queued(0)),
        send({"HEXISTS", waiters, ear}, number(1))}},
      {"release_in_quarantine_only_deletes_P21",
       {listen(ear), a_has_it, b_waits, run(id::release, exclusive_keys, {"<A>", "<t>", "q"}, now()), is_absent(holder),
        stands("<B>"), hears(none())}},
      {"leave_in_quarantine_only_deletes_P21",
       {listen(ear), a_has_it, b_waits, run(id::leave, exclusive_keys, {"<A>", "q"}, now()), is_absent(holder),
        stands("<B>"), hears(none())}},
      {"nobody_goes_on_in_quarantine_P21",
       {listen(ear), a_has_it, b_waits, send({"DEL", holder}, number(1)), run(id::go_on, exclusive_keys, {"q"}, now()),
        is_absent(holder), stands("<B>"), hears(none())}},
      {"break_in_quarantine_only_deletes_P21",
       {listen(ear), a_has_it, b_waits,
        run(id::break_lock, {holder, fence, line, waiters, broken}, {"<t>", "now", "op", "why", "q"}, now()),
        is_absent(holder), stands("<B>"), hears(none())}},
      {"permits_are_not_handed_on_in_quarantine_P21",
       {listen(ear), a_has_the_permit, b_waits_for_it,
        run(id::release_counted, counted_keys, {"<A>", "<t>", "q"}, now()), is_absent(holder), stands("<B>"),
        hears(none())}},
      {"a_broken_permit_is_not_handed_on_in_quarantine_P21",
       {listen(ear), a_has_the_permit, b_waits_for_it,
        run(id::break_counted, {holder, fence, line, waiters, holders, broken}, {"<t>", "now", "op", "why", "q"},
            now()),
        is_absent(holder), stands("<B>"), hears(none())}},
      {"a_semaphore_that_grows_in_quarantine_lets_nobody_in_P21",
       {listen(ear), a_has_the_permit, b_waits_for_it, run(id::resize, counted_keys, {"s2", "0", "q"}, now()),
        stands("<B>"), hears(none())}},
      {"a_downgrade_in_quarantine_lets_nobody_in_P21",
       {listen(ear), wait_counted("<A>", granted, "s", "w", "1000000", "w1000000"),
        wait_counted("<B>", queued(0), "s", "r", "1", "w1000000"),
        run(id::downgrade, counted_keys, {"<A>", "<t>", "q"}, now()), stands("<B>"), hears(none())}},
      {"a_semaphore_lets_nobody_in_in_quarantine_P21",
       {wait_counted("<A>", queued(0), "sq"), is_absent(holder),
        run(id::look_counted, counted_keys, {"<A>", "0", "60000", ear, "sq", "s1"}, queued(0)), is_absent(holder)}},
      {"another_word_than_quarantine_is_refused",
       {wait_as("<A>", "sx", list({number(10), now(), text("told")})),
        look_as("<A>", "sqq", list({number(10), now(), text("told")}))}},
  };
}

}  // namespace holdfast::tests
