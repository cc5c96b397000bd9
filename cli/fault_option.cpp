// SPDX-License-Identifier: Apache-2.0
// The texts for an option that cannot be had. There are two kinds, and their ways out are not the same: one that is out
// of its range wants another value, and one that makes no sense beside what else was asked for has none that would do.
#include "escape.hpp"
#include "fault_pieces.hpp"
#include "option_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {
namespace {

// "key '/etc/me.key'" is that path.
std::string_view path_in(std::string_view subject) {
  const auto open = subject.find('\'');
  return open == subject.npos || subject.size() < open + 2 ? "" : subject.substr(open + 1, subject.size() - open - 2);
}

// ---- files ----

bool is_file(std::string_view subject) {
  return subject.starts_with("cacert ") || subject.starts_with("cert ") || subject.starts_with("key ");
}

std::vector<std::string_view> tls_options_of(const server_files& files) {
  std::vector<std::string_view> out;
  for (const auto& [option, path] :
       {std::pair{"--cacert", files.cacert}, std::pair{"--cert", files.cert}, std::pair{"--key", files.key}})
    if (!path.empty()) out.emplace_back(option);
  return out;
}

// The server was named with a scheme that has another one for TLS.
bool may_speak_tls(std::string_view uri) {
  return uri.starts_with("redis:") || (uri.starts_with("redis+") && !uri.starts_with("redis+unix:"));
}

// One is named, and all that were given are as wrong: who left out that one would hear of the next.
sentences for_tls_without_tls(const pieces& p, const fault_context& context) {
  const auto given = tls_options_of(context.files);
  const auto way = fmt::format("leave {} out", fmt::join(given, ", "));
  const bool may_be_tls = may_speak_tls(context.uri);
  return {fmt::format("{} is for TLS, and this server is named without it", as_typed(p.subject)),
          "redis:, redis+unix: and local: are without TLS, and rediss: is with it",
          may_be_tls ? way + "; or, if that port speaks TLS, write rediss: for redis: in the URI" : way};
}

// A certificate may have its key beside it; and a URI has files, too.
sentences for_encrypted_key(const pieces& p, const fault_context& context) {
  const auto path = path_in(p.subject);
  const auto is = [&](std::string_view option) { return !option.empty() && visible(option) == path; };
  const auto* option = is(context.files.key) ? "--key" : is(context.files.cert) ? "the key in --cert" : "the URI's key";
  const auto* there = context.files.key.empty() && !is(context.files.cert) ? "&key=NEW in the URI" : "--key NEW";
  return {fmt::format("{} '{}' cannot be used", option, path), "it is encrypted, and holdfast takes no pass phrase",
          fmt::format("openssl pkey -in {} -out NEW; and {}", shell_quoted(path), there)};
}

sentences for_file(const pieces& p, const fault_context& context) {
  if (p.why.starts_with("it is for TLS")) return for_tls_without_tls(p, context);
  if (p.why.find("it is encrypted") != p.why.npos) return for_encrypted_key(p, context);
  return {fmt::format("{} cannot be used", as_typed(p.subject)), p.why, "name a PEM file that this user can read"};
}

// ---- what excludes each other ----

// "plain naming, with a quorum": what the library calls so, and the option that asks for it. Its value is shown.
struct together {
  std::string_view what;
  std::string_view option;
  std::string_view way_out;
};

constexpr std::string_view between = ", with ";

constexpr together options_together[] = {
    {"quarantine off", "--trust-every-write-is-synced", "leave --trust-every-write-is-synced out"},
    {"plain naming", "--plain", "leave --plain out"},
    {"durability.replicas = ", "--replicas", "leave --replicas out, and --replicas-timeout"},
};

const together* find_together(std::string_view subject) {
  if (subject.find(between) == subject.npos) return nullptr;
  for (const auto& one : options_together)
    if (subject.starts_with(one.what)) return &one;
  return nullptr;
}

// The library's way out, in its own words, stands behind the reason.
std::string without_advice(const std::string& why) {
  return why.substr(0, std::min(why.find("; leave it on"), why.find("; let all give it back")));
}

}  // namespace

sentences for_option(const pieces& p, const fault_context& context) {
  if (is_file(p.subject)) return for_file(p, context);
  if (const auto* both = find_together(p.subject)) {
    const auto at = p.subject.find(between);
    const auto other = p.subject.substr(at + between.size());
    const auto value = p.subject.substr(both->what.size(), at - both->what.size());
    // What is given up may be the other one, where that was an option, too.
    return {fmt::format("{}{}{} cannot be had with {}", both->option, value.empty() ? "" : " ", value, other),
            without_advice(p.why),
            other.starts_with('-') ? fmt::format("{}, or {}", both->way_out, other) : std::string{both->way_out}};
  }
  if (p.subject.starts_with("resize of "))
    return {fmt::format("no {}", p.subject), without_advice(p.why),
            "let all give it back, and resize it on each server alone: --uri redis://HOST:PORT for each"};
  if (p.why.starts_with("the server's answers take"))
    return {fmt::format("{} is too short for {}", in_units_of_options(as_typed(p.subject)), p.server),
            in_units_of_options(p.why), fmt::format("a longer --ttl; holdfast doctor{} says which", p.server_argument)};
  return {fmt::format("{} is out of its range", p.subject.empty() ? "an option" : as_typed(p.subject)),
          in_units_of_options(p.why), way_into_range(p.subject, p.why)};
}

}  // namespace holdfast::cli
