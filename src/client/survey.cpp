// SPDX-License-Identifier: Apache-2.0
#include "client/survey.hpp"

#include "net/clock.hpp"
#include "resp/writer.hpp"
#include "script/glob.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

void show_holder(lock_info& info, const holder_info& first) {
  info.held = true;
  info.owner = first.owner;
  info.token = first.token;
  info.ttl = first.ttl;
  info.remaining = first.remaining;
  info.held_for = first.held_for;
  info.breaking = first.breaking;
}

namespace {

constexpr std::size_t names_per_question = 256;

void add_counted(lock_info& info, const script::inspect_reply& reply) {
  info.kind = reply.kind;
  info.holders = reply.holders;
  if (reply.kind == lock_kind::semaphore) {
    info.size = reply.size;
    info.permits_held = reply.used;
  }
  if (reply.holders.empty()) {
    info.held = info.foreign = reply.foreign_for.has_value();
    info.remaining = reply.foreign_for.value_or(milliseconds{0});
    return;
  }
  // A writer takes all the room there is; readers take one each, and so many are not all listed.
  if (reply.kind == lock_kind::shared)
    info.permits_held = reply.holders.size() < holders_listed ? static_cast<int>(reply.holders.size()) : reply.used;
  show_holder(info, reply.holders.front());
}

script::inspect_reply read_inspection(client_state& state, const resp::value& reply, const script::lock_keys& keys) {
  state.throw_if_error(reply, "key '" + keys.holder + "'");
  auto parsed = script::parse_inspect(reply);
  if (!parsed) state.fail(errc::unexpected_reply, {});
  return std::move(*parsed);
}

// One SCAN step: the keys it found, and where to go on.
std::pair<std::vector<std::string>, std::string> scan(client_state& state, const std::shared_ptr<node>& whom,
                                                      const std::string& cursor, const std::string& pattern) {
  std::string bytes;
  resp::append_request(bytes, std::array<std::string_view, 6>{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
  const auto replies = state.ask_all(whom, std::vector{std::move(bytes)});
  state.throw_if_error(replies[0], "SCAN" + (state.cluster() ? " of " + state.cluster()->address_of(*whom) : ""));
  const auto* parts = replies[0].as_array();
  const auto* next = parts && parts->size() == 2 ? (*parts)[0].as_bulk() : nullptr;
  const auto* found = next ? (*parts)[1].as_array() : nullptr;
  if (!found) state.fail(errc::unexpected_reply, {});
  std::vector<std::string> keys;
  for (const auto& key : *found) {
    if (const auto* text = key.as_bulk()) keys.push_back(*text);
  }
  return {std::move(keys), *next};
}

}  // namespace

lock_info info_of(std::string name, const script::inspect_reply& reply) {
  lock_info info;
  info.name = std::move(name);
  info.last_break = reply.last_break;
  info.waiters = reply.waiters;
  info.waiting = reply.waiting;
  add_counted(info, reply);
  if (!reply.held) return info;
  info.held = true;
  info.foreign = reply.held->foreign;
  info.endless = info.foreign && reply.remaining < milliseconds{0};
  info.owner = reply.held->label;
  info.token = reply.held->token;
  info.ttl = reply.held->ttl;
  info.remaining = std::max(milliseconds{0}, reply.remaining);
  if (!info.foreign) {
    info.held_for = std::max(milliseconds{0}, duration_cast<milliseconds>(reply.now - reply.held->granted_at));
  }
  info.breaking = reply.breaking;
  return info;
}

lock_info inspect(client_state& state, std::string_view text, milliseconds timeout) {
  state.require_ours();
  if (state.of_quorum()) return inspect_quorum(state, text, timeout);
  const lock_name name = state.name_of(text);
  const auto keys = state.keys_of(name);
  const auto reply = state.ask(keys, script::inspect(keys), engine::question::repeat::allowed, timeout);
  const auto seen = read_inspection(state, reply, keys);
  if (!seen.wrong_kind.empty()) state.fail_wrong_kind(keys, seen.wrong_kind);
  auto info = info_of(name.text(), seen);
  if (const auto found = state.quarantine(keys)) info.quarantine = *found;
  return info;
}

namespace {

// What is no name can be nobody's lock, whoever wrote that key.
bool is_a_name(const client_state& state, const std::string& text) {
  try {
    (void)state.name_of(text);
    return true;
  } catch (const error& e) {
    if (e.code() != errc::invalid_name) throw;
    return false;
  }
}

std::vector<std::string> names_on(client_state& state, const std::shared_ptr<node>& whom, const script::glob& which) {
  const std::string& prefix = state.options().prefix;
  const std::string pattern = script::holder_pattern(which, prefix);
  std::vector<std::string> names;
  std::string cursor = "0";
  do {
    auto [keys, next] = scan(state, whom, cursor, pattern);
    for (const auto& key : keys) {
      auto name = script::name_of_holder_key(key, prefix);
      if (name && which.matches(*name) && is_a_name(state, *name)) names.push_back(std::move(*name));
    }
    cursor = std::move(next);
  } while (cursor != "0");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Keys of other types than a lock's: other programs', or mistakes. They are shown, and nothing else on the list is less
// true for them.
void add_foreign(client_state& state, const std::shared_ptr<node>& whom, const std::vector<script::lock_keys>& keys,
                 const std::vector<std::string>& names, std::vector<lock_info>& all) {
  std::vector<std::string> questions;
  for (const auto& one : keys) {
    std::string bytes;
    resp::append_request(bytes, std::array<std::string_view, 2>{"PTTL", one.holder});
    questions.push_back(std::move(bytes));
  }
  const auto replies = state.ask_all(whom, std::move(questions));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto* left = replies[i].as_integer();
    if (!left || *left == -2) continue;  // It is gone meanwhile.
    lock_info info;
    info.name = names[i];
    info.held = true;
    info.foreign = true;
    info.endless = *left < 0;
    info.remaining = milliseconds{std::max<std::int64_t>(0, *left)};
    all.push_back(std::move(info));
  }
}

std::optional<script::reaction> reaction_to(const resp::value& reply) {
  const auto* error = reply.as_error();
  return error ? std::optional{script::classify(error->text).what} : std::nullopt;
}

resp::value ask_again(client_state& state, const script::lock_keys& keys) {
  return state.ask(keys, script::inspect(keys), engine::question::repeat::allowed, state.options().timeout);
}

// Where the connection is one to a server that was demoted since, what says so ends it (H37): a question about a lock
// has the epoch asked for ahead of it, and is repeated where the primary is now. What it answers is of no use.
void find_primary(client_state& state, const lock_name& name) {
  if (state.options().quarantine != quarantine_mode::on) return;  // Nobody asks for epochs.
  const auto keys = state.keys_of(name);
  try {
    (void)state.ask(keys, script::inspect(keys), engine::question::repeat::allowed);
  } catch (const error& e) {
    if (e.code() != outcome::unknown) throw;
    state.fail(errc::server_silent, e.detail());  // Nothing was asked for that could have been done.
  }
}

// What moves to another node while we look is not on the list, or twice.
void list_of(client_state& state, const std::shared_ptr<node>& whom, const script::glob& which,
             std::vector<lock_info>& all) {
  const auto names = names_on(state, whom, which);
  for (std::size_t from = 0; from < names.size(); from += names_per_question) {
    const std::size_t to = std::min(names.size(), from + names_per_question);
    std::vector<script::command> questions;
    std::vector<script::lock_keys> asked;
    for (std::size_t i = from; i < to; ++i) {
      asked.push_back(state.keys_of(state.name_of(names[i])));
      questions.push_back(script::inspect(asked.back()));
    }
    const auto replies = state.ask_all(whom, std::move(questions));
    std::vector<script::lock_keys> foreign_keys;
    std::vector<std::string> foreign_names;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const auto said = state.cluster() ? reaction_to(replies[i]) : std::nullopt;
      if (said == script::reaction::elsewhere) continue;
      // While its slot moves, its node may have one of its keys and not the other: that passes.
      const bool passes = said == script::reaction::try_again;
      const auto reply = passes ? ask_again(state, asked[i]) : replies[i];
      const auto seen = read_inspection(state, reply, asked[i]);
      if (!seen.wrong_kind.empty()) {
        foreign_keys.push_back(asked[i]);
        foreign_names.push_back(names[from + i]);
        continue;
      }
      auto info = info_of(names[from + i], seen);
      if (info.held) all.push_back(std::move(info));
    }
    if (!foreign_keys.empty()) add_foreign(state, whom, foreign_keys, foreign_names, all);
  }
}

}  // namespace

std::vector<lock_info> list(client_state& state, std::string_view glob) {
  state.require_ours();
  if (state.of_quorum()) return list_quorum(state, glob);
  if (state.options().names == naming::plain) {
    error_detail detail;
    detail.subject = "list under plain naming";
    detail.why = "a plain key cannot be told from any other key";
    throw error{errc::invalid_option, std::move(detail)};
  }
  const script::glob which{glob};
  std::vector<lock_info> all;
  // SCAN asks for no epoch. The nodes of a cluster say themselves who serves a slot.
  if (!state.cluster()) find_primary(state, state.name_of("holdfast"));
  for (const auto& whom : state.servers()) list_of(state, whom, which, all);
  std::sort(all.begin(), all.end(), [](const lock_info& a, const lock_info& b) { return a.name < b.name; });
  return all;
}

namespace {

script::break_answer ask_to_break(client_state& state, const script::lock_keys& keys, fencing_token seen,
                                  const break_options& options) {
  const auto reply = state.ask(keys, script::break_lock(keys, seen, options.mode, *state.owner(), options.why),
                               engine::question::repeat::refused);
  state.throw_if_error(reply, "key '" + keys.holder + "'");
  const auto parsed = script::parse_break(reply);
  if (!parsed) state.fail(errc::unexpected_reply, {});
  return parsed->what;
}

}  // namespace

void break_lock(client_state& state, std::string_view text, fencing_token seen, const break_options& options) {
  state.require_ours();
  const lock_name name = state.name_of(text);
  error_detail detail;
  detail.subject = "'" + name.text() + "'";
  if (!seen) {
    detail.why = "give the token that you saw: inspect() has it";
    throw error{errc::invalid_option, std::move(detail)};
  }
  if (seen.value() > fencing_token::max_value) {
    detail.why = "no grant has the token " + seen.to_string() + ": it must be below 2^53";
    throw error{errc::invalid_option, std::move(detail)};
  }
  if (options.why.size() > 256) {
    detail.why = "the reason has more than 256 bytes";
    throw error{errc::invalid_option, std::move(detail)};
  }
  if (state.of_quorum()) return break_on_quorum(state, text, seen, options);
  find_primary(state, name);  // Another server says "not held" of what it has forgotten.
  auto what = ask_to_break(state, state.keys_of(name), seen, options);
  if (what == script::break_answer::foreign && state.options().names == naming::holdfast) {
    what = ask_to_break(state, state.counted_keys_of(name), seen, options);
    // Of several holders the script tells only that none has this token.
    if (what == script::break_answer::not_held && inspect(state, text, state.options().timeout).held) {
      what = script::break_answer::changed_hands;
    }
  }
  switch (what) {
    case script::break_answer::broken: return;
    case script::break_answer::not_held: state.fail(errc::not_held, std::move(detail));
    case script::break_answer::changed_hands: state.fail(errc::changed_hands, std::move(detail));
    case script::break_answer::foreign:
      detail.subject = "key '" + state.keys_of(name).holder + "'";
      state.fail(errc::wrong_kind, std::move(detail));
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
