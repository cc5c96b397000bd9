// SPDX-License-Identifier: Apache-2.0
// Waiting for a condition with a deadline: what tests do instead of sleeping.
#pragma once

#include <chrono>
#include <ctime>

namespace holdfast::test {

using namespace std::chrono_literals;

// CLOCK_BOOTTIME, the clock of the leases; one for all processes of a machine, so times of different workers compare.
inline std::chrono::nanoseconds boottime() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

// What a call may take beyond its own time on a machine that is busy with other tests. What a test would catch, a hang
// or the other way to get there (a time-out of 5 s, the next look), takes longer.
constexpr std::chrono::seconds slack{2};

// Asks `condition` every millisecond until it is true; false when it was not by the deadline.
template <class Condition>
bool eventually(Condition condition, std::chrono::nanoseconds deadline = 5s) {
  const auto give_up_at = boottime() + deadline;
  for (;;) {
    const bool is_last = boottime() >= give_up_at;  // Asked before: the condition itself may take longer than that.
    if (condition()) return true;
    if (is_last) return false;
    timespec step{0, 1'000'000};
    ::nanosleep(&step, nullptr);
  }
}

// For a bound of the contract's that a machine busy with other tests may miss now and then: one of three is enough.
template <class Attempt>
bool one_of_three(Attempt attempt) {
  return attempt() || attempt() || attempt();
}

// Lets `time` pass. For faults that are a span of time ("stopped for longer than the ttl"), never as a way to wait
// for something to have happened.
inline void let_pass(std::chrono::nanoseconds time) {
  const auto until = boottime() + time;
  eventually([&] { return boottime() >= until; }, time + 1h);
}

}  // namespace holdfast::test
