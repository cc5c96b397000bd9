// SPDX-License-Identifier: Apache-2.0
// The parts of the one table, by script, and the words they share.
#pragma once

#include "script_case.hpp"

namespace holdfast::tests {

using script::id;

inline const std::string holder = "hf:{x}";
inline const std::string fence = "hf:{x}:fence";
inline const std::string line = "hf:{x}:line";
inline const std::string waiters = "hf:{x}:waiters";
inline const std::string broken = "hf:{x}:break";
inline const std::string holders = "hf:{x}:holders";
inline constexpr std::int64_t week_ms = 604'800'000;

// acquire by <who> with a ttl of 10 s, label ann, and no further demands.
inline step acquire(const std::string& who, shape expected) {
  return run(id::acquire, {holder, fence}, {who, "10000", "0", "60000", "ann"}, std::move(expected));
}
inline step renew(const std::string& who, const std::string& token, shape expected) {
  return run(id::renew, {holder, broken}, {who, token, "10000"}, std::move(expected));
}
inline step release(const std::string& who, const std::string& token, shape expected) {
  return run(id::release, {holder, fence, line, waiters}, {who, token}, std::move(expected));
}
inline step leave(const std::string& who, shape expected) {
  return run(id::leave, {holder, fence, line, waiters}, {who}, std::move(expected));
}
inline step break_lock(const std::string& token, const std::string& mode, shape expected) {
  return run(id::break_lock, {holder, fence, line, waiters, broken}, {token, mode, "op", "why not"},
             std::move(expected));
}
inline step inspect(shape expected) {
  return run(id::inspect, {holder, broken, line, waiters, holders, fence}, {}, std::move(expected));
}

inline step go_on(shape expected) { return run(id::go_on, {holder, fence, line, waiters}, {}, std::move(expected)); }
// Done, or a try; and there may be somebody in line who was not seen.
inline const shape unseen = list({number(18), now()});

inline step value_is(const std::string& key, shape expected) { return send({"GET", key}, std::move(expected)); }
inline step left_is(const std::string& key, std::int64_t low, std::int64_t high) {
  return send({"PTTL", key}, number(low, high));
}
inline step is_absent(const std::string& key) { return send({"EXISTS", key}, number(0)); }
// What was heard has that one look, now or later.
inline step is_for(const std::string& who, const std::string& hint) {
  return send({"EVAL", "return string.sub(ARGV[1], 1, 40)", "0", hint}, text("v1|look|" + who));
}
// Whoever was told to stand by for the last grant, in that order, with a blank between them.
inline step stand_by_is(const std::string& who) {
  return send({"EVAL",
               "local who = {} "
               "for id in string.gmatch(redis.call('HGET', KEYS[1], 'standby'), '|(%x+)|%d+') do "
               "who[#who + 1] = id end return table.concat(who, ' ')",
               "1", waiters},
              text(who));
}
// So many of one process that nobody listens for any more, in line before everybody or behind that ticket; they are not
// silent yet.
inline step crowd(int count, const std::string& behind = "0") {
  return send({"EVAL",
               "for i = 1, tonumber(ARGV[1]) do "
               "local id = string.rep(ARGV[3] == '0' and 'd' or 'e', 28) .. (1000 + i) "
               "redis.call('ZADD', KEYS[1], string.format('%.0f', ARGV[3] + i), id) "
               "redis.call('HSET', KEYS[2], id, 'v1|hf:wake:killed|s|10000|1000|0|0|' .. ARGV[2] .. '|x|') end "
               "redis.call('HSET', KEYS[2], 'hf:wake:killed', ARGV[2]) "
               "return redis.call('PEXPIRE', KEYS[2], 60000) + redis.call('PEXPIRE', KEYS[1], 60000)",
               "2", line, waiters, std::to_string(count), "<now>", behind},
              number(2));
}
// So many more hold a place of a counted kind; their leases ended five seconds ago.
inline step dead_holders(int count) {
  return send({"EVAL",
               "for i = 1, tonumber(ARGV[1]) do local id = string.format('%032x', i) "
               "redis.call('ZADD', KEYS[1], ARGV[2], id) "
               "redis.call('HSET', KEYS[2], id, '1|p|-|v1|' .. id .. '|' .. ARGV[2] .. '|10000|' .. ARGV[2] .. '|ann') "
               "end "
               "local used = redis.call('HGET', KEYS[2], 'used') + ARGV[1] "
               "return redis.call('HSET', KEYS[2], 'used', string.format('%.0f', used))",
               "2", holder, holders, std::to_string(count), "<now-5000000>"},
              number(0));
}
// As the server's operator: so many replicas must be there, or nothing is written. There are none.
inline step must_have_replicas(int count) {
  return send({"CONFIG", "SET", "min-replicas-to-write", std::to_string(count)});
}
inline step is_there(const std::string& key) { return send({"EXISTS", key}, number(1)); }

std::vector<script_case> acquire_cases();
std::vector<script_case> data_cases();
std::vector<script_case> epoch_cases();
std::vector<script_case> quarantine_cases();
std::vector<script_case> line_cases();
std::vector<script_case> line_absent_cases();
std::vector<script_case> renew_release_cases();
std::vector<script_case> inspect_break_cases();
std::vector<script_case> quorum_cases();
std::vector<script_case> quorum_counted_cases();
std::vector<script_case> semaphore_cases();
std::vector<script_case> shared_cases();

}  // namespace holdfast::tests
