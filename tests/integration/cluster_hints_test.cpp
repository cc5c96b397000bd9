// SPDX-License-Identifier: Apache-2.0
// How the waiters of a cluster are told: in a slot of the node, so that the other nodes have nothing of it.
#include "integration/cluster_fixture.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class a_waiter_on_a_cluster : public on_a_cluster {
protected:
  std::vector<std::string> sharded(const lab_node& at) {
    return ask_list(at, {"PUBSUB", "SHARDCHANNELS", "hf:wake:*"});
  }
  std::vector<std::string> common(const lab_node& at) { return ask_list(at, {"PUBSUB", "CHANNELS", "hf:wake:*"}); }
  // Somebody stands in the line of `name`, and it says there that this is where it hears.
  bool says_that_it_hears(const std::string& name, const std::string& channel) {
    for (const auto& entry : ask_list(home_of(name), {"HVALS", ("hf:{" + name + "}:waiters").c_str()})) {
      if (entry.starts_with("v1|" + channel + "|s|")) return true;
    }
    return false;
  }
  std::future<release_outcome> wait_for(const std::string& name) {
    return std::async(std::launch::async, [this, name] {
      auto others = make();
      return others.acquire(name, {.ttl = 3s, .wait = long_enough}).release();
    });
  }
  static std::string calls_of(const lab_node& at, const std::string& command) {
    const auto all = ask(at, {"INFO", "commandstats"});
    const auto from = all.find("cmdstat_" + command + ":calls=");
    if (from == std::string::npos) return "0";
    const auto begin = all.find('=', from) + 1;
    return all.substr(begin, all.find(',', begin) - begin);
  }
};

TEST_F(a_waiter_on_a_cluster, is_told_by_its_node_alone) {
  auto locks = make();
  const auto name = a_name_on_each().front();
  const auto home = home_of(name);
  for (int i = 0; i < 3; ++i) {
    auto held = locks.acquire(name, {.ttl = 3s, .wait = long_enough});
    auto waiting = wait_for(name);
    ASSERT_TRUE(eventually(
        [&] {
          const auto channels = sharded(home);
          return channels.size() == 1 && says_that_it_hears(name, channels.front());
        },
        long_enough));
    EXPECT_TRUE(common(home).empty());
    held.release();
    EXPECT_EQ(waiting.get(), release_outcome::released);
  }
  EXPECT_NE(calls_of(home, "spublish"), "0");
  EXPECT_EQ(calls_of(home, "publish"), "0");
  for (const auto& node : lab_.nodes()) {
    EXPECT_THAT(ask(node, {"CLUSTER", "INFO"}), Not(HasSubstr("messages_publish_sent"))) << node.address;
  }
}

TEST_F(a_waiter_on_a_cluster, hears_again_when_the_slot_of_its_channel_has_moved) {
  auto locks = make();
  const auto name = a_name_on_each().front();
  const auto home = home_of(name);
  auto held = locks.acquire(name, brief);
  auto waiting = wait_for(name);
  ASSERT_TRUE(eventually([&] { return sharded(home).size() == 1; }, long_enough));
  const auto before = sharded(home).front();
  const auto number = before.substr(before.find('{') + 1, before.size() - before.find('{') - 2);
  ASSERT_NE(slot_of(home, number), slot_of(home, name)) << "or the lock goes along";
  move(number);
  EXPECT_TRUE(eventually(
      [&] {
        for (const auto& channels : {sharded(home), common(home)}) {
          if (channels.size() == 1 && channels.front() != before) return says_that_it_hears(name, channels.front());
        }
        return false;
      },
      long_enough));
  held.release();
  EXPECT_EQ(waiting.get(), release_outcome::released);
}

TEST_F(a_waiter_on_a_cluster, hears_on_the_common_channel_without_the_right_to_a_sharded_one) {
  for (const auto& node : lab_.nodes()) ask(node, {"ACL", "SETUSER", "default", "-ssubscribe", "-spublish"});
  auto locks = make();
  const auto name = a_name_on_each().front();
  const auto home = home_of(name);
  auto held = locks.acquire(name, brief);
  auto waiting = wait_for(name);
  EXPECT_TRUE(eventually(
      [&] {
        const auto channels = common(home);
        return channels.size() == 1 && says_that_it_hears(name, channels.front());
      },
      long_enough));
  held.release();
  EXPECT_EQ(waiting.get(), release_outcome::released);
  EXPECT_NE(calls_of(home, "publish"), "0");
}

}  // namespace
}  // namespace holdfast::test
