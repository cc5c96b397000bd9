// SPDX-License-Identifier: Apache-2.0
// `script/campaign cluster`: slots move all the time under threads that contend. No test of ctest, because on a
// machine that is busy enough the nodes came out of it with a slot that none of them served (docs/campaigns.md).
#include "integration/cluster_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

struct contended {
  std::atomic<int> inside{0};
  std::atomic<int> holds{0};
};

// No two hold one lock, nobody sees an error, and nobody waits past his time (B67, B68).
TEST_F(on_a_cluster, moves_slots_under_load_and_nobody_notices_B67_B68) {
  const char* asked = std::getenv("HOLDFAST_SECONDS");
  const std::chrono::seconds lasts{asked ? std::atoi(asked) : 12};
  const auto names = a_name_on_each();
  std::vector<contended> locks_seen(names.size());
  std::atomic<int> overlaps{0};
  std::atomic<std::int64_t> longest_us{0};
  std::mutex mutex;
  std::vector<std::string> errors;
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 6; ++i) {
    crowd.emplace_back([&, i](const std::stop_token& stop) {
      auto locks = make();
      for (auto turn = static_cast<std::size_t>(i); !stop.stop_requested(); ++turn) {
        auto& seen = locks_seen[turn % names.size()];
        const auto began = boottime();
        try {
          auto mine = locks.acquire(names[turn % names.size()], {.ttl = 5s, .wait = long_enough});
          if (++seen.inside != 1 && mine.valid()) ++overlaps;
          ++seen.holds;
          --seen.inside;
          mine.release();
        } catch (const error& e) {
          const std::lock_guard guard{mutex};
          errors.emplace_back(e.what());
        }
        const auto took = std::chrono::duration_cast<std::chrono::microseconds>(boottime() - began).count();
        auto longest = longest_us.load();
        while (took > longest && !longest_us.compare_exchange_weak(longest, took)) {
        }
      }
    });
  }
  const auto until = boottime() + lasts;
  int moves = 0;
  while (boottime() < until) {
    const auto& name = names[static_cast<std::size_t>(moves++) % names.size()];
    const auto to = move(name);
    ASSERT_TRUE(eventually([&] { return all_say_that_it_is_at(to, name); }, long_enough)) << name;
    let_pass(300ms);
  }
  crowd.clear();
  int holds = 0;
  for (const auto& one : locks_seen) {
    EXPECT_GT(one.holds, 10);
    holds += one.holds;
  }
  std::printf("cluster: %d moves in %d s, %d holds, %d overlaps, %zu errors, longest acquire and release %.2f s\n",
              moves, static_cast<int>(lasts.count()), holds, overlaps.load(), errors.size(),
              static_cast<double>(longest_us.load()) / 1e6);
  EXPECT_EQ(overlaps, 0);
  EXPECT_THAT(errors, testing::IsEmpty());
}

}  // namespace
}  // namespace holdfast::test
