// SPDX-License-Identifier: Apache-2.0
// The text of a server URI and of its parts, as far as that is no URL library's: which bytes may stand where, several
// hosts, and one spelling of what can be written in several ways.
#pragma once

#include "net/endpoint.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

bool is_one_of(char c, std::string_view all);

bool is_name_byte(char c);

// A path that the kernel would cut, or that a terminal would obey.
bool has_control_bytes(std::string_view path);

// From 0 on.
std::optional<int> small_number(std::string_view text, int most);

// What RFC 3986 lets stand in a URI, and where. Boost.URL 1.81 asserts on some of the rest (found by fuzz/uri_fuzz).
bool is_fit_to_parse(std::string_view text);

// Is there a zone in an IPv6 address, as %eth0 or as %25eth0 (RFC 6874)?
bool has_zone(std::string_view text);

// What stands between the first comma of the hosts and their end: URIs of the same scheme, and `text` without them.
std::vector<std::string> cut_other_hosts(std::string& text);

// Which servers are the same must not hang on how they are spelled.
net::tcp_address in_one_spelling(net::tcp_address where);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
