// SPDX-License-Identifier: Apache-2.0
// The steps of the waiting line, and what is answered to them.
#pragma once

#include "cases.hpp"

#include <string>
#include <utility>
#include <vector>

namespace holdfast::tests::line_steps {

inline const std::string ear = "hf:wake:p";
inline const std::string other_ear = "hf:wake:q";
inline const std::string silent_ear = "hf:wake:silent";
inline const std::string sharded_ear = "hf:wake:p:{7}";  // As at a node of a cluster.

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

inline step wait(const std::string& who, shape expected, const entry& e = {}) {
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
inline step look(const std::string& who, shape expected, const std::string& process = ear,
                 const std::string& told = "s", const std::string& not_after = "0") {
  return run(id::look, {holder, fence, line, waiters}, {who, not_after, "60000", process, told}, std::move(expected));
}
inline step look_for(const std::string& who, const std::vector<std::string>& others, shape expected,
                     const std::string& told = "s") {
  std::vector<std::string> args{who, "0", "60000", ear, told, ""};
  args.insert(args.end(), others.begin(), others.end());
  return run(id::look, {holder, fence, line, waiters}, std::move(args), std::move(expected));
}
inline step release_with_line(const std::string& who, const std::string& token) { return release(who, token, now()); }

// {7, now, ticket, ahead, look_ms, value, pttl}, the ticket kept under `name`.
inline shape queued(const std::string& name, std::int64_t ahead, std::int64_t look_least = 0,
                    std::int64_t look_most = 5000) {
  return list({number(7), now(), now(name), number(ahead), number(look_least, look_most),
               text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000)});
}
inline shape still_queued(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), text("<" + ticket + ">"), number(ahead), number(0, 5000),
               text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000)});
}
inline shape looked_for(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), text("<" + ticket + ">"), number(ahead), number(0, 5000),
               text("v1|<A>|<t>|10000|<t>|ann"), number(1, 10000), list({})});
}
// The same of the first in line, who looked for others, too.
inline shape queued_for(const std::string& ticket, std::vector<shape> missing, std::int64_t look_most = 5000) {
  return list({number(7), now(), text("<" + ticket + ">"), number(0), number(0, look_most),
               text("v1|<A>|<t>|" + std::string{look_most < 5000 ? "3000" : "10000"} + "|<t>|ann"), number(1, 10000),
               list(std::move(missing))});
}
// In line for a lock that nobody holds.
inline shape queued_free(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), text("<" + ticket + ">"), number(ahead), number(0, 700), text(""), number(-2)});
}
// The same, and there is room for somebody whom this look did not see.
inline shape goes_on(const std::string& ticket, std::int64_t ahead) {
  return list({number(7), now(), ticket.empty() ? now() : text("<" + ticket + ">"), number(ahead), number(0), text(""),
               number(-2)});
}
inline shape queued_behind_short(const std::string& ticket = {}, std::int64_t least = 0, std::int64_t most = 5000) {
  return list({number(7), now(), now(ticket), number(0, 9), number(least, most), text("v1|<A>|<t>|3000|<t>|ann"),
               number(1, 3000)});
}
inline step wait_behind_short(const std::string& who, const std::string& ticket = {}) {
  return wait(who, queued_behind_short(ticket));
}
inline shape claimed() { return list({number(1), now(), {shape::kind::token}, number(10000)}); }
inline shape granted(const std::string& name = {}) { return list({number(0), now(), now(name)}); }
inline const shape not_in_line = list({number(15), now()});
inline const shape lined = list({number(14), now()});
inline const shape late = list({number(3), now()});
inline const shape not_mine = list({number(5), now()});
inline shape bad(const std::string& what) { return list({number(10), now(), text(what)}); }
inline step held_by(const std::string& who) {
  return send({"EVAL", "return string.sub(redis.call('GET', KEYS[1]) or '', 4, 35)", "1", holder}, text(who));
}
inline step hears_something() { return hears({shape::kind::anything}); }

inline entry with_block(std::string block) {
  entry e;
  e.block = std::move(block);
  return e;
}
inline entry with_ticket(std::string ticket) {
  entry e;
  e.ticket = std::move(ticket);
  return e;
}
inline entry from(std::string process, std::string window = "1000") {
  entry e;
  e.process = std::move(process);
  e.window = std::move(window);
  return e;
}
inline entry until_time(std::string at) {
  entry e;
  e.wait_until = std::move(at);
  return e;
}
inline entry gives_up_at(std::string at, std::string process) {
  entry e = until_time(std::move(at));
  e.process = std::move(process);
  return e;
}
inline entry not_after(std::string at) {
  entry e;
  e.not_after = std::move(at);
  return e;
}
inline entry above(std::string fence) {
  entry e;
  e.min_fence = std::move(fence);
  return e;
}
inline entry short_window() {
  entry e;
  e.window = "20";
  return e;
}
// So many processes have waited here and looked last at that time.
inline step processes(int count, const std::string& looked_at) {
  return send({"EVAL",
               "for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], 'hf:wake:gone' .. i, ARGV[2]) end "
               "return redis.call('HEXISTS', KEYS[1], 'hf:wake:gone1')",
               "1", waiters, std::to_string(count), looked_at},
              number(1));
}
inline step wait_try(const std::string& who, shape expected) {
  entry e;
  e.told = "t";
  return wait(who, std::move(expected), e);
}
inline step nobody_waits() { return is_absent(line); }
inline step wait_silently(const std::string& who, shape expected) {
  entry e;
  e.process = silent_ear;
  return wait(who, std::move(expected), e);
}
inline entry deaf(const std::string& process = ear) {
  entry e;
  e.process = process;
  e.told = "-";
  return e;
}
// It had subscribed when it came, and nobody listens any more.
inline step has_had_an_ear(const std::string& who) {
  return send({"EVAL",
               "local entry = redis.call('HGET', KEYS[1], ARGV[1])\n"
               "return redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(entry, '|%-%d+|', '|s|')))",
               "1", waiters, who},
              number(0));
}
// Its entry says that it can be told (`s`), or that it cannot.
inline step ear_is(const std::string& who, const std::string& told) {
  return send(
      {"EVAL", "return string.match(redis.call('HGET', KEYS[1], ARGV[1]), '^v1|[^|]+|([s-])')", "1", waiters, who},
      text(told));
}
// Nobody of this process has looked since.
inline step last_looked_at(const std::string& process, const std::string& at = "<now-1000000>") {
  return send({"HSET", waiters, process, at}, number(0));
}
// A key's expiry is cut to milliseconds.
inline const std::string a_while = "hf:{t}";
inline step some_milliseconds() { return send({"SET", a_while, "1", "PX", "10"}); }
// One who cannot be told: so it stands in its entry.
inline step last_looked_for(const std::string& who, const std::string& at) {
  return send({"EVAL",
               "local entry = redis.call('HGET', KEYS[1], ARGV[1])\n"
               "return redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(entry, '|%-%d+|', '|-' .. ARGV[2] .. '|')))",
               "1", waiters, who, at},
              number(0));
}

}  // namespace holdfast::tests::line_steps
