// SPDX-License-Identifier: Apache-2.0
// Threads of one process hand a lock on, and somebody outside waits for it (P14). It is about milliseconds, so no other
// test runs beside.
#include "integration/hand_over_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

// The 9, second half: another process gets its turn, although 32 threads here would go on for ever.
TEST_F(hand_over, leaves_another_process_its_turn_P14_C7) {
  auto locks = make(16);
  std::atomic<bool> stop{false};
  std::atomic<int> holds{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 32; ++t) {
    all.emplace_back([&] {
      while (!stop) {
        auto held = locks.acquire("x");
        ++holds;
        held.release();
      }
    });
  }
  auto other = make_client();
  (void)other.try_acquire("y");
  std::vector<std::chrono::nanoseconds> waits;
  std::vector<int> went_before;
  for (int i = 0; i < 100; ++i) {
    const int holds_before = holds;
    const auto before = boottime();
    auto held = other.acquire("x");
    waits.push_back(boottime() - before);
    went_before.push_back(holds - holds_before);
    held.release();
  }
  EXPECT_TRUE(eventually([&] { return holds > 200; }, 30s)) << "nor are they kept out";
  stop = true;
  for (auto& t : all) t.join();
  std::sort(waits.begin(), waits.end());
  EXPECT_LT(waits[waits.size() / 2], 25ms + when_busy);
  EXPECT_LT(waits[waits.size() * 9 / 10], 100ms + when_busy);
  std::sort(went_before.begin(), went_before.end());
  EXPECT_LE(went_before[went_before.size() / 2], 2 * 17) << "a grant is held once and handed on 16 times";
  RecordProperty("median_us", static_cast<int>(waits[waits.size() / 2].count() / 1000));
  RecordProperty("longest_us", static_cast<int>(waits.back().count() / 1000));
}

}  // namespace
}  // namespace holdfast::test
