// SPDX-License-Identifier: Apache-2.0
// Many threads of one process on one lock: hand-overs a second inside the process, beside the same with each through
// Redis (client_options::hand_overs = 0). And a second process on the same lock: how long it waits for its turn
// meanwhile. Once with the bounds as they are by default, where the number of hand-overs is the one that counts, and
// once where only the 20 ms count.
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
constexpr int most = 1000;

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
  const auto from = clock::now();
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
  // Each thread has one hold more behind the end, and through Redis these take their time.
  found.rate = static_cast<double>(holds) / seconds{clock::now() - from}.count();
  return found;
}

struct measured {
  int hand_overs;
  figure rates{};
  figure turns{};
};

void tell(measured& what, const std::vector<double>& through_redis) {
  const std::string option =
      what.hand_overs == usual ? "" : "; hand_overs = " + std::to_string(what.hand_overs) + ", 20 ms";
  const std::string suffix = what.hand_overs == usual ? "" : "/" + std::to_string(what.hand_overs);
  auto& rates = what.rates;
  rates.theirs = through_redis;
  rates.id = "handover_threads" + suffix;
  rates.what = "32 threads of one process on one lock" + option;
  rates.unit = "holds/s";
  rates.yardstick = "each hold through Redis";
  rates.goal_is = bound::at_least;
  rates.goal = 20;
  bench::tell(rates);
  auto& turns = what.turns;
  turns.id = "handover_turn" + suffix;
  turns.what = "a second process meanwhile: longest wait for its turn in a round" + option;
  turns.unit = "ms";
  turns.goal_is = bound::at_most;
  turns.goal = 25;
  bench::tell(turns);
}

}  // namespace

void hand_over(const course& how) {
  const seconds how_long{how.seconds};
  std::vector<double> through_redis;
  std::vector<measured> all{{usual}, {most}};
  for (int i = 0; i < how.rounds; ++i) {
    through_redis.push_back(run(how.where, 0, how_long, false).rate);
    for (auto& one : all) {
      one.rates.ours.push_back(run(how.where, one.hand_overs, how_long, false).rate);
      one.turns.ours.push_back(run(how.where, one.hand_overs, how_long, true).longest_wait_ms);
    }
  }
  for (auto& one : all) tell(one, through_redis);
}

}  // namespace bench
