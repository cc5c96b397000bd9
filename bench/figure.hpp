// SPDX-License-Identifier: Apache-2.0
// A figure of docs/benchmarks.md: what was measured, beside its yardstick in the same run, and the goal.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

enum class bound { at_least, at_most };

struct figure {
  std::string id;    // Stays as it is once published: scripts compare runs by it.
  std::string what;  // Ours, in words.
  std::string unit;
  std::vector<double> ours;    // One for each round.
  std::string yardstick = {};  // In words. Empty: the goal is for the value itself.
  std::vector<double> theirs = {};
  bound goal_is = bound::at_most;
  std::optional<double> goal;  // None: to be known, and nobody has said what is good.
};

// One line of JSON on stdout: medians, the ratio's median and spread over the rounds, and whether the goal holds.
void tell(const figure& what);

// A point of a curve that script/bench draws into docs/bench/ and nobody judges.
struct point {
  std::string curve;
  std::string series;
  double x;
  std::vector<double> rounds;  // What was measured there, one for each round.
};

// One line of JSON on stdout: the median of the rounds, the least and the largest.
void tell(const point&);

double median(std::vector<double> values);

// Of this process, in use; with the large blocks, which malloc maps one by one and counts apart.
double heap_bytes();

// The percentiles of these that the curves of latency have.
std::vector<std::pair<double, double>> percentiles(std::vector<double> values);

// Where the server is (a port on 127.0.0.1, or the path of a socket), and how long to measure.
struct course {
  std::string where;
  int rounds = 5;
  double seconds = 1;  // A round's, for each side.
};

// Each says what it needs itself, with its yardstick in turns, and tells its figures.
void free_pair(const course&);
void threads_64(const course&);
void in_flight(const course&);
void server_cpu(const course&);
void wire_bytes(const course&);
void hand_off(const course&);
void hand_over(const course&);
void quorum_5(const course&);
void waiting(const course&);
void many_leases(const course&);
void idle_clients(const course&);
void names_growth(const course&);
void queue_growth(const course&);

// Each tells the points of a curve.
void latency_curve(const course&);
void threads_curve(const course&);
void names_curve(const course&);
void queue_curve(const course&);

}  // namespace bench
