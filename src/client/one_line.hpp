// SPDX-License-Identifier: Apache-2.0
// Words for people on one line. A lock's name under naming::plain, a file's, an option or the server's words may have
// any bytes: a line end would make two lines of a log of one, and at a NUL a what() ends. Its own file, because errors
// and log records need it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace holdfast {
inline namespace v0 {
namespace detail {

// Control bytes as \xXX. What is not ASCII stays: most of it is somebody's language.
inline std::string on_one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      out += c;
    } else {
      out += fmt::format("\\x{:02X}", byte);
    }
  }
  return out;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
