// SPDX-License-Identifier: Apache-2.0
// holdfast doctor: looks at the server with a lock's eyes. Warnings are shown and exit 0, also a minority of a quorum
// that is down, and a quarantine, which passes; errors exit 78.
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "option_words.hpp"
#include "server.hpp"
#include "subcommands.hpp"
#include "uri.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
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

// What answers there. Where nobody greets nothing of it is known, and no way was measured.
std::string seen_of(const diagnosis& found) {
  const auto known = [](const std::string& text, const char* what) {
    return text.empty() ? fmt::format("{} unknown", what) : visible(text);
  };
  if (found.server_version.empty() && found.round_trip_max.count() == 0)
    return found.mode.empty() ? "no answer" : visible(found.mode) + ", no answer";
  const bool is_redis = !found.server_version.empty() && found.server_version.find(' ') == std::string::npos;
  return fmt::format("{}{}, {}, {}, round trip {} (largest {})", is_redis ? "Redis " : "",
                     known(found.server_version, "version"), known(found.mode, "mode"), known(found.role, "role"),
                     milliseconds_of(found.round_trip_median), milliseconds_of(found.round_trip_max));
}

std::string verdict_on(const diagnosis& found) {
  if (found.worst() == finding::severity::error) return "not fit for locks";
  const auto left = std::chrono::ceil<std::chrono::seconds>(found.quarantine).count();
  return left == 0 ? "fit for locks" : fmt::format("fit for locks when the quarantine is over, in {} s", left);
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
    auto out = fmt::format("{}: {}\n", visible(found.endpoint), seen_of(found));
    for (const auto& f : found.findings)
      if (!s.quiet || f.level != finding::severity::ok) out += shown(f);
    out += verdict_on(found) + "\n";
    print(out);
  }
  return number(is_fit ? exit_code::ok : exit_code::misconfigured);
}

}  // namespace holdfast::cli
