// SPDX-License-Identifier: Apache-2.0
// What the commands of the model have in common: Redis's own error texts, and how it reads a word.
#pragma once

#include "resp/value.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::sim {

using words_t = std::span<const std::string>;

inline const resp::server_error syntax_error{"ERR syntax error"};
inline const resp::server_error not_a_number{"ERR value is not an integer or out of range"};
inline const resp::server_error wrong_type{"WRONGTYPE Operation against a key holding the wrong kind of value"};

inline std::string upper(std::string_view word) {
  std::string out{word};
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

// As strict as Redis: no plus sign, no spaces, no leading zeros.
inline std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (text != std::to_string(number)) return std::nullopt;
  return number;
}

}  // namespace holdfast::sim
