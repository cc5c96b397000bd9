// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include "seeded_random.hpp"

#include "script/command.hpp"

#include <algorithm>
#include <string>
#include <system_error>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, fault_count> names{"delays",
                                                          "split_writes",
                                                          "blocked_routes",
                                                          "stalls",
                                                          "cuts",
                                                          "lost_replies",
                                                          "silence",
                                                          "pauses",
                                                          "suspends",
                                                          "kills",
                                                          "host_deaths",
                                                          "server_restarts",
                                                          "data_losses",
                                                          "old_snapshots",
                                                          "server_stalls",
                                                          "full_memory",
                                                          "refused_writes",
                                                          "flushes",
                                                          "evictions",
                                                          "script_flushes",
                                                          "publish_denied",
                                                          "subscribe_denied",
                                                          "info_denied",
                                                          "subscriber_kills",
                                                          "client_kills",
                                                          "clock_steps",
                                                          "clock_stops",
                                                          "clock_rates",
                                                          "forged_messages",
                                                          "breaks",
                                                          "resizes",
                                                          "failovers",
                                                          "replication_stalls",
                                                          "sentinel_silence",
                                                          "slot_moves",
                                                          "node_silence",
                                                          "replacements"};

// Two clocks this fast and this slow are just within rho = 1 % of each other.
constexpr std::int64_t most_ppm = 4'975;

std::int64_t draw_ppm(seeded_random& rng) {
  if (rng.chance(50)) return rng.chance(50) ? most_ppm : -most_ppm;
  return static_cast<std::int64_t>(rng.below(2 * most_ppm)) - most_ppm;
}

lock draw_lock(seeded_random& rng, int number) {
  std::error_code ignored;
  const auto name = lock_name::parse(std::string(1, static_cast<char>('a' + number)), naming::holdfast, ignored);
  const int dice = rng.number(1, 10);
  lock made{number, lock_kind::exclusive, 1, {}};
  if (dice > 8) {
    made.kind = lock_kind::shared;
    made.size = script::most_permits;
  } else if (dice > 6) {
    made.kind = lock_kind::semaphore;
    made.size = rng.number(1, 3);
  }
  made.keys = script::keys_of(*name, "hf:", made.kind != lock_kind::exclusive);
  return made;
}

// A ttl is several times the worst round trip, as options.hpp demands.
process_plan draw_process(seeded_random rng, duration ttl) {
  process_plan made{};
  made.clock_ppm = draw_ppm(rng);
  made.timeout = rng.any_size(200ms, 5s);
  made.least_delay = rng.any_size(20us, std::min<duration>(40ms, ttl / 40));
  made.jitter = rng.any_size(10us, 2 * made.least_delay);
  made.workers = rng.chance(35) ? 2 : 1;
  return made;
}

// Replicas, and what befalls them. Drawn apart, so that a seed without them means what it always did.
void draw_replicas(plan& made, const limits& within) {
  auto rng = seeded_random::of(made.seed, 'R');
  const int drawn = rng.number(1, 2);
  made.replicas = within.replicas == limits::any_replicas ? drawn : within.replicas;
  if (rng.chance(50)) made.copies = rng.number(1, made.replicas);
  // As options.hpp demands: a quarter of the shortest ttl.
  made.copy_timeout = std::chrono::milliseconds{rng.number(60, 120)};
  // What the sentinels say is worth something for as long as a lease, and asking them takes its time.
  made.ttl = std::max<std::chrono::milliseconds>(made.ttl, 1s);
  made.faults[static_cast<std::size_t>(fault::failovers)] = rng.chance(80);
  made.faults[static_cast<std::size_t>(fault::replication_stalls)] = rng.chance(40);
  made.faults[static_cast<std::size_t>(fault::sentinel_silence)] = rng.chance(40);
}

// A process with more threads, which hand an exclusive lock on to each other. Drawn apart, likewise.
void draw_hand_overs(plan& made, const limits& within) {
  auto rng = seeded_random::of(made.seed, 'H');
  if (within.nodes != 0 || !rng.chance(20)) return;
  made.hand_overs = {rng.number(1, 16), rng.any_size(5ms, 4 * duration{made.ttl})};
  auto& crowded = made.processes.front().workers;
  crowded = std::min(crowded + rng.number(1, 4), within.workers);
}

