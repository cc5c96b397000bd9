// SPDX-License-Identifier: Apache-2.0
// Locks on a cluster, and what happens to them when slots move (B65, B67, B68).
#include "integration/cluster_fixture.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>
#include <holdfast/asio.hpp>

#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

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
    EXPECT_EQ(locks.acquire("x", brief).release(), release_outcome::released) << node.role;
  }
}

TEST_F(on_a_cluster, a_waiter_is_told_when_it_is_its_turn) {
  auto locks = make();
  for (const auto& name : a_name_on_each()) {
    auto held = locks.acquire(name, {.ttl = max_ttl});
    std::chrono::nanoseconds got_at{0};
    auto waiting = std::async(std::launch::async, [&] {
      auto others = make();
      auto mine = others.acquire(name, {.ttl = 3s, .wait = long_enough});
      got_at = boottime();
      return mine.release();
    });
    // Whoever does not hear looks every half second.
    EXPECT_TRUE(eventually([&] { return somebody_is_told_of(name); }, long_enough));
    const auto released_at = boottime();
    held.release();
    EXPECT_EQ(waiting.get(), release_outcome::released);
    EXPECT_LT(got_at - released_at, slack) << "it looks when the lease could have ended, " << name;
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

// By whoever hangs behind the loss, and gives nothing back.
TEST_F(on_a_cluster, what_is_left_of_a_lost_set_ends_with_its_ttl) {
  auto locks = make();
  const auto names = a_name_on_each();
  const auto all = locks.acquire_all(names, brief);
  ask(home_of(names[1]), {"DEL", ("hf:{" + names[1] + "}").c_str()});
  EXPECT_TRUE(eventually([&] { return all.lost().stop_requested(); }, long_enough));
  for (const auto& name : names) {
    const auto key = "hf:{" + name + "}";
    EXPECT_TRUE(eventually([&] { return !has(home_of(name), key); }, long_enough)) << name;
  }
}

// What each of them came to.
class released_one_by_one : public observer {
public:
  void on_released(const std::string& name, release_outcome outcome, std::chrono::microseconds) override {
    const std::lock_guard held{mutex_};
    all_[name] = outcome;
  }
  std::map<std::string, release_outcome> all() {
    const std::lock_guard held{mutex_};
    return all_;
  }

private:
  std::mutex mutex_{};
  std::map<std::string, release_outcome> all_{};
};

TEST_F(on_a_cluster, a_node_that_does_not_answer_keeps_no_other_lock_of_a_set_C5) {
  const auto seen = std::make_shared<released_one_by_one>();
  auto how = options();
  how.observe = seen;
  client locks{lab_.uri(), how};
  auto names = a_name_on_each();
  std::sort(names.begin(), names.end());  // The first to be released is the one that cannot be.
  const std::vector<lab_node> homes{home_of(names[0]), home_of(names[1]), home_of(names[2])};
  auto all = locks.acquire_all(names, {.ttl = max_ttl});
  lab_.pause(homes[0]);
  auto released = std::async(std::launch::async, [&] { return all.release(); });
  const auto is_free = [&](std::size_t i) {
    return ask_number(homes[i], {"EXISTS", ("hf:{" + names[i] + "}").c_str()}) == "0";
  };
  EXPECT_TRUE(eventually([&] { return is_free(1) && is_free(2); }, max_ttl / 2));
  EXPECT_EQ(released.wait_for(0s), std::future_status::timeout) << "nobody knows of the first one yet";
  EXPECT_EQ(released.get(), release_outcome::unknown);
  EXPECT_TRUE(eventually([&] { return seen->all().size() == names.size(); }));
  EXPECT_EQ(seen->all(), (std::map<std::string, release_outcome>{{names[0], release_outcome::unknown},
                                                                 {names[1], release_outcome::released},
                                                                 {names[2], release_outcome::released}}));
  lab_.resume(homes[0]);
  EXPECT_TRUE(eventually([&] { return is_free(0); }, long_enough)) << "and nobody renews it";
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
  const auto to = move("x");
  // Who has not heard of the move cannot be told there, and is passed over for that time.
  EXPECT_TRUE(eventually(
      [&] {
        return ask_list(to, {"PUBSUB", "SHARDCHANNELS", "hf:wake:*"}).size() == 3;
      },
      long_enough));
  let_pass(1s);  // And has looked, saying that it hears.
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
  auto waiting = std::async(std::launch::async, [&] { return locks.try_acquire("x", brief); });
  EXPECT_EQ(waiting.wait_for(1s), std::future_status::timeout);
  under_way.finish();
  const auto got = waiting.get();
  EXPECT_TRUE(got);
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

// Nobody waits for it, and nobody asks: the map moves it.
TEST_F(on_a_cluster, an_asynchronous_waiter_goes_with_the_slot_B68) {
  auto holder = make();
  auto held = std::optional{holder.acquire("x", brief)};
  auto locks = make();
  auto waiting = async_acquire(locks, "x", {.ttl = 3s, .wait = long_enough}, boost::asio::use_future);
  EXPECT_TRUE(eventually([&] { return somebody_waits_for("x"); }, long_enough));
  const auto to = move("x");
  EXPECT_EQ(code_of([&] { held->renew(); }), std::error_code{});
  held.reset();
  auto mine = waiting.get();
  EXPECT_TRUE(mine.valid());
  EXPECT_TRUE(has(to, "hf:{x}"));
  async_release(std::move(mine), boost::asio::use_future).get();
  EXPECT_FALSE(has(to, "hf:{x}"));
}

TEST_F(on_a_cluster, an_asynchronous_waiter_that_went_with_the_slot_can_be_cancelled_B68) {
  auto holder = make();
  const auto held = holder.acquire("x", {.ttl = max_ttl});
  auto locks = make();
  boost::asio::cancellation_signal cancel;
  auto waiting = async_acquire(locks, "x", {.ttl = 3s, .wait = long_enough},
                               boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::use_future));
  EXPECT_TRUE(eventually([&] { return somebody_waits_for("x"); }, long_enough));
  const auto to = move("x");
  EXPECT_TRUE(eventually([&] { return ask_number(to, {"ZCARD", "hf:{x}:line"}) == "1"; }, long_enough));
  cancel.emit(boost::asio::cancellation_type::terminal);
  EXPECT_EQ(waiting.wait_for(long_enough), std::future_status::ready);
  EXPECT_ANY_THROW(waiting.get());
  EXPECT_TRUE(eventually([&] { return ask_number(to, {"ZCARD", "hf:{x}:line"}) == "0"; }, long_enough));
}

// What it cannot say about a lock is not "there is none".
TEST_F(on_a_cluster, a_list_says_what_a_server_refuses) {
  auto locks = make();
  const auto names = a_name_on_each();
  const auto held = locks.acquire(names[1], brief);
  EXPECT_EQ(locks.list().size(), 1u);
  ASSERT_EQ(ask(primaries()[1], {"ACL", "SETUSER", "default", "-evalsha"}), "OK");
  const auto e = error_of([&] { (void)locks.list(); });
  ASSERT_EQ(ask(primaries()[1], {"ACL", "SETUSER", "default", "+@all"}), "OK");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_permission);
}

// Of a slot that moves its node has one key of a lock and not the next, and says TRYAGAIN.
TEST_F(on_a_cluster, a_list_waits_for_a_slot_that_moves) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  const auto from = home_of("x");
  slot_move moving{*this, "x", from, another_than(from)};
  auto listed = std::async(std::launch::async, [&] { return make().list(); });
  EXPECT_TRUE(eventually(
      [&] {
        return ask(from, {"INFO", "errorstats"}).find("errorstat_TRYAGAIN") != std::string::npos;
      },
      long_enough));
  moving.finish();
  const auto all = listed.get();
  ASSERT_GE(all.size(), 1u);
  EXPECT_EQ(all[0].name, "x");
}

