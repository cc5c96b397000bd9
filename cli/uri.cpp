// SPDX-License-Identifier: Apache-2.0
#include "uri.hpp"

#include <cstring>

namespace holdfast::cli {
namespace {

// Where the authority begins, behind `://`.
std::optional<std::size_t> find_authority(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (scheme == uri.npos) return std::nullopt;
  const auto begin = scheme + 3;
  // A path right away, as in redis+unix:///run/a:b@c: there is no authority, so there are no credentials.
  if (begin >= uri.size() || uri[begin] == '/') return std::nullopt;
  return begin;
}

// Where user and password stand, or may stand, without the `@`.
std::optional<text_range> find_credentials(std::string_view uri) {
  const auto begin = find_authority(uri);
  const auto at = uri.rfind('@');
  if (!begin || at == uri.npos || at < *begin) return std::nullopt;
  return text_range{*begin, at};
}

std::string without(const text_range& credentials, std::string_view uri) {
  std::string out{uri.substr(0, credentials.begin)};
  out += uri.substr(credentials.end + 1);
  return out;
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
  const auto widest = find_credentials(uri);
  if (!widest) return std::string{uri};
  // As a URI is read: an @ behind the authority is the path's. But a password with a slash that was not encoded has
  // none before it, and what still looks like a password afterwards is not left.
  const auto authority = uri.substr(0, uri.find_first_of("/?#", widest->begin));
  const auto at = authority.rfind('@');
  if (at != authority.npos && at >= widest->begin)
    if (auto narrow = without({widest->begin, at}, uri); !find_password(narrow)) return narrow;
  return without(*widest, uri);
}

bool blot_out_password(char* uri) {
  const auto password = find_password(uri);
  if (!password) return false;
  std::memset(uri + password->begin, '*', password->end - password->begin);
  return true;
}

}  // namespace holdfast::cli
