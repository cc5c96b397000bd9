// SPDX-License-Identifier: Apache-2.0
// Acquire and release of free locks, against the least work that any lock on Redis can do: blocking hiredis, a
// connection for each thread, with `SET key value NX PX` and the compare-and-delete script.
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bench {

namespace {

using seconds = std::chrono::duration<double>;
using pair_of_calls = std::function<void()>;

pair_of_calls hiredis_pair(const std::string& where, int thread) {
  auto server = std::make_shared<hiredis>(where);
  const std::string digest = server->ask({"SCRIPT", "LOAD", compare_and_delete});
  const std::string key = "bench:hiredis:" + std::to_string(thread);
  return [=] {
    const std::string value = "0123456789abcdef0123456789abcdef";
    must(server->ask({"SET", key, value, "NX", "PX", "10000"}) == "OK", "SET NX was refused");
    must(server->ask({"EVALSHA", digest, "1", key, value}) == "1", "release was refused");
  };
}

pair_of_calls holdfast_pair(holdfast::client& locks, int thread) {
  const std::string name = "bench:" + std::to_string(thread);
  return [&locks, name] {
    auto lease = locks.try_acquire(name);
    must(lease.has_value(), "holdfast: busy");
    must(lease->release() == holdfast::release_outcome::released, "holdfast: release failed");
  };
}

// Pairs a second of `threads` threads, each running what `make` gives it until the time is up.
double rate(int threads, seconds how_long, const std::function<pair_of_calls(int)>& make) {
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<long> pairs{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const auto pair = make(t);
      pair();  // Connections are made before the clock starts.
      while (!go) std::this_thread::yield();
      long mine = 0;
      while (!stop) {
        pair();
        ++mine;
      }
      pairs += mine;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  const auto from = std::chrono::steady_clock::now();
  go = true;
  std::this_thread::sleep_for(how_long);
  stop = true;
  for (auto& t : all) t.join();
  return static_cast<double>(pairs) / seconds{std::chrono::steady_clock::now() - from}.count();
}

figure pairs_of(const course& how, int threads) {
  figure found;
  for (int i = 0; i < how.rounds; ++i) {
    found.theirs.push_back(rate(threads, seconds{how.seconds}, [&](int t) { return hiredis_pair(how.where, t); }));
    auto locks = make_client(how.where);
    found.ours.push_back(rate(threads, seconds{how.seconds}, [&](int t) { return holdfast_pair(locks, t); }));
  }
  found.unit = "pairs/s";
  found.yardstick = "hiredis loop";
  found.goal_is = bound::at_least;
  return found;
}

double bytes_of(const hiredis& server, int pairs, const pair_of_calls& pair) {
  pair();
  const double bytes = server.wire_bytes();
  for (int i = 0; i < pairs; ++i) pair();
  return (server.wire_bytes() - bytes) / pairs;
}

}  // namespace

void free_pair(const course& how) {
  auto found = pairs_of(how, 1);
  found.id = "free_pair";
  found.what = "one thread, acquire + release, free lock";
  found.goal = 0.95;
  tell(found);
}

void threads_64(const course& how) {
  auto found = pairs_of(how, 64);
  found.id = "threads_64";
  found.what = "64 threads, 64 locks, on one connection";
  found.yardstick += ", a connection per thread";
  found.goal = 1.5;
  tell(found);
}

void wire_bytes(const course& how) {
  const hiredis server{how.where};
  auto locks = make_client(how.where);
  const auto bare = hiredis_pair(how.where, 0);
  const auto ours = holdfast_pair(locks, 0);
  figure found;
  const int pairs = static_cast<int>(1000 * how.seconds);
  for (int i = 0; i < how.rounds; ++i) {
    found.theirs.push_back(bytes_of(server, pairs, bare));
    found.ours.push_back(bytes_of(server, pairs, ours));
  }
  found.id = "wire_bytes";
  found.what = "bytes on the wire, both ways, acquire + release";
  found.unit = "bytes";
  found.yardstick = "SET NX PX and compare-and-delete";
  tell(found);
}

void latency_curve(const course& how) {
  auto locks = make_client(how.where);
  const std::pair<const char*, pair_of_calls> sides[] = {{"hiredis loop", hiredis_pair(how.where, 0)},
                                                         {"holdfast", holdfast_pair(locks, 0)}};
  std::vector<double> took[2];
  const int pairs = static_cast<int>(2000 * how.seconds);
  for (int i = 0; i < how.rounds; ++i) {
    for (int side = 0; side < 2; ++side) {
      for (int k = 0; k < pairs; ++k) {
        const auto from = std::chrono::steady_clock::now();
        sides[side].second();
        took[side].push_back(seconds{std::chrono::steady_clock::now() - from}.count() * 1e6);
      }
    }
  }
  for (int side = 0; side < 2; ++side) {
    for (const auto& [p, us] : percentiles(took[side])) tell(point{"latency", sides[side].first, p, {us}});
  }
}

void threads_curve(const course& how) {
  for (const int threads : {1, 2, 4, 8, 16, 32, 64}) {
    const auto found = pairs_of(how, threads);
    tell(point{"threads", "hiredis loop", static_cast<double>(threads), found.theirs});
    tell(point{"threads", "holdfast", static_cast<double>(threads), found.ours});
  }
}

}  // namespace bench
