// SPDX-License-Identifier: Apache-2.0
// What a schedule is made of, drawn from its seed: who takes part, what they lock, how fast everything is, and which
// kinds of trouble there are (a few in each schedule and not all in each, so that one does not hide another).
#pragma once

#include "facts.hpp"

#include "base/time.hpp"
#include "core/hand_over.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace holdfast::sim {

enum class fault {
  delays,
  split_writes,
  blocked_routes,
  stalls,
  cuts,
  lost_replies,
  silence,
  pauses,
  suspends,
  kills,
  host_deaths,
  server_restarts,
  data_losses,
  old_snapshots,
  server_stalls,
  full_memory,
  refused_writes,
  flushes,
  evictions,
  script_flushes,
  publish_denied,
  subscribe_denied,
  info_denied,
  subscriber_kills,
  client_kills,
  clock_steps,
  clock_stops,
  clock_rates,
  forged_messages,
  breaks,
  resizes,
  // Of a primary with replicas, and their sentinels.
  failovers,
  replication_stalls,
  sentinel_silence,
  // Of a cluster, which has failovers and replication stalls, too.
  slot_moves,
  node_silence,
  // Of a quorum: of its list of servers, once.
  replacements,
};
inline constexpr std::size_t fault_count = 37;
inline constexpr std::size_t common_fault_count = 31;  // Of them, those of one server.
std::string_view to_string(fault what);
std::optional<fault> fault_of(std::string_view name);

struct process_plan {
  std::int64_t clock_ppm;
  duration timeout;
  duration least_delay;
  duration jitter;
  int workers;
  std::chrono::milliseconds max_ttl{};  // Zero: the plan's.
};

struct plan {
  std::uint64_t seed = 0;
  std::vector<lock> locks{};
  std::vector<process_plan> processes{};
  std::int64_t server_ppm = 0;
  int shards = 1;    // Of a cluster, each with so many
  int replicas = 0;  // behind its primary.
  int copies = 0;    // So many of them must have what a client is granted (durability.replicas).
  std::chrono::milliseconds copy_timeout{};
  bool wants_all = false;    // Workers want all of the locks as one (acquire_all), now and then.
  bool nodes_agree = false;  // The clocks of a quorum's servers: or they differ as much as they may.
  bool has_scripts = false;  // The server knows them, because it has served others before.
  std::chrono::milliseconds ttl{};
  std::chrono::milliseconds max_ttl{};  // Of every client, unless it has its own.
  core::hand_over_limits hand_overs{};  // Between threads of a process; none: each asks the server.
  duration think{};
  duration work{};
  duration horizon{};  // Trouble ends, and nobody begins anything new.
  std::array<bool, fault_count> faults{};
  duration fault_pause{};  // Between two faults, on the average.
};

// What is taken away from a schedule, to find out what a failure needs.
struct limits {
  std::array<bool, fault_count> faults{};  // Those that there may be.
  int processes = 1000;
  int workers = 1000;
  duration horizon = std::chrono::hours{1};
  bool all_of_them = false;  // Each schedule has all of `faults`.
  int nodes = 0;             // Of a quorum, odd. 0: one server and no quorum; any_nodes: as the seed says.
  static constexpr int any_nodes = -1;
  int replicas = 0;  // Of the one server, with sentinels; any_replicas: 1 or 2, as the seed says.
  static constexpr int any_replicas = -1;
  bool is_cluster = false;
  limits() { faults.fill(true); }
};

// Of what workers ask for in a schedule of this ttl.
std::chrono::milliseconds longest_ttl(std::chrono::milliseconds ttl);

plan draw(std::uint64_t seed, const limits& within);

}  // namespace holdfast::sim
