// SPDX-License-Identifier: Apache-2.0
#include "script/reply.hpp"

#include "script/command.hpp"
#include "script/field.hpp"

#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace holdfast::script {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::string_view our_version = "v1|";
constexpr std::size_t owner_size = 32;
constexpr std::size_t stamp_size = 16;

std::optional<server_time> time_of(std::string_view digits) {
  const auto number = parse_digits16(digits);
  if (!number) return std::nullopt;
  return server_time{microseconds{static_cast<std::int64_t>(*number)}};
}

std::optional<fencing_token> token_of(std::string_view digits) {
  const auto number = parse_digits16(digits);
  if (!number || *number == 0 || *number > fencing_token::max_value) return std::nullopt;
  return fencing_token{*number};
}

// Any reply of ours, taken apart: the lone now, or {code, now, ...}.
class answer {
public:
  static std::optional<answer> of(const resp::value& reply) {
    answer a;
    if (const auto* lone = reply.as_bulk()) {
      const auto now = time_of(*lone);
      if (!now) return std::nullopt;
      a.now = *now;
      return a;
    }
    const auto* all = reply.as_array();
    if (!all || all->size() < 2) return std::nullopt;
    const auto* number = (*all)[0].as_integer();
    const auto* time = (*all)[1].as_bulk();
    if (!number || !time || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
    const auto now = time_of(*time);
    if (!now) return std::nullopt;
    a.what = static_cast<code>(*number);
    a.now = *now;
    a.all_ = all;
    return a;
  }

  server_time now{};
  code what = code::done;

  bool lone() const { return all_ == nullptr; }

  // Whether it is an array with exactly that many fields behind the time.
  bool has(std::size_t fields) const { return all_ && all_->size() == 2 + fields; }

  const resp::value& field(std::size_t i) const { return (*all_)[2 + i]; }

  // A field that is a string, else null.
  const std::string* text(std::size_t i) const { return field(i).as_bulk(); }

  // PTTL's answer: -2, -1 or milliseconds. A century and a half at most, so that no sum overflows in nanoseconds.
  std::optional<milliseconds> ms(std::size_t i) const {
    const auto* number = field(i).as_integer();
    if (!number || *number < -2) return std::nullopt;
    return milliseconds{std::min<std::int64_t>(*number, std::int64_t{1} << 42)};
  }

private:
  const resp::value::array* all_ = nullptr;  // Of the reply that is being parsed.
};

// It is done, whether or not the line is to go on.
bool is_done(const answer& a) { return a.lone() || (a.what == code::unseen && a.has(0)); }

// Granted, and there may be room for others.
bool is_granted_and_goes_on(const answer& a) {
  return a.what == code::done && a.has(2) && a.field(1).as_integer() && *a.field(1).as_integer() == 1;
}

// The text up to the next `|`, which is taken too; nullopt without one.
std::optional<std::string_view> take_field(std::string_view& rest) {
  const auto bar = rest.find('|');
  if (bar == std::string_view::npos) return std::nullopt;
  const auto field = rest.substr(0, bar);
  rest.remove_prefix(bar + 1);
  return field;
}

std::string people_text(std::string_view field) {
  auto plain = unescape(field);
  return plain ? *std::move(plain) : std::string{field};
}

// `v1|token|now_us|by|why`; nullopt for a record that is not ours, which is as good as none.
std::optional<break_record> parse_record(std::string_view text, server_time now) {
  if (!text.starts_with(our_version)) return std::nullopt;
  text.remove_prefix(our_version.size());
  const auto token = take_field(text);
  const auto at = token ? take_field(text) : std::nullopt;
  const auto by = at ? take_field(text) : std::nullopt;
  if (!by) return std::nullopt;
  const auto number = token_of(*token);
  const auto time = time_of(*at);
  if (!number || !time) return std::nullopt;
  const auto since = std::chrono::duration_cast<milliseconds>(now - *time);
  return break_record{*number, std::max(since, milliseconds{0}), people_text(*by), people_text(text)};
}

}  // namespace

holder parse_holder(std::string_view value) {
  holder foreign{.foreign = true};
  if (!value.starts_with(our_version)) return foreign;
  value.remove_prefix(our_version.size());
  const auto owner = take_field(value);
  const auto token = owner ? take_field(value) : std::nullopt;
  const auto ttl = token ? take_field(value) : std::nullopt;
  const auto granted = ttl ? take_field(value) : std::nullopt;
  if (!granted || owner->size() != owner_size || token->size() != stamp_size) return foreign;
  const auto number = token_of(*token);
  const auto ms = parse_digits(*ttl, 12);
  const auto at = time_of(*granted);
  if (!number || !ms || !at) return foreign;
  return {.foreign = false,
          .label = people_text(value),
          .token = *number,
          .ttl = milliseconds{static_cast<std::int64_t>(*ms)},
          .granted_at = *at,
          .id = std::string{*owner}};
}

