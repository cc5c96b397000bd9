// SPDX-License-Identifier: Apache-2.0
// Many threads of one process on one lock: hand-overs a second inside the process, beside the same with each through
// Redis (client_options::hand_overs = 0). And a second process on the same lock: how long it waits for its turn
// meanwhile.
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace bench {

namespace {

using seconds = std::chrono::duration<double>;
using milliseconds = std::chrono::duration<double, std::milli>;
using clock = std::chrono::steady_clock;

constexpr int threads = 32;
constexpr int usual = 16;

holdfast::client connect(const std::string& where, int hand_overs) {
  holdfast::client_options how;
  how.hand_overs = hand_overs;
  return make_client(where, how);
}

struct result {
  double rate = 0;
  double longest_wait_ms = 0;
};

// `with_other`: another client, which is another process to the server, wants the lock too.
result run(const std::string& where, int hand_overs, seconds how_long, bool with_other) {
  auto locks = connect(where, hand_overs);
  std::atomic<bool> stop{false};
  std::atomic<long> holds{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      while (!stop) {
        auto held = locks.acquire("bench");
        ++holds;
        held.release();
      }
    });
  }
  result found;
  if (with_other) {
    auto other = connect(where, hand_overs);
    for (const auto end = clock::now() + how_long; clock::now() < end;) {
      const auto before = clock::now();
      auto held = other.acquire("bench");
      found.longest_wait_ms = std::max(found.longest_wait_ms, milliseconds{clock::now() - before}.count());
      held.release();
    }
  } else {
    std::this_thread::sleep_for(how_long);
  }
  stop = true;
  for (auto& t : all) t.join();
  found.rate = static_cast<double>(holds) / how_long.count();
  return found;
}

}  // namespace

void hand_over(const course& how) {
  const seconds how_long{how.seconds};
  figure rates;
  figure turns;
  for (int i = 0; i < how.rounds; ++i) {
    rates.theirs.push_back(run(how.where, 0, how_long, false).rate);
    rates.ours.push_back(run(how.where, usual, how_long, false).rate);
    turns.ours.push_back(run(how.where, usual, how_long, true).longest_wait_ms);
  }
  rates.id = "handover_threads";
  rates.what = "32 threads of one process on one lock";
  rates.unit = "holds/s";
  rates.yardstick = "each hold through Redis";
  rates.goal_is = bound::at_least;
  rates.goal = 20;
  tell(rates);
  turns.id = "handover_turn";
  turns.what = "a second process meanwhile: longest wait for its turn in a round";
  turns.unit = "ms";
  turns.goal_is = bound::at_most;
  turns.goal = 25;
  tell(turns);
}

}  // namespace bench
