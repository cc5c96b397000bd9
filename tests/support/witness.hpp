// SPDX-License-Identifier: Apache-2.0
// A file that all workers of a test write their comings and goings to, and the judge that reads it: did two of them
// ever hold the lock at the same time? It shares no code and no server with the library that it judges.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

struct sighting {
  enum class kind : std::int32_t { enter = 1, exit = 2 };
  kind what = kind::enter;
  std::int32_t who = 0;          // Any number that is the worker's own.
  std::uint64_t token = 0;       // 0: a holder without tokens (redis-py).
  std::int64_t boottime_ns = 0;  // One clock for all processes of the machine.
};

class witness {
public:
  // Opens or makes the file. Every record is one O_APPEND write, so workers cannot tear each other's.
  explicit witness(const std::string& path);
  ~witness();
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;

  // `at`: an instant before now that is to be recorded. Then a judge must go by the instants, and not by the order.
  using instant = std::optional<std::chrono::nanoseconds>;
  void enter(int who, std::uint64_t token, instant at = {}) { write(sighting::kind::enter, who, token, at); }
  void exit(int who, std::uint64_t token, instant at = {}) { write(sighting::kind::exit, who, token, at); }

private:
  void write(sighting::kind what, int who, std::uint64_t token, instant at);

  int fd_;
};

std::vector<sighting> read_sightings(const std::string& path);

struct verdict {
  int holds = 0;
  int overlaps = 0;           // Somebody entered before the one before had left.
  int token_regressions = 0;  // A later hold with a token not above an earlier one's.
  std::string first_offence{};
};

// As a worker saw it: from an instant at which its lease was valid to the last such one.
struct sighted_hold {
  std::int32_t who = 0;
  std::uint64_t token = 0;
  std::chrono::nanoseconds first{0};
  std::chrono::nanoseconds last{0};
};
// In the order in which they began. One without an end has ended when it began: nothing more is known.
std::vector<sighted_hold> holds_of(const std::vector<sighting>& all);
// By these instants and not by the order of the file, for workers that give instants.
verdict judge_by_instants(const std::vector<sighted_hold>& all);

// The order is the file's: with O_APPEND that is the order of the writes, and a write lies inside the hold.
verdict judge(const std::vector<sighting>& all);

}  // namespace holdfast::test
