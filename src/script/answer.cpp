// SPDX-License-Identifier: Apache-2.0
#include "script/answer.hpp"

#include "script/field.hpp"

#include <limits>
#include <utility>

namespace holdfast::script {

std::optional<server_time> time_of(std::string_view digits) {
  const auto number = parse_digits16(digits);
  if (!number) return std::nullopt;
  return server_time{std::chrono::microseconds{static_cast<std::int64_t>(*number)}};
}

std::optional<fencing_token> token_of(std::string_view digits) {
  const auto number = parse_digits16(digits);
  if (!number || *number == 0 || *number > fencing_token::max_value) return std::nullopt;
  return fencing_token{*number};
}

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

std::optional<answer> answer::of(const resp::value& reply) {
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

}  // namespace holdfast::script
