// SPDX-License-Identifier: Apache-2.0
// Three kinds of time. The world's own is true and nobody in it can read it; a client's CLOCK_BOOTTIME and a server's
// wall clock run at rates of their own, and the server's also steps.
#pragma once

#include "base/time.hpp"
#include "core/lease_time.hpp"

#include <chrono>
#include <cstdint>

namespace holdfast::sim {

struct world_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<world_clock>;
  static constexpr bool is_steady = true;
};
using instant = world_clock::time_point;
inline constexpr instant end_of_time{duration{INT64_MAX / 4}};

// How far a client takes the rates of two clocks to be apart; plan.cpp draws them just within it.
inline constexpr core::clock_drift rho{10'000};

// How much a clock that is `ppm` fast counts while `true_time` passes.
constexpr duration counted(duration true_time, std::int64_t ppm) {
  const std::int64_t ns = true_time.count();
  return duration{ns + ns / 1'000'000 * ppm + ns % 1'000'000 * ppm / 1'000'000};
}

// A client's: it never steps and never stops.
class local_clock {
public:
  local_clock(time_point at_start, std::int64_t ppm) : at_start_{at_start}, ppm_{ppm} {}

  time_point read(instant now) const { return at_start_ + counted(now.time_since_epoch(), ppm_); }
  // The first instant at which it shows `at` or later.
  instant when(time_point at) const {
    if (at.time_since_epoch() >= never.time_since_epoch() / 2) return end_of_time;
    const std::int64_t wanted = (at - at_start_).count();
    const std::int64_t rate = 1'000'000 + ppm_;
    instant found{duration{wanted / rate * 1'000'000 + wanted % rate * 1'000'000 / rate}};
    while (read(found) >= at) found -= duration{1};
    while (read(found) < at) found += duration{1};
    return found;
  }

private:
  time_point at_start_;
  std::int64_t ppm_;
};

// The server's.
class wall_clock {
public:
  wall_clock(server_time at_start, std::int64_t ppm) : at_{at_start}, ppm_{ppm} {}

  server_time read(instant now) const {
    return at_ + std::chrono::floor<server_time::duration>(counted(now - since_, ppm_));
  }
  void step(instant now, server_time::duration by) { set(now, read(now) + by, ppm_); }
  // -1,000,000 stops it.
  void run_at(instant now, std::int64_t ppm) { set(now, read(now), ppm); }
  std::int64_t ppm() const { return ppm_; }

private:
  void set(instant now, server_time at, std::int64_t ppm) {
    since_ = now;
    at_ = at;
    ppm_ = ppm;
  }

  instant since_{};
  server_time at_;
  std::int64_t ppm_;
};

}  // namespace holdfast::sim
