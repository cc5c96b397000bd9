// SPDX-License-Identifier: Apache-2.0
#include "option_words.hpp"

#include "duration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::cli {
namespace {

struct option_name {
  std::string_view field;
  const char* typed;
  const char* way;  // Nobody can know of 100 that it was read as seconds. What it begins with is an example.
};

// Each field that an option sets, and the option.
constexpr std::array option_names{
    option_name{"timeout", "--server-timeout", "--server-timeout 5s, say; a plain number is seconds"},
    option_name{"max_ttl", "--max-ttl", "--max-ttl 5m, say, the same on every client; a plain number is seconds"},
    option_name{"durability.replicas", "--replicas", "leave --replicas out"},
    option_name{"durability.timeout", "--replicas-timeout",
                "--replicas-timeout 100ms, say; a plain number is seconds; a longer one needs twice as long a "
                "--server-timeout"},
    option_name{"ttl", "--ttl",
                "--ttl 10s, say, or 500ms; a plain number is seconds; a longer one needs --max-ttl, the same on every "
                "client"},
    option_name{"wait", "--wait", "-w 10m, say; a plain number is seconds"},
    option_name{"max_hold", "--max-hold", "--max-hold 2h, say; a plain number is seconds"},
    option_name{"min_fence", "--min-fence", "the number that the resource named when it refused a write"},
    option_name{"ready_within", "--ready-within", "--ready-within 1m, say; a plain number is seconds"},
    option_name{"prefix", "--prefix", "--prefix app:, say, the same on every client"},
    option_name{"owner", "--owner", "a shorter one"},
    option_name{"why", "--why", "a shorter one"},
    option_name{"cacert", "--cacert", "holdfast help run"},
    option_name{"cert", "--cert", "holdfast help run"},
    option_name{"key", "--key", "holdfast help run"},
};

const option_name* find(std::string_view subject) {
  const auto field = subject.substr(0, subject.find(' '));
  const auto found = std::find_if(option_names.begin(), option_names.end(),
                                  [&](const option_name& one) { return one.field == field; });
  return found == option_names.end() ? nullptr : &*found;
}

std::size_t digits_of(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

// "60000" is followed by " ms", and so is the 100 of "100 to 60000 ms".
bool is_followed_by_ms(std::string_view rest) {
  if (rest.starts_with(" ms")) return true;
  if (!rest.starts_with(" to ")) return false;
  rest.remove_prefix(4);
  return digits_of(rest) > 0 && rest.substr(digits_of(rest)).starts_with(" ms");
}

std::string span_of(std::string_view digits) {
  std::int64_t count = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const std::chrono::milliseconds span{count};
  std::string why;
  auto shown = to_text(span);
  return ec == std::errc{} && parse_duration(shown, why) == span ? shown : fmt::format("{} ms", digits);
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), count);
  return ec == std::errc{} ? std::optional{count} : std::nullopt;
}

// In milliseconds.
struct range {
  std::int64_t least;
  std::int64_t most;
};

// "it must be 100 to 60000 ms", or "it must be 400 ms or more".
std::optional<range> range_in(std::string_view why) {
  constexpr std::string_view before = "it must be ";
  const auto at = why.find(before);
  if (at == why.npos) return std::nullopt;
  const auto rest = why.substr(at + before.size());
  const auto least = number_in(rest);
  if (!least || !is_followed_by_ms(rest.substr(digits_of(rest)))) return std::nullopt;
  constexpr std::string_view between = " to ";
  const auto behind = rest.substr(digits_of(rest));
  if (!behind.starts_with(between)) return range{*least, std::numeric_limits<std::int64_t>::max()};
  const auto most = number_in(behind.substr(between.size()));
  return most ? std::optional{range{*least, *most}} : std::nullopt;
}

// The 10s of "--ttl 10s, say", in milliseconds.
std::optional<std::int64_t> example_in(std::string_view way) {
  const auto begin = std::min(way.find(' '), way.size() - 1) + 1;
  std::string why;
  const auto span = parse_duration(way.substr(begin, way.find(',', begin) - begin), why);
  return span ? std::optional{span->count()} : std::nullopt;
}

// As it can be typed.
std::string typed_of(std::int64_t count) {
  const auto shown = span_of(std::to_string(count));
  return shown.ends_with(" ms") ? fmt::format("{}ms", count) : shown;
}

}  // namespace

std::string as_typed(const std::string& subject) {
  const auto* option = find(subject);
  if (!option) return subject;
  auto rest = subject.substr(option->field.size());
  if (rest.starts_with(" = ")) rest = in_units_of_options(rest.substr(2));
  return option->typed + rest;
}

std::string way_into_range(std::string_view subject, std::string_view why) {
  const auto* option = find(subject);
  if (!option) return "holdfast help run";
  const auto range = range_in(why);
  const std::string_view way = option->way;
  const auto example = example_in(way);
  if (!range || !example || (*example >= range->least && *example <= range->most)) return option->way;
  // The nearer end of it, which is what was meant if the number was.
  const auto digits = subject.find_first_of("0123456789");
  const auto value = digits == subject.npos ? std::nullopt : number_in(subject.substr(digits));
  const bool is_too_short = value && *value < range->least;
  return fmt::format("{} {} or {}{}", option->typed, typed_of(is_too_short ? range->least : range->most),
                     is_too_short ? "more" : "less", way.substr(std::min(way.find(';'), way.size())));
}

std::string in_words_of_options(std::string text) {
  for (const auto& [field, typed] :
       {std::pair{"quarantine = trust_every_write_is_synced", "--trust-every-write-is-synced"},
        std::pair{"durability.replicas = ", "--replicas "}, std::pair{"durability.replicas", "--replicas"},
        std::pair{"durability.timeout", "--replicas-timeout"},
        std::pair{"a smaller max_ttl", "a smaller --max-ttl, the same on every client"},
        std::pair{"use a ttl of ", "use a --ttl of "}, std::pair{"or another prefix", "or another --prefix"},
        std::pair{"leave the quarantine on", "leave --trust-every-write-is-synced out"}})
    for (auto at = text.find(field); at != text.npos; at = text.find(field, at))
      text.replace(at, std::strlen(field), typed);
  return text;
}

std::string in_units_of_options(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto digits = text.substr(0, digits_of(text));
    const auto rest = text.substr(digits.size());
    if (!digits.empty() && is_followed_by_ms(rest)) {
      out += span_of(digits);
      text = rest.starts_with(" ms") ? rest.substr(3) : rest;
      continue;
    }
    const auto plain = std::max<std::size_t>(digits.size(), 1);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
  }
  return out;
}

}  // namespace holdfast::cli
