// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace holdfast::sim {

namespace {

template <class Counts, class Names>
void print_counts(const char* title, const Counts& counts, const Names& names) {
  std::string line;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", names(i), counts[i]);
  }
  fmt::print("{:<10} {}\n", title, line.empty() ? "none" : line);
}

// docs/protocol.md has the codes.
constexpr std::array<std::string_view, script::code_count + 1> codes{
    "done",   "mine",        "busy",       "late",         "spent",         "not_mine", "broken",
    "queued", "quarantine",  "wrong_kind", "bad_argument", "fence_too_far", "not_held", "changed_hands",
    "line",   "not_in_line", "other_size", "other_quorum", "unseen",        "error"};

}  // namespace

void print_statistics(const statistics& what, double seconds) {
  fmt::print("schedules  {} in {:.1f} s, {:.0f} a second; {} events, median {} a schedule\n", what.schedules, seconds,
             static_cast<double>(what.schedules) / seconds, what.events, what.median_events());
  print_counts("faults", what.faults, [](std::size_t i) { return to_string(static_cast<fault>(i)); });
  for (const auto& source : script::all()) {
    const auto& replies = what.replies[static_cast<std::size_t>(source.which)];
    std::uint64_t all = 0;
    for (const auto n : replies) all += n;
    const bool is_counted = static_cast<int>(source.which) >= static_cast<int>(script::id::wait_counted);
    if (all == 0) continue;
    print_counts(fmt::format("  {}{}", source.name, is_counted ? "*" : "").c_str(), replies,
                 [](std::size_t i) { return codes[i]; });
  }
  static constexpr std::array ends{"acquired", "busy", "timed_out", "cancelled", "unknown", "not_applied"};
  print_counts("acquires", what.ends, [](std::size_t i) { return ends[i]; });
  static constexpr std::array holds{"let_go", "lost", "died", "held_too_long", "handed_on"};
  print_counts("leases", what.holds, [](std::size_t i) { return holds[i]; });
  fmt::print("{:<10} {}\n", "joined", what.joined);
  fmt::print("{:<10} {}, {} answered behind the deadline\n", "renewals", what.extensions, what.late_answers);
  static constexpr std::array releases{"released", "already_lost", "unknown"};
  print_counts("releases", what.releases, [](std::size_t i) { return releases[i]; });
  static constexpr std::array downgrades{"reads", "gone", "unknown"};
  print_counts("downgrades", what.downgrades, [](std::size_t i) { return downgrades[i]; });
  static constexpr std::array writes{"taken", "refused", "lost_an_update"};
  print_counts("writes", what.writes, [](std::size_t i) { return writes[i]; });
  static constexpr std::array causes{"clock_stepped", "clock_rate",     "data_lost",
                                     "keys_deleted",  "broken_at_once", "another_primary"};
  print_counts("overlaps", what.attributed, [](std::size_t i) { return causes[i]; });
  static constexpr std::array rounds{"won", "busy", "tied", "split", "quarantined", "unreachable", "refused"};
  print_counts("rounds", what.rounds, [](std::size_t i) { return rounds[i]; });
  print_counts("turns", what.turns, [](std::size_t i) { return ends[i]; });
  static constexpr std::array breaks{"broken", "not_known", "not_broken"};
  print_counts("breaks", what.breaks, [](std::size_t i) { return breaks[i]; });
  fmt::print("violations {}\n", what.violations);
}

void print_failure(std::uint64_t seed, const limits& within, const canary* planted) {
  stage again{planted};
  const limits least = again.shrink(seed, within);
  statistics ignored;
  const auto shown = again.play(seed, least, ignored, stage::trace::yes);
  for (const auto& line : shown.trace) fmt::print("{}\n", line);
  for (const auto& v : shown.violations) fmt::print("violation  {}: {}\n", v.invariant, v.what);
  if (shown.violations.empty()) fmt::print("violation  none, this time\n");
  fmt::print("replay     holdfast-sim {}\n", to_options(seed, least, planted));
}

}  // namespace holdfast::sim
