// SPDX-License-Identifier: Apache-2.0
// holdfast doctor: looks at the server with a lock's eyes. Warnings are shown and exit 0, also a minority of a quorum
// that is down; errors exit 78.
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "option_words.hpp"
#include "server.hpp"
#include "subcommands.hpp"
#include "uri.hpp"

#include <fmt/format.h>

#include <string_view>

namespace holdfast::cli {
namespace {

std::string shown(const finding& f) {
  const char* mark = f.level == finding::severity::ok        ? "ok"
                     : f.level == finding::severity::warning ? "warning"
                                                             : "error";
  auto out = f.code.empty() ? fmt::format("{:<8} {}\n", mark, visible(f.what))
                            : fmt::format("{:<8} {} ({})\n", mark, visible(f.what), visible(f.code));
  if (!f.fix.empty()) out += fmt::format("{:<8} fix: {}\n", "", visible(f.fix));
  return out;
}

// Of the server, and under the prefix, that was looked at; of a quorum and of a cluster, of all its servers.
std::string fix_of(const finding& f, std::string_view endpoint, const settings& s) {
  auto out = in_units_of_options(in_words_of_options(f.fix));
  if (!out.ends_with("holdfast init")) return out;
  if (const auto of_all = init_condition(endpoint, ""); !of_all.empty())
    out = fmt::format("wait; or, if {}: holdfast init", of_all);
  return out + init_argument(s);
}

std::string milliseconds_of(std::chrono::microseconds span) {
  return fmt::format("{}.{:02}ms", span.count() / 1000, span.count() % 1000 / 10);
}

}  // namespace

int doctor_command(const settings& s) {
  server at = open_server(s);
  auto found = at.locks.diagnose();
  for (auto& f : found.findings) f.fix = fix_of(f, found.endpoint, s);
  const bool is_fit = found.worst() != finding::severity::error;
  if (s.json) {
    print(json_of(found));
  } else {
    const auto known = [](const std::string& text) { return text.empty() ? std::string{"unknown"} : visible(text); };
    const bool is_redis = found.server_version.find(' ') == std::string::npos;
    auto out = fmt::format("{}: {}{}, {}, {}, round trip {} (largest {})\n", visible(found.endpoint),
                           is_redis ? "Redis " : "", known(found.server_version), known(found.mode), known(found.role),
                           milliseconds_of(found.round_trip_median), milliseconds_of(found.round_trip_max));
    for (const auto& f : found.findings)
      if (!s.quiet || f.level != finding::severity::ok) out += shown(f);
    out += is_fit ? "fit for locks\n" : "not fit for locks\n";
    print(out);
  }
  return number(is_fit ? exit_code::ok : exit_code::misconfigured);
}

}  // namespace holdfast::cli
