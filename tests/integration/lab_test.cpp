// SPDX-License-Identifier: Apache-2.0
// Labs in the hands of a test: nodes that are killed, stopped and started again.
#include "support/lab.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include <functional>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::local_server);
    EXPECT_EQ(e.detail().endpoint, "lab");
    return e.detail().why;
  }
}

TEST(lab, killed_node_is_gone_and_the_others_are_not) {
  lab_topology lab{lab_kind::quorum, {.count = 3}};
  lab.kill(lab.nodes()[1]);
  EXPECT_EQ(ask(lab.nodes()[1], {"PING"}), "");
  EXPECT_EQ(ask(lab.nodes()[0], {"PING"}), "PONG");
  EXPECT_EQ(ask(lab.nodes()[2], {"PING"}), "PONG");
}

TEST(lab, paused_node_is_silent_until_it_is_resumed) {
  lab_topology lab{lab_kind::single};
  lab.pause(lab.nodes()[0]);
  EXPECT_EQ(ask(lab.nodes()[0], {"PING"}), "");
  lab.resume(lab.nodes()[0]);
  EXPECT_EQ(ask(lab.nodes()[0], {"PING"}), "PONG");
}

// Silence is not "nothing is there".
TEST(lab, node_that_is_slow_is_waited_for) {
  lab_topology lab{lab_kind::single};
  EXPECT_EQ(ask_number(lab.nodes()[0], {"WAIT", "1", "800"}), "0");
}

TEST(lab, restarted_node_has_its_port_and_its_keys) {
  lab_topology lab{lab_kind::single, {.persistent = true}};
  const auto before = lab.nodes()[0];
  ask(before, {"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_EQ(ask(before, {"SET", "x", "1"}), "OK");
  lab.kill(before);
  lab.restart(before, lab_data::kept);
  EXPECT_NE(lab.nodes()[0].pid, before.pid);
  EXPECT_EQ(ask(before, {"GET", "x"}), "1");
}

TEST(lab, restarted_node_has_forgotten_when_told_so) {
  lab_topology lab{lab_kind::single, {.persistent = true}};
  const auto node = lab.nodes()[0];
  EXPECT_EQ(ask(node, {"SET", "x", "1"}), "OK");
  lab.kill(node);
  lab.restart(node, lab_data::dropped);
  EXPECT_EQ(ask(node, {"PING"}), "PONG");
  EXPECT_EQ(ask(node, {"GET", "x"}), "");
}

// Redis 6.2 has its append-only file there, and a later one takes it over where it has none of its own.
TEST(lab, restarted_node_has_forgotten_an_old_append_only_file_too) {
  lab_topology lab{lab_kind::single, {.persistent = true}};
  const auto node = lab.nodes()[0];
  lab.kill(node);
  std::filesystem::path home;
  for (const auto& one : std::filesystem::recursive_directory_iterator{lab.directory()}) {
    if (one.path().filename() == "appendonlydir") home = one.path().parent_path();
  }
  ASSERT_FALSE(home.empty());
  std::filesystem::remove_all(home / "appendonlydir");
  std::ofstream{home / "appendonly.aof"} << "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\n1\r\n";
  lab.restart(node, lab_data::dropped);
  EXPECT_EQ(ask(node, {"PING"}), "PONG");
  EXPECT_EQ(ask(node, {"GET", "x"}), "");
}

TEST(lab, restart_of_what_runs_or_has_kept_nothing_is_refused) {
  lab_topology lab{lab_kind::single};
  const auto node = lab.nodes()[0];
  EXPECT_THAT(refusal([&] { lab.restart(node, lab_data::dropped); }), HasSubstr("kill it first"));
  lab.kill(node);
  EXPECT_THAT(refusal([&] { lab.restart(node, lab_data::kept); }), HasSubstr("not persistent"));
  lab.restart(node, lab_data::dropped);
  EXPECT_EQ(ask(node, {"PING"}), "PONG");
}

TEST(lab, node_that_is_none_cannot_be_hurt) {
  lab_topology lab{lab_kind::single};
  const lab_node other{.address = "127.0.0.1:1"};
  EXPECT_THAT(refusal([&] { lab.kill(other); }), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(refusal([&] { kill_lab_node(lab.directory() + "-other", lab.nodes()[0].address); }),
              HasSubstr("Nothing is there"));
  EXPECT_EQ(::kill(lab.nodes()[0].pid, 0), 0);
}

TEST(lab, dead_node_cannot_be_paused) {
  lab_topology lab{lab_kind::single};
  lab.kill(lab.nodes()[0]);
  lab.kill(lab.nodes()[0]);  // Twice is no error: it is dead.
  EXPECT_THAT(refusal([&] { lab.pause(lab.nodes()[0]); }), HasSubstr("does not run"));
}

// What a node knows of the others survives its restart, so that the topology heals: the primary that comes back with
// nothing, and the sentinel.
TEST(lab, sentinels_take_back_what_was_restarted) {
  lab_topology lab{lab_kind::sentinel};
  const auto primary = lab.nodes("primary")[0];
  const auto sentinel = lab.nodes("sentinel")[0];
  lab.kill(sentinel);
  lab.restart(sentinel, lab_data::kept);
  EXPECT_TRUE(eventually(
      [&] {
        return ask(sentinel, {"SENTINEL", "CKQUORUM", "mymaster"}).starts_with("OK 3 usable");
      },
      30s));
  lab.kill(primary);
  const auto is_primary = [](const lab_node& node) {
    return ask(node, {"INFO", "replication"}).find("role:master") != std::string::npos;
  };
  const auto replicas = lab.nodes("replica");
  EXPECT_TRUE(eventually([&] { return is_primary(replicas[0]) || is_primary(replicas[1]); }, 30s));
  lab.restart(primary, lab_data::dropped);
  EXPECT_TRUE(eventually(
      [&] {
        return ask(primary, {"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
      },
      30s));
}

}  // namespace
}  // namespace holdfast::test
