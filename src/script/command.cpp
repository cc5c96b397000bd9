// SPDX-License-Identifier: Apache-2.0
#include "script/command.hpp"

#include "base/assert.hpp"
#include "resp/writer.hpp"
#include "script/field.hpp"

#include <cstdint>
#include <utility>

namespace holdfast::script {

namespace {

constexpr std::size_t longest_label = 256;

// For people: cut where a UTF-8 character begins, then escaped.
std::string label_field(std::string_view label) {
  if (label.size() > longest_label) {
    std::size_t end = longest_label;
    while (end > longest_label - 4 && (static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;
    label = label.substr(0, end);
  }
  return escape(label, "|");
}

std::string token_field(fencing_token token) { return digits16(token.value()); }

std::string ms_field(std::chrono::milliseconds time) { return std::to_string(time.count()); }

// The epoch stands for "none".
std::string time_field(server_time at) {
  const auto us = at.time_since_epoch().count();
  return us <= 0 ? std::string{"0"} : digits16(static_cast<std::uint64_t>(us));
}

// `s3`, `w1000000`: what src/script/counted.lua keeps in the fence.
std::string kind_field(const part& what) { return (what.mode == 'p' ? "s" : "w") + std::to_string(what.size); }

// Of all scripts that know the line: the counted ones keep their holders in one key more.
command with_line(id exclusive, id counted, const lock_keys& keys, std::vector<std::string> args) {
  std::vector<std::string> all{keys.holder, keys.fence(), keys.line(), keys.waiters()};
  if (keys.is_counted) all.push_back(keys.holders());
  return {keys.is_counted ? counted : exclusive, std::move(all), std::move(args)};
}

command stand(const lock_keys& keys, const owner_id& owner, const line_entry& entry, const listener& who,
              const char* how, server_time not_after, std::chrono::milliseconds max_ttl) {
  std::vector<std::string> args{std::string{owner.hex()},
                                ms_field(entry.ttl),
                                time_field(not_after),
                                ms_field(max_ttl),
                                label_field(entry.label),
                                entry.min_fence ? token_field(entry.min_fence) : "0",
                                who.channel,
                                how,
                                ms_field(entry.window),
                                time_field(entry.wait_until),
                                entry.ticket ? digits16(entry.ticket) : "0",
                                std::string{entry.what.mode}};
  if (entry.what.permits > 0) args.push_back(std::to_string(entry.what.permits));
  if (keys.is_counted) args.push_back(kind_field(entry.what));
  return with_line(id::wait, id::wait_counted, keys, std::move(args));
}

}  // namespace

void append(std::string& out, const command& what, call how) {
  const auto& script = find(what.script);
  resp::append_header(out, 3 + what.keys.size() + what.args.size());
  resp::append_word(out, how == call::by_digest ? "EVALSHA" : "EVAL");
  resp::append_word(out, how == call::by_digest ? script.sha1 : script.text);
  resp::append_word(out, std::to_string(what.keys.size()));
  for (const auto& key : what.keys) resp::append_word(out, key);
  for (const auto& arg : what.args) resp::append_word(out, arg);
}

command acquire(const lock_keys& keys, const owner_id& owner, std::chrono::milliseconds ttl, server_time not_after,
                std::chrono::milliseconds max_ttl, std::string_view label, fencing_token min_fence, int block) {
  command out{id::acquire,
              {keys.holder, keys.fence()},
              {std::string{owner.hex()}, ms_field(ttl), time_field(not_after), ms_field(max_ttl), label_field(label)}};
  if (min_fence || block > 0) out.args.push_back(min_fence ? token_field(min_fence) : "0");
  if (block > 0) out.args.push_back(std::to_string(block));
  return out;
}

command renew(const lock_keys& keys, const owner_id& owner, fencing_token token, std::chrono::milliseconds ttl) {
  command out{keys.is_counted ? id::renew_counted : id::renew,
              {keys.holder, keys.broken()},
              {std::string{owner.hex()}, token_field(token), ms_field(ttl)}};
  if (keys.is_counted) out.keys.push_back(keys.holders());
  return out;
}

command release(const lock_keys& keys, const owner_id& owner, fencing_token token) {
  return with_line(id::release, id::release_counted, keys, {std::string{owner.hex()}, token_field(token)});
}

command reserve(const lock_keys& keys, const owner_id& owner, fencing_token grant, fencing_token last, int block) {
  return {id::reserve,
          {keys.holder, keys.fence(), keys.broken()},
          {std::string{owner.hex()}, token_field(grant), token_field(last), std::to_string(block)}};
}

command wait(const lock_keys& keys, const owner_id& owner, const line_entry& entry, const listener& who,
             server_time not_after, std::chrono::milliseconds max_ttl) {
  return stand(keys, owner, entry, who, who.hears ? "s" : "-", not_after, max_ttl);
}

command try_line(const lock_keys& keys, const owner_id& owner, const line_entry& entry, const listener& who,
                 server_time not_after, std::chrono::milliseconds max_ttl) {
  return stand(keys, owner, entry, who, "t", not_after, max_ttl);
}

command look(const lock_keys& keys, const owner_id& owner, const part& what, const listener& who, server_time not_after,
             std::chrono::milliseconds max_ttl, const std::vector<owner_id>& others) {
  std::vector<std::string> args{std::string{owner.hex()}, time_field(not_after), ms_field(max_ttl), who.channel,
                                who.hears ? "s" : "-"};
  if (keys.is_counted || !others.empty()) args.push_back(keys.is_counted ? kind_field(what) : "");
  for (const auto& other : others) args.emplace_back(other.hex());
  return with_line(id::look, id::look_counted, keys, std::move(args));
}

command leave(const lock_keys& keys, const owner_id& owner) {
  return with_line(id::leave, id::leave_counted, keys, {std::string{owner.hex()}});
}

command downgrade(const lock_keys& keys, const owner_id& owner, fencing_token token) {
  return with_line(id::downgrade, id::downgrade, keys, {std::string{owner.hex()}, token_field(token)});
}

command resize(const lock_keys& keys, int size) {
  return with_line(id::resize, id::resize, keys, {kind_field({'p', 0, size}), time_field({})});
}

void set_not_after(command& what, server_time not_after) {
  HOLDFAST_ASSERT(what.script == id::resize);
  what.args[1] = time_field(not_after);
}

command inspect(const lock_keys& keys) {
  return {id::inspect, {keys.holder, keys.broken(), keys.line(), keys.waiters(), keys.holders(), keys.fence()}, {}};
}

command inspect_vote(const lock_keys& keys, std::string_view prefix, const quorum_record& record) {
  auto out = inspect(keys);
  out.keys.push_back(quorum_key(prefix));
  out.args.push_back(text_of(record));
  return out;
}

command break_lock(const lock_keys& keys, fencing_token seen, break_mode mode, std::string_view by,
                   std::string_view why) {
  auto out = with_line(
      id::break_lock, id::break_counted, keys,
      {token_field(seen), mode == break_mode::immediately ? "now" : "expiry", label_field(by), label_field(why)});
  out.keys.push_back(keys.broken());
  return out;
}

command epoch(std::string_view prefix, std::chrono::milliseconds hold, asker who, epoch_start start,
              std::optional<int> tag) {
  command out{id::epoch, {epoch_key(prefix, tag)}, {ms_field(hold)}};
  const bool is_first = start == epoch_start::first;
  if (is_first || who == asker::onlooker) out.args.emplace_back(is_first ? "first" : "");
  if (who == asker::onlooker) out.args.emplace_back("look");
  return out;
}

command vote(const lock_keys& keys, const owner_id& owner, std::chrono::milliseconds ttl, server_time not_after,
             std::chrono::milliseconds max_ttl, std::string_view label, fencing_token min_fence, fencing_token proposal,
             std::string_view prefix, const quorum_record& record, const part& what, standing who) {
  command out{id::vote,
              {keys.holder, keys.fence(), quorum_key(prefix), keys.wanted()},
              {std::string{owner.hex()}, ms_field(ttl), time_field(not_after), ms_field(max_ttl), label_field(label),
               min_fence ? token_field(min_fence) : "0", token_field(proposal), text_of(record)}};
  if (keys.is_counted) {
    out = with_line(id::vote, id::vote_counted, keys, std::move(out.args));
    out.keys.push_back(quorum_key(prefix));
    out.keys.push_back(keys.wanted());
    for (auto& one : {std::string{what.mode}, std::to_string(what.permits), kind_field(what)}) out.args.push_back(one);
  }
  out.args.emplace_back(1, static_cast<char>(who));
  if (who == standing::keeper) out.keys.push_back(keys.broken());
  return out;
}

command raise(const lock_keys& keys, const owner_id& owner, fencing_token to, const part& what) {
  command out{id::raise, {keys.holder, keys.fence()}, {std::string{owner.hex()}, token_field(to)}};
  if (!keys.is_counted) return out;
  out.script = id::raise_counted;
  out.keys.push_back(keys.holders());
  out.args.push_back(kind_field(what));
  return out;
}

command renew_vote(const lock_keys& keys, const owner_id& owner, fencing_token token, std::chrono::milliseconds ttl,
                   std::string_view prefix, const quorum_record& record) {
  auto out = renew(keys, owner, token, ttl);
  out.keys.push_back(quorum_key(prefix));
  out.args.push_back(text_of(record));
  return out;
}

command write_record(std::string_view prefix, const quorum_record& record, std::string_view before) {
  return {id::quorum_record, {quorum_key(prefix)}, {text_of(record), std::string{before}}};
}

std::optional<command> go_on(const command& behind) {
  // All of them begin with the keys of a line: holder, fence, line, waiters, and of a counted kind holders.
  constexpr std::size_t of_exclusive = 4;
  constexpr std::size_t of_counted = 5;
  const auto with = [&](id script, std::size_t keys) -> std::optional<command> {
    if (behind.keys.size() < keys) return std::nullopt;
    return command{script, {behind.keys.begin(), behind.keys.begin() + static_cast<std::ptrdiff_t>(keys)}, {}};
  };
  switch (behind.script) {
    case id::release:
    case id::leave:
    case id::break_lock:
    case id::go_on: return with(id::go_on, of_exclusive);
    case id::wait_counted:
    case id::look_counted:
    case id::leave_counted:
    case id::release_counted:
    case id::break_counted:
    case id::downgrade:
    case id::resize:
    case id::go_on_counted: return with(id::go_on_counted, of_counted);
    case id::acquire:
    case id::renew:
    case id::reserve:
    case id::inspect:
    case id::wait:  // Of these a grant leaves no room, and a try goes on by itself.
    case id::look:
    case id::renew_counted:
    case id::epoch:
    case id::vote:
    case id::raise:
    case id::quorum_record:
    case id::vote_counted:
    case id::raise_counted: break;
  }
  return std::nullopt;
}

bool may_grant(const command& what) {
  switch (what.script) {
    case id::acquire:
    case id::wait:
    case id::look:
    case id::wait_counted:
    case id::look_counted:
    case id::vote:
    case id::vote_counted: return true;
    default: return false;
  }
}

bool only_reads(const command& what) { return what.script == id::inspect; }

bool has_kept_the_line(const command& what) {
  const bool gives_back = what.script == id::release || what.script == id::release_counted ||
                          what.script == id::leave || what.script == id::leave_counted;
  return gives_back && !what.args.empty() && what.args.back() == "q";
}

void keep_quarantine(command& what) {
  constexpr std::size_t told_of_wait = 7;  // Counted from 0.
  constexpr std::size_t told_of_look = 4;
  switch (what.script) {
    case id::wait:
    case id::wait_counted: what.args[told_of_wait] += 'q'; break;
    case id::look:
    case id::look_counted: what.args[told_of_look] += 'q'; break;
    case id::release:
    case id::release_counted:
    case id::leave:
    case id::leave_counted:
    case id::go_on:
    case id::go_on_counted:
    case id::break_lock:
    case id::break_counted:
    case id::downgrade:
    case id::resize: what.args.emplace_back("q"); break;
    case id::acquire:
    case id::renew:
    case id::renew_counted:
    case id::reserve:
    case id::inspect:
    case id::epoch:
    case id::vote:
    case id::raise:
    case id::quorum_record:
    case id::vote_counted:
    case id::raise_counted: break;
  }
}

}  // namespace holdfast::script
