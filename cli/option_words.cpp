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
#include <utility>

namespace holdfast::cli {
namespace {

struct option_name {
  std::string_view field;
  const char* typed;
  const char* way;  // Nobody can know of 100 that it was read as seconds.
};

// Each field that an option sets, and the option.
constexpr std::array option_names{
    option_name{"timeout", "--server-timeout", "--server-timeout 5s, say; a plain number is seconds"},
    option_name{"max_ttl", "--max-ttl", "--max-ttl 5m, say, the same on every client; a plain number is seconds"},
    option_name{"durability.replicas", "--replicas", "leave --replicas out"},
    option_name{"durability.timeout", "--replicas-timeout", "--replicas-timeout 100ms, say; a plain number is seconds"},
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

}  // namespace

std::string as_typed(const std::string& subject) {
  const auto* option = find(subject);
  if (!option) return subject;
  auto rest = subject.substr(option->field.size());
  if (rest.starts_with(" = ")) rest = in_units_of_options(rest.substr(2));
  return option->typed + rest;
}

const char* way_into_range(std::string_view subject) {
  const auto* option = find(subject);
  return option ? option->way : "holdfast help run";
}

std::string in_words_of_options(std::string text) {
  for (const auto& [field, typed] :
       {std::pair{"quarantine = trust_every_write_is_synced", "--trust-every-write-is-synced"},
        std::pair{"durability.replicas = ", "--replicas "}, std::pair{"durability.replicas", "--replicas"},
        std::pair{"durability.timeout", "--replicas-timeout"}})
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
