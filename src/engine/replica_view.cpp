// SPDX-License-Identifier: Apache-2.0
#include "engine/replica_view.hpp"

#include "base/assert.hpp"
#include "resp/writer.hpp"
#include "script/server_error.hpp"
#include "script/source.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>

namespace holdfast::engine {

namespace {

// The questions behind our login, in their order.
enum question : std::size_t { info, time, backlog_ttl, appendfsync, by_text, by_digest, count };

// ARGV[1] is a key, and what follows are names of commands. No key is declared, so that a node of a cluster runs it
// whatever it serves. A command that was renamed raises an error, and is nobody's to deny.
constexpr std::string_view what_is_denied = R"lua(
local asks, out = redis.acl_check_cmd, {}
for i = 2, asks and #ARGV or 0 do
  local is_known, may = pcall(asks, ARGV[i], ARGV[1])
  if is_known and not may then out[#out + 1] = ARGV[i] end
end
return out)lua";

// Of no script: it is asked for to hear whether it may be.
constexpr std::string_view no_digest = "0000000000000000000000000000000000000000";

void append(std::string& out, std::initializer_list<std::string_view> words) {
  resp::append_request(out, std::span{words.begin(), words.size()});
}

// The commands that our scripts call, as tools/acl reads them. Without those that only tell waiters of their turn: a
// login that lacks them is slower, and loses nothing.
std::set<std::string_view> commands_of_scripts() {
  constexpr std::string_view call = "call('";
  constexpr std::array<std::string_view, 3> of_messages{"PUBLISH", "SPUBLISH", "PUBSUB"};
  std::set<std::string_view> all;
  for (const auto& one : script::all()) {
    for (auto at = one.text.find(call); at != one.text.npos; at = one.text.find(call, at)) {
      at += call.size();
      const auto name = one.text.substr(at, one.text.find('\'', at) - at);
      if (std::find(of_messages.begin(), of_messages.end(), name) == of_messages.end()) all.insert(name);
    }
  }
  return all;
}

std::optional<server_time> time_in(const resp::value& reply) {
  const auto* parts = reply.as_array();
  const auto* seconds = parts && parts->size() == 2 ? (*parts)[0].as_bulk() : nullptr;
  std::int64_t n = 0;
  if (!seconds) return std::nullopt;
  const auto read = std::from_chars(seconds->data(), seconds->data() + seconds->size(), n);
  constexpr std::int64_t longest = 1'000'000'000'000;  // So that it can be counted in microseconds.
  if (read.ec != std::errc{} || n < 0 || n > longest) return std::nullopt;
  return server_time{std::chrono::seconds{n}};
}

std::string setting_in(const resp::value& reply) {
  const auto* pair = reply.as_array();
  const auto* said = pair && pair->size() == 2 ? (*pair)[1].as_bulk() : nullptr;
  return said ? *said : std::string{};
}

replica_view failed_with(const resp::server_error& said) {
  return {.failure = said.text, .code = script::classify(said.text).code};
}

replica_view read(std::span<const resp::value> answers) {
  const auto* refused = answers[info].as_error();
  if (refused && script::classify(refused->text).code != errc::no_permission) return failed_with(*refused);
  replica_view view;
  for (const auto which : {info, time, by_text, by_digest}) {
    const auto* error = answers[which].as_error();
    if (view.refusal.empty() && error && script::classify(error->text).code == errc::no_permission)
      view.refusal = error->text;
  }
  if (const auto* text = answers[info].as_bulk()) {
    view.info = *text;
  } else if (!refused) {
    return {.failure = "its answer is none that a server gives", .code = errc::wrong_server};
  }
  view.clock = time_in(answers[time]);
  view.backlog_ttl = setting_in(answers[backlog_ttl]);
  view.appendfsync = setting_in(answers[appendfsync]);
  view.lacks = lacked(answers[by_text]);
  return view;
}

}  // namespace

void ask_what_is_lacked(std::string& out, std::string_view key) {
  const auto commands = commands_of_scripts();
  std::vector<std::string_view> words{"EVAL", what_is_denied, "0", key};
  words.insert(words.end(), commands.begin(), commands.end());
  resp::append_request(out, words);
}

std::vector<std::string> lacked(const resp::value& answer) {
  std::vector<std::string> names;
  const auto* all = answer.as_array();
  for (std::size_t i = 0; all && i < all->size(); ++i)
    if (const auto* name = (*all)[i].as_bulk()) names.push_back(*name);
  return names;
}

void replica_view_talk::begin() {
  reader_ = resp::reader{};
  heard_.clear();
  is_asked_ = false;
}

void replica_view_talk::ask(std::string& out) {
  HOLDFAST_ASSERT(!is_asked_);
  is_asked_ = true;
  if (who_.is_somebody()) {
    who_.user.empty() ? append(out, {"AUTH", who_.password}) : append(out, {"AUTH", who_.user, who_.password});
  }
  append(out, {"INFO"});
  append(out, {"TIME"});
  append(out, {"CONFIG", "GET", "repl-backlog-ttl"});
  append(out, {"CONFIG", "GET", "appendfsync"});
  ask_what_is_lacked(out, key_);
  append(out, {"EVALSHA", no_digest, "0"});
}

std::optional<replica_view> replica_view_talk::on_bytes(std::string_view bytes) {
  reader_.feed(bytes);
  const std::size_t of_login = who_.is_somebody() ? 1 : 0;
  while (auto reply = reader_.next()) {
    const auto* error = reply->as_error();
    const bool is_login = heard_.size() < of_login;
    if (is_login && error) return over(failed_with(*error));
    heard_.push_back(std::move(*reply));
    if (heard_.size() == of_login + question::count) return over(read(std::span{heard_}.subspan(of_login)));
  }
  if (reader_.failure().empty()) return std::nullopt;
  return over({.failure = reader_.failure(), .code = errc::wrong_server});
}

replica_view replica_view_talk::over(replica_view view) {
  is_asked_ = false;
  heard_.clear();
  return view;
}

}  // namespace holdfast::engine
