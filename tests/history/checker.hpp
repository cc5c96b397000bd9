// SPDX-License-Identifier: Apache-2.0
// Is a recorded history one that the lock's model allows? Each lock by itself: linearizability is a property of every
// object alone, so a history of many names is as many histories.
#pragma once

#include "history/operation.hpp"
#include "history/search.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::test::history {

// Which model, and of a semaphore its size.
struct lock_kind {
  enum class is { fenced_mutex, reentrant_mutex, semaphore, shared_mutex };
  is what{};
  int size = 1;
};

struct verdict {
  answer what = answer::linearizable;
  int locks = 0;
  int operations = 0;
  int holds = 0;            // Acquired, by those who lived to hear it.
  int busy = 0;             // Answers that had to be true: nobody waited in line at the time.
  int ends_of_leases = 0;   // Holds that ended by themselves, by a kill or a stop: nobody released them.
  std::uint64_t tried = 0;  // Of the search.
  std::chrono::nanoseconds took{0};
  std::string explanation{};  // When refused, of the first lock that is: the fewest operations that have no order.
};

// Undecided, if not done within `limit`: a failure like refused, for whoever wants to know.
verdict check(const operations& all, const lock_kind& kind, std::chrono::seconds limit = std::chrono::seconds{60});

// What check() asks of one lock.
found search_one(const steps& of, const lock_kind& kind, instant give_up_at);

// Of the operations on one lock that have no order, the fewest that have none, in words.
std::string explain(const operations& of_one_lock, const lock_kind& kind, instant give_up_at);

// One line for people: operations, search steps and time.
std::string to_string(const verdict& one);

}  // namespace holdfast::test::history
