// SPDX-License-Identifier: Apache-2.0
// What was asked for as words of the commands that we print to be copied: which server, which lock, and how a
// quarantine that was seen is ended.
#include "duration.hpp"
#include "environment.hpp"
#include "options.hpp"
#include "uri.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

// Empty: it was not given.
std::string_view view_of(const std::optional<std::string>& given) {
  return given ? std::string_view{*given} : std::string_view{};
}

server_words server_words_of(const settings& s) {
  return {.uri = view_of(s.uri), .prefix = view_of(s.prefix), .files = files_of(s)};
}

server_words meant_server_of(const settings& s) {
  auto which = server_words_of(s);
  if (!s.uri) which.uri = variable("HOLDFAST_URI");
  return which;
}

}  // namespace

server_files files_of(const settings& s) {
  return {.password = s.password_file, .cacert = s.cacert, .cert = s.cert, .key = s.key};
}

std::string server_argument(const settings& s) { return server_argument(server_words_of(s)); }

std::string lock_argument(const settings& s) {
  return lock_argument(lock_words{.name = s.name, .at = server_words_of(s), .plain = s.plain});
}

std::string taking_argument(const settings& s) {
  switch (s.mode) {
    case taking_mode::exclusive: break;
    case taking_mode::writing: return "-x " + lock_argument(s);
    case taking_mode::reading: return "-s " + lock_argument(s);
    case taking_mode::permit: return fmt::format("-l {} {}", s.limit, lock_argument(s));
  }
  return lock_argument(s);
}

std::string meant_lock_argument(const settings& s) {
  return lock_argument(lock_words{.name = s.name, .at = meant_server_of(s), .plain = s.plain});
}

std::string init_argument(const settings& s) {
  auto which = meant_server_of(s);
  if (s.max_ttl) which.max_ttl = to_option(*s.max_ttl);
  return server_argument(which);
}

std::string way_out_of_quarantine(const settings& s) {
  return fmt::format("if {}: holdfast init{}", init_condition(meant_server_of(s).uri, "this is its first start"),
                     init_argument(s));
}

}  // namespace holdfast::cli
