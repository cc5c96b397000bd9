// SPDX-License-Identifier: Apache-2.0
// What the keyspace says of a lock, read as docs/protocol.md has it and not by any code of ours: the checkers must not
// believe the scripts that they check.
#include "model_server.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace holdfast::sim {

namespace {

std::int64_t whole(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// `v1|owner id|token|...`
bool is_ours(std::string_view value) { return value.size() > 53 && value.starts_with("v1|"); }

// The field with this number of `a|b|c`.
std::string_view field(std::string_view text, int number) {
  for (; number > 0; --number) {
    const auto bar = text.find('|');
    if (bar == std::string_view::npos) return {};
    text.remove_prefix(bar + 1);
  }
  return text.substr(0, text.find('|'));
}

}  // namespace

std::vector<holder> recorded_holders_of(const model_redis& in, const lock& what) {
  std::vector<holder> all;
  const auto found_at = in.all().find(what.keys.holder);
  if (found_at == in.all().end()) return all;
  const auto* found = &found_at->second;
  if (const auto* text = std::get_if<std::string>(&found->data)) {
    const auto ends = found->expires_at.value_or(std::chrono::milliseconds{-1});
    if (is_ours(*text)) all.push_back({text->substr(3, 32), text->substr(36, 16), ends, 1});
    return all;
  }
  const auto* set = std::get_if<model_redis::sorted_set>(&found->data);
  const auto data_at = in.all().find(what.keys.holders());
  const auto* data = data_at == in.all().end() ? nullptr : std::get_if<model_redis::hash>(&data_at->second.data);
  if (!set || !data) return all;
  for (const auto& [owner, score] : set->scores) {
    const auto entry = data->fields.find(owner);
    const std::chrono::microseconds ends{static_cast<std::int64_t>(score)};
    if (entry == data->fields.end()) continue;
    all.push_back({owner, std::string{field(entry->second, 5)}, ends, static_cast<int>(whole(entry->second))});
  }
  return all;
}

std::vector<holder> holders_of(const model_redis& in, const lock& what) {
  if (!in.peek(what.keys.holder)) return {};
  auto all = recorded_holders_of(in, what);
  if (!what.keys.is_counted) return all;
  if (!in.peek(what.keys.holders())) return {};
  std::erase_if(all, [&](const holder& h) { return h.expires_at <= in.now().time_since_epoch(); });
  return all;
}

// `v1|process|ear|ttl_ms|window_ms|wait_until_us or 0|min_fence or 0|joined_us|mode|owner label`
std::vector<line_place> line_of(const model_redis& in, const lock& what) {
  std::vector<line_place> all;
  const auto* line = in.peek_as<model_redis::sorted_set>(what.keys.line());
  const auto* waiters = line ? in.peek_as<model_redis::hash>(what.keys.waiters()) : nullptr;
  if (!waiters) return all;
  for (const auto& [ticket, owner] : line->order) {
    const auto entry = waiters->fields.find(owner);
    if (entry == waiters->fields.end()) continue;
    const auto& text = entry->second;
    const auto mode = field(text, 8);  // Of an exclusive lock the number is that of tokens.
    const auto permits =
        mode.starts_with('x') ? 1 : static_cast<int>(whole(mode.substr(std::min<std::size_t>(1, mode.size()))));
    const auto ear = field(text, 2);
    const auto heartbeat = waiters->fields.find(std::string{field(text, 1)});
    const auto looked = ear != "s" || heartbeat == waiters->fields.end() ? ear.substr(1) : heartbeat->second;
    all.push_back({owner, ticket, std::string{field(text, 1)}, std::string{field(text, 9)}, ear == "s",
                   whole(field(text, 5)), permits, std::chrono::milliseconds{whole(field(text, 4))}, whole(looked)});
  }
  return all;
}

}  // namespace holdfast::sim
