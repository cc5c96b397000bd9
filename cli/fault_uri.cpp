// SPDX-License-Identifier: Apache-2.0
// The texts for a URI that cannot be understood, or not here. What may hide a password is not shown (uri.hpp).
#include "escape.hpp"
#include "fault_pieces.hpp"
#include "uri.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {
namespace {

constexpr const char* all_forms =
    "redis://HOST:PORT/DB, rediss://HOST:PORT, redis+sentinel://S1,S2,S3/NAME, redis+cluster://A,B,C, "
    "redis+quorum://A,B,C, redis+unix:///PATH?db=N, local: or local:/DIRECTORY";

// "the nodes" and the like are said as they are; what was typed is quoted.
std::string quoted_part(const std::string& part) { return part.starts_with("the ") ? part : fmt::format("'{}'", part); }

bool is_blank(char c) { return without_blanks({&c, 1}).empty(); }

bool has_blank(std::string_view text) {
  for (const char c : text)
    if (is_blank(c)) return true;
  return false;
}

std::string not_a_server(std::string_view uri) {
  return fmt::format("'{}' is not a server that we know how to reach", shortened(visible(uri)));
}

sentences for_blank(std::string_view uri) {
  const auto trimmed = without_blanks(uri);
  const auto scheme = trimmed.find("://");
  // Behind the servers are paths, in which there are blanks.
  const auto servers = trimmed.substr(0, scheme == trimmed.npos ? 0 : trimmed.find_first_of("/?#", scheme + 3));
  return {not_a_server(uri), "there is a blank in it",
          !has_blank(trimmed)  ? visible(trimmed)
          : has_blank(servers) ? "leave it out"
                               : "%20 in its place"};
}

sentences for_brackets(std::string_view uri, const bracketed& meant) {
  if (!meant.zone.empty())
    return {not_a_server(uri),
            fmt::format("an IPv6 address stands in brackets, and one with a zone ({}) is of one machine alone",
                        visible(meant.zone)),
            "an address without a zone, in brackets, or a name"};
  return {not_a_server(uri), "an IPv6 address stands in brackets", shortened(visible(meant.uri))};
}

sentences for_several(std::string text, std::string_view uri, std::string_view hosts) {
  const auto* scheme = uri.starts_with("rediss:") ? "rediss" : "redis";
  return {std::move(text), fmt::format("it names several servers, and {}:// is one", scheme),
          fmt::format("{0}+quorum://{1} (an odd number), {0}+cluster://{1} or {0}+sentinel://{1}/NAME", scheme,
                      shortened(visible(hosts)))};
}

sentences for_unknown_server(std::string_view uri) {
  if (uri.starts_with("local:"))
    return {not_a_server(uri), "what follows local: is a directory with its whole path, or nothing",
            "local:/DIRECTORY, or local:"};
  const bool has_scheme = uri.find("://") != uri.npos;
  return {not_a_server(uri), has_scheme ? "" : "it does not say what is spoken there: redis:// is missing before it",
          has_scheme ? "holdfast help servers"
                     : fmt::format("redis://{}, or rediss:// for TLS; holdfast help servers", shortened(visible(uri)))};
}

// What is wrong with it can be seen, and it may be shown.
std::optional<sentences> for_slip(std::string_view uri) {
  if (has_blank(uri)) return for_blank(uri);
  if (const auto meant = in_brackets(uri)) return for_brackets(uri, *meant);
  if (const auto hosts = several_hosts(uri)) return for_several(not_a_server(uri), uri, *hosts);
  return std::nullopt;
}

}  // namespace

sentences for_uri(const pieces& p, const fault_context& context) {
  // A URI that is understood, and is no list to replace another one with.
  if (p.subject.find("://") != p.subject.npos && !p.subject.ends_with("://") && !p.why.empty())
    return {fmt::format("{} cannot be used here", p.subject), p.why, "holdfast help quorum"};
  const bool is_whole = p.subject.starts_with("a URI of");
  if (!context.uri.empty() && !may_hide_password(context.uri)) {
    if (auto slip = for_slip(context.uri)) return *std::move(slip);
    if (is_whole) return for_unknown_server(context.uri);
  }
  if (p.subject.ends_with(" servers"))
    return {fmt::format("{} are no quorum", p.subject), p.why,
            "redis+quorum:// with 1, 3, 5, 7 or 9 servers, each named once"};
  // The part that is wrong, or that it cannot be taken apart.
  auto text = is_whole || p.subject == "an empty URI"
                  ? fmt::format("{} is not a server that we know how to reach", p.subject)
                  : fmt::format("in the server's URI, {} cannot be understood", quoted_part(p.subject));
  if (several_hosts(context.uri)) return for_several(std::move(text), context.uri, "A,B,C");
  return {std::move(text), "", all_forms};
}

}  // namespace holdfast::cli
