// SPDX-License-Identifier: Apache-2.0
#include "local/lab_config.hpp"

#include <fmt/format.h>

namespace holdfast::local {
namespace {

std::string common_lines(const lab_member& of, const std::string& directory) {
  return fmt::format(
      "bind 127.0.0.1\n"
      "protected-mode yes\n"
      "port {}\n"
      "dir {}\n"
      "daemonize no\n"
      "logfile \"\"\n",
      of.port, in_quotes(directory + "/" + of.directory_name()));
}

std::string id_of(const lab_member& sentinel, std::string_view salt) {
  return fmt::format("{}{:08x}", salt, sentinel.port);
}

}  // namespace

std::string in_quotes(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

// Without a disk, a replica whose first acknowledgement comes before its primary counts it as online is in sync for
// both, and gets nothing until its next one, a second later: what is granted meanwhile does not outlive its promotion.
std::string server_config(const lab_record& lab, const lab_member& of, const std::string& directory) {
  auto text = common_lines(of, directory);
  text += fmt::format(
      "save \"\"\n"
      "appendonly {}\n"
      "maxmemory-policy noeviction\n"
      "repl-diskless-sync no\n",
      lab.persistent ? "yes" : "no");
  if (lab.kind == lab_kind::cluster)
    text +=
        "cluster-enabled yes\n"
        "cluster-config-file nodes.conf\n"
        "cluster-node-timeout 2000\n";
  else if (of.role == lab_role::replica)
    text += fmt::format("replicaof 127.0.0.1 {}\n", lab.primary().port);
  return text;
}

std::string sentinel_config(const lab_record& lab, const lab_member& of, const std::string& directory,
                            std::string_view salt) {
  const auto name = primary_name;
  auto text = common_lines(of, directory);
  text += fmt::format(
      "sentinel myid {0}\n"
      "sentinel monitor {1} 127.0.0.1 {2} 2\n"
      "sentinel down-after-milliseconds {1} 1000\n"
      "sentinel failover-timeout {1} 3000\n"
      "sentinel parallel-syncs {1} 2\n",
      id_of(of, salt), name, lab.primary().port);
  for (const auto& member : lab.members) {
    if (member.role == lab_role::replica)
      text += fmt::format("sentinel known-replica {} 127.0.0.1 {}\n", name, member.port);
    if (member.role == lab_role::sentinel && member.port != of.port)
      text += fmt::format("sentinel known-sentinel {} 127.0.0.1 {} {}\n", name, member.port, id_of(member, salt));
  }
  return text;
}

}  // namespace holdfast::local
