// SPDX-License-Identifier: Apache-2.0
// holdfast itself, as one of the peers; README.md has the protocol. All defaults: a lease of 10 s that is renewed.
#include "bench/figure.hpp"

#include <holdfast/holdfast.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;
using milliseconds = std::chrono::duration<double, std::milli>;
using microseconds = std::chrono::duration<double, std::micro>;
using namespace std::chrono_literals;

void ready() {
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
}

std::vector<double> pairs(holdfast::client& locks, const std::string& name, seconds how_long) {
  std::vector<double> took;
  const auto end = clock::now() + how_long;
  for (auto from = clock::now(); from < end; from = clock::now()) {
    auto held = locks.acquire(name);
    held.release();
    took.push_back(microseconds{clock::now() - from}.count());
  }
  return took;
}

void tell_pairs(holdfast::client& locks, seconds how_long) {
  ready();
  const auto took = pairs(locks, "bench:free", how_long);
  std::string all;
  for (const auto& [p, us] : bench::percentiles(took))
    all += fmt::format(R"({}"{:g}": {:.1f})", all.empty() ? "" : ", ", p, us);
  fmt::print(R"({{"pairs": {}, "seconds": {}, "latency_us": {{{}}}}})", took.size(), how_long.count(), all);
}

void contend(holdfast::client& locks, seconds how_long, char worker, const char* witness) {
  const int file = open(witness, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file == -1) std::exit(1);
  ready();
  long holds = 0;
  milliseconds longest{0};
  for (const auto end = clock::now() + how_long;;) {
    const auto from = clock::now();
    auto held = locks.acquire("bench:contended");
    const auto now = clock::now();
    longest = std::max<milliseconds>(longest, now - from);
    if (now >= end) break;
    if (write(file, &worker, 1) != 1) std::exit(1);
    ++holds;
    held.release();
  }
  fmt::print(R"({{"holds": {}, "longest_wait_ms": {:.3f}}})", holds, longest.count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fputs("usage: holdfast_peer holdfast HOST:PORT SCENARIO SECONDS WORKER WITNESS\n", stderr);
    return 64;
  }
  holdfast::client locks{std::string{"redis://"} + argv[2]};
  const std::string scenario = argv[3];
  const seconds how_long{std::atof(argv[4])};
  pairs(locks, std::string{"bench:warm:"} + argv[5], 300ms);
  if (scenario == "pairs") {
    tell_pairs(locks, how_long);
  } else if (scenario == "contend") {
    contend(locks, how_long, *argv[5], argv[6]);
  } else if (scenario == "hold") {
    const auto held = locks.acquire("bench:held", {.ttl = 60s, .renew = holdfast::renewal::none});
    ready();
    fmt::print("{{}}");
  } else if (scenario == "wait") {
    ready();
    const auto held = locks.acquire("bench:held");
  }
  std::puts("");
}
