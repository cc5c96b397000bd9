// SPDX-License-Identifier: Apache-2.0
// A cluster of three primaries with a replica each, and what happens to locks when slots move and primaries fail (P22,
// B64, B65, B67, B68, H24 to H26). The largest ttl is small, so that no quarantine is long.
#include "integration/fixture.hpp"
#include "support/lab.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <thread>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

const acquire_options brief{.ttl = 3s};

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

  std::vector<lab_node> primaries() { return lab_.nodes("primary"); }
  static std::string id_of(const lab_node& node) { return ask(node, {"CLUSTER", "MYID"}); }
  static bool has(const lab_node& node, const std::string& key) { return !ask(node, {"GET", key.c_str()}).empty(); }
  // Where the key of a plain lock is. By what the nodes say themselves: the others answer MOVED.
  static bool serves(const lab_node& node, const std::string& key) {
    const auto answer = ask(node, {"TYPE", key.c_str()});
    return !answer.empty() && !answer.starts_with("MOVED") && !answer.starts_with("CLUSTERDOWN");
  }
  lab_node home_of(const std::string& name) {
    for (const auto& node : primaries()) {
      if (serves(node, "hf:{" + name + "}")) return node;
    }
    ADD_FAILURE() << "nobody serves " << name;
    return {};
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
      for (const auto& key : of_.keys_in(from_, slot_)) {
        EXPECT_EQ(ask(from_, {"MIGRATE", "127.0.0.1", port.c_str(), key.c_str(), "0", "5000"}), "OK") << key;
      }
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
    const auto home = home_of(name);
    return ask_number(home, {"ZCARD", ("hf:{" + name + "}:line").c_str()}) != "0";
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

  lab_topology lab_{lab_kind::cluster, {.ready_within = 120s}};
};

TEST_F(on_a_cluster, a_lock_is_kept_by_the_primary_that_serves_its_slot) {
  auto locks = make();
  for (const auto& name : a_name_on_each()) {
    const auto held = locks.acquire(name, brief);
    EXPECT_TRUE(has(home_of(name), "hf:{" + name + "}")) << name;
    EXPECT_FALSE(make().try_acquire(name, brief)) << name;
  }
}

TEST_F(on_a_cluster, names_with_braces_lie_in_one_slot_each_B67) {
  auto locks = make();
  for (const auto* name : {"{", "}", "{}", "a{b}c", "}{", "{a}{b}", "%7B", "a b", "\xc3\xa4"}) {
    auto held = locks.acquire(name, brief);
    EXPECT_EQ(code_of([&] { held.renew(); }), std::error_code{}) << name;
    EXPECT_EQ(held.release(), release_outcome::released) << name;
    semaphore permits{locks, std::string{name} + "s", 2};
    EXPECT_EQ(permits.acquire(brief).release(), release_outcome::released) << name;
  }
}

TEST_F(on_a_cluster, any_one_of_its_nodes_is_enough_to_find_it) {
  for (const auto& node : lab_.nodes()) {
    client locks{"redis+cluster://" + node.address, options()};
    EXPECT_TRUE(locks.try_acquire("x", brief)) << node.role;
  }
}

TEST_F(on_a_cluster, a_waiter_is_told_when_it_is_its_turn) {
  auto locks = make();
  for (const auto& name : a_name_on_each()) {
    auto held = std::optional{locks.acquire(name, brief)};
    auto waiting = std::async(std::launch::async, [&] {
      auto others = make();
      return others.acquire(name, {.ttl = 3s, .wait = long_enough}).release();
    });
    EXPECT_TRUE(eventually([&] { return somebody_waits_for(name); }, long_enough));
    held->release();
    EXPECT_EQ(waiting.get(), release_outcome::released);
  }
}

TEST_F(on_a_cluster, a_script_that_a_node_has_forgotten_is_sent_again_B65) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  for (const auto& node : lab_.nodes()) ask(node, {"SCRIPT", "FLUSH"});
  EXPECT_EQ(code_of([&] { held.renew(); }), std::error_code{});
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_TRUE(locks.try_acquire("x", brief));
}

TEST_F(on_a_cluster, list_asks_every_primary) {
  auto locks = make();
  std::vector<lease> held;
  std::set<std::string> names;
  for (const auto& name : a_name_on_each()) {
    names.insert(name);
    held.push_back(locks.acquire(name, brief));
  }
  std::set<std::string> found;
  for (const auto& one : make().list()) found.insert(one.name);
  EXPECT_EQ(found, names);
}

TEST_F(on_a_cluster, is_healthy_and_the_doctor_says_so) {
  const auto found = make().diagnose();
  for (const auto& one : found.findings) EXPECT_NE(one.level, finding::severity::error) << one.what;
  EXPECT_EQ(found.mode, "cluster");
}

