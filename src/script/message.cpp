// SPDX-License-Identifier: Apache-2.0
#include "script/message.hpp"

#include "script/field.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast::script {

namespace {

constexpr std::string_view grant = "v1|grant|";
constexpr std::string_view look = "v1|look|";
constexpr std::size_t owner_size = 32;
constexpr std::size_t stamp_size = 16;

}  // namespace

std::optional<message> parse_message(std::string_view text) {
  const bool is_grant = text.starts_with(grant);
  if (!is_grant && !text.starts_with(look)) return std::nullopt;
  text.remove_prefix(is_grant ? grant.size() : look.size());
  if (text.size() < owner_size + 1 + stamp_size + 1 || text[owner_size] != '|' ||
      text[owner_size + 1 + stamp_size] != '|') {
    return std::nullopt;
  }
  const auto now = parse_digits16(text.substr(owner_size + 1, stamp_size));
  const auto at = parse_digits(text.substr(owner_size + 1 + stamp_size + 1), 16);
  if (!now || !at) return std::nullopt;
  message m{text.substr(0, owner_size), server_time{std::chrono::microseconds{*now}}, duration{0}};
  if (!is_grant && *at > *now) {
    // In their unit: 16 digits of it are more nanoseconds than a duration holds.
    m.look_in = std::min<std::chrono::microseconds>(std::chrono::microseconds{*at - *now}, std::chrono::minutes{1});
  }
  return m;
}

}  // namespace holdfast::script
