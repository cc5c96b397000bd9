// SPDX-License-Identifier: Apache-2.0
// What inspect.lua answers: holders, waiters and the last break of a lock.
#include "script/answer.hpp"
#include "script/command.hpp"
#include "script/field.hpp"
#include "script/reply.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace holdfast::script {

namespace {

using std::chrono::milliseconds;

// `v1|token|now_us|owner ids|by|why`; nullopt for a record that is not ours, which is as good as none.
std::optional<break_record> parse_record(std::string_view text, server_time now) {
  if (!text.starts_with(our_version)) return std::nullopt;
  text.remove_prefix(our_version.size());
  const auto token = take_field(text);
  const auto at = token ? take_field(text) : std::nullopt;
  const auto ids = at ? take_field(text) : std::nullopt;
  const auto by = ids ? take_field(text) : std::nullopt;
  if (!by) return std::nullopt;
  const auto number = token_of(*token);
  const auto time = time_of(*at);
  if (!number || !time) return std::nullopt;
  const auto since = std::chrono::duration_cast<milliseconds>(now - *time);
  return break_record{*number, std::max(since, milliseconds{0}), people_text(*by), people_text(text)};
}

// What an entry or a holder takes: all of it (x, w), a reader's part (r), or permits of a semaphore (p).
std::pair<hold_mode, int> taken(char mode, std::string_view permits) {
  if (mode == 'r') return {hold_mode::shared, 1};
  const auto number = mode == 'p' ? parse_digits(permits, 7) : std::nullopt;
  if (number) return {hold_mode::permits, static_cast<int>(*number)};
  return {hold_mode::exclusive, 1};
}

// `v1|process|ear|ttl_ms|window_ms|wait_until_us|min_fence|joined_us|mode|label`; nullopt for one that is not ours.
std::optional<waiter_info> parse_entry(std::string_view text, server_time now) {
  if (!text.starts_with(our_version)) return std::nullopt;
  text.remove_prefix(our_version.size());
  for (int skipped = 0; skipped < 6; ++skipped) {
    if (!take_field(text)) return std::nullopt;
  }
  const auto joined = take_field(text);
  const auto mode = joined ? take_field(text) : std::nullopt;
  const auto at = mode ? time_of(*joined) : std::nullopt;
  if (!at) return std::nullopt;
  const auto waiting = std::chrono::duration_cast<milliseconds>(now - *at);
  waiter_info waiter{.owner = people_text(text), .waiting = std::max(waiting, milliseconds{0})};
  if (!mode->empty()) std::tie(waiter.mode, waiter.permits) = taken(mode->front(), mode->substr(1));
  return waiter;
}

// `permits|mode|- or b|HOLDER`, as counted.lua keeps it; nullopt for one that is not ours.
std::optional<std::pair<holder_info, std::string>> parse_counted_holder(std::string_view text, milliseconds remaining,
                                                                        server_time now) {
  const auto permits = take_field(text);
  const auto mode = permits ? take_field(text) : std::nullopt;
  const auto flag = mode ? take_field(text) : std::nullopt;
  if (!flag || mode->size() != 1) return std::nullopt;
  const auto value = parse_holder(text);
  if (value.foreign) return std::nullopt;
  const auto held_for = std::chrono::duration_cast<milliseconds>(now - value.granted_at);
  holder_info out{.owner = value.label, .token = value.token, .ttl = value.ttl, .remaining = remaining};
  out.held_for = std::max(held_for, milliseconds{0});
  std::tie(out.mode, out.permits) = taken(mode->front(), *permits);
  out.breaking = *flag == "b";
  return std::pair{std::move(out), value.id};
}

// {kind, used, holders}
bool add_counted(inspect_reply& out, const answer& a) {
  const auto* kind = a.text(5);
  const auto* used = a.field(6).as_integer();
  const auto* holders = a.field(7).as_array();
  if (!kind || !used || !holders || holders->size() % 2 != 0) return false;
  out.kind = kind->starts_with("w") ? lock_kind::shared : lock_kind::semaphore;
  const auto size = parse_digits(kind->empty() ? *kind : kind->substr(1), 7);
  out.size = size ? static_cast<int>(*size) : 0;
  out.used = static_cast<int>(std::clamp<std::int64_t>(*used, 0, 2 * most_permits));  // Whoever wrote that.
  for (std::size_t i = 0; i + 1 < holders->size(); i += 2) {
    const auto* text = (*holders)[i].as_bulk();
    const auto* ms = (*holders)[i + 1].as_integer();
    if (!text || !ms) return false;
    auto one = parse_counted_holder(*text, milliseconds{*ms}, out.now);
    if (!one) {
      if (!out.foreign_for) out.foreign_for = milliseconds{std::max<std::int64_t>(0, *ms)};
      continue;
    }
    out.holders.push_back(std::move(one->first));
    out.holder_ids.push_back(std::move(one->second));
  }
  return true;
}

}  // namespace

std::optional<inspect_reply> parse_inspect(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (a->what == code::wrong_kind && a->has(1) && a->text(0)) {
    return inspect_reply{.now = a->now, .held = {}, .wrong_kind = *a->text(0)};
  }
  if (a->what == code::other_quorum && a->has(1) && a->text(0)) {
    return inspect_reply{.now = a->now, .held = {}, .other_record = *a->text(0)};
  }
  if (a->lone() || a->what != code::done || (!a->has(5) && !a->has(8))) return std::nullopt;
  const auto remaining = a->ms(1);
  if (!remaining || (!a->field(0).is_nil() && !a->text(0)) || (!a->field(2).is_nil() && !a->text(2))) {
    return std::nullopt;
  }
  const auto* waiting = a->field(3).as_integer();
  const auto* entries = a->field(4).as_array();
  if (!waiting || *waiting < 0 || !entries) return std::nullopt;
  inspect_reply out{.now = a->now, .held = {}, .remaining = *remaining};
  out.waiting = *waiting;
  for (const auto& entry : *entries) {
    const auto* text = entry.as_bulk();
    if (auto waiter = text ? parse_entry(*text, a->now) : std::nullopt) out.waiters.push_back(*std::move(waiter));
  }
  if (a->has(8) && !add_counted(out, *a)) return std::nullopt;
  if (const auto* value = a->text(0)) out.held = parse_holder(*value);
  if (const auto* record = a->text(2)) out.last_break = parse_record(*record, a->now);
  out.breaking = out.held && out.last_break && !out.held->foreign && out.held->token == out.last_break->token;
  return out;
}

}  // namespace holdfast::script