// ---- several locks ----

TEST_F(on_a_cluster, locks_of_several_slots_are_held_as_one) {
  auto locks = make();
  const auto names = a_name_on_each();
  auto all = locks.acquire_all(names, brief);
  EXPECT_TRUE(all.valid());
  for (const auto& name : names) EXPECT_FALSE(make().try_acquire(name, brief)) << name;
  let_pass(2 * brief.ttl);  // All of them are renewed.
  EXPECT_TRUE(all.valid());
  EXPECT_EQ(all.release(), release_outcome::released);
  for (const auto& name : names) EXPECT_TRUE(make().try_acquire(name, brief)) << name;
}

TEST_F(on_a_cluster, the_loss_of_one_is_the_loss_of_all) {
  auto locks = make();
  const auto names = a_name_on_each();
  const auto all = locks.acquire_all(names, brief);
  std::promise<void> lost;
  const std::stop_callback on_loss{all.lost(), [&] { lost.set_value(); }};
  ask(home_of(names[1]), {"DEL", ("hf:{" + names[1] + "}").c_str()});
  EXPECT_EQ(lost.get_future().wait_for(long_enough), std::future_status::ready);
  EXPECT_FALSE(all.valid());
  EXPECT_EQ(all.lost_reason(), errc::lease_gone);
}

// ---- a slot moves ----

TEST_F(on_a_cluster, a_lease_goes_with_its_slot_B68) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  const auto to = move("x");
  EXPECT_EQ(code_of([&] { held.renew(); }), std::error_code{});
  let_pass(2 * brief.ttl);
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(has(to, "hf:{x}"));
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(has(to, "hf:{x}"));
}

TEST_F(on_a_cluster, an_old_connection_follows_a_slot_that_moved_B68) {
  auto locks = make();
  locks.acquire("x", brief).release();
  const auto to = move("x");
  const auto held = locks.try_acquire("x", brief);
  ASSERT_TRUE(held);
  EXPECT_TRUE(has(to, "hf:{x}"));
}

TEST_F(on_a_cluster, a_release_follows_its_slot_B68) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = 5s, .renew = renewal::none});
  const auto to = move("x");
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(has(to, "hf:{x}"));
}

TEST_F(on_a_cluster, who_waits_keeps_the_place_when_the_slot_moves_B68) {
  auto holder = make();
  auto held = std::optional{holder.acquire("x", brief)};
  std::mutex mutex;
  std::vector<int> served;
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&, i] {
      auto locks = make();
      auto mine = locks.acquire("x", {.ttl = 3s, .wait = long_enough});
      const std::lock_guard guard{mutex};
      served.push_back(i);
    });
    const auto length = std::to_string(i + 1);
    EXPECT_TRUE(eventually([&] { return ask_number(home_of("x"), {"ZCARD", "hf:{x}:line"}) == length; }, long_enough));
  }
  move("x");
  EXPECT_EQ(code_of([&] { held->renew(); }), std::error_code{});
  held.reset();
  for (auto& one : waiting) one.join();
  EXPECT_EQ(served, (std::vector{0, 1, 2}));
}

// While it moves, a lock's keys are on neither side together: the server says TRYAGAIN or ASK until it is over.
TEST_F(on_a_cluster, a_slot_on_its_way_is_waited_for_B68) {
  auto locks = make();
  locks.acquire("x", brief).release();
  const auto from = home_of("x");
  const auto to = another_than(from);
  slot_move under_way{*this, "x", from, to};
  auto waiting = std::async(std::launch::async, [&] { return locks.try_acquire("x", brief).has_value(); });
  EXPECT_EQ(waiting.wait_for(1s), std::future_status::timeout);
  under_way.finish();
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(has(to, "hf:{x}"));
}

TEST_F(on_a_cluster, a_lease_survives_while_its_slot_is_on_its_way_B68) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl});
  const auto from = home_of("x");
  slot_move under_way{*this, "x", from, another_than(from)};
  std::error_code refused;
  auto renewing = std::async(std::launch::async, [&] { held.renew(refused); });
  EXPECT_EQ(renewing.wait_for(500ms), std::future_status::timeout);
  under_way.finish();
  renewing.get();
  EXPECT_EQ(refused, std::error_code{});
  EXPECT_TRUE(held.valid());
}

// ---- a primary fails ----

