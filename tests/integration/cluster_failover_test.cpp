// SPDX-License-Identifier: Apache-2.0
// Primaries of a cluster that fail, and what happens to their locks (P22, B64, H24 to H26).
#include "integration/cluster_fixture.hpp"
#include "integration/few_descriptors.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

TEST_F(on_a_cluster, a_lease_that_was_replicated_survives_a_failover_H25) {
  auto how = options();
  how.max_ttl = long_enough;  // Longer than the failover takes.
  client locks{lab_.uri(), how};
  auto held = locks.acquire("x", {.ttl = long_enough, .renew = renewal::none});
  const auto old = home_of("x");
  const auto next = replica_of(old);
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
// Its address has become another server's, on which somebody has a lock of that name: neither its no nor its yes
// counts.
TEST_F(on_a_cluster, a_server_that_has_got_a_nodes_address_is_not_taken_for_the_node) {
  auto locks = make(2s);
  const auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  const auto home = home_of("x");
  lab_.kill(home);
  redis_server other{{.at_port = lab_.give_up_port_of(home)}};
  client of_another_kind{other.tcp_uri()};
  auto theirs = of_another_kind.acquire("x");
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::wrong_server);
  EXPECT_TRUE(held.valid());
  theirs.release();
  auto newcomer = make(1s);
  const auto e = error_of([&] { (void)newcomer.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_server);
  EXPECT_THAT(e->detail().server_text, HasSubstr("of no cluster"));
}

// It is a whole cluster by itself and answers at once, while the nodes of ours say nothing for a moment. Whoever knows
// ours is not misled, and who is new is told by those of the URI that speak again.
TEST_F(on_a_cluster, another_cluster_at_a_nodes_address_is_not_taken_for_it) {
  auto how = options(3s);
  how.max_ttl = long_enough;
  client locks{lab_.uri(), how};
  const auto held = locks.acquire("x", {.ttl = long_enough});
  const auto home = home_of("x");
  const auto gone = another_than(home);
  lab_.kill(gone);
  for (const auto& node : lab_.nodes()) {
    if (node.address != gone.address) lab_.pause(node);
  }
  redis_server other{{.at_port = lab_.give_up_port_of(gone), .config = {"cluster-enabled yes"}, .is_declared = false}};
  std::vector<std::string> all_slots{"CLUSTER", "ADDSLOTS"};
  for (int slot = 0; slot < 16'384; ++slot) all_slots.push_back(std::to_string(slot));
  ASSERT_EQ(other.ask(all_slots).text, "OK");
  ASSERT_TRUE(eventually([&] { return ask(gone, {"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos; }));
  // For as long as two rounds take in which nobody else answers.
  const auto e = error_of([&] { (void)locks.try_acquire("y", brief); });
  for (const auto& node : lab_.nodes()) {
    if (node.address != gone.address) lab_.resume(node);
  }
  ASSERT_TRUE(e) << "another cluster granted it";
  EXPECT_EQ(ask_number(gone, {"DBSIZE"}), "0") << "nor was anything asked for there";
  ASSERT_TRUE(eventually([&] { return has(home, "hf:{x}"); }, long_enough)) << "it speaks again";
  auto newcomer = make();
  EXPECT_FALSE(newcomer.try_acquire("x", brief)) << "it is held, in the cluster that is meant";
  EXPECT_TRUE(held.valid());
}

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

// As long as the other half may be of another cluster, a second; no longer.
TEST_F(on_a_cluster, a_new_client_comes_in_while_half_of_its_uri_is_silent) {
  const auto names = a_name_on_each();
  const auto silent = another_than(primaries()[0]);
  lab_.pause(silent);
  client locks{"redis+cluster://" + primaries()[0].address + "," + silent.address, options()};
  EXPECT_TRUE(locks.try_acquire(names[0], brief));
}

// Each round is over only when its time is: with max_ttl = 6 s a second of that would be too long for any grant.
TEST_F(on_a_cluster, a_silent_primary_and_a_slot_that_nobody_serves_cost_the_others_nothing) {
  const auto names = a_name_on_each();
  const auto slot = slot_of(primaries()[0], "nobody");
  for (const auto& node : lab_.nodes()) ask(node, {"CONFIG", "SET", "cluster-require-full-coverage", "no"});
  for (const auto& node : lab_.nodes()) ask(node, {"CLUSTER", "DELSLOTS", slot.c_str()});
  auto locks = make(5s);
  const auto held = locks.acquire(names[0], brief);
  lab_.pause(primaries()[2]);
  EXPECT_FALSE(eventually([&] { return !held.valid(); }, max_ttl + 1s));
  EXPECT_TRUE(locks.try_acquire(names[1], brief));
}

// The promoted replica is a node that it has nothing for, and cannot have.
TEST_F(on_a_cluster, who_has_too_few_descriptors_for_a_new_node_keeps_the_leases_of_the_others_P32) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the sanitizer's run-time needs descriptors of its own to look at memory";
#endif
  const auto names = a_name_on_each();
  const auto old = primaries()[0];
  const auto next = replica_of(old);
  auto locks = make(1s);
  const auto one = locks.acquire(names[1], brief);
  const auto other = locks.acquire(names[2], brief);
  patience_of_nodes("2000");
  lab_.kill(old);
  {
    const all_descriptors_but taken{3};  // For the test's own questions; a node needs more.
    ASSERT_TRUE(eventually([&] { return is_primary(next); }, long_enough));
    EXPECT_TRUE(eventually(
        [&] {
          const auto e = error_of([&] { (void)locks.try_acquire(names[0], brief); });
          return e && e->detail().server_text.find("open files") != std::string::npos;
        },
        long_enough));
    EXPECT_FALSE(eventually([&] { return !one.valid() || !other.valid(); }, max_ttl + 1s));
    // What is about all nodes says that one is missing.
    const auto is_refused = [&](auto what) {
      const auto e = error_of(what);
      return e && e->code() == errc::cannot_connect && e->detail().server_text.find("open files") != std::string::npos;
    };
    EXPECT_TRUE(is_refused([&] { (void)locks.list(); }));
    EXPECT_TRUE(is_refused([&] { (void)locks.diagnose(); }));
    EXPECT_TRUE(is_refused([&] { locks.declare_nothing_forgotten(); }));
  }
  EXPECT_TRUE(eventually([&] { return !error_of([&] { locks.acquire(names[0], brief).release(); }); }, long_enough));
  EXPECT_EQ(locks.list().size(), 2u);
}

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

}  // namespace
}  // namespace holdfast::test