namespace {

// Places from 1 on.
std::optional<std::vector<std::size_t>> places_of(const resp::value& what) {
  const auto* elements = what.as_array();
  if (!elements) return std::nullopt;
  std::vector<std::size_t> places;
  for (const auto& one : *elements) {
    const auto* place = one.as_integer();
    if (!place || *place < 1 || *place > static_cast<std::int64_t>(most_others)) return std::nullopt;
    places.push_back(static_cast<std::size_t>(*place) - 1);
  }
  return places;
}

// {ticket, ahead, look_ms, value or '', pttl, [missing]}
std::optional<queued> queued_of(const answer& a) {
  const bool was_for_others = a.has(6);
  if ((!a.has(5) && !was_for_others) || !a.text(0) || !a.text(3)) return std::nullopt;
  const auto ticket = parse_digits16(*a.text(0));
  const auto* ahead = a.field(1).as_integer();
  const auto look_in = a.ms(2);
  const auto remaining = a.ms(4);
  if (!ticket || !ahead || *ahead < 0 || !look_in || look_in->count() < 0 || !remaining) return std::nullopt;
  queued q{*ticket, *ahead, *look_in, {}, *remaining};
  if (!a.text(3)->empty()) q.by = parse_holder(*a.text(3));
  if (was_for_others) {
    auto missing = places_of(a.field(5));
    if (!missing) return std::nullopt;
    q.missing = *std::move(missing);
  }
  return q;
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
  if (!kind || !used || *used < 0 || *used > 2 * most_permits || !holders || holders->size() % 2 != 0) return false;
  out.kind = kind->starts_with("w") ? lock_kind::shared : lock_kind::semaphore;
  const auto size = parse_digits(kind->empty() ? *kind : kind->substr(1), 7);
  out.size = size ? static_cast<int>(*size) : 0;
  out.used = static_cast<int>(*used);
  for (std::size_t i = 0; i + 1 < holders->size(); i += 2) {
    const auto* text = (*holders)[i].as_bulk();
    const auto* ms = (*holders)[i + 1].as_integer();
    if (!text || !ms) return false;
    auto one = parse_counted_holder(*text, milliseconds{*ms}, out.now);
    if (!one) continue;
    out.holders.push_back(std::move(one->first));
    out.holder_ids.push_back(std::move(one->second));
  }
  return true;
}

}  // namespace

std::optional<acquire_reply> parse_acquire(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (a->lone()) {
    const auto token = token_of(*reply.as_bulk());
    if (!token) return std::nullopt;
    return acquire_reply{a->now, granted{*token}};
  }
  switch (a->what) {
    case code::done:
      if ((a->has(1) || is_granted_and_goes_on(*a)) && a->text(0)) {
        if (const auto token = token_of(*a->text(0))) return acquire_reply{a->now, granted{*token}};
      }
      return std::nullopt;
    case code::mine:
      if (a->has(2) && a->text(0)) {
        const auto token = token_of(*a->text(0));
        const auto remaining = a->ms(1);
        if (token && remaining) return acquire_reply{a->now, mine{*token, *remaining}};
      }
      return std::nullopt;
    case code::busy:
      if (a->has(2) && a->text(0)) {
        if (const auto remaining = a->ms(1)) return acquire_reply{a->now, busy{parse_holder(*a->text(0)), *remaining}};
      }
      return std::nullopt;
    case code::late:
      if (a->has(0)) return acquire_reply{a->now, late{}};
      return std::nullopt;
    case code::spent:
      if (a->has(0)) return acquire_reply{a->now, spent{}};
      return std::nullopt;
    case code::wrong_kind:
      if (a->has(1) && a->text(0)) return acquire_reply{a->now, wrong_kind{*a->text(0)}};
      return std::nullopt;
    case code::bad_argument:
      if (a->has(1) && a->text(0)) return acquire_reply{a->now, bad_argument{*a->text(0)}};
      return std::nullopt;
    case code::fence_too_far:
      if (a->has(0)) return acquire_reply{a->now, fence_too_far{}};
      return std::nullopt;
    case code::queued:
      if (auto q = queued_of(*a)) return acquire_reply{a->now, *std::move(q)};
      return std::nullopt;
    case code::line:
      if (a->has(0)) return acquire_reply{a->now, lined{}};
      return std::nullopt;
    case code::unseen:
      if (a->has(0)) return acquire_reply{a->now, unseen{}};
      return std::nullopt;
    case code::not_in_line:
      if (a->has(0)) return acquire_reply{a->now, not_in_line{}};
      return std::nullopt;
    case code::other_size:
      if (a->has(1)) {
        const auto* size = a->field(0).as_integer();
        if (size && *size >= 0 && *size <= most_permits) {
          return acquire_reply{a->now, other_size{static_cast<int>(*size)}};
        }
      }
      return std::nullopt;
    case code::other_quorum:
    case code::not_mine:
    case code::broken:
    case code::quarantine:
    case code::not_held:
    case code::changed_hands: break;
  }
  return std::nullopt;
}