// Two exclusive locks, which workers want as one. Drawn apart, likewise.
void draw_sets(plan& made, const limits& within) {
  if (within.nodes != 0 || within.is_cluster || !seeded_random::of(made.seed, 'A').chance(10)) return;
  auto rng = seeded_random::of(made.seed, 'a');
  made.wants_all = true;
  made.locks.clear();
  while (made.locks.size() < 2) {
    auto one = draw_lock(rng, static_cast<int>(made.locks.size()));
    if (one.kind == lock_kind::exclusive) made.locks.push_back(std::move(one));
  }
}

// Three primaries with a replica each.
void draw_cluster(plan& made) {
  auto rng = seeded_random::of(made.seed, 'C');
  made.shards = 3;
  made.replicas = 1;
  made.ttl = std::max<std::chrono::milliseconds>(made.ttl, 1s);
  made.faults[static_cast<std::size_t>(fault::failovers)] = rng.chance(50);
  made.faults[static_cast<std::size_t>(fault::replication_stalls)] = rng.chance(30);
  made.faults[static_cast<std::size_t>(fault::slot_moves)] = rng.chance(80);
  made.faults[static_cast<std::size_t>(fault::node_silence)] = rng.chance(40);
}

// Whether a quorum gets another list of servers. Drawn apart, likewise.
bool draws_replacement(std::uint64_t seed) { return seeded_random::of(seed, 'X').chance(30); }

}  // namespace

std::chrono::milliseconds longest_ttl(std::chrono::milliseconds ttl) {
  return std::clamp<std::chrono::milliseconds>(2 * ttl, 100ms, 20s);
}

std::string_view to_string(fault what) { return names[static_cast<std::size_t>(what)]; }

std::optional<fault> fault_of(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<fault>(found - names.begin());
}

plan draw(std::uint64_t seed, const limits& within) {
  auto rng = seeded_random::of(seed, 'p');
  plan made;
  made.seed = seed;
  const int locks = rng.chance(75) ? 1 : 2;
  for (int i = 0; i < locks; ++i) made.locks.push_back(draw_lock(rng, i));
  const int processes = rng.number(2, 4);
  made.server_ppm = draw_ppm(rng);
  made.has_scripts = seeded_random::of(seed, 's').chance(80);
  made.ttl = std::chrono::floor<std::chrono::milliseconds>(rng.any_size(200ms, 8s));
  if (within.replicas != 0) draw_replicas(made, within);
  if (within.is_cluster) draw_cluster(made);
  made.max_ttl = longest_ttl(made.ttl);
  made.think = rng.any_size(1ms, 2s);
  made.work = rng.any_size(1ms, 2 * duration{made.ttl});
  made.horizon = std::min<duration>((made.think + made.work) * rng.number(1, 3) + 20ms, 60s);
  // One in ten has no trouble at all.
  const int kinds = rng.chance(10) ? 0 : rng.number(1, 6);
  for (int i = 0; i < kinds; ++i) made.faults[rng.below(common_fault_count)] = true;
  made.fault_pause = made.horizon / rng.number(1, 12);

  for (int i = 0; i < std::min(processes, within.processes); ++i) {
    made.processes.push_back(draw_process(seeded_random::of(seed, 'P', static_cast<std::uint64_t>(i)), made.ttl));
    made.processes.back().workers = std::min(made.processes.back().workers, within.workers);
  }
  draw_hand_overs(made, within);
  draw_sets(made, within);
  if (within.nodes != 0) made.faults[static_cast<std::size_t>(fault::replacements)] = draws_replacement(seed);
  made.horizon = std::min(made.horizon, within.horizon);
  for (std::size_t i = 0; i < fault_count; ++i) {
    made.faults[i] = within.faults[i] && (made.faults[i] || within.all_of_them);
  }
  return made;
}

}  // namespace holdfast::sim