TEST_F(on_a_cluster, a_lease_that_was_replicated_survives_a_failover_H25) {
  auto how = options();
  how.max_ttl = long_enough;  // Longer than the failover takes.
  client locks{lab_.uri(), how};
  auto held = locks.acquire("x", {.ttl = long_enough, .renew = renewal::none});
  const auto old = home_of("x");
  const auto next = replica_of(old);
  ask(next, {"READONLY"});
  ASSERT_TRUE(eventually([&] { return ask_number(next, {"DBSIZE"}) == ask_number(old, {"DBSIZE"}); }, long_enough));
  lab_.kill(old);
  ASSERT_TRUE(becomes_primary(next));
  EXPECT_EQ(code_of([&] { held.renew(); }), std::error_code{});
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(has(next, "hf:{x}"));
}

TEST_F(on_a_cluster, a_promoted_replica_grants_nothing_before_its_quarantine_is_over_H25) {
  auto locks = make();
  const auto old = home_of("x");
  const auto next = replica_of(old);
  locks.acquire("x", brief).release();
  lab_.kill(old);
  ASSERT_TRUE(becomes_primary(next));
  const auto e = error_of([&] { (void)locks.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::quarantined);
  EXPECT_TRUE(locks.acquire("x", {.ttl = 3s, .wait = long_enough}).valid());
}

TEST_F(on_a_cluster, who_waits_is_served_by_the_promoted_replica_B64) {
  auto holder = make();
  auto held = std::optional{holder.acquire("x", {.ttl = max_ttl})};
  std::vector<std::thread> waiting;
  std::atomic<int> served{0};
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] {
      auto locks = make();
      auto mine = locks.acquire("x", {.ttl = 3s, .wait = 2 * long_enough});
      ++served;
      mine.release();
    });
  }
  EXPECT_TRUE(eventually([&] { return ask_number(home_of("x"), {"ZCARD", "hf:{x}:line"}) == "3"; }, long_enough));
  const auto old = home_of("x");
  const auto next = replica_of(old);
  lab_.kill(old);
  EXPECT_TRUE(becomes_primary(next));
  held.reset();
  for (auto& one : waiting) one.join();
  EXPECT_EQ(served, 3);
}

// The old primary was stopped, replaced, and goes on: for a moment it believes to be one, and answers.
TEST_F(on_a_cluster, an_old_primary_that_wakes_grants_nothing_P22) {
  auto ours = make();
  ours.acquire("x", brief).release();  // A connection that lives through all of it.
  const auto old = home_of("x");
  const auto next = replica_of(old);
  lab_.pause(old);
  ASSERT_TRUE(becomes_primary(next));
  auto theirs = make();
  const auto held = theirs.acquire("x", {.ttl = max_ttl, .wait = long_enough});
  lab_.resume(old);
  EXPECT_TRUE(eventually([&] { return ask(old, {"PING"}) == "PONG"; }, long_enough));
  EXPECT_FALSE(ours.try_acquire("x", brief));
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(has(next, "hf:{x}"));
}

// An isolated primary renews for ever; whoever cannot be told that it is not the primary any more must stop (P22).
TEST_F(on_a_cluster, a_holder_that_hears_of_no_majority_is_lost_in_time_P22) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = 2s});
  const auto home = home_of("x");
  for (const auto& node : lab_.nodes()) {
    if (node.address != home.address) lab_.pause(node);
  }
  const auto began = boottime();
  EXPECT_TRUE(eventually([&] { return !held.valid(); }, long_enough));
  EXPECT_LT(boottime() - began, max_ttl) << "somebody may be granted it by then";
  for (const auto& node : lab_.nodes()) {
    if (node.address != home.address) lab_.resume(node);
  }
  EXPECT_TRUE(locks.acquire("x", {.ttl = 2s, .wait = long_enough}).valid());
}

// ---- what is wrong is said ----

TEST_F(on_a_cluster, without_a_majority_it_says_who_did_not_answer) {
  const auto home = home_of("x");
  for (const auto& node : lab_.nodes()) {
    if (node.address != home.address) lab_.kill(node);
  }
  auto locks = make(3s);
  const auto e = error_of([&] { (void)locks.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_primary);
  EXPECT_EQ(e->code(), outcome::unreachable);
  EXPECT_THAT(e->detail().server_text, HasSubstr(another_than(home).address));
}

TEST(a_cluster_uri, of_a_single_server_is_an_error_at_once) {
  const lab_topology single{lab_kind::single};
  client locks{"redis+cluster://" + single.nodes()[0].address};
  const auto e = error_of([&] { (void)locks.acquire("x"); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_server);
  EXPECT_THAT(e->detail().server_text, HasSubstr("cluster support disabled"));
}

TEST(a_cluster_uri, where_nobody_listens_is_an_error_at_once) {
  client locks{"redis+cluster://127.0.0.1:1,127.0.0.1:2"};
  const auto began = boottime();
  const auto e = error_of([&] { (void)locks.acquire("x"); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::cannot_connect);
  EXPECT_LT(boottime() - began, 5s);
}

}  // namespace
}  // namespace holdfast::test
