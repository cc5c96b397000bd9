// SPDX-License-Identifier: Apache-2.0
// What a recorded history consists of: calls of the public API by real processes, with the instants before and after.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace holdfast::test::history {

// CLOCK_BOOTTIME in nanoseconds: one clock for all processes of a machine, so instants of different workers compare.
using instant = std::int64_t;
constexpr instant never = std::numeric_limits<instant>::max();

enum class verb {
  attempt,    // Try: now or not at all.
  acquire,    // Wait in line.
  release,    // Give back, and hear what became of it.
  drop,       // Have it given back in the background: a lease that is destroyed.
  unlock,     // Give back, wait for the answer, and not hear it: the last unlock() of a recursive_mutex.
  downgrade,  // A writer becomes a reader.
  again,      // A reentrant mutex is locked by who holds it,
  back,       // and unlocked, but not for the last time.
};

enum class outcome {
  open,  // Never returned: the process was killed in the call, or the recording ended.
  acquired,
  busy,
  timed_out,
  released,
  already_lost,
  unknown,  // An error: it may or may not have taken effect.
  done,     // Of what has no other answer.
};

// How much of a lock a hold takes: so many permits, one reader's part, or all that a writer or a mutex takes.
constexpr int everything = 0;

struct operation {
  int worker = 0;
  int thread = 0;
  verb what{};
  int hold = 0;  // Which of its worker's holds this begins, uses or ends.
  int part = everything;
  std::int64_t ttl_ms = 0;
  std::string name{};
  instant called = 0;
  instant returned = never;
  outcome how = outcome::open;
  std::uint64_t token = 0;  // Of what was acquired; 0: the lock has no tokens.
  // Of what was acquired: until when its holder was last told that it holds. A lease that renews itself moves it.
  instant until = 0;
  bool through_faults = false;  // The worker's connections ran through the proxy: a copy of a request may be late.
};

using operations = std::vector<operation>;

}  // namespace holdfast::test::history
