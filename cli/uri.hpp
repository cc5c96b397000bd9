// SPDX-License-Identifier: Apache-2.0
// Where a server URI keeps its password, so that it can be taken out. The library parses URIs; this only hides
// secrets, also in URIs that do not parse, and so errs on the side of hiding.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

struct text_range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The first of these, which is never empty; nullopt when nothing can be a password there:
//   from the first `:` after `://` to the last `@`, but not of options behind plain servers
//   without an `@`, what stands behind a `:` of the servers and is no port: the host was forgotten. Not of an IPv6
//   address without its brackets, and blanks at the end are left out
//   what is behind `password=` or the like in a query, where other programs have it
std::optional<text_range> find_password(std::string_view uri);

// Could there be one in what was typed for a URI? Also where its scheme was forgotten.
bool may_hide_password(std::string_view typed);

// The URI without user and password, and whatever else find_password() finds: "redis://:secret@db1/3" becomes
// "redis://db1/3".
std::string without_credentials(std::string_view uri);

// `holdfast init` tells all servers behind a URI that they have forgotten nothing. When that is so, behind an "if".
// `of_one`: where it is one server.
std::string_view init_condition(std::string_view uri, std::string_view of_one);

// Without white space at both ends.
std::string_view without_blanks(std::string_view text);

// A URI as it was meant. nullopt: no IPv6 address in it lacks its brackets, or what does may be something else.
struct bracketed {
  std::string uri;
  std::string zone;  // The %eth0 that was behind one, and is not in `uri`.
};
std::optional<bracketed> in_brackets(std::string_view uri);

// The servers of redis:// and rediss://, where that is more than one.
std::optional<std::string_view> several_hosts(std::string_view uri);

// Overwrites passwords in place with asterisks. Returns whether there was one.
bool blot_out_password(char* uri);

}  // namespace holdfast::cli
