// SPDX-License-Identifier: Apache-2.0
#include "local/lab_ready.hpp"

#include "local/ask.hpp"
#include "local/clock.hpp"
#include "local/failure.hpp"
#include "local/launch.hpp"
#include "local/process.hpp"
#include "resp/info.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <ios>
#include <map>
#include <sstream>
#include <utility>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

// A server that is not stopped answers in microseconds.
time_point soon() { return boottime_now() + 1s; }

std::string info_of(const lab_member& member, std::string_view section) {
  return ask_text(member.port, {"INFO", section}, soon());
}

int count_of(std::string_view text, std::string_view what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

std::string missing_link_of(const lab_member& replica) {
  const auto link = resp::info_field(info_of(replica, "replication"), "master_link_status");
  return link == "up" ? "" : fmt::format("replica {} is not in sync (master_link_status:{})", replica.address(), link);
}

std::string missing_replicas_at(const lab_member& primary, int wanted) {
  const int online = count_of(info_of(primary, "replication"), "state=online");
  return online == wanted ? "" : fmt::format("{} has {} of {} replicas online", primary.address(), online, wanted);
}

// The replies of SENTINEL SENTINELS and REPLICAS: an array of flat lists of names and values.
std::vector<std::map<std::string, std::string>> lists_of(const std::optional<resp::value>& answer) {
  std::vector<std::map<std::string, std::string>> lists;
  const auto* rows = answer ? answer->as_array() : nullptr;
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    auto& fields = lists.emplace_back();
    const auto* words = (*rows)[i].as_array();
    for (std::size_t at = 0; words != nullptr && at + 1 < words->size(); at += 2) {
      const auto* name = (*words)[at].as_bulk();
      const auto* value = (*words)[at + 1].as_bulk();
      if (name != nullptr && value != nullptr) fields[*name] = *value;
    }
  }
  return lists;
}

std::string missing_at_sentinel(const lab_record& lab, const lab_member& sentinel) {
  const auto says = [&](std::string_view what) {
    return lists_of(ask(sentinel.port, {"SENTINEL", what, primary_name}, soon()));
  };
  auto primaries = lists_of(ask(sentinel.port, {"SENTINEL", "MASTERS"}, soon()));
  if (primaries.size() != 1 || primaries[0]["port"] != std::to_string(lab.primary().port) ||
      primaries[0]["flags"] != "master")
    return fmt::format("sentinel {} does not see the primary {}", sentinel.address(), lab.primary().address());
  auto replicas = says("REPLICAS");
  if (std::count_if(replicas.begin(), replicas.end(), [](auto& replica) {
        return replica["flags"] == "slave" && replica["master-link-status"] == "ok";
      }) != std::count_if(lab.members.begin(), lab.members.end(), [](const auto& member) {
        return member.role == lab_role::replica;
      }))
    return fmt::format("sentinel {} does not see all replicas", sentinel.address());
  auto others = says("SENTINELS");
  if (std::count_if(others.begin(), others.end(), [](auto& other) { return other["flags"] == "sentinel"; }) !=
      std::count_if(lab.members.begin(), lab.members.end(), [](const auto& member) {
        return member.role == lab_role::sentinel;
      }) - 1)
    return fmt::format("sentinel {} does not see the other sentinels", sentinel.address());
  return ask_text(sentinel.port, {"SENTINEL", "CKQUORUM", primary_name}, soon()).starts_with("OK")
             ? ""
             : fmt::format("sentinel {} sees no quorum", sentinel.address());
}

// From CLUSTER NODES: "ID ADDRESS FLAGS ...". All must know each other by their true names, and who is a replica.
std::string missing_at_cluster_node(const lab_record& lab, const lab_member& node) {
  const auto info = ask_text(node.port, {"CLUSTER", "INFO"}, soon());
  if (resp::info_field(info, "cluster_state") != "ok" || resp::info_field(info, "cluster_slots_ok") != "16384")
    return fmt::format("{} says cluster_state:{}", node.address(), resp::info_field(info, "cluster_state"));
  std::istringstream lines{ask_text(node.port, {"CLUSTER", "NODES"}, soon())};
  std::size_t known = 0, replicas = 0;
  for (std::string line, id, address, flags; std::getline(lines, line);) {
    std::istringstream words{line};
    words >> id >> address >> flags;
    if (flags.starts_with("myself,")) flags.erase(0, 7);
    known += flags == "master" || flags == "slave" ? 1 : 0;
    replicas += flags == "slave" ? 1 : 0;
  }
  if (known != lab.members.size() || replicas * 2 != known)
    return fmt::format("{} knows {} of {} nodes", node.address(), known, lab.members.size());
  return node.role == lab_role::primary ? missing_replicas_at(node, 1) : missing_link_of(node);
}

// Behind what a former server has met.
bool says_that_a_port_was_taken(const std::string& log_file, std::size_t before) {
  std::ifstream log{log_file};
  log.seekg(static_cast<std::streamoff>(before));
  for (std::string line; std::getline(log, line);)
    for (const auto* words : {"Address already in use", "Failed listening on port"})
      if (line.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

std::string missing_of(const lab_member& member) {
  if (resp::info_field(info_of(member, "server"), "process_id") != std::to_string(member.pid))
    return fmt::format("{} does not answer", member.address());
  const auto pong = ask_text(member.port, {"PING"}, soon());
  return pong == "PONG" ? "" : fmt::format("{} answers PING with {}", member.address(), pong);
}

std::string missing_replicas_of(const lab_record& lab) {
  int replicas = 0;
  for (const auto& member : lab.members) {
    if (member.role != lab_role::replica) continue;
    ++replicas;
    if (auto missing = missing_link_of(member); !missing.empty()) return missing;
  }
  return missing_replicas_at(lab.primary(), replicas);
}

std::string missing_of(const lab_record& lab) {
  for (const auto& member : lab.members) {
    auto missing = missing_of(member);
    if (missing.empty() && lab.kind == lab_kind::cluster) missing = missing_at_cluster_node(lab, member);
    if (missing.empty() && member.role == lab_role::sentinel) missing = missing_at_sentinel(lab, member);
    if (!missing.empty()) return missing;
  }
  const bool replicates = lab.kind == lab_kind::replicas || lab.kind == lab_kind::sentinel;
  return replicates ? missing_replicas_of(lab) : "";
}

void lab_patience::look_for_dead() const {
  for (const auto& member : lab.members) {
    if (member.pid == 0 || process_handle{member.pid, member.started}.running()) continue;
    const auto log = place.log_of(member);
    if (says_that_a_port_was_taken(log, member.log_before)) throw port_taken{};
    auto last = last_line(log, member.log_before);
    const auto* why = last.empty() ? "redis-server ended as soon as it was started, and wrote nothing into its log."
                                   : "redis-server ended as soon as it was started; these were its last words.";
    fail(member.address(), why, std::move(last));
  }
}

void lab_patience::check(const std::string& still_missing) const {
  if (cancel.stop_requested()) throw error(errc::cancelled);
  if (boottime_now() >= give_up_at) fail(place.directory, "It was not ready in time" + advice + ".", still_missing);
}

void lab_patience::until(const std::function<std::string()>& missing) const {
  for (;;) {
    if (cancel.stop_requested()) throw error(errc::cancelled);
    const auto still = missing();
    if (still.empty()) return;
    look_for_dead();
    check(still);
    pause_for(10ms);
  }
}

}  // namespace holdfast::local