// In Kubernetes each restart of a pod gives its node another one. The first descriptors are of the connections.
TEST_F(on_a_cluster, a_node_that_gets_another_address_costs_no_more_descriptors_B68) {
  auto locks = make();
  const auto names = a_name_on_each();
  const auto held = locks.acquire("held", {.ttl = 6s});
  for (const auto& node : lab_.nodes()) {
    ASSERT_EQ(ask(node, {"CONFIG", "SET", "cluster-preferred-endpoint-type", "hostname"}), "OK");
    ask(node, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});  // Then diagnose() names it.
  }
  const auto is_named = [&](const std::string& address) {
    std::error_code ec;  // Its connections end when it moves.
    const auto found = locks.diagnose(ec);
    return found && std::any_of(found->findings.begin(), found->findings.end(),
                                [&](const finding& one) { return one.what.starts_with(address + ":"); });
  };
  std::vector<std::ptrdiff_t> in_use;
  for (const std::string host : {"127.1", "127.0.1", "0x7f.1", "127.0.0.01", "2130706433"}) {
    for (const auto& node : lab_.nodes()) ask(node, {"CONFIG", "SET", "cluster-announce-hostname", host.c_str()});
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto address = primaries()[i].address;
      EXPECT_TRUE(eventually([&] { return is_named(host + address.substr(address.find(':'))); }, long_enough)) << host;
      EXPECT_TRUE(eventually(
          [&] { return !error_of([&] { (void)locks.acquire(names[i], {.ttl = 1s, .wait = 0ms}); }); }, long_enough));
    }
    // All six at once is more than the lease is to live through five times in a row.
    EXPECT_TRUE(eventually([&] { return held.remaining() > 5s || !held.valid(); }, long_enough));
    in_use.push_back(
        std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{}));
  }
  EXPECT_LE(in_use.back(), in_use.front() + 6);
  EXPECT_TRUE(held.valid());
}

