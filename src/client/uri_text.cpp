// SPDX-License-Identifier: Apache-2.0
#include "client/uri_text.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

bool is_one_of(char c, std::string_view all) { return all.find(c) != std::string_view::npos; }

bool is_name_byte(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_one_of(c, "0123456789.-_"); }

bool has_control_bytes(std::string_view path) {
  return std::any_of(path.begin(), path.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

std::optional<int> small_number(std::string_view text, int most) {
  int n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || n < 0 || n > most) return std::nullopt;
  return n;
}

bool is_fit_to_parse(std::string_view text) {
  const auto colon = text.find(':');
  if (colon != std::string_view::npos && colon + 1 < text.size() && text[colon + 1] != '/') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char before = i > 0 ? text[i - 1] : '\0';
    const std::string_view after = text.substr(i + 1);
    if (c <= ' ' || c >= '\x7f' || is_one_of(c, "\"<>\\^`{|}")) return false;
    if (c == '%' && !(after.size() >= 2 && std::isxdigit(after[0]) && std::isxdigit(after[1]))) return false;
    // Brackets are for an IPv6 address alone.
    if (c == '[' && !is_one_of(before, "/@")) return false;
    if (c == ']' && (text.find('[') > i || !(after.empty() || is_one_of(after[0], ":/?#")))) return false;
  }
  const bool has_brackets = std::count(text.begin(), text.end(), '[') == 1;
  return std::count(text.begin(), text.end(), ']') == (has_brackets ? 1 : 0) &&
         (has_brackets || text.find('[') == std::string_view::npos);
}

bool has_zone(std::string_view text) {
  for (auto open = text.find('['); open != std::string_view::npos; open = text.find('[', open + 1)) {
    const auto inside = text.substr(open + 1, text.find(']', open) - open - 1);
    const auto zone = inside.find('%');
    if (zone == std::string_view::npos || open + 1 + inside.size() == text.size()) continue;
    in6_addr ignored{};
    if (inet_pton(AF_INET6, std::string{inside.substr(0, zone)}.c_str(), &ignored) == 1) return true;
  }
  return false;
}

std::vector<std::string> cut_other_hosts(std::string& text) {
  const auto colon = std::min(text.find("://"), text.size());
  const auto scheme = text.substr(0, colon);
  if (!scheme.ends_with("+sentinel") && !scheme.ends_with("+cluster") && !scheme.ends_with("+quorum")) return {};
  const auto end = std::min(text.find_first_of("/?#", colon + 3), text.size());
  const auto at = text.substr(0, end).rfind('@');
  const auto begin = at != std::string::npos && at > colon ? at + 1 : std::min(colon + 3, text.size());
  auto comma = text.find(',', begin);
  if (comma >= end) return {};
  std::vector<std::string> others;
  const auto hosts = text.substr(comma, end - comma);
  text.erase(comma, end - comma);
  for (std::size_t from = 0; from < hosts.size();) {
    const auto next = std::min(hosts.find(',', from + 1), hosts.size());
    others.push_back(scheme + "://" + hosts.substr(from + 1, next - from - 1));
    from = next;
  }
  return others;
}

net::tcp_address in_one_spelling(net::tcp_address where) {
  std::transform(where.host.begin(), where.host.end(), where.host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  in6_addr literal{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_pton(AF_INET6, where.host.c_str(), &literal) == 1 &&
      inet_ntop(AF_INET6, &literal, text.data(), text.size()) != nullptr) {
    where.host = text.data();
  }
  where.port.erase(0, where.port.find_first_not_of('0'));  // It is a number that is not 0.
  return where;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
