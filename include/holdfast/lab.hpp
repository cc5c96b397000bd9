// SPDX-License-Identifier: Apache-2.0
// A lab: a real topology of redis-servers on this machine, to try things on and to test a program against. Primary and
// replicas, Sentinel, Cluster, or the independent servers of a quorum; `holdfast lab` on the command line.
//
// Every server is a redis-server process that listens on 127.0.0.1 alone, in protected mode, on a port that was free.
// They outlive their starter and run until stop_lab(). All files are in one directory of ours, mode 0700; its file
// `lab` names the processes by pid, start time and boot, so that a pid that now belongs to somebody else is never
// signalled. Calls throw holdfast::error: errc::local_server, or errc::invalid_option for a count. A file lock in the
// directory orders calls of several processes. A lab is no place for data: it ends with SIGKILL.
#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {

enum class lab_kind {
  single,    // One primary.
  replicas,  // A primary and its replicas.
  sentinel,  // A primary, two replicas and three sentinels, which fail over some two seconds after its death.
  cluster,   // Three primaries with a replica each. Redis 7.0 or newer.
  quorum,    // Primaries that know nothing of each other.
};

struct lab_options {
  // replicas: how many of them, 1 to 8 (0: 2). quorum: how many servers, odd, 1 to 9 (0: 5). Otherwise 0.
  int count = 0;

  // Made if it is missing, else empty and ours. No *, ? or [ in its path: redis-server would take that for a pattern.
  // Unset: a fresh one in TMPDIR or /tmp.
  std::string directory{};

  // Append-only files, so that a killed node has its keys again after restart_lab_node(). Off: nothing is kept.
  bool persistent = false;

  // Not ready by then: start_lab() ends what it started and throws. At most a year.
  std::chrono::milliseconds ready_within = std::chrono::seconds{30};

  // Ends a start before it is ready, with errc::cancelled.
  std::stop_token cancel{};
};

struct lab_node {
  std::string address{};  // "127.0.0.1:10123"
  std::string role{};     // What it was started as: primary, replica, sentinel. A failover does not change this.
  int pid = 0;
};

struct lab {
  std::string uri{};  // redis://, redis+sentinel://, redis+cluster:// or redis+quorum://
  std::string directory{};
  std::vector<lab_node> nodes{};
};

// Returns when the topology is ready: replicas in sync, sentinels of one mind, every slot served. When that fails,
// nothing is left running and what was made is removed.
HOLDFAST_EXPORT lab start_lab(lab_kind kind, const lab_options& options = {});

// Ends the lab of `directory` and removes what it made there. `nodes` of the result are those that still ran. A
// directory that is empty has no lab to end, which is not an error; one that is missing or has other contents is.
HOLDFAST_EXPORT lab stop_lab(std::string_view directory);

// For tests: hurting one node of a lab, named by its address. Each returns when it has come about.
HOLDFAST_EXPORT void kill_lab_node(std::string_view directory, std::string_view address);    // SIGKILL
HOLDFAST_EXPORT void pause_lab_node(std::string_view directory, std::string_view address);   // SIGSTOP
HOLDFAST_EXPORT void resume_lab_node(std::string_view directory, std::string_view address);  // SIGCONT

// Keys, that is: what a node knows of its sentinels, its cluster or its primary is kept either way.
enum class lab_data { kept, dropped };

// Starts a node that has ended again, on its port and in its directory. Returns its new pid when it answers. Keys can
// only be kept in a persistent lab.
HOLDFAST_EXPORT int restart_lab_node(std::string_view directory, std::string_view address,
                                     lab_data data = lab_data::kept);

}  // namespace v0
}  // namespace holdfast
