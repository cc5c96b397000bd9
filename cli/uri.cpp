// SPDX-License-Identifier: Apache-2.0
#include "uri.hpp"

#include <algorithm>
#include <array>
#include <cctype>
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

constexpr std::string_view digits = "0123456789";

bool has_only(std::string_view text, std::string_view what) { return text.find_first_not_of(what) == text.npos; }

// "db1:6379", "[::1]", "db1,db2:7000": servers, and nothing that could be a password but a number.
bool are_hosts(std::string_view text) {
  constexpr std::string_view of_a_name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (bool is_more = true; is_more;) {
    const auto comma = text.find(',');
    auto one = text.substr(0, comma);
    is_more = comma != text.npos;
    if (is_more) text.remove_prefix(comma + 1);
    const auto end = one.starts_with('[') ? one.find(']') : one.find(':');
    const auto port = end == one.npos ? std::string_view{} : one.substr(end + (one[end] == ']' ? 1 : 0));
    const auto host = one.substr(0, one.size() - port.size());
    if (host.empty() || (!port.empty() && (port[0] != ':' || !has_only(port.substr(1), digits)))) return false;
    if (!has_only(host, host[0] == '[' ? "0123456789abcdefABCDEF:.[]" : of_a_name)) return false;
  }
  return true;
}

// Without the options behind servers, whose files may have an @ in their names: "?cacert=/etc/pki/ca@corp".
std::string_view without_options(std::string_view uri, std::size_t authority) {
  const auto query = uri.find('?', authority);
  if (query == uri.npos) return uri;
  const auto servers = uri.substr(authority, std::min(query, uri.find('/', authority)) - authority);
  const auto name = uri.substr(query + 1, uri.find('=', query) - query - 1);
  const bool are_options = name == "cacert" || name == "cert" || name == "key";
  return are_options && are_hosts(servers) ? uri.substr(0, query) : uri;
}

// Where user and password stand, or may stand, without the `@`.
std::optional<text_range> find_credentials(std::string_view whole) {
  const auto begin = find_authority(whole);
  const auto uri = begin ? without_options(whole, *begin) : whole;
  const auto at = uri.rfind('@');
  if (!begin || at == uri.npos || at < *begin) return std::nullopt;
  return text_range{*begin, at};
}

std::string without(const text_range& credentials, std::string_view uri) {
  std::string out{uri.substr(0, credentials.begin)};
  out += uri.substr(credentials.end + 1);
  return out;
}

std::optional<text_range> password_of_credentials(std::string_view uri) {
  const auto credentials = find_credentials(uri);
  if (!credentials) return std::nullopt;
  const auto colon = uri.find(':', credentials->begin);
  if (colon == uri.npos || colon + 1 >= credentials->end) return std::nullopt;
  return text_range{colon + 1, credentials->end};
}

// "redis://default:secret", whose host was forgotten. To the end: it may have any byte.
std::optional<text_range> password_for_a_port(std::string_view uri) {
  const auto begin = find_authority(uri);
  if (!begin || find_credentials(uri)) return std::nullopt;
  const auto end = std::min(uri.find_first_of("/?#", *begin), uri.size());
  for (auto from = *begin; from < end;) {
    const auto next = std::min(uri.find(',', from), end);
    const auto bracket = uri[from] == '[' ? uri.find(']', from) : from;  // An IPv6 address has colons of its own.
    const auto colon = uri.find(':', bracket < next ? bracket : from);
    if (colon < next && !has_only(uri.substr(colon + 1, next - colon - 1), digits))
      return text_range{colon + 1, uri.size()};
    from = next + 1;
  }
  return std::nullopt;
}

bool is_of_a_password(std::string_view key) {
  std::string lower{key};
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array words{"pass", "pwd", "auth", "secret"};
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return lower.find(word) != lower.npos; });
}

std::optional<text_range> password_of_query(std::string_view uri) {
  for (auto at = uri.find('?'); at != uri.npos; at = uri.find('&', at + 1)) {
    const auto equals = uri.find('=', at);
    if (equals == uri.npos || equals + 1 == uri.size()) return std::nullopt;
    if (is_of_a_password(uri.substr(at + 1, equals - at - 1))) return text_range{equals + 1, uri.size()};
  }
  return std::nullopt;
}

constexpr std::array places{password_of_credentials, password_for_a_port, password_of_query};

std::string without_user_and_password(std::string_view uri) {
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

}  // namespace

std::optional<text_range> find_password(std::string_view uri) {
  for (const auto look : places)
    if (const auto found = look(uri)) return found;
  return std::nullopt;
}

bool may_hide_password(std::string_view typed) {
  if (typed.find('@') != typed.npos) return true;
  const bool has_scheme = typed.find("://") != typed.npos || typed.starts_with("local:");
  return find_password((has_scheme ? "" : "redis://") + std::string{typed}).has_value();
}

std::string without_credentials(std::string_view uri) {
  auto rest = without_user_and_password(uri);
  while (const auto password = find_password(rest)) rest.erase(password->begin, password->end - password->begin);
  return rest;
}

std::string_view init_condition(std::string_view uri, std::string_view of_one) {
  if (uri.find("+quorum://") != uri.npos) return "none of its servers has forgotten a lock";
  return uri.find("+cluster://") != uri.npos ? "none of its nodes has forgotten a lock" : of_one;
}

bool blot_out_password(char* uri) {
  bool was_there = false;
  for (const auto look : places) {
    const auto password = look(uri);
    if (!password) continue;
    std::memset(uri + password->begin, '*', password->end - password->begin);
    was_there = true;
  }
  return was_there;
}

}  // namespace holdfast::cli
