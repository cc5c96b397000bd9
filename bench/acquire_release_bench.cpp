// SPDX-License-Identifier: Apache-2.0
// Acquire and release of free locks, against the least work that any lock on Redis can do: blocking hiredis with
// `SET key value NX PX` and the compare-and-delete script. Both sides in one run, round about, so that a machine whose
// speed drifts drifts for both; the figure to quote is the ratio's median.
//
//   acquire_release_bench SOCKET|PORT [THREADS [ROUNDS [SECONDS_A_ROUND]]]
//
// PORT is on 127.0.0.1: how most people reach Redis, through TCP. Over a socket the way is shorter, so the server's own
// work for a fenced lock weighs more.
#include <holdfast/holdfast.hpp>

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using seconds = std::chrono::duration<double>;

constexpr const char* compare_and_delete =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

struct close_context {
  void operator()(redisContext* c) const { redisFree(c); }
};
using context = std::unique_ptr<redisContext, close_context>;

void must(bool fact, const char* what) {
  if (fact) return;
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(1);
}

std::string command(redisContext* c, std::vector<const char*> words) {
  auto* reply = static_cast<redisReply*>(redisCommandArgv(c, static_cast<int>(words.size()), words.data(), nullptr));
  must(reply && reply->type != REDIS_REPLY_ERROR, reply ? reply->str : "hiredis: no reply");
  std::string text =
      reply->type == REDIS_REPLY_INTEGER ? std::to_string(reply->integer) : std::string{reply->str ? reply->str : ""};
  freeReplyObject(reply);
  return text;
}

// Pairs a second of `threads` threads, each running `pair(thread)` until the time is up.
double rate(int threads, seconds how_long, const std::function<std::function<void()>(int)>& make_pair) {
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<long> pairs{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const auto pair = make_pair(t);
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

bool is_port(const std::string& where) { return where.front() != '/'; }

double hiredis_rate(const std::string& where, int threads, seconds how_long) {
  return rate(threads, how_long, [&](int t) {
    auto c = std::make_shared<context>(is_port(where) ? redisConnect("127.0.0.1", std::atoi(where.c_str()))
                                                      : redisConnectUnix(where.c_str()));
    must(*c && (*c)->err == 0, "hiredis cannot connect");
    const auto digest = std::make_shared<std::string>(command(c->get(), {"SCRIPT", "LOAD", compare_and_delete}));
    const auto key = std::make_shared<std::string>("bench:hiredis:" + std::to_string(t));
    return std::function<void()>{[=] {
      const char* value = "0123456789abcdef0123456789abcdef";
      must(command(c->get(), {"SET", key->c_str(), value, "NX", "PX", "10000"}) == "OK", "SET NX was refused");
      must(command(c->get(), {"EVALSHA", digest->c_str(), "1", key->c_str(), value}) == "1", "release was refused");
    }};
  });
}

double holdfast_rate(const std::string& where, int threads, seconds how_long) {
  holdfast::client locks{is_port(where) ? "redis://127.0.0.1:" + where : "redis+unix://" + where};
  return rate(threads, how_long, [&](int t) {
    const auto name = std::make_shared<std::string>("bench:" + std::to_string(t));
    return std::function<void()>{[&locks, name] {
      auto lease = locks.try_acquire(*name);
      must(lease.has_value(), "holdfast: busy");
      must(lease->release() == holdfast::release_outcome::released, "holdfast: release failed");
    }};
  });
}

std::string spread(std::vector<double> values, const char* format) {
  std::sort(values.begin(), values.end());
  return fmt::format(fmt::runtime(format), values[values.size() / 2], values.front(), values.back());
}

}  // namespace

int main(int argc, char** argv) {
  must(argc >= 2, "usage: acquire_release_bench SOCKET|PORT [THREADS [ROUNDS [SECONDS_A_ROUND]]]");
  const std::string where = argv[1];
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  const seconds how_long{argc > 4 ? std::atof(argv[4]) : 1.0};

  std::vector<double> theirs;
  std::vector<double> ours;
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    theirs.push_back(hiredis_rate(where, threads, how_long));
    ours.push_back(holdfast_rate(where, threads, how_long));
    ratios.push_back(ours.back() / theirs.back());
  }
  fmt::print("acquire + release, {} thread(s), {}, {} rounds of {:.1f} s each, round about; median (min to max)\n",
             threads, is_port(where) ? "TCP loopback" : "Unix socket", rounds, how_long.count());
  fmt::print("  hiredis loop  {} pairs/s\n", spread(theirs, "{:.0f} ({:.0f} to {:.0f})"));
  fmt::print("  holdfast      {} pairs/s\n", spread(ours, "{:.0f} ({:.0f} to {:.0f})"));
  fmt::print("  ratio         {}\n", spread(ratios, "{:.3f} ({:.3f} to {:.3f})"));
}
