// SPDX-License-Identifier: Apache-2.0
#include "duration.hpp"

#include "escape.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t second_ms = 1000;
constexpr std::int64_t minute_ms = 60 * second_ms;
constexpr std::int64_t hour_ms = 60 * minute_ms;
constexpr std::int64_t day_ms = 24 * hour_ms;

struct unit {
  std::string_view name;
  std::int64_t size_ms;
};

// From the largest down: parts must come in this order and each at most once. "ms" stands before "m" and "s" would
// never be tried for it.
constexpr std::array plain_units{unit{"d", day_ms}, unit{"h", hour_ms}, unit{"ms", 1}, unit{"m", minute_ms},
                                 unit{"s", second_ms}};
constexpr std::array iso_date_units{unit{"D", day_ms}};
constexpr std::array iso_time_units{unit{"H", hour_ms}, unit{"M", minute_ms}, unit{"S", second_ms}};

enum class failure { none, malformed, too_long };

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number at the front of `text`, taken off it.
struct decimal {
  std::int64_t whole = 0;
  std::int64_t fraction = 0;  // In units of 1/scale.
  std::int64_t scale = 1;
};

failure take_decimal(std::string_view& text, decimal& out) {
  std::size_t digits = 0;
  while (!text.empty() && is_digit(text.front())) {
    if (__builtin_mul_overflow(out.whole, 10, &out.whole) ||
        __builtin_add_overflow(out.whole, text.front() - '0', &out.whole))
      return failure::too_long;
    text.remove_prefix(1);
    ++digits;
  }
  if (digits == 0 && (text.size() < 2 || text.front() != '.')) return failure::malformed;
  if (text.empty() || text.front() != '.') return failure::none;
  text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return failure::malformed;
  for (int place = 0; !text.empty() && is_digit(text.front()); ++place, text.remove_prefix(1)) {
    if (place >= 9) return failure::malformed;  // Nobody means a tenth of a nanosecond.
    out.fraction = out.fraction * 10 + (text.front() - '0');
    out.scale *= 10;
  }
  return failure::none;
}

failure add(std::int64_t& total_ms, const decimal& value, std::int64_t size_ms) {
  std::int64_t part = 0;
  if (__builtin_mul_overflow(value.whole, size_ms, &part)) return failure::too_long;
  // fraction < 10^9 and size_ms < 10^8: no overflow.
  const std::int64_t rest = (value.fraction * size_ms + value.scale - 1) / value.scale;
  if (__builtin_add_overflow(part, rest, &part)) return failure::too_long;
  if (__builtin_add_overflow(total_ms, part, &total_ms)) return failure::too_long;
  return failure::none;
}

// Number and unit, again and again, each unit smaller than the one before. Stops at `until`.
template <std::size_t N>
failure take_parts(std::string_view& text, const std::array<unit, N>& units, std::int64_t& total_ms, char until = 0) {
  std::int64_t previous_size = std::numeric_limits<std::int64_t>::max();
  while (!text.empty() && text.front() != until) {
    decimal value;
    if (const auto bad = take_decimal(text, value); bad != failure::none) return bad;
    const unit* found = nullptr;
    for (const auto& candidate : units) {
      if (text.starts_with(candidate.name)) {
        found = &candidate;
        break;
      }
    }
    if (!found || found->size_ms >= previous_size) return failure::malformed;
    previous_size = found->size_ms;
    text.remove_prefix(found->name.size());
    if (const auto bad = add(total_ms, value, found->size_ms); bad != failure::none) return bad;
  }
  return failure::none;
}

failure take_iso(std::string_view text, std::int64_t& total_ms) {
  text.remove_prefix(1);
  if (text.empty()) return failure::malformed;
  if (const auto bad = take_parts(text, iso_date_units, total_ms, 'T'); bad != failure::none) return bad;
  if (text.empty()) return failure::none;
  text.remove_prefix(1);
  if (text.empty()) return failure::malformed;
  return take_parts(text, iso_time_units, total_ms);
}

failure take_plain(std::string_view text, std::int64_t& total_ms) {
  std::string_view rest = text;
  decimal seconds;
  if (const auto bad = take_decimal(rest, seconds); bad != failure::none) return bad;
  if (rest.empty()) return add(total_ms, seconds, second_ms);
  return take_parts(text, plain_units, total_ms);
}

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text, std::string& why) {
  constexpr auto forms = "write seconds (90), or 500ms, 1.5s, 2m, 1h30m, PT15M";
  if (text.empty()) {
    why = fmt::format("a duration is empty: {}", forms);
    return std::nullopt;
  }
  if (text.front() == '-') {
    why = fmt::format("'{}' is negative, and a duration is not", visible(text));
    return std::nullopt;
  }
  std::int64_t total_ms = 0;
  switch (text.front() == 'P' ? take_iso(text, total_ms) : take_plain(text, total_ms)) {
    case failure::none: return milliseconds{total_ms};
    case failure::malformed: why = fmt::format("'{}' is not a duration: {}", visible_word(text), forms); break;
    case failure::too_long: why = fmt::format("'{}' is longer than can be counted in milliseconds", visible(text));
  }
  return std::nullopt;
}

std::string to_text(milliseconds span) {
  const std::int64_t ms = span.count();
  if (ms < 0) return "0ms";
  if (ms < second_ms) return fmt::format("{}ms", ms);
  if (ms < minute_ms) {
    const std::int64_t tenths = ms / 100;
    return tenths % 10 == 0 ? fmt::format("{}s", tenths / 10) : fmt::format("{}.{}s", tenths / 10, tenths % 10);
  }
  if (ms < hour_ms) return fmt::format("{}m{:02}s", ms / minute_ms, ms % minute_ms / second_ms);
  if (ms < day_ms) return fmt::format("{}h{:02}m", ms / hour_ms, ms % hour_ms / minute_ms);
  return fmt::format("{}d{:02}h", ms / day_ms, ms % day_ms / hour_ms);
}

std::string to_option(milliseconds span) {
  const std::int64_t ms = span.count();
  return ms % second_ms == 0 ? fmt::format("{}s", ms / second_ms) : fmt::format("{}ms", ms);
}

}  // namespace holdfast::cli
