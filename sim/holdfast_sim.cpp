// SPDX-License-Identifier: Apache-2.0
// holdfast-sim: plays schedules and says what it found. docs/simulation.md
#include "holdfast_commit.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace holdfast::sim {

namespace {

constexpr const char* usage =
    "usage: holdfast-sim [--schedules N] [--seed S] [--jobs J] [--faults KIND,...|none] [--canary NAME]\n"
    "                    [--processes N] [--workers N] [--horizon NANOSECONDS] [--trace]\n"
    "                    [--quorum 1|3|5|7|9|any | --replicas 1|2|any | --cluster]\n"
    "       holdfast-sim --canaries [--seed S] [--jobs J]\n";

struct options {
  range seeds{1, 1000};
  int jobs = 1;
  limits within{};
  const canary* planted = nullptr;
  bool shows_trace = false;
  bool tries_canaries = false;
};

[[noreturn]] void refuse(const std::string& why) {
  fmt::print(stderr, "holdfast-sim: {}\n{}", why, usage);
  std::exit(2);
}

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const auto value = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0') refuse(fmt::format("'{}' is not a number", text));
  return value;
}

void choose_faults(limits& within, std::string_view names) {
  within.faults.fill(false);
  while (!names.empty() && names != "none") {
    const auto name = names.substr(0, names.find(','));
    const auto kind = fault_of(name);
    if (!kind) {
      std::string all;
      for (std::size_t i = 0; i < fault_count; ++i) all += fmt::format(" {}", to_string(static_cast<fault>(i)));
      refuse(fmt::format("no fault is called '{}'; there are{}", name, all));
    }
    within.faults[static_cast<std::size_t>(*kind)] = true;
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
}

int nodes(std::string_view text) {
  if (text == "any") return limits::any_nodes;
  const auto count = number(std::string{text}.c_str());
  if (count % 2 == 0 || count > 9) refuse(fmt::format("a quorum has 1, 3, 5, 7 or 9 servers, not {}", text));
  return static_cast<int>(count);
}

int replicas(std::string_view text) {
  if (text == "any") return limits::any_replicas;
  const auto count = number(std::string{text}.c_str());
  if (count < 1 || count > 2) refuse(fmt::format("the server has 1 or 2 replicas, not {}", text));
  return static_cast<int>(count);
}

options read(int count, char** words) {
  const ::option known[] = {
      {"schedules", 1, nullptr, 'n'}, {"seed", 1, nullptr, 's'},    {"jobs", 1, nullptr, 'j'},
      {"faults", 1, nullptr, 'f'},    {"canary", 1, nullptr, 'c'},  {"processes", 1, nullptr, 'p'},
      {"workers", 1, nullptr, 'w'},   {"horizon", 1, nullptr, 'h'}, {"trace", 0, nullptr, 't'},
      {"canaries", 0, nullptr, 'C'},  {"quorum", 1, nullptr, 'q'},  {"replicas", 1, nullptr, 'r'},
      {"cluster", 0, nullptr, 'k'},   {nullptr, 0, nullptr, 0}};
  options what;
  for (int c; (c = getopt_long(count, words, "", known, nullptr)) != -1;) {
    switch (c) {
      case 'n': what.seeds.count = number(optarg); break;
      case 's': what.seeds.first = number(optarg); break;
      case 'j': what.jobs = static_cast<int>(number(optarg)); break;
      case 'f': choose_faults(what.within, optarg); break;
      case 'p': what.within.processes = static_cast<int>(number(optarg)); break;
      case 'w': what.within.workers = static_cast<int>(number(optarg)); break;
      case 'h': what.within.horizon = duration{static_cast<std::int64_t>(number(optarg))}; break;
      case 'q': what.within.nodes = nodes(optarg); break;
      case 'r': what.within.replicas = replicas(optarg); break;
      case 'k': what.within.is_cluster = true; break;
      case 't': what.shows_trace = true; break;
      case 'C': what.tries_canaries = true; break;
      case 'c':
        what.planted = find_canary(optarg);
        if (!what.planted) refuse(fmt::format("no canary is called '{}'", optarg));
        break;
      default: refuse("see above");
    }
  }
  if (optind < count) refuse(fmt::format("'{}' is no option", words[optind]));
  const auto& in = what.within;
  if ((in.nodes != 0) + (in.replicas != 0) + in.is_cluster > 1) {
    refuse("--quorum, --replicas and --cluster are worlds of their own");
  }
  if (what.jobs < 1 || what.jobs > 256) refuse("--jobs is 1 to 256");
  return what;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Every planted bug must be found, by the invariant that it breaks.
int try_canaries(const options& what) {
  bool all_caught = true;
  for (const auto& c : all_canaries()) {
    const range seeds{what.seeds.first, static_cast<std::uint64_t>(c.schedules)};
    auto within = what.within;
    within.nodes = c.nodes;
    within.replicas = c.replicas;
    within.is_cluster = c.is_cluster;
    if (!c.faults.empty()) {
      choose_faults(within, c.faults);
      within.all_of_them = true;
    }
    const auto result = play_all(seeds, what.jobs, within, &c, [](const statistics&) {});
    bool is_caught = false;
    std::string by;
    if (result.failed && !result.has_crashed) {
      statistics ignored;
      for (const auto& v : stage{&c}.play(*result.failed, within, ignored).violations) {
        is_caught = is_caught || c.caught_by.find(v.invariant) != c.caught_by.npos;
        by += (by.empty() ? "" : " and ") + v.invariant;
      }
    }
    all_caught = all_caught && is_caught;
    fmt::print("canary     {:<24} {:<10} {}\n", c.name, is_caught ? "caught" : "NOT CAUGHT",
               result.failed ? fmt::format("by {} in schedule {} of {}", result.has_crashed ? "a crash" : by,
                                           result.tried, c.schedules)
                             : fmt::format("in {} schedules", c.schedules));
    std::fflush(stdout);
  }
  return all_caught ? 0 : 1;
}

int play(const options& what) {
  const double began = seconds_now();
  double next_word = began + 10;
  const auto result = play_all(what.seeds, what.jobs, what.within, what.planted, [&](const statistics& total) {
    if (seconds_now() < next_word) return;
    next_word += 10;
    fmt::print("progress   {} schedules, {:.0f} a second\n", total.schedules,
               static_cast<double>(total.schedules) / (seconds_now() - began));
    std::fflush(stdout);
  });
  print_statistics(result.total, seconds_now() - began);
  fmt::print("print      {:016x}\n", result.total.fingerprint);
  if (!result.failed) return 0;
  if (result.has_crashed) {
    fmt::print("violation  a job ended by itself; it had begun with seed {}\n", *result.failed);
    return 1;
  }
  fmt::print("violation  in seed {}, as small as it gets:\n", *result.failed);
  print_failure(*result.failed, what.within, what.planted);
  return 1;
}

int show(const options& what) {
  statistics total;
  const auto shown = stage{what.planted}.play(what.seeds.first, what.within, total, stage::trace::yes);
  for (const auto& line : shown.trace) fmt::print("{}\n", line);
  fmt::print("print      {:016x}\n", shown.fingerprint);
  return shown.violations.empty() ? 0 : 1;
}

}  // namespace

}  // namespace holdfast::sim

int main(int count, char** words) {
  using namespace holdfast::sim;
  const auto what = read(count, words);
  const auto head = fmt::format("seed {} to {}, commit {}", what.seeds.first, what.seeds.first + what.seeds.count - 1,
                                holdfast_commit);
  fmt::print("{}\n", head);
  const int result = what.tries_canaries ? try_canaries(what) : what.shows_trace ? show(what) : play(what);
  fmt::print("{}: {}\n", head, result == 0 ? "good" : "FAILED");
  return result;
}
