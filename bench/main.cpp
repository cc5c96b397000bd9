// SPDX-License-Identifier: Apache-2.0
// holdfast_bench [--rounds N] [--seconds S] PORT|SOCKET [SCENARIO...]: all of them if none is named. A line of JSON for
// each figure on stdout; script/bench makes the table. Both sides of a figure are measured in one run, in turns, so
// that a machine whose speed drifts drifts for both.
//
// PORT is on 127.0.0.1: how most people reach Redis, through TCP. Over a socket the way is shorter, so the server's own
// work weighs more. The server is taken for the bench's own: it is flushed.
#include "bench/figure.hpp"

#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr struct {
  const char* name;
  void (*run)(const bench::course&);
} scenarios[] = {
    {"free_pair", bench::free_pair},
    {"threads_64", bench::threads_64},
    {"in_flight", bench::in_flight},
    {"server_cpu", bench::server_cpu},
    {"wire_bytes", bench::wire_bytes},
    {"hand_off", bench::hand_off},
    {"hand_over", bench::hand_over},
    {"quorum_5", bench::quorum_5},
    {"waiting", bench::waiting},
    {"queue_growth", bench::queue_growth},
    {"names_growth", bench::names_growth},
    {"many_leases", bench::many_leases},
    {"idle_clients", bench::idle_clients},
    {"latency_curve", bench::latency_curve},
    {"threads_curve", bench::threads_curve},
    {"names_curve", bench::names_curve},
    {"queue_curve", bench::queue_curve},
};

int usage() {
  std::fputs("usage: holdfast_bench [--rounds N] [--seconds S] PORT|SOCKET [SCENARIO...]\nscenarios:", stderr);
  for (const auto& one : scenarios) std::fprintf(stderr, " %s", one.name);
  std::fputs("\n", stderr);
  return 64;
}

bool run(const char* name, const bench::course& how) {
  bool is_known = false;
  for (const auto& one : scenarios) {
    if (name && std::strcmp(name, one.name) != 0) continue;
    std::fprintf(stderr, "bench: %s\n", one.name);
    one.run(how);
    is_known = true;
  }
  return is_known;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr option options[] = {
      {"rounds", required_argument, nullptr, 'r'}, {"seconds", required_argument, nullptr, 's'}, {}};
  bench::course how;
  for (int what = 0; (what = getopt_long(argc, argv, "r:s:", options, nullptr)) != -1;) {
    if (what == 'r') how.rounds = std::atoi(optarg);
    if (what == 's') how.seconds = std::atof(optarg);
    if (what == '?') return usage();
  }
  if (optind == argc || how.rounds < 1 || how.seconds <= 0) return usage();
  how.where = argv[optind++];
  if (optind == argc) return run(nullptr, how) ? 0 : 64;
  for (; optind < argc; ++optind) {
    if (!run(argv[optind], how)) return usage();
  }
}