// Each primary that is heard of takes some descriptors, on a thread that nobody waits for.
TEST_F(on_a_cluster, who_has_too_few_descriptors_is_told_and_goes_on_when_there_are_more) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the sanitizer's run-time needs descriptors of its own to look at memory";
#endif
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto in_use = static_cast<rlim_t>(
      std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{}));
  int refusals = 0;
  for (rlim_t spare = 8; spare <= 40; spare += 4) {
    const rlimit few{in_use + spare, usual.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::optional<client> locks;
    bool is_refused = false;
    try {
      locks.emplace(lab_.uri(), options(1s));
      (void)locks->try_acquire("x", brief);
    } catch (const std::system_error&) {
      is_refused = true;
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
    refusals += is_refused ? 1 : 0;
    if (!locks) continue;
    EXPECT_TRUE(eventually([&] { return !error_of([&] { locks->acquire("x", brief).release(); }); }, long_enough))
        << spare;
  }
  EXPECT_GT(refusals, 1);
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

// One has restarted, as it seems, one was promoted, and one has forgotten nothing.
TEST_F(on_a_cluster, a_quarantine_is_that_of_the_node_of_the_name) {
  const auto names = a_name_on_each();
  const auto next = replica_of(primaries()[1]);
  ask(primaries()[0], {"FLUSHALL"});
  ASSERT_EQ(ask(next, {"CLUSTER", "FAILOVER"}), "OK");
  ASSERT_TRUE(eventually([&] { return is_primary(next); }, long_enough));
  auto how = options();
  how.max_ttl = long_enough;
  client locks{lab_.uri(), how};
  const auto why_not = [&](const std::string& name) {
    const auto e = error_of([&] { (void)locks.try_acquire(name, brief); });
    return e ? e->detail().why : "it is granted";
  };
  EXPECT_THAT(why_not(names[0]), HasSubstr("the server started"));
  EXPECT_THAT(why_not(names[1]), HasSubstr("the server restarted or was promoted"));
  EXPECT_GT(locks.inspect(names[0]).quarantine, 0ms);
  EXPECT_GT(locks.inspect(names[1]).quarantine, locks.inspect(names[0]).quarantine);
  EXPECT_EQ(locks.inspect(names[2]).quarantine, 0ms);
  EXPECT_TRUE(locks.try_acquire(names[2], brief));
}

// A slot with a smaller number comes to a node: who was there before and who comes later go by one key.
TEST_F(on_a_cluster, all_clients_know_a_node_s_epoch_by_one_number_P18) {
  const auto node = primaries()[0];
  const auto name = a_name_on_each()[0];
  auto before = make();
  (void)before.acquire(name, brief).release();
  ASSERT_EQ(move("2").address, node.address);
  ask(node, {"FLUSHALL"});
  make().declare_nothing_forgotten();
  EXPECT_TRUE(eventually([&] { return before.try_acquire(name, brief).has_value(); }));
}

// One that cannot be told must not keep those behind it in their quarantine.
TEST_F(on_a_cluster, each_primary_is_told_that_nothing_was_forgotten_whichever_cannot_be) {
  const auto names = a_name_on_each();
  const auto all = primaries();
  for (std::size_t deaf = 0; deaf < all.size(); ++deaf) {
    for (const auto& one : all) ask(one, {"FLUSHALL"});
    ask(all[deaf], {"ACL", "SETUSER", "default", "-eval", "-evalsha"});
    EXPECT_EQ(code_of([&] { make(2s).declare_nothing_forgotten(); }), errc::no_permission);
    ask(all[deaf], {"ACL", "SETUSER", "default", "+@all"});
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == deaf) continue;
      EXPECT_TRUE(make().try_acquire(names[i], brief)) << i << " behind " << deaf;
    }
  }
}

}  // namespace
}  // namespace holdfast::test
