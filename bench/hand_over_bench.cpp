// SPDX-License-Identifier: Apache-2.0
// Many threads of one process on one lock: hand-overs a second inside the process, beside the same with each through
// Redis (client_options::hand_overs = 0), in one run, in turns. And a second process on the same lock: how long it
// waits for its turn meanwhile.
//
//   hand_over_bench SOCKET|PORT [THREADS [ROUNDS [SECONDS_A_ROUND]]]
#include <holdfast/holdfast.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using seconds = std::chrono::duration<double>;
using milliseconds = std::chrono::duration<double, std::milli>;
using clock = std::chrono::steady_clock;

holdfast::client connect(const std::string& where, int hand_overs) {
  holdfast::client_options how;
  how.hand_overs = hand_overs;
  const std::string uri = where.front() == '/' ? "redis+unix://" + where : "redis://127.0.0.1:" + where;
  return holdfast::client{uri, how};
}

struct result {
  double rate = 0;
  std::vector<double> other_waits_ms{};
};

// `with_other`: another client, which is another process to the server, wants the lock too.
result run(const std::string& where, int threads, int hand_overs, seconds how_long, bool with_other) {
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
      found.other_waits_ms.push_back(milliseconds{clock::now() - before}.count());
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

std::string spread(std::vector<double> values, const char* format) {
  std::sort(values.begin(), values.end());
  return fmt::format(fmt::runtime(format), values[values.size() / 2], values.front(), values.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: hand_over_bench SOCKET|PORT [THREADS [ROUNDS [SECONDS]]]\n"), 64;
  const std::string where = argv[1];
  const int threads = argc > 2 ? std::atoi(argv[2]) : 32;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const seconds how_long{argc > 4 ? std::atof(argv[4]) : 1.0};
  constexpr int usual = 16;

  std::vector<double> through_redis;
  std::vector<double> inside;
  std::vector<double> ratios;
  std::vector<double> waits;
  for (int i = 0; i < rounds; ++i) {
    through_redis.push_back(run(where, threads, 0, how_long, false).rate);
    inside.push_back(run(where, threads, usual, how_long, false).rate);
    ratios.push_back(inside.back() / through_redis.back());
    const auto shared = run(where, threads, usual, how_long, true).other_waits_ms;
    waits.insert(waits.end(), shared.begin(), shared.end());
  }
  fmt::print(
      "hand-over inside a process, {} threads on one lock, {}, {} rounds of {:.1f} s each; median (min to max)\n",
      threads, where.front() == '/' ? "Unix socket" : "TCP loopback", rounds, how_long.count());
  fmt::print("  through Redis     {} holds/s\n", spread(through_redis, "{:.0f} ({:.0f} to {:.0f})"));
  fmt::print("  inside            {} holds/s\n", spread(inside, "{:.0f} ({:.0f} to {:.0f})"));
  fmt::print("  ratio             {}\n", spread(ratios, "{:.1f} ({:.1f} to {:.1f})"));
  fmt::print("  a second process waits for its turn {} ms, {} turns\n", spread(waits, "{:.2f} ({:.2f} to {:.2f})"),
             waits.size());
}
