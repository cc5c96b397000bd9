// SPDX-License-Identifier: Apache-2.0
// What the servers of a lab are told.
#include "local/lab_config.hpp"
#include "local/ask.hpp"
#include "local/lab_ports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace holdfast::local {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view salt = "0123456789abcdef0123456789abcdef";

lab_record made(lab_kind kind, bool persistent = false) {
  return {.kind = kind,
          .persistent = persistent,
          .boot = "b",
          .members = members_of(kind, 0, {10'001, 10'002, 10'003, 10'004, 10'005, 10'006})};
}

TEST(lab_config, keeps_every_server_on_the_loopback) {
  for (const auto kind :
       {lab_kind::single, lab_kind::replicas, lab_kind::sentinel, lab_kind::cluster, lab_kind::quorum}) {
    const auto lab = made(kind);
    for (const auto& member : lab.members) {
      const auto text = member.role == lab_role::sentinel ? sentinel_config(lab, member, "/d", salt)
                                                          : server_config(lab, member, "/d");
      EXPECT_THAT(text, HasSubstr("bind 127.0.0.1\n"));
      EXPECT_THAT(text, HasSubstr("protected-mode yes\n"));
      EXPECT_THAT(text, HasSubstr("port " + std::to_string(member.port) + "\n"));
      EXPECT_THAT(text, HasSubstr("dir \"/d/node-" + std::to_string(member.port) + "\"\n"));
    }
  }
}

TEST(lab_config, writes_keys_to_disk_only_when_asked) {
  const auto fleeting = made(lab_kind::single);
  EXPECT_THAT(server_config(fleeting, fleeting.primary(), "/d"), HasSubstr("save \"\"\nappendonly no\n"));
  const auto persistent = made(lab_kind::single, true);
  EXPECT_THAT(server_config(persistent, persistent.primary(), "/d"), HasSubstr("save \"\"\nappendonly yes\n"));
}

TEST(lab_config, who_is_in_sync_gets_what_is_written_from_then_on) {
  for (const auto kind : {lab_kind::replicas, lab_kind::sentinel, lab_kind::cluster}) {
    const auto lab = made(kind);
    EXPECT_THAT(server_config(lab, lab.members[0], "/d"), HasSubstr("repl-diskless-sync no\n"));
  }
}

TEST(lab_config, only_replicas_follow) {
  const auto lab = made(lab_kind::replicas);
  EXPECT_THAT(server_config(lab, lab.members[0], "/d"), Not(HasSubstr("replicaof")));
  EXPECT_THAT(server_config(lab, lab.members[1], "/d"), HasSubstr("replicaof 127.0.0.1 10001\n"));
  const auto cluster = made(lab_kind::cluster);  // There it is refused; CLUSTER REPLICATE does it.
  EXPECT_THAT(server_config(cluster, cluster.members[5], "/d"), Not(HasSubstr("replicaof")));
}

TEST(lab_config, sentinels_know_each_other_and_not_themselves) {
  const auto lab = made(lab_kind::sentinel);
  const auto text = sentinel_config(lab, lab.members[4], "/d", salt);
  EXPECT_THAT(text, HasSubstr("sentinel monitor mymaster 127.0.0.1 10001 2\n"));
  EXPECT_THAT(text, HasSubstr("sentinel myid " + std::string{salt} + "00002715\n"));
  EXPECT_THAT(text, HasSubstr("known-sentinel mymaster 127.0.0.1 10004 " + std::string{salt} + "00002714\n"));
  EXPECT_THAT(text, HasSubstr("known-sentinel mymaster 127.0.0.1 10006 " + std::string{salt} + "00002716\n"));
  EXPECT_THAT(text, Not(HasSubstr("known-sentinel mymaster 127.0.0.1 10005")));
  EXPECT_THAT(text, HasSubstr("known-replica mymaster 127.0.0.1 10003\n"));
}

TEST(lab_config, quotes_what_a_path_may_hold) {
  EXPECT_EQ(in_quotes("/a b"), "\"/a b\"");
  EXPECT_EQ(in_quotes("/a\"b\\c"), "\"/a\\\"b\\\\c\"");
  EXPECT_EQ(in_quotes("/a\nport 1"), "\"/a\\x0aport 1\"");
}

TEST(lab_ports, are_different_and_leave_room_for_the_bus) {
  const auto ports = free_ports(20);
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 20u);
  for (const int port : ports) EXPECT_TRUE(port >= 10'000 && port + bus_offset < 32'768) << port;
}

}  // namespace
}  // namespace holdfast::local
