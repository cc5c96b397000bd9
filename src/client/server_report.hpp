// SPDX-License-Identifier: Apache-2.0
// What INFO says about a server's fitness for locks: one finding for each thing that can cost a lock, with its fix.
// Text in, findings out, so that every server there is can be had in a test.
#pragma once

#include "base/time.hpp"
#include "net/endpoint.hpp"

#include <holdfast/info.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

// What the client relies on.
struct relied_on {
  int replicas = 0;          // That must have each grant.
  bool is_replaced = false;  // By a replica, when it fails: there are sentinels. (Of a cluster: diagnose_cluster.cpp.)
  bool syncs_all = false;    // Every write, so that a restart forgets none.
  bool is_in_cluster = false;
  bool is_quorum_member = false;  // One of its servers: its vote is its own, and no failover of it is followed.
};

// As people call it: "7.0.15", or "Valkey 9.1.2", which says of itself that it is a Redis 7.2.4.
std::string version_of(std::string_view info);
// "standalone" or "cluster". Valkey has a name of its own for the field.
std::string mode_of(std::string_view info);

// `backlog_ttl`: its repl-backlog-ttl as CONFIG GET says it; empty: it does not, so Redis' own default is taken for it.
// `hold`: for how long a lease may live on that it has forgotten. Behind the former nothing shows any more that it was
// a replica for a time (P19, docs/decisions/0012-quarantine.md).
std::optional<finding> judge_backlog(std::string_view backlog_ttl, std::chrono::milliseconds hold);

// `epoch`: what `key` has of it; empty: nothing. `hold`: as above, of ours. A quarantine lasts for the largest hold of
// all clients that ever asked for a lock (P18), and nothing else shows whose that was.
std::optional<finding> judge_hold(std::string_view epoch, std::chrono::milliseconds hold, std::string_view key);

// `appendfsync`: as CONFIG GET says it; empty: it does not. For who trusts that every write is synced.
std::optional<finding> judge_fsync(std::string_view appendfsync);

// Has it replicas, and does it stop taking writes when it is cut off from them (min-replicas-to-write)?
bool stops_when_cut_off(std::string_view info);
// Of such a one: `wanted` is its min-replicas-to-write as CONFIG GET says it. Something is found where it has fewer
// than that and takes no writes now. Empty: it does not say, and nothing is said of it.
std::optional<finding> judge_min_replicas(std::string_view info, std::string_view wanted);
// Of such a one: `max_lag` is its min-replicas-max-lag as CONFIG GET says it, the seconds for which it goes on until
// then (H26). Empty: it does not say, and nothing is said of it.
std::optional<finding> judge_max_lag(std::string_view max_lag);

// Of clocks that are far apart: no lease depends on it, but whoever has one so far off has one that will be stepped.
std::optional<finding> judge_clock(server_time theirs, server_time ours);

// Of a server that has no memory left, which refuses every lock.
std::optional<finding> judge_memory(std::string_view info);
// Why it would refuse a lock, as far as it says so: where none can be tried.
std::vector<finding> judge_refusals(std::string_view info);

// What there is to say of it as a server, whether it is a primary or not: its policy, its files and its version.
std::vector<finding> judge_server(std::string_view endpoint, std::string_view info, const relied_on& what);
// The same of a primary, and of its replicas what it says of them.
std::vector<finding> judge_info(std::string_view endpoint, std::string_view info, const relied_on& what);
// Where its replicas are, as it says. Without those that have no port.
std::vector<net::tcp_address> replicas_named_in(std::string_view info);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
