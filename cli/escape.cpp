// SPDX-License-Identifier: Apache-2.0
#include "escape.hpp"

#include "uri.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace holdfast::cli {
namespace {

struct decoded {
  std::size_t length = 0;  // 0: not UTF-8.
  char32_t code = 0;
};

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

decoded decode(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return {1, first};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  char32_t code = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0U) != 0x80U) return {};
    code = (code << 6) | (byte_at(text, i) & 0x3fU);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {length, code};
}

bool is_dangerous(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029 || c == 0x200e || c == 0x200f ||
         (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

// Cut short, it would be a way to the same server under another user.
std::string uri_argument(std::string_view uri) {
  const bool is_uri = uri.find("://") != uri.npos || uri.starts_with("local:");
  return is_uri && without_credentials(uri) == uri ? shell_quoted(visible(uri)) : "URI";
}

// What is shown in another spelling would be another one when it is copied.
bool can_be_typed(std::string_view text) { return visible(text) == text; }

// A descriptor of ours is another file to whoever types it, or none.
std::string file_argument(std::string_view path) {
  const bool is_ours_alone = path.starts_with("/dev/fd/") || path.starts_with("/proc/") || path == "/dev/stdin";
  return is_ours_alone || !can_be_typed(path) ? "FILE" : shell_quoted(path);
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [length, code] = decode(text);
    const std::size_t taken = length == 0 ? 1 : length;
    if (length != 0 && !is_dangerous(code)) {
      out.append(text.substr(0, taken));
    } else {
      for (std::size_t i = 0; i < taken; ++i) out += fmt::format("\\x{:02x}", byte_at(text, i));
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string visible_json(std::string_view document) {
  std::string out;
  out.reserve(document.size());
  while (!document.empty()) {
    const auto [length, code] = decode(document);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (length != 0 && code >= 0x7f && is_dangerous(code)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    } else {
      out.append(document.substr(0, taken));
    }
    document.remove_prefix(taken);
  }
  return out;
}

std::string visible_word(std::string_view word) { return visible(without_credentials(word)); }

std::string visible_path(std::string_view path) {
  const auto scheme = path.find("redis");
  const auto slash = scheme == path.npos ? path.npos : path.find(":/", scheme);
  if (slash == path.npos || path.substr(slash).starts_with("://")) return visible_word(path);
  auto shown = without_credentials(std::string{path}.insert(slash + 1, "/"));
  return visible(shown.erase(slash + 1, 1));
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  const bool plain = !text.empty() && text.front() != '-' && text.find_first_not_of(harmless) == text.npos;
  if (plain) return std::string{text};
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string name_argument(std::string_view name) {
  constexpr std::size_t longest = 512;  // Of a lock's name.
  if (name.size() > longest || !can_be_typed(name)) return "NAME";
  if (without_credentials(name) != name) return "NAME";
  return (name.starts_with('-') ? "-- " : "") + shell_quoted(name);
}

std::string server_argument(const server_words& which) {
  std::string out;
  if (!which.uri.empty()) out += fmt::format(" --uri {}", uri_argument(which.uri));
  for (const auto& [option, path] :
       {std::pair{"--password-file", which.files.password}, std::pair{"--cacert", which.files.cacert},
        std::pair{"--cert", which.files.cert}, std::pair{"--key", which.files.key}})
    if (!path.empty()) out += fmt::format(" {} {}", option, file_argument(path));
  if (!which.prefix.empty()) out += fmt::format(" --prefix {}", shell_quoted(visible(which.prefix)));
  if (!which.max_ttl.empty()) out += fmt::format(" --max-ttl {}", which.max_ttl);
  return out;
}

std::string lock_argument(const lock_words& which) {
  std::string out = which.plain ? "--plain " : "";
  if (const auto at = server_argument(which.at); !at.empty()) out += at.substr(1) + " ";
  return out + name_argument(which.name);
}

}  // namespace holdfast::cli
