// SPDX-License-Identifier: Apache-2.0
// A cluster of three primaries with a replica each, for one test; and the ways to move its slots and to end its nodes.
// The largest ttl is small, so that no quarantine is long.
#pragma once

#include "integration/fixture.hpp"
#include "support/lab.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace holdfast::test {

inline const acquire_options brief{.ttl = 3s};

class on_a_cluster : public testing::Test {
protected:
  static constexpr auto max_ttl = 6s;
  static constexpr auto long_enough = 60s;  // For a failover, a quarantine and a busy machine.

  // The primaries' first start, which nobody has seen.
  on_a_cluster() {
    patience_of_nodes("60000");
    make().declare_nothing_forgotten();
  }

  client make(std::chrono::milliseconds timeout = 20s) { return client{lab_.uri(), options(timeout)}; }
  static client_options options(std::chrono::milliseconds timeout = 20s) {
    client_options how;
    how.timeout = timeout;
    how.max_ttl = max_ttl;
    return how;
  }
  // Who is silent for so long is dead. Long, so that a busy machine is no failover that nobody has asked for.
  void patience_of_nodes(const char* ms) {
    for (const auto& one : lab_.nodes()) ask(one, {"CONFIG", "SET", "cluster-node-timeout", ms});
  }

  virtual std::vector<lab_node> primaries() { return lab_.nodes("primary"); }
  static std::string id_of(const lab_node& node) { return ask(node, {"CLUSTER", "MYID"}); }
  // A lock of ours; an answer may also be MOVED.
  static bool has(const lab_node& node, const std::string& key) {
    return ask(node, {"GET", key.c_str()}).starts_with("v1|");
  }
  // Where the key of a plain lock is. By what the nodes say themselves: the others answer MOVED.
  static bool serves(const lab_node& node, const std::string& key) {
    const auto answer = ask(node, {"TYPE", key.c_str()});
    return !answer.empty() && !answer.starts_with("MOVED") && !answer.starts_with("CLUSTERDOWN");
  }
  lab_node home_of(const std::string& name) {
    lab_node home;
    // They tell each other of a move, and for a moment each may name the other.
    EXPECT_TRUE(eventually(
        [&] {
          for (const auto& node : primaries()) {
            if (!serves(node, "hf:{" + name + "}")) continue;
            home = node;
            return true;
          }
          return false;
        },
        long_enough))
        << "nobody serves " << name;
    return home;
  }
  bool all_say_that_it_is_at(const lab_node& home, const std::string& name) {
    const auto port = home.address.substr(home.address.find(':') + 1);
    for (const auto& node : primaries()) {
      const auto answer = ask(node, {"TYPE", ("hf:{" + name + "}").c_str()});
      const bool is_home = node.address == home.address;
      if (is_home != !answer.starts_with("MOVED") || (!is_home && !answer.ends_with(":" + port))) return false;
    }
    return true;
  }
  lab_node another_than(const lab_node& one) {
    for (const auto& node : primaries()) {
      if (node.address != one.address) return node;
    }
    return {};
  }
  // A name for each primary, in order.
  std::vector<std::string> a_name_on_each() {
    std::vector<std::string> names(primaries().size());
    for (int i = 0; std::count(names.begin(), names.end(), "") > 0; ++i) {
      const auto name = "n" + std::to_string(i);
      const auto home = home_of(name);
      for (std::size_t p = 0; p < names.size(); ++p) {
        if (primaries()[p].address == home.address) names[p] = name;
      }
    }
    return names;
  }

  // The slot of a lock moves, with its keys: as `redis-cli --cluster reshard` does it.
  class slot_move {
  public:
    slot_move(on_a_cluster& of, const std::string& name, const lab_node& from, const lab_node& to)
        : of_{of}, from_{from}, to_{to}, slot_{slot_of(from, "hf:{" + name + "}")} {
      EXPECT_EQ(ask(to_, {"CLUSTER", "SETSLOT", slot_.c_str(), "IMPORTING", id_of(from_).c_str()}), "OK");
      EXPECT_EQ(ask(from_, {"CLUSTER", "SETSLOT", slot_.c_str(), "MIGRATING", id_of(to_).c_str()}), "OK");
    }
    // The keys go; also those that came while it moved.
    void finish() {
      const auto port = to_.address.substr(to_.address.find(':') + 1);
      (void)eventually(
          [&] {
            for (const auto& key : of_.keys_in(from_, slot_)) {
              const auto said = ask(from_, {"MIGRATE", "127.0.0.1", port.c_str(), key.c_str(), "0", "5000"});
              EXPECT_TRUE(said == "OK" || said == "NOKEY") << key << ": " << said;  // It may have expired meanwhile.
            }
            // Said, and not only left unsaid by a server that is slow: it would delete what is left.
            return ask_number(from_, {"CLUSTER", "COUNTKEYSINSLOT", slot_.c_str()}) == "0";
          },
          long_enough);
      const auto id = id_of(to_);
      for (const auto* node : {&to_, &from_}) {
        EXPECT_EQ(ask(*node, {"CLUSTER", "SETSLOT", slot_.c_str(), "NODE", id.c_str()}), "OK");
      }
      for (const auto& node : of_.primaries()) ask(node, {"CLUSTER", "SETSLOT", slot_.c_str(), "NODE", id.c_str()});
    }

  private:
    on_a_cluster& of_;
    const lab_node from_;
    const lab_node to_;
    const std::string slot_;
  };
  static std::string slot_of(const lab_node& node, const std::string& key) {
    return ask_number(node, {"CLUSTER", "KEYSLOT", key.c_str()});
  }
  std::vector<std::string> keys_in(const lab_node& node, const std::string& slot) {
    return ask_list(node, {"CLUSTER", "GETKEYSINSLOT", slot.c_str(), "1000"});
  }
  lab_node move(const std::string& name) {
    const auto from = home_of(name);
    const auto to = another_than(from);
    slot_move{*this, name, from, to}.finish();
    return to;
  }
  bool somebody_waits_for(const std::string& name) {
    const auto length = ask_number(home_of(name), {"ZCARD", ("hf:{" + name + "}:line").c_str()});
    return !length.empty() && length != "0";  // (No number: it has just moved.)
  }
  // Somebody stands in its line, and has said there that he hears when it is his turn.
  bool somebody_is_told_of(const std::string& name) {
    const auto all = ask_list(home_of(name), {"HVALS", ("hf:{" + name + "}:waiters").c_str()});
    return std::any_of(all.begin(), all.end(), [](const std::string& entry) {
      return entry.starts_with("v1|") && entry.find("|s|") == entry.find('|', 3);
    });
  }

  static bool is_primary(const lab_node& node) {
    return ask(node, {"INFO", "replication"}).find("role:master") != std::string::npos;
  }
  lab_node replica_of(const lab_node& primary) {
    const auto port = primary.address.substr(primary.address.find(':') + 1);
    for (const auto& node : lab_.nodes("replica")) {
      if (ask(node, {"INFO", "replication"}).find("master_port:" + port + "\r") != std::string::npos) return node;
    }
    ADD_FAILURE() << "no replica of " << primary.address;
    return {};
  }
  bool becomes_primary(const lab_node& node) {
    patience_of_nodes("2000");
    return eventually([&] { return is_primary(node); }, long_enough);
  }

  lab_topology lab_{lab_kind::cluster, {.ready_within = 40s}};
};

}  // namespace holdfast::test
