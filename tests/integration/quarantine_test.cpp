// SPDX-License-Identifier: Apache-2.0
// Real servers that forget: restarted without their data, with the tail of their file cut off, or a replica promoted
// in their place (H24, H25, P17 to P21). Nobody is granted a lock while somebody may hold it whom the server has
// forgotten. The largest ttl is small everywhere, so that no quarantine is long.
#include "integration/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

client_options with_max_ttl(std::chrono::milliseconds max_ttl) {
  client_options how;
  how.max_ttl = max_ttl;
  return how;
}

client_options trusting(client_options how) {
  how.quarantine = quarantine_mode::trust_every_write_is_synced;
  return how;
}

const acquire_options shortly{.ttl = 100ms};

// When somebody had the lock, and whether the other one still believed to hold it.
struct taken {
  std::chrono::nanoseconds at{};
  bool was_other_valid = false;
  lease held;
};
taken take(client& locks, const lease& other, const acquire_options& how = {.ttl = 500ms, .wait = 20s}) {
  auto held = locks.acquire("x", how);
  const bool was_other_valid = other.valid();
  return {boottime(), was_other_valid, std::move(held)};
}

class quarantine : public on_redis {
protected:
  explicit quarantine(redis_options options = {}) : on_redis{std::move(options)} {}
  client make(std::chrono::milliseconds max_ttl = 2s) { return make_client(with_max_ttl(max_ttl)); }
  bool waits_for(std::int64_t count) {
    return eventually([&] { return server_("ZCARD", "hf:{x}:line") == count; }, 10s);
  }
};

