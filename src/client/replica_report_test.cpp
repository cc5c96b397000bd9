// SPDX-License-Identifier: Apache-2.0
#include "client/replica_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using severity = finding::severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr server_time now{std::chrono::seconds{1'700'000'000}};

engine::replica_view with(const std::string& lines) {
  return {.info = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:slave\r\n" + lines, .clock = now};
}

std::vector<finding> found(engine::replica_view view, const relied_on_next& by = {.hold = 60s}) {
  return judge_replica({{"10.0.0.2", "6379"}, std::move(view)}, by, now);
}

// All of them warn, and say of whom, and what to do there.
std::vector<std::string> said_of(engine::replica_view view, const relied_on_next& by = {.hold = 60s}) {
  std::vector<std::string> all;
  for (const auto& one : found(std::move(view), by)) {
    EXPECT_EQ(one.level, severity::warning) << one.what;
    EXPECT_THAT(one.what, StartsWith("replica 10.0.0.2:6379, which may become the primary: "));
    EXPECT_THAT(one.fix, StartsWith("on 10.0.0.2:6379: "));
    all.push_back(one.what);
  }
  return all;
}

TEST(replica_report, has_nothing_to_say_of_one_that_is_as_its_primary) { EXPECT_THAT(said_of(with("")), IsEmpty()); }

TEST(replica_report, names_one_that_will_throw_locks_away) {
  EXPECT_THAT(said_of({.info = "role:slave\r\nmaxmemory_policy:allkeys-lru\r\n"}),
              ElementsAre(HasSubstr("it may throw locks away: maxmemory-policy is 'allkeys-lru'")));
}

// A replica takes all that its primary sends it, whatever its own limit is.
TEST(replica_report, names_one_that_will_have_no_memory_for_a_lock) {
  EXPECT_THAT(said_of(with("maxmemory:1000\r\nused_memory:1300\r\n")),
              ElementsAre(HasSubstr("no memory left for a lock")));
}

TEST(replica_report, names_old_versions_files_and_clocks) {
  EXPECT_THAT(said_of({.info = "role:slave\r\nredis_version:7.2.10\r\n"}), ElementsAre(HasSubstr("CVE-2025-49844")));
  EXPECT_THAT(said_of(with("rdb_last_bgsave_status:err\r\n")), ElementsAre(HasSubstr("snapshot failed")));
  auto late = with("");
  late.clock = now - 20s;
  EXPECT_THAT(said_of(late), ElementsAre(HasSubstr("clock is 20 s behind")));
}

TEST(replica_report, wants_of_it_what_is_wanted_of_a_promoted_server_P19) {
  auto brief = with("");
  brief.backlog_ttl = "30";
  EXPECT_THAT(said_of(brief), ElementsAre(HasSubstr("30 s after its last replica left")));
  EXPECT_THAT(said_of(brief, {}), IsEmpty()) << "nobody minds what it has forgotten";
  auto lazy = with("aof_enabled:1\r\n");
  lazy.appendfsync = "everysec";
  EXPECT_THAT(said_of(lazy, {.what = {.syncs_all = true}}), ElementsAre(HasSubstr("appendfsync is 'everysec'")));
}

// It has none of its own, or has: that is another chain.
TEST(replica_report, asks_for_no_replicas_of_a_replica) {
  EXPECT_THAT(said_of(with("slave0:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n"),
                      {.what = {.replicas = 2, .is_replaced = true}}),
              IsEmpty());
  EXPECT_THAT(said_of(with("min_slaves_good_slaves:0\r\n")), IsEmpty());
}

TEST(replica_report, names_what_our_login_may_not_do_there) {
  auto strict = with("");
  strict.refusal = "NOPERM this user has no permissions to run the 'evalsha' command";
  EXPECT_THAT(said_of(strict), ElementsAre(HasSubstr("the 'evalsha' command")));
  auto older = with("");
  older.lacks = {"HSET", "ZADD", "ZRANGE"};
  EXPECT_THAT(said_of(older, {.lacks_anyway = {"ZADD"}}), ElementsAre(HasSubstr("what they may here: HSET, ZRANGE")));
  EXPECT_THAT(said_of(older, {.lacks_anyway = older.lacks}), IsEmpty());
}

TEST(replica_report, names_one_that_does_not_know_us) {
  EXPECT_THAT(said_of({.failure = "WRONGPASS invalid username-password pair", .code = errc::wrong_password}),
              ElementsAre(HasSubstr("it does not take our login: WRONGPASS")));
  EXPECT_THAT(said_of({.failure = "NOAUTH Authentication required.", .code = errc::no_password}),
              ElementsAre(HasSubstr("NOAUTH")));
}

// Sentinels and clusters send us there; who promotes by hand has an address of his own.
TEST(replica_report, minds_one_that_cannot_be_reached_only_where_it_is_gone_to) {
  const engine::replica_view away{.failure = "no connection", .code = errc::cannot_connect};
  EXPECT_THAT(said_of(away, {.is_followed = true}), ElementsAre(HasSubstr("cannot be asked from here: no connection")));
  const auto mild = found(away);
  ASSERT_EQ(mild.size(), 1u);
  EXPECT_EQ(mild[0].level, severity::ok);
  EXPECT_EQ(mild[0].fix, "");
}

// The address is one of the server's own network, where this machine has another neighbour.
TEST(replica_report, takes_nobody_for_a_replica_who_is_none) {
  const engine::replica_view other{.info = "role:master\r\nmaxmemory_policy:allkeys-lru\r\n"};
  EXPECT_THAT(said_of(other, {.is_followed = true}), ElementsAre(HasSubstr("who answers there is no replica")));
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
