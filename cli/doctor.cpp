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

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
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

std::string milliseconds_of(std::chrono::microseconds span) {
  return fmt::format("{}.{:02}ms", span.count() / 1000, span.count() % 1000 / 10);
}

bool is_down(const finding& f) { return f.code == "E10" && f.level == finding::severity::error; }

// Of a quorum each server that does not answer is a finding. While a majority is there it grants locks all the same;
// that it did, doctor has tried.
void judge_those_down(diagnosis& found) {
  constexpr std::string_view quorum = "quorum of ";
  if (!found.mode.starts_with(quorum)) return;
  std::ptrdiff_t servers = 0;
  const auto number = std::string_view{found.mode}.substr(quorum.size());
  std::from_chars(number.data(), number.data() + number.size(), servers);
  const auto down = std::count_if(found.findings.begin(), found.findings.end(), is_down);
  const auto more = (servers - 1) / 2 - down;
  for (auto& f : found.findings) {
    if (!is_down(f)) continue;
    if (more >= 0) f.level = finding::severity::warning;
    f.fix = more < 0    ? fmt::format("start it: no lock is granted while a majority of the {} is down", servers)
            : more == 0 ? std::string{"start it: when one more is down, no lock is granted"}
                        : fmt::format("start it: when {} more are down, no lock is granted", more + 1);
  }
}

}  // namespace

int doctor_command(const settings& s) {
  server at = open_server(s);
  auto found = at.locks.diagnose();
  for (auto& f : found.findings) f.fix = in_words_of_options(f.fix);
  judge_those_down(found);
  const bool is_fit = found.worst() != finding::severity::error;
  if (s.json) {
    print(json_of(found));
  } else {
    const auto known = [](const std::string& text) { return text.empty() ? std::string{"unknown"} : visible(text); };
    auto out = fmt::format("{}: Redis {}, {}, {}, round trip {} (largest {})\n", visible(found.endpoint),
                           known(found.server_version), known(found.mode), known(found.role),
                           milliseconds_of(found.round_trip_median), milliseconds_of(found.round_trip_max));
    for (const auto& f : found.findings)
      if (!s.quiet || f.level != finding::severity::ok) out += shown(f);
    out += is_fit ? "fit for locks\n" : "not fit for locks\n";
    print(out);
  }
  return number(is_fit ? exit_code::ok : exit_code::misconfigured);
}

}  // namespace holdfast::cli
