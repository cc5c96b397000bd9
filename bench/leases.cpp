// SPDX-License-Identifier: Apache-2.0
// What holding costs: the CPU that 100,000 leases take to be renewed, and memory. And whether a lock costs more where
// there are many.
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/asio.hpp>
#include <holdfast/holdfast.hpp>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

double own_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return of(used.ru_utime) + of(used.ru_stime);
}

std::vector<holdfast::lease> hold(holdfast::client& locks, int count) {
  boost::asio::io_context context{1};
  std::vector<holdfast::lease> all;
  constexpr int at_once = 1000;
  int asked = 0;
  const std::function<void()> ask = [&] {
    holdfast::async_acquire(locks, "bench:held:" + std::to_string(asked++), {.ttl = 30s},
                            boost::asio::bind_executor(context, [&](std::error_code ec, holdfast::lease got) {
                              must(!ec, ec.message());
                              all.push_back(std::move(got));
                              if (asked < count) ask();
                            }));
  };
  for (int i = 0; i < std::min(count, at_once); ++i) ask();
  context.run();
  return all;
}

// Microseconds of one pair, the median of many.
double pair_us(holdfast::client& locks, int pairs) {
  std::vector<double> all;
  for (int i = 0; i < pairs; ++i) {
    const auto from = clock::now();
    auto lease = locks.acquire("bench:one");
    lease.release();
    all.push_back(seconds{clock::now() - from}.count() * 1e6);
  }
  return median(std::move(all));
}

void fill(const hiredis& server, int names) {
  constexpr int batch = 1000;
  for (int from = 0; from < names; from += batch) {
    for (int i = from; i < from + batch; ++i) {
      server.send({"SET", "hf:{bench:name:" + std::to_string(i) + "}:fence", "1795266441072993|x", "PX", "600000"});
    }
    for (int i = 0; i < batch; ++i) server.receive();
  }
}

}  // namespace

void many_leases(const course& how) {
  auto locks = make_client(how.where);
  const int count = 100'000;
  locks.acquire("bench:one").release();
  malloc_trim(0);
  const auto before_them = heap_bytes();
  auto all = hold(locks, count);
  figure each;
  each.ours.push_back((heap_bytes() - before_them) / count);
  each.id = "lease_bytes";
  each.what = "memory of each of them in its process";
  each.unit = "bytes";
  figure found;
  for (int i = 0; i < how.rounds; ++i) {
    const double before = own_cpu_seconds();
    const auto from = clock::now();
    std::this_thread::sleep_for(10s);  // As long as it takes until each has been renewed once.
    found.ours.push_back((own_cpu_seconds() - before) / seconds{clock::now() - from}.count() * 100);
  }
  // Meanwhile a whole round of renewals comes in, and each is looked at before it does.
  auto least_left = std::chrono::nanoseconds::max();
  for (const auto end = clock::now() + 12s; clock::now() < end; std::this_thread::sleep_for(200ms)) {
    for (const auto& one : all) least_left = std::min(least_left, std::chrono::nanoseconds{one.remaining()});
  }
  figure late;
  late.ours.push_back(seconds{20s - least_left}.count());
  late.id = "leases_100k/late";
  late.what = "behind a third of the ttl, the latest of those renewals";
  late.unit = "s";
  late.goal_is = bound::at_most;
  late.goal = 3;
  const auto lost = std::count_if(all.begin(), all.end(), [](const auto& one) { return !one.valid(); });
  must(lost == 0, std::to_string(lost) + " of " + std::to_string(count) + " leases were lost");
  found.id = "leases_100k";
  found.what = "100,000 leases of 30 s in one process, renewals";
  found.unit = "% of a core";
  found.goal_is = bound::at_most;
  found.goal = 5;
  tell(found);
  tell(late);
  tell(each);
}

void idle_clients(const course& how) {
  const auto connected = [&] {
    auto locks = make_client(how.where);
    locks.acquire("bench:one").release();
    return locks;
  };
  const auto first = connected();  // What the first one of a process needs besides itself.
  constexpr int count = 100;
  std::vector<holdfast::client> all;
  all.reserve(count);
  malloc_trim(0);
  const auto before = heap_bytes();
  for (int i = 0; i < count; ++i) all.push_back(connected());
  figure found;
  found.ours.push_back((heap_bytes() - before) / count);
  found.id = "client_bytes";
  found.what = "memory of an idle client, connected";
  found.unit = "bytes";
  tell(found);
}

void names_growth(const course& how) {
  const hiredis server{how.where};
  auto locks = make_client(how.where);
  const int pairs = static_cast<int>(3000 * how.seconds);
  pair_us(locks, 100);
  figure found;
  for (int i = 0; i < how.rounds; ++i) {
    server.ask({"FLUSHALL"});
    locks.declare_nothing_forgotten();
    found.theirs.push_back(pair_us(locks, pairs));
    fill(server, 1'000'000);
    found.ours.push_back(pair_us(locks, pairs));
  }
  server.ask({"FLUSHALL"});
  found.id = "names_growth";
  found.what = "acquire + release on a server that knows 1,000,000 names";
  found.unit = "us";
  found.yardstick = "one name";
  found.goal_is = bound::at_most;
  found.goal = 1.1;
  tell(found);
}

void names_curve(const course& how) {
  const hiredis server{how.where};
  auto locks = make_client(how.where);
  pair_us(locks, 100);
  server.ask({"FLUSHALL"});
  locks.declare_nothing_forgotten();
  for (const int names : {1, 1'000, 10'000, 100'000, 1'000'000}) {
    if (names > 1) fill(server, names);
    point found{"names", "acquire + release", static_cast<double>(names), {}};
    for (int i = 0; i < how.rounds; ++i) {
      found.rounds.push_back(pair_us(locks, static_cast<int>(2000 * how.seconds)));
    }
    tell(found);
  }
  server.ask({"FLUSHALL"});
}

}  // namespace bench