std::optional<vote_reply> parse_vote(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (a && a->what == code::other_quorum && a->has(1) && a->text(0)) {
    return vote_reply{a->now, other_quorum{*a->text(0)}};
  }
  const auto said = parse_acquire(reply);
  if (!said) return std::nullopt;
  return std::visit(
      [&](const auto& what) -> std::optional<vote_reply> {
        if constexpr (std::is_constructible_v<decltype(vote_reply::what), decltype(what)>) {
          return vote_reply{said->now, what};
        } else {
          return std::nullopt;
        }
      },
      said->what);
}

std::optional<renew_reply> parse_renew(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (a->lone()) return renew_reply{a->now, renew_answer::renewed};
  if (a->what == code::broken && a->has(0)) return renew_reply{a->now, renew_answer::broken};
  if (a->what == code::other_quorum && a->has(1)) return renew_reply{a->now, renew_answer::other_quorum};
  if (a->what == code::not_mine && a->has(1) && a->text(0)) {
    if (*a->text(0) == "gone") return renew_reply{a->now, renew_answer::gone};
    if (*a->text(0) == "taken") return renew_reply{a->now, renew_answer::taken};
  }
  return std::nullopt;
}

std::optional<release_reply> parse_release(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (is_done(*a)) return release_reply{a->now, release_answer::released};
  if (a->what == code::not_mine && a->has(0)) return release_reply{a->now, release_answer::not_mine};
  return std::nullopt;
}

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

std::optional<change_reply> parse_change(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (is_done(*a)) return change_reply{a->now};
  if (a->what == code::wrong_kind && a->has(1) && a->text(0)) return change_reply{a->now, *a->text(0)};
  return std::nullopt;
}

std::optional<break_reply> parse_break(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (is_done(*a)) return break_reply{a->now, break_answer::broken};
  if (a->what == code::wrong_kind && a->has(1) && a->text(0)) return break_reply{a->now, break_answer::foreign};
  if (a->what == code::not_held && a->has(0)) return break_reply{a->now, break_answer::not_held};
  if (a->what == code::changed_hands && a->has(0)) return break_reply{a->now, break_answer::changed_hands};
  return std::nullopt;
}

std::optional<record_reply> parse_record_reply(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (a->lone()) return record_reply{a->now};
  if (a->what == code::other_quorum && a->has(1) && a->text(0)) return record_reply{a->now, *a->text(0)};
  return std::nullopt;
}

std::optional<epoch_reply> parse_epoch(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (a->lone()) return epoch_reply{a->now};
  if (a->what != code::quarantine || !a->has(3) || !a->text(2)) return std::nullopt;
  const auto remaining = a->ms(0);
  const auto ago = a->ms(1);
  const bool is_promotion = *a->text(2) == "promotion";
  if (!remaining || !ago || remaining->count() < 1 || ago->count() < 0) return std::nullopt;
  if (!is_promotion && *a->text(2) != "restart") return std::nullopt;
  return epoch_reply{a->now, quarantined{*remaining, *ago, is_promotion}};
}

bool goes_on(const command& asked, const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return false;
  if (is_granted_and_goes_on(*a)) return true;
  const bool is_try = asked.script == id::wait || asked.script == id::wait_counted;
  return a->what == code::unseen && a->has(0) && !is_try;
}

std::optional<server_time> server_time_in(const resp::value& reply) {
  const auto a = answer::of(reply);
  return a ? std::optional{a->now} : std::nullopt;
}

}  // namespace holdfast::script
