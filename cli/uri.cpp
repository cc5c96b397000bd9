// SPDX-License-Identifier: Apache-2.0
#include "uri.hpp"

#include <cstring>

namespace holdfast::cli {
namespace {

// Where user and password stand, without the `@`.
std::optional<text_range> find_credentials(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (scheme == uri.npos) return std::nullopt;
  const auto begin = scheme + 3;
  // A path right away, as in redis+unix:///run/a:b@c: there is no authority, so there are no credentials.
  if (begin >= uri.size() || uri[begin] == '/') return std::nullopt;
  const auto at = uri.rfind('@');
  if (at == uri.npos || at < begin) return std::nullopt;
  return text_range{begin, at};
}

}  // namespace

std::optional<text_range> find_password(std::string_view uri) {
  const auto credentials = find_credentials(uri);
  if (!credentials) return std::nullopt;
  const auto colon = uri.find(':', credentials->begin);
  if (colon == uri.npos || colon + 1 >= credentials->end) return std::nullopt;
  return text_range{colon + 1, credentials->end};
}

std::string without_credentials(std::string_view uri) {
  const auto credentials = find_credentials(uri);
  if (!credentials) return std::string{uri};
  std::string out{uri.substr(0, credentials->begin)};
  out += uri.substr(credentials->end + 1);
  return out;
}

bool blot_out_password(char* uri) {
  const auto password = find_password(uri);
  if (!password) return false;
  std::memset(uri + password->begin, '*', password->end - password->begin);
  return true;
}

}  // namespace holdfast::cli
