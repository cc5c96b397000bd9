// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

stage::stage(const canary* what)
    : planted_{what}, scripts_{std::make_shared<lua_host>([what](std::string_view text) {
        return what ? planted(*what, text) : std::string{text};
      })} {}

stage::outcome stage::play(std::uint64_t seed, const limits& within, statistics& into, trace how) {
  const auto play_in = [&](auto&& one) -> outcome {
    if (how == trace::yes) one.keep_trace();
    one.run();
    return {one.violations(), one.trace(), one.fingerprint(), one.events()};
  };
  if (within.nodes == 0) return play_in(world{draw(seed, within), scripts_, planted_, into});
  const int drawn = 3 + 2 * static_cast<int>(seeded_random::of(seed, 'Q').below(3));
  const int nodes = within.nodes == limits::any_nodes ? drawn : within.nodes;
  return play_in(quorum_world{draw(seed, within), nodes, scripts_, planted_, into});
}

limits stage::shrink(std::uint64_t seed, limits within) {
  statistics ignored;
  const auto first = play(seed, within, ignored);
  if (first.violations.empty()) return within;
  const auto still_fails = [&](const limits& with) {
    const auto again = play(seed, with, ignored);
    return !again.violations.empty() && again.violations.front().invariant == first.violations.front().invariant;
  };
  const auto try_it = [&](auto&& change) {
    limits less = within;
    change(less);
    const bool is_good = still_fails(less);
    if (is_good) within = less;
    return is_good;
  };
  const auto drawn = draw(seed, within);
  for (std::size_t i = 0; i < fault_count; ++i) {
    if (!drawn.faults[i]) within.faults[i] = false;
  }
  for (std::size_t i = 0; i < fault_count; ++i) {
    if (within.faults[i]) try_it([&](limits& l) { l.faults[i] = false; });
  }
  try_it([&](limits& l) { l.workers = 1; });
  for (int n = static_cast<int>(drawn.processes.size()) - 1; n > 0; --n) {
    if (!try_it([&](limits& l) { l.processes = n; })) break;
  }
  // Nothing behind the failure is needed.
  for (int i = 1; i < 16; ++i) try_it([&](limits& l) { l.horizon = std::min(l.horizon, drawn.horizon) * i / 16; });
  return within;
}

std::string to_options(std::uint64_t seed, const limits& within, const canary* planted) {
  std::string options = fmt::format("--seed {} --schedules 1", seed);
  std::string kinds;
  const bool has_all = std::all_of(within.faults.begin(), within.faults.end(), [](bool is) { return is; });
  for (std::size_t i = 0; i < fault_count; ++i) {
    if (within.faults[i]) kinds += fmt::format("{}{}", kinds.empty() ? "" : ",", to_string(static_cast<fault>(i)));
  }
  if (!has_all) options += " --faults " + (kinds.empty() ? "none" : kinds);
  if (within.processes < 1000) options += fmt::format(" --processes {}", within.processes);
  if (within.workers < 1000) options += fmt::format(" --workers {}", within.workers);
  if (within.horizon < std::chrono::hours{1}) options += fmt::format(" --horizon {}", within.horizon.count());
  if (within.nodes != 0) options += within.nodes > 0 ? fmt::format(" --quorum {}", within.nodes) : " --quorum any";
  if (within.replicas != 0) {
    options += within.replicas > 0 ? fmt::format(" --replicas {}", within.replicas) : " --replicas any";
  }
  if (within.is_cluster) options += " --cluster";
  if (planted) options += fmt::format(" --canary {}", planted->name);
  return options;
}

}  // namespace holdfast::sim
