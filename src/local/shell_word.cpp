// SPDX-License-Identifier: Apache-2.0
#include "local/shell_word.hpp"

namespace holdfast::local {

std::string shell_word(std::string_view path) {
  constexpr std::string_view harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  if (path.starts_with('/') && path.find_first_not_of(harmless) == path.npos) return std::string{path};
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string_view{"'\\''"} : std::string_view{&c, 1};
  return out + "'";
}

}  // namespace holdfast::local
