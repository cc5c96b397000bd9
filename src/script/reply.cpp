// SPDX-License-Identifier: Apache-2.0
#include "script/reply.hpp"

#include "script/answer.hpp"
#include "script/command.hpp"
#include "script/field.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace holdfast::script {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t owner_size = 32;
constexpr std::size_t stamp_size = 16;

// It is done, whether or not the line is to go on.
bool is_done(const answer& a) { return a.lone() || (a.what == code::unseen && a.has(0)); }

// Granted, and there may be room for others.
bool is_granted_and_goes_on(const answer& a) {
  return a.what == code::done && a.has(2) && a.field(1).as_integer() && *a.field(1).as_integer() == 1;
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
  if (a && a->what == code::broken && a->has(0)) return vote_reply{a->now, broken{}};
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

std::optional<change_reply> parse_change(const resp::value& reply) {
  const auto a = answer::of(reply);
  if (!a) return std::nullopt;
  if (is_done(*a)) return change_reply{a->now};
  if (a->what == code::late && a->has(0)) return change_reply{a->now, true};
  if (a->what == code::wrong_kind && a->has(1) && a->text(0)) return change_reply{a->now, false, *a->text(0)};
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
