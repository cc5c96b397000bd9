// SPDX-License-Identifier: Apache-2.0
// What waiting costs: commands for the server, memory in the waiting process. And what the length of the line costs the
// server at each hand-off.
#include "bench/crowd.hpp"
#include "bench/figure.hpp"
#include "bench/server.hpp"

#include <holdfast/holdfast.hpp>

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace bench {

namespace {

using namespace std::chrono_literals;

constexpr int many = 10'000;
constexpr int processes = 20;
// Nothing of it may be renewed meanwhile, or the renewals would be counted, too.
const holdfast::acquire_options quiet_hold{.ttl = 60s, .renew = holdfast::renewal::none};
// Who waits looks every 5 s to 5.5 s (docs/protocol.md).
constexpr std::chrono::duration<double> between_looks{5.25};

// Each client is a process to the server. From the middle between two looks on, and for a whole number of them: from a
// look on, the one that falls just behind the end would be missing.
void commands_of_waiters(const course& how, const hiredis& server) {
  auto holder = make_client(how.where);
  const auto held = holder.acquire("bench:commands", quiet_hold);
  std::vector<std::unique_ptr<crowd>> all;
  for (int i = 0; i < processes; ++i) {
    all.push_back(std::make_unique<crowd>(how.where, "bench:commands", server));
    all.back()->line_up(i, 1);
  }
  figure found;
  const auto how_long = between_looks * std::max(2, static_cast<int>(3 * how.seconds));
  std::this_thread::sleep_for(between_looks / 2);
  const double before = server.scripts_run();
  std::this_thread::sleep_for(how_long);
  found.ours.push_back((server.scripts_run() - before) / (processes * how_long / 5s));
  for (auto& one : all) one->disperse();
  found.id = "waiting_commands";
  found.what = "commands for each process, lock and 5 s of waiting";
  found.unit = "commands";
  found.goal_is = bound::at_most;
  found.goal = 1;
  tell(found);
}

void bytes_of_waiters(const course& how, const hiredis& server) {
  auto holder = make_client(how.where);
  const auto held = holder.acquire("bench:bytes", quiet_hold);
  crowd waiters{how.where, "bench:bytes", server};
  waiters.line_up(0, 1);
  malloc_trim(0);
  const auto before = heap_bytes();
  waiters.line_up(1, many);
  std::this_thread::sleep_for(500ms);  // The last answers.
  figure found;
  found.ours.push_back((heap_bytes() - before) / many);
  waiters.disperse();
  found.id = "waiter_bytes";
  found.what = "memory of each of 10,000 waiters in one process";
  found.unit = "bytes";
  found.goal_is = bound::at_most;
  found.goal = 1024;
  tell(found);
}

// CPU of the server for each of so many hand-offs, in microseconds, with so many in line.
double server_us(const course& how, const hiredis& server, int in_line, int hand_offs) {
  auto holder = make_client(how.where);
  auto held = std::optional{holder.acquire("bench:line", quiet_hold)};
  crowd waiters{how.where, "bench:line", server};
  waiters.line_up(0, in_line);
  const double before = server.cpu_seconds();
  held.reset();
  waiters.serve(hand_offs);
  const double used = server.cpu_seconds() - before;
  waiters.disperse();
  while (waiters.waiting() != 0) std::this_thread::sleep_for(5ms);
  return used * 1e6 / hand_offs;
}

}  // namespace

void waiting(const course& how) {
  const hiredis server{how.where};
  commands_of_waiters(how, server);
  bytes_of_waiters(how, server);
}

void queue_growth(const course& how) {
  const hiredis server{how.where};
  figure found;
  for (int i = 0; i < how.rounds; ++i) {
    constexpr int times = 50;
    double few = 0;
    for (int k = 0; k < times; ++k) few += server_us(how, server, 10, 5) / times;
    found.theirs.push_back(few);
    found.ours.push_back(server_us(how, server, many, 250));
  }
  found.id = "queue_growth";
  found.what = "server CPU for a hand-off with 10,000 in line";
  found.unit = "us";
  found.yardstick = "with 10 in line";
  found.goal_is = bound::at_most;
  found.goal = 2;
  tell(found);
}

void queue_curve(const course& how) {
  const hiredis server{how.where};
  for (const int in_line : {10, 100, 1000, many}) {
    const int hand_offs = in_line / 2 < 250 ? in_line / 2 : 250;
    const int times = in_line < 1000 ? 10 : 1;
    const int rounds = in_line < many ? how.rounds : 1;  // To line up takes longer than everything else.
    point found{"queue", "server CPU of a hand-off", static_cast<double>(in_line), {}};
    for (int i = 0; i < rounds; ++i) {
      double sum = 0;
      for (int k = 0; k < times; ++k) sum += server_us(how, server, in_line, hand_offs);
      found.rounds.push_back(sum / times);
    }
    tell(found);
  }
}

}  // namespace bench
