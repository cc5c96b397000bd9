// SPDX-License-Identifier: Apache-2.0
#include "script/field.hpp"

#include <charconv>

namespace holdfast::script {

namespace {

constexpr std::string_view hex_digits = "0123456789ABCDEF";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string escape(std::string_view text, std::string_view also) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F && c != '%' && also.find(c) == std::string_view::npos) {
      out += c;
      continue;
    }
    out += '%';
    out += hex_digits[byte >> 4];
    out += hex_digits[byte & 15];
  }
  return out;
}

std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string digits16(std::uint64_t number) {
  std::string text = std::to_string(number);
  if (text.size() < 16) text.insert(0, 16 - text.size(), '0');
  return text;
}

std::optional<std::uint64_t> parse_digits(std::string_view text, std::size_t most) {
  if (text.empty() || text.size() > most) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_digits16(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  return parse_digits(text, 16);
}

}  // namespace holdfast::script
