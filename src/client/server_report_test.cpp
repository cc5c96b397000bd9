// SPDX-License-Identifier: Apache-2.0
#include "client/server_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr auto good =
    "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:0\r\nrole:master\r\n";

std::string with(std::string_view lines) { return std::string{good} + std::string{lines}; }

std::vector<std::string> said_of(const std::string& info, const relied_on& what = {}) {
  std::vector<std::string> all;
  for (const auto& one : judge_info("redis://db1:6379", info, what)) {
    EXPECT_NE(one.fix, "") << one.what;
    EXPECT_NE(one.level, finding::severity::ok) << one.what;
    all.push_back(one.what);
  }
  return all;
}

TEST(server_report, has_nothing_to_say_of_a_server_alone) { EXPECT_THAT(said_of(good), IsEmpty()); }

TEST(server_report, has_nothing_to_say_of_what_it_cannot_see) { EXPECT_THAT(said_of(""), IsEmpty()); }

std::string said_of_backlog(std::string_view ttl, std::chrono::milliseconds hold) {
  const auto found = judge_backlog(ttl, hold);
  return found ? found->what + " / " + found->fix : "";
}

// Behind it a promoted server looks like one that was a primary all the time.
TEST(server_report, wants_a_backlog_that_is_kept_for_longer_than_a_lease_may_live_P19) {
  EXPECT_EQ(said_of_backlog("61", 60'500ms), "");
  EXPECT_EQ(said_of_backlog("0", 60'500ms), "") << "it is never given up";
  EXPECT_THAT(said_of_backlog("60", 60'500ms), HasSubstr("/ CONFIG SET repl-backlog-ttl 61,"));
}

TEST(server_report, takes_the_default_for_a_backlog_ttl_that_it_may_not_see_P19) {
  EXPECT_EQ(said_of_backlog("", 1h), "");
  EXPECT_THAT(said_of_backlog("", 1h + 1ms), AllOf(HasSubstr("CONFIG cannot be read"), HasSubstr("ttl 3601,")));
}

TEST(server_report, names_a_hold_that_is_longer_than_ours_P18) {
  EXPECT_FALSE(judge_hold("", 10'102ms, "hf:epoch"));
  EXPECT_FALSE(judge_hold("v1|ab|cd|1796068335725797|10102", 10'102ms, "hf:epoch"));
  EXPECT_FALSE(judge_hold("somebody else's", 10'102ms, "hf:epoch"));
  const auto found = judge_hold("v1|ab|cd|1796068335725797|60602", 10'102ms, "hf:epoch");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("for 61 s, and not for 11"));
  EXPECT_THAT(found->fix, HasSubstr("DEL hf:epoch"));
}

TEST(server_report, names_the_eviction_policy) {
  EXPECT_THAT(said_of("maxmemory_policy:allkeys-lru\r\n"), ElementsAre(HasSubstr("'allkeys-lru'")));
}

TEST(server_report, names_replicas_that_would_forget_locks) {
  const auto said =
      said_of(with("slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\n"
                   "slave1:ip=10.0.0.3,port=6380,state=wait_bgsave,offset=0,lag=0\r\n"
                   "slave2:ip=10.0.0.4,port=6381,state=online,offset=1,lag=31\r\n"
                   "min_slaves_good_slaves:1\r\n"));
  EXPECT_THAT(said, ElementsAre(HasSubstr("10.0.0.3:6380 is not in sync: wait_bgsave"),
                                HasSubstr("10.0.0.4:6381 was heard of 31 s ago")));
}

TEST(server_report, counts_the_replicas_that_a_durable_client_needs) {
  const auto one = with("slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\nmin_slaves_good_slaves:1\r\n");
  EXPECT_THAT(said_of(one, {.replicas = 1}), IsEmpty());
  EXPECT_THAT(said_of(one, {.replicas = 2}), ElementsAre(HasSubstr("1 of 2 replicas are connected")));
}

// A node of a cluster refuses REPLICAOF.
TEST(server_report, advises_what_a_cluster_can_do_about_missing_replicas) {
  const auto fix = [](bool is_in_cluster) {
    const auto all = judge_info("a", good, {.replicas = 1, .is_in_cluster = is_in_cluster});
    return all.empty() ? std::string{} : all[0].fix;
  };
  EXPECT_THAT(fix(false), HasSubstr("REPLICAOF to this server; or durability.replicas = 0"));
  EXPECT_THAT(fix(true), AllOf(HasSubstr("--cluster add-node"), Not(HasSubstr("REPLICAOF"))));
}

// An IPv6 address is one, too. A server without a port listens on no address.
TEST(server_report, says_where_its_replicas_are) {
  const auto all = replicas_named_in(
      "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\n"
      "slave1:ip=fe80::1,port=6380,state=wait_bgsave,offset=0,lag=0\r\n"
      "slave2:ip=10.0.0.3,port=0,state=online,offset=42,lag=0\r\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(net::text_of(all[0]), "10.0.0.2:6379");
  EXPECT_EQ(net::text_of(all[1]), "[fe80::1]:6380");
}

// It has none of what is written until it has all of what was there.
TEST(server_report, counts_no_replica_that_is_not_in_sync_yet) {
  const auto two = with(
      "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\n"
      "slave1:ip=10.0.0.3,port=6379,state=send_bulk,offset=0,lag=0\r\nmin_slaves_good_slaves:1\r\n");
  EXPECT_THAT(said_of(two, {.replicas = 2}),
              ElementsAre(HasSubstr("not in sync: send_bulk"), HasSubstr("1 of 2 replicas are connected")));
}

std::string fix_of(const std::string& info) { return judge_info("redis://db1:6379", info, {}).at(0).fix; }

TEST(server_report, names_a_primary_that_writes_for_itself_when_it_is_cut_off_P22) {
  const std::string replica = "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\n";
  EXPECT_THAT(said_of(with(replica)), ElementsAre(HasSubstr("goes on taking writes")));
  EXPECT_THAT(fix_of(with(replica)), HasSubstr("max-lag 3"));
  EXPECT_THAT(said_of(with(replica + "min_slaves_good_slaves:1\r\n")), IsEmpty());
}

// Or the death of that one stops all locks.
TEST(server_report, wants_a_second_replica_before_a_primary_stops_without_one_P22) {
  const std::string one = "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\n";
  const std::string other = "slave1:ip=10.0.0.3,port=6379,state=online,offset=42,lag=0\r\n";
  EXPECT_THAT(fix_of(with(one)), StartsWith("a second replica, and then CONFIG SET min-replicas-to-write 1,"));
  EXPECT_THAT(fix_of(with(one)), HasSubstr("no lock is granted or renewed while it is away"));
  EXPECT_THAT(fix_of(with(one + other)), StartsWith("CONFIG SET min-replicas-to-write 1,"));
}

TEST(server_report, wants_a_primary_that_is_cut_off_to_stop_within_a_third_of_a_ttl_H26) {
  EXPECT_FALSE(judge_max_lag("3"));
  const auto found = judge_max_lag("10");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->level, finding::severity::warning);
  EXPECT_THAT(found->what, HasSubstr("for 10 s (min-replicas-max-lag)"));
  EXPECT_THAT(found->fix, HasSubstr("CONFIG SET min-replicas-max-lag 3,"));
  EXPECT_TRUE(judge_max_lag("4")) << "a third of 10 s is less";
}

TEST(server_report, says_of_a_primary_with_too_few_replicas_that_it_takes_no_writes) {
  const auto one = with("slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\nmin_slaves_good_slaves:1\r\n");
  const auto found = judge_min_replicas(one, "3");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->level, finding::severity::error);
  EXPECT_THAT(found->what, HasSubstr("takes no writes: 1 of the 3 replicas"));
  EXPECT_FALSE(judge_min_replicas(one, "1"));
  EXPECT_FALSE(judge_min_replicas(one, "")) << "it does not say";
}

TEST(server_report, has_nothing_to_say_of_a_lag_that_it_may_not_see_or_that_does_not_matter_H26) {
  const std::string replica = "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\n";
  EXPECT_FALSE(judge_max_lag(""));
  EXPECT_FALSE(stops_when_cut_off(with(replica)));
  EXPECT_FALSE(stops_when_cut_off(with("min_slaves_good_slaves:0\r\n")));
  EXPECT_TRUE(stops_when_cut_off(with(replica + "min_slaves_good_slaves:1\r\n")));
}

TEST(server_report, names_a_primary_that_nobody_can_replace) {
  EXPECT_THAT(said_of(good, {.is_replaced = true}), ElementsAre(HasSubstr("nobody to promote")));
  const auto one = with("slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0\r\nmin_slaves_good_slaves:1\r\n");
  EXPECT_THAT(said_of(one, {.is_replaced = true}), IsEmpty());
}

TEST(server_report, names_files_that_cannot_be_written) {
  EXPECT_THAT(said_of("aof_enabled:1\r\naof_last_write_status:err\r\n"), ElementsAre(HasSubstr("append-only file")));
  EXPECT_THAT(said_of("aof_enabled:1\r\naof_last_write_status:ok\r\n"), IsEmpty());
  EXPECT_THAT(said_of("aof_enabled:0\r\naof_last_write_status:err\r\n"), IsEmpty()) << "it has none";
  EXPECT_THAT(said_of(with("rdb_last_bgsave_status:err\r\n")), ElementsAre(HasSubstr("snapshot failed")));
}

std::string refused_by(const std::string& info) {
  std::string all;
  for (const auto& one : judge_refusals(info)) {
    EXPECT_EQ(one.level, finding::severity::error);
    EXPECT_NE(one.fix, "");
    all += one.what + "; ";
  }
  return all;
}

TEST(server_report, says_of_a_full_memory_that_no_lock_can_be_granted) {
  const std::string full = "maxmemory:1000\r\nused_memory:1300\r\n";
  const std::string stays = "maxmemory_policy:noeviction\r\n";
  EXPECT_THAT(refused_by(full + stays), HasSubstr("1300 bytes of 1000 are used"));
  EXPECT_EQ(refused_by(full + "maxmemory_policy:allkeys-lru\r\n"), "") << "it makes room";
  EXPECT_EQ(refused_by("maxmemory:0\r\nused_memory:1300\r\n" + stays), "") << "it has no limit";
  EXPECT_EQ(refused_by(full + stays + "mem_not_counted_for_evict:300\r\n"), "") << "not of its data";
  EXPECT_EQ(refused_by(full + stays + "mem_not_counted_for_evict:2000\r\n"), "");
}

TEST(server_report, says_of_a_primary_without_the_replicas_that_it_must_have_that_it_takes_no_writes) {
  const std::string none_is_good = "min_slaves_good_slaves:0\r\n";
  EXPECT_THAT(refused_by(none_is_good), HasSubstr("takes no writes"));
  EXPECT_EQ(refused_by(good), "") << "it need not have any";
  EXPECT_EQ(refused_by(none_is_good + "slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=9\r\n"), "")
      << "how many it must have is another question";
}

TEST(server_report, names_a_trust_that_is_not_deserved) {
  EXPECT_THAT(said_of(good, {.syncs_all = true}), ElementsAre(HasSubstr("no append-only file")));
  EXPECT_THAT(said_of("aof_enabled:1\r\n", {.syncs_all = true}), IsEmpty());
}

TEST(server_report, names_a_file_that_is_synced_later_than_it_is_trusted_to_be) {
  EXPECT_FALSE(judge_fsync("always"));
  EXPECT_THAT(judge_fsync("everysec")->what, HasSubstr("'everysec'"));
  EXPECT_THAT(judge_fsync("")->what, HasSubstr("cannot be read"));
}

TEST(server_report, names_versions_with_known_holes) {
  for (const auto* old : {"6.2.19", "7.0.11", "7.2.10", "7.4.5", "8.0.3", "8.2.1"}) {
    EXPECT_THAT(said_of(std::string{"redis_version:"} + old + "\r\n"), ElementsAre(HasSubstr("CVE-")));
  }
  for (const auto* now :
       {"6.2.20", "7.0.15", "7.2.11", "7.4.6", "8.0.4", "8.2.2", "8.4.0", "255.255.255", "unstable"}) {
    EXPECT_THAT(said_of(std::string{"redis_version:"} + now + "\r\n"), IsEmpty()) << now;
  }
}

// It says of itself that it is a Redis 7.2.4, whose holes it need not have.
TEST(server_report, names_versions_of_valkey_with_known_holes) {
  const auto valkey = [](const std::string& version) {
    return said_of("redis_version:7.2.4\r\nvalkey_version:" + version + "\r\n");
  };
  for (const auto* old : {"7.2.10", "8.0.5", "8.1.3"})
    EXPECT_THAT(valkey(old), ElementsAre(AllOf(HasSubstr(std::string{"Valkey "} + old), HasSubstr("CVE-2025-49844"))));
  for (const auto* now : {"7.2.11", "8.0.6", "8.1.4", "9.0.0", "9.1.2"}) EXPECT_THAT(valkey(now), IsEmpty()) << now;
}

// As they were seen to say it.
TEST(server_report, says_version_and_mode_of_redis_and_of_valkey) {
  const std::string redis = "redis_version:7.0.15\r\nredis_mode:cluster\r\n";
  const std::string older =
      "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nserver_mode:standalone\r\n";
  const std::string newer =
      "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:cluster\r\n";
  EXPECT_EQ(version_of(redis), "7.0.15");
  EXPECT_EQ(version_of(older), "Valkey 8.1.1");
  EXPECT_EQ(version_of(newer), "Valkey 9.1.2");
  EXPECT_EQ(mode_of(redis), "cluster");
  EXPECT_EQ(mode_of(older), "standalone");
  EXPECT_EQ(mode_of(newer), "cluster");
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
