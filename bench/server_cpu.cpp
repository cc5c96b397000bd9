// SPDX-License-Identifier: Apache-2.0
// What a pair of acquire and release costs the server that is busy: a thousand requests to a write, against the least
// that a lock can be, `SET key value NX PX` and compare-and-delete. One call at a time would count mostly how a server
// falls asleep and wakes.
#include "bench/figure.hpp"
#include "bench/overheard.hpp"
#include "bench/server.hpp"

#include <functional>
#include <string>

namespace bench {

namespace {

void least(const hiredis& server, const std::string& digest) {
  const std::string value = "0123456789abcdef0123456789abcdef";
  const auto key = [](int i) { return "bench:hiredis:" + std::to_string(i); };
  for (int i = 0; i < at_once; ++i) server.send({"SET", key(i), value, "NX", "PX", "10000"});
  for (int i = 0; i < at_once; ++i) must(server.receive() == "OK", "SET NX was refused");
  for (int i = 0; i < at_once; ++i) server.send({"EVALSHA", digest, "1", key(i), value});
  for (int i = 0; i < at_once; ++i) must(server.receive() == "1", "release was refused");
}

}  // namespace

void server_cpu(const course& how) {
  const hiredis server{how.where};
  const overheard heard{how.where};
  const std::string digest = server.ask({"SCRIPT", "LOAD", compare_and_delete});
  const int times = static_cast<int>(20 * how.seconds) + 1;
  figure all;
  figure commands;
  const auto note = [&](const std::function<void()>& thousand, std::vector<double> figure::*side) {
    thousand();
    const double cpu = server.cpu_seconds();
    const double took = server.commands_took();
    for (int i = 0; i < times; ++i) thousand();
    (commands.*side).push_back((server.commands_took() - took) / (times * at_once));
    (all.*side).push_back((server.cpu_seconds() - cpu) * 1e6 / (times * at_once));
  };
  for (int i = 0; i < how.rounds; ++i) {
    note([&] { least(server, digest); }, &figure::theirs);
    note([&] { heard.replay(server); }, &figure::ours);
  }
  const auto tell_as = [](figure& found, const std::string& id, const std::string& what) {
    found.id = id;
    found.what = what;
    found.unit = "us";
    found.yardstick = "SET NX PX and compare-and-delete";
    found.goal_is = bound::at_most;
    found.goal = 3.3;
    tell(found);
  };
  tell_as(all, "server_cpu", "server CPU, acquire + release, pipelined");
  tell_as(commands, "server_cpu/commands", "the commands alone, by `INFO commandstats`");
}

}  // namespace bench
