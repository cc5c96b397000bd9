// SPDX-License-Identifier: Apache-2.0
// Several ask for a free lock of a quorum at the same time, each near to another server: the votes are shared between
// them, and nobody has it.
#include "integration/quorum_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <optional>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class each_near_another_server : public with_quorum {
protected:
  static constexpr std::size_t count = 3;
  static constexpr auto one_way = 20ms;

  each_near_another_server() {
    for (std::size_t near = 0; near < count; ++near) {
      for (std::size_t i = 0; i < count; ++i) {
        for (const auto which : {direction::to_server, direction::to_client})
          proxies_[i].set_coming(which, {.delay = i == near ? 0ms : one_way});
      }
      clients_.emplace_back(uri(), options(10s));
      EXPECT_TRUE(eventually([&] { return is_connected_to_all(clients_.back()); }, long_enough));
    }
  }

  // All of them at once, whatever becomes of it.
  template <class Ask>
  std::vector<std::optional<lease>> all_ask(const Ask& ask) {
    std::vector<std::optional<lease>> got(count);
    std::barrier start{static_cast<std::ptrdiff_t>(count)};
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        got[i] = ask(clients_[i]);
      });
    }
    threads.clear();
    return got;
  }

private:
  // The record of a list is its addresses, so all have to have the same ones.
  std::string uri() const {
    std::string all;
    for (const auto& one : proxies_)
      all += (all.empty() ? "redis+quorum://127.0.0.1:" : ",127.0.0.1:") + std::to_string(one.port());
    return all;
  }
  static bool is_connected_to_all(client& which) {
    const auto nodes = which.inspect("x").nodes;
    return std::all_of(nodes.begin(), nodes.end(), [](const auto& one) { return one.trouble.empty(); });
  }

  std::array<fault_proxy, count> proxies_{fault_proxy{port_of(node(0))}, fault_proxy{port_of(node(1))},
                                          fault_proxy{port_of(node(2))}};
  std::vector<client> clients_{};
};

int holders_of(const std::vector<std::optional<lease>>& all) {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const auto& one) { return one && one->valid(); }));
}

// As cron does it: "busy" to all of them, and the job runs nowhere.
TEST_F(each_near_another_server, of_those_who_try_at_once_one_has_it_R12_C5) {
  for (int round = 0; round < 5; ++round) {
    const auto name = "job " + std::to_string(round);
    EXPECT_EQ(holders_of(all_ask([&](client& by) { return by.try_acquire(name, {.ttl = max_ttl}); })), 1) << name;
  }
}

// The same, as `-l 1` and `-x` ask.
TEST_F(each_near_another_server, of_those_who_try_at_once_for_one_place_or_to_write_one_has_it_R12_C5) {
  for (int round = 0; round < 5; ++round) {
    const auto name = std::to_string(round);
    const auto place = [&](client& by) { return semaphore{by, "place " + name, 1}.try_acquire({.ttl = max_ttl}); };
    const auto paper = [&](client& by) { return shared_mutex{by, "paper " + name}.try_acquire({.ttl = max_ttl}); };
    EXPECT_EQ(holders_of(all_ask(place)), 1) << name;
    EXPECT_EQ(holders_of(all_ask(paper)), 1) << name;
  }
}

TEST_F(each_near_another_server, of_those_who_wait_each_has_it_in_its_turn_R12_P25) {
  const auto work = [](client& by) -> std::optional<lease> {
    auto held = by.acquire("x", {.ttl = max_ttl, .wait = long_enough});
    EXPECT_TRUE(held.valid());
    held.release();
    return held;
  };
  EXPECT_EQ(holders_of(all_ask(work)), 0);
}

}  // namespace
}  // namespace holdfast::test
