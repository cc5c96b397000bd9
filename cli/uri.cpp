// SPDX-License-Identifier: Apache-2.0
#include "uri.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

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
constexpr std::string_view of_a_name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr std::string_view blanks = " \t\r\n\v\f";

bool has_only(std::string_view text, std::string_view what) { return text.find_first_not_of(what) == text.npos; }

// "db1:6379", "[::1]", "db1,db2:7000": servers, and nothing that could be a password but a number.
bool are_hosts(std::string_view text) {
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

// Without an IPv4 address at its end, whose dots are also those of names.
bool is_ipv6(std::string_view text) {
  in6_addr ignored;
  return has_only(text, "0123456789abcdefABCDEF:") && ::inet_pton(AF_INET6, std::string{text}.c_str(), &ignored) == 1;
}

// An IPv6 address whose brackets were forgotten, or the second of them.
struct bare_ipv6 {
  std::string_view address;
  std::string_view zone;  // With its %.
  std::string_view port;
};

// One of the servers. nullopt: it is something else, or may be.
std::optional<bare_ipv6> read_bare_ipv6(std::string_view one) {
  if (one.starts_with('[')) one.remove_prefix(1);
  if (const auto percent = one.find('%'); percent != one.npos) {
    const auto colon = std::min(one.find(':', percent), one.size());
    const bare_ipv6 read{one.substr(0, percent), one.substr(percent, colon - percent),
                         one.substr(std::min(colon + 1, one.size()))};
    const bool is_link_local = read.address.starts_with("fe80:") || read.address.starts_with("FE80:");
    const bool fits = is_link_local && is_ipv6(read.address) && has_only(read.zone.substr(1), of_a_name) &&
                      has_only(read.port, digits);
    return fits ? std::optional{read} : std::nullopt;
  }
  const auto colon = one.rfind(':');
  if (colon == one.npos) return std::nullopt;
  const auto last = one.substr(colon + 1);
  const bool may_be_port = !last.empty() && last.size() <= 5 && has_only(last, digits) && is_ipv6(one.substr(0, colon));
  const bool is_whole = is_ipv6(one);
  // Of both, what looks like one: few ports have less than four digits.
  if (may_be_port && (!is_whole || last.size() >= 4)) return bare_ipv6{one.substr(0, colon), {}, last};
  return is_whole ? std::optional{bare_ipv6{one, {}, {}}} : std::nullopt;
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
  // With a database at most: "::1/secret" is no address.
  const auto behind = without_blanks(uri.substr(std::min(end + 1, uri.size())));
  const bool ends_plainly = end == uri.size() || (uri[end] == '/' && has_only(behind, digits));
  for (auto from = *begin; from < end;) {
    const auto next = std::min(uri.find(',', from), end);
    // Blanks at the end are most often those of whoever wrote the variable.
    const auto typed = uri.substr(from, next - from);
    const auto one = next < uri.size() ? typed : typed.substr(0, typed.find_last_not_of(blanks) + 1);
    const auto bracket = uri[from] == '[' ? uri.find(']', from) : from;  // An IPv6 address has colons of its own.
    const auto colon = uri.find(':', bracket < next ? bracket : from);
    const bool has_port = colon >= from + one.size() || has_only(one.substr(colon + 1 - from), digits);
    if (!has_port && !(ends_plainly && read_bare_ipv6(one))) return text_range{colon + 1, uri.size()};
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

// Of what has no credentials. Only a primary that sentinels know may be called so; a database has a number.
bool has_stray_at(std::string_view uri) {
  const auto found = find_credentials(uri);
  if (!found) return false;
  const auto end = uri.find_first_of("/?#", found->begin);
  return end == uri.npos || !uri.substr(0, found->begin).ends_with("+sentinel://") || uri[end] != '/' ||
         found->end > uri.find_first_of("?#", end);
}

std::string without_user_and_password(std::string_view uri) {
  const auto widest = find_credentials(uri);
  if (!widest) return std::string{uri};
  // As a URI is read: an @ behind the authority is the path's, or a file's. But a password with a slash that was not
  // encoded has none before it; and what still looks like a password afterwards, or has an @ where none can be, is not
  // left.
  const auto authority = uri.substr(0, uri.find_first_of("/?#", widest->begin));
  const auto at = authority.rfind('@');
  if (at != authority.npos && at >= widest->begin)
    if (auto narrow = without({widest->begin, at}, uri); !find_password(narrow) && !has_stray_at(narrow)) return narrow;
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

std::string_view without_blanks(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::optional<bracketed> in_brackets(std::string_view uri) {
  const auto begin = find_authority(uri);
  if (!begin) return std::nullopt;
  const auto end = std::min(uri.find_first_of("/?#", *begin), uri.size());
  bracketed out{std::string{uri.substr(0, *begin)}, {}};
  bool lacks_some = false;
  for (auto from = *begin; from <= end;) {
    const auto next = std::min(uri.find(',', from), end);
    const auto one = uri.substr(from, next - from);
    if (const auto bare = read_bare_ipv6(one)) {
      out.uri.append("[").append(bare->address).append(bare->port.empty() ? "]" : "]:").append(bare->port);
      if (!bare->zone.empty()) out.zone = bare->zone;
      lacks_some = true;
    } else {
      out.uri += one;
    }
    if (next < end) out.uri += ',';
    from = next + 1;
  }
  if (!lacks_some) return std::nullopt;
  out.uri += uri.substr(end);
  return out;
}

std::optional<std::string_view> several_hosts(std::string_view uri) {
  const auto begin = find_authority(uri);
  if (!begin || (!uri.starts_with("redis://") && !uri.starts_with("rediss://"))) return std::nullopt;
  const auto credentials = find_credentials(uri);
  const auto from = credentials ? credentials->end + 1 : *begin;
  const auto hosts = uri.substr(from, std::min(uri.find_first_of("/?#", from), uri.size()) - from);
  return hosts.find(',') != hosts.npos && are_hosts(hosts) ? std::optional{hosts} : std::nullopt;
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