TEST_F(quarantine, after_a_loss_of_all_data_nobody_gets_the_lock_before_its_holders_deadline_H24) {
  auto ours = make();
  auto theirs = make();
  const auto held = ours.acquire("x", {.ttl = 2s, .renew = renewal::none});
  server_.kill();
  server_.restart();
  const auto e = error_of([&] { (void)theirs.try_acquire("x", shortly); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::quarantined);
  EXPECT_EQ(e->code(), outcome::not_applied);
  EXPECT_THAT(e->what(), HasSubstr("may have forgotten locks: nothing is granted for"));
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(take(theirs, held).was_other_valid);
}

// The same without it: what the quarantine is for.
TEST_F(quarantine, without_it_two_hold_the_lock_after_a_loss_of_data) {
  auto ours = make();
  auto theirs = make_client(trusting(with_max_ttl(2s)));
  const auto held = ours.acquire("x", {.ttl = 2s, .renew = renewal::none});
  server_.kill();
  server_.restart();
  EXPECT_TRUE(take(theirs, held).was_other_valid);
}

TEST_F(quarantine, who_waits_keeps_its_place_and_is_served_in_order_afterwards) {
  auto first = make();
  auto second = make();
  auto ours = make();
  const auto held = ours.acquire("x", {.ttl = 2s, .renew = renewal::none});
  const auto wait = [&](client& locks) {
    return std::async(std::launch::async, [&] {
      auto got = take(locks, held);
      let_pass(100ms);
      got.held.release();
      return got;
    });
  };
  auto one = wait(first);
  ASSERT_TRUE(waits_for(1));
  auto two = wait(second);
  ASSERT_TRUE(waits_for(2));
  server_.kill();
  server_.restart();
  ASSERT_TRUE(waits_for(2)) << "both are back in line";
  const auto a = one.get();
  const auto b = two.get();
  EXPECT_FALSE(a.was_other_valid);
  EXPECT_LT(a.at + 100ms, b.at) << "in the order in which they came, and one after the other";
}

TEST_F(quarantine, a_wait_that_ends_in_it_says_so) {
  server_.kill();
  server_.restart();
  auto locks = make(10s);
  EXPECT_EQ(code_of([&] { (void)locks.acquire("x", {.wait = 1500ms}); }), errc::quarantined);
  EXPECT_GT(locks.inspect("x").quarantine, 5s);
  const auto found = locks.diagnose();
  EXPECT_GT(found.quarantine, 5s);
  EXPECT_EQ(found.worst(), finding::severity::warning);
}

// The server's clock may be as fast as we assume, and all who say how long it lasts mind that.
TEST_F(quarantine, is_as_long_for_who_diagnoses_as_for_who_looks_C1) {
  server_.kill();
  server_.restart();
  auto locks = make(1h);
  const auto seen = locks.inspect("x").quarantine;
  EXPECT_GT(seen, 1h + 30s) << "or this tests nothing";
  EXPECT_GT(locks.diagnose().quarantine, seen - 15s);
}

TEST_F(quarantine, is_over_for_everybody_when_somebody_says_that_nothing_is_forgotten) {
  server_.kill();
  server_.restart();
  auto locks = make(60s);
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x"); }), errc::quarantined);
  make(60s).declare_nothing_forgotten();
  EXPECT_TRUE(locks.try_acquire("x"));
}

// It would be said to nobody: what is not written is not known to the next client.
TEST_F(quarantine, is_over_for_nobody_where_the_server_keeps_nothing_H29) {
  server_.kill();
  server_.restart();
  server_("CONFIG", "SET", "maxmemory", "1");
  EXPECT_EQ(code_of([&] { make(60s).declare_nothing_forgotten(); }), errc::server_refused);
  server_("CONFIG", "SET", "maxmemory", "0");
  EXPECT_EQ(code_of([&] { (void)make(60s).try_acquire("x"); }), errc::quarantined);
  server_("CONFIG", "SET", "min-replicas-to-write", "1");
  EXPECT_EQ(code_of([&] { make(60s).declare_nothing_forgotten(); }), errc::server_refused);
  server_("CONFIG", "SET", "min-replicas-to-write", "0");
  make(60s).declare_nothing_forgotten();
  EXPECT_TRUE(make(60s).try_acquire("x"));
}

TEST_F(quarantine, lasts_for_the_largest_ttl_of_all_clients_P18) {
  server_.kill();
  server_.restart();
  auto patient = make(5s);
  EXPECT_EQ(code_of([&] { (void)patient.try_acquire("x", shortly); }), errc::quarantined);
  auto hasty = make(100ms);
  EXPECT_EQ(code_of([&] { (void)hasty.acquire("x", {.ttl = 100ms, .wait = 2500ms}); }), errc::quarantined);
}

TEST_F(quarantine, without_INFO_no_lock_is_taken_and_the_reason_is_said) {
  server_("ACL", "SETUSER", "operator", "on", "nopass", "allcommands", "allkeys", "allchannels");
  server_("AUTH", "operator", "x");
  server_("ACL", "SETUSER", "default", "-info");
  client locks{server_.unix_uri()};
  const auto e = error_of([&] { (void)locks.try_acquire("x"); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_permission);
  EXPECT_THAT(e->what(), HasSubstr("+info"));
  EXPECT_THAT(e->what(), HasSubstr("trust_every_write_is_synced"));
  client trusts{server_.unix_uri(), trusting({})};
  EXPECT_TRUE(trusts.try_acquire("x"));
}

// ---- a file that has lost its tail ----

class quarantine_of_a_file : public quarantine {
protected:
  quarantine_of_a_file() : quarantine{{.config = {"appendonly yes", "appendfsync always"}}} {}

  // The file that grows.
  std::filesystem::path file() const {
    for (const auto& one : std::filesystem::directory_iterator{server_.directory() + "/appendonlydir"}) {
      if (one.path().string().ends_with(".incr.aof")) return one.path();
    }
    return {};
  }
};

TEST_F(quarantine_of_a_file, that_lost_its_tail_a_grant_that_stood_there_is_not_made_again_H24) {
  auto ours = make();
  auto theirs = make();
  theirs.acquire("x", {.ttl = 500ms}).release();
  const auto before = std::filesystem::file_size(file());
  const auto held = ours.acquire("x", {.ttl = 2s, .renew = renewal::none});
  server_.kill();
  std::filesystem::resize_file(file(), before);
  server_.restart();
  EXPECT_FALSE(exists("hf:{x}")) << "the server has forgotten it";
  EXPECT_FALSE(take(theirs, held).was_other_valid);
}

// What survived goes on: it is renewed, and its release lets nobody in before the end (P21).
TEST_F(quarantine_of_a_file, that_kept_everything_a_lease_is_renewed_and_its_release_moves_no_line_P21) {
  auto ours = make(8s);
  auto theirs = make(8s);
  auto held = ours.acquire("x", {.ttl = 3s});
  auto next = std::async(std::launch::async, [&] { return take(theirs, held); });
  ASSERT_TRUE(waits_for(1));
  server_.kill();
  const auto started_at = boottime();
  server_.restart();
  ASSERT_TRUE(waits_for(1));
  let_pass(3200ms);
  EXPECT_TRUE(held.valid()) << "it was renewed";
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(exists("hf:{x}"));
  const auto got = next.get();
  EXPECT_GT(got.at - started_at, 7900ms) << "eight seconds by the server's clock, from its start on";
}

// ---- another server in its place ----

class quarantine_of_a_pair : public quarantine {
protected:
  quarantine_of_a_pair() : quarantine{a_server()} {}

  // Who is in sync gets what is written from then on, and need not wait for another replica (src/local/lab_config.cpp).
  static redis_options a_server() { return {.tcp = true, .config = {"repl-diskless-sync no"}}; }

  static bool is_in_sync(redis_server& replica) {
    const auto* up = "master_link_status:up";
    return eventually([&] { return replica.ask({"INFO", "replication"}).text.find(up) != std::string::npos; }, 20s);
  }
  void follow(redis_server& replica) {
    replica("REPLICAOF", "127.0.0.1", std::to_string(server_.port()));
    ASSERT_TRUE(is_in_sync(replica));
  }
};

// The pair, the lock that its replica never heard of, and who comes after the promotion (H25).
TEST_F(quarantine_of_a_pair, a_replica_that_is_promoted_lets_nobody_in_whom_the_lost_primary_shut_out_H25) {
  for (const bool is_on : {false, true}) {
    SCOPED_TRACE(is_on ? "with quarantine" : "without");
    redis_server replica{a_server()};
    follow(replica);
    auto ours = make();
    replica("REPLICAOF", "127.0.0.1", std::to_string(free_port()));  // The link is cut.
    const auto held = ours.acquire("x", {.ttl = 2s, .renew = renewal::none});
    server_.kill();
    replica("REPLICAOF", "NO", "ONE");
    client theirs{replica.unix_uri(), is_on ? with_max_ttl(2s) : trusting(with_max_ttl(2s))};
    if (is_on) {
      const auto e = error_of([&] { (void)theirs.try_acquire("x", shortly); });
      ASSERT_TRUE(e);
      EXPECT_EQ(e->code(), errc::quarantined);
      EXPECT_THAT(e->what(), HasSubstr("was promoted"));
    }
    EXPECT_EQ(take(theirs, held).was_other_valid, !is_on) << "without it two hold the lock: that is the known hole";
    server_.restart_undoubted();
  }
}

// Its file has the id under which its replica knew it, and after the restart it looks as if it had been one itself.
TEST_F(quarantine_of_a_pair, a_primary_that_had_a_replica_and_restarted_is_not_said_to_be_promoted) {
  redis_server replica{a_server()};
  follow(replica);
  server_("SAVE");
  server_.kill();
  server_.restart();
  const auto id = server_("INFO", "replication").text;
  ASSERT_EQ(id.find("master_replid2:0000000000000000000000000000000000000000"), std::string::npos)
      << "or this tests nothing";
  auto locks = make();
  const auto e = error_of([&] { (void)locks.try_acquire("x", shortly); });
  ASSERT_TRUE(e);
  EXPECT_THAT(e->detail().why, HasSubstr("the server restarted or was promoted "));
  const auto found = locks.diagnose().findings;
  const auto said = std::find_if(found.begin(), found.end(), [](const finding& one) { return one.code == "E23"; });
  ASSERT_NE(said, found.end());
  EXPECT_THAT(said->what, HasSubstr("the server restarted or was promoted "));
  EXPECT_EQ(said->fix, "wait; or, if it has kept every write: holdfast init");
}

TEST_F(quarantine_of_a_pair, a_first_replica_is_no_alarm_P19) {
  auto locks = make(60s);
  locks.acquire("x").release();
  redis_server replica{a_server()};
  follow(replica);
  let_pass(1100ms);  // So that the connection asks anew.
  EXPECT_TRUE(locks.try_acquire("x"));
  EXPECT_TRUE(make(60s).try_acquire("y"));
}

// Demoted, filled from one that knows nothing, promoted again: a connection lives through all of it, and finds out.
TEST_F(quarantine_of_a_pair, an_old_connection_finds_out_that_its_server_was_a_replica_meanwhile_P20) {
  auto ours = make(20s);
  auto theirs = make(20s);
  auto careless = make_client(trusting(with_max_ttl(20s)));
  theirs.acquire("warm").release();
  const auto held = ours.acquire("x", {.ttl = 20s, .renew = renewal::none});
  redis_server other{a_server()};
  server_("REPLICAOF", "127.0.0.1", std::to_string(other.port()));
  ASSERT_TRUE(is_in_sync(server_));
  server_("REPLICAOF", "NO", "ONE");
  EXPECT_FALSE(exists("hf:{x}"));
  let_pass(1100ms);
  EXPECT_EQ(code_of([&] { (void)theirs.try_acquire("x"); }), errc::quarantined);
  EXPECT_FALSE(exists("hf:{x}")) << "what was granted is given back";
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(careless.try_acquire("x")) << "who trusts the server gets it";
}

}  // namespace
}  // namespace holdfast::test
