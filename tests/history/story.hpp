// SPDX-License-Identifier: Apache-2.0
// Histories written by hand, for the tests of the checker. Instants are milliseconds; every ttl is 100.
#pragma once

#include "history/checker.hpp"

namespace holdfast::test::history {

struct told {
  int worker = 0;
  int hold = 0;
};

inline instant ms(int number) { return number * instant{1'000'000}; }

struct during {
  int from = 0;
  int to = -1;  // -1: never returned.
};

inline operation said(verb what, const told& whom, const during& when, outcome how) {
  operation one;
  one.what = what;
  one.worker = whom.worker;
  one.hold = whom.hold;
  one.called = ms(when.from);
  one.returned = when.to < 0 ? never : ms(when.to);
  one.how = when.to < 0 ? outcome::open : how;
  one.ttl_ms = 100;
  one.name = "x";
  return one;
}

inline operation got(const told& whom, const during& when, std::uint64_t token, int until, int part = everything) {
  auto one = said(verb::attempt, whom, when, outcome::acquired);
  one.token = token;
  one.until = ms(until);
  one.part = part;
  return one;
}

inline operation asked(const told& whom, const during& when, outcome how, int part = everything) {
  auto one = said(verb::attempt, whom, when, how);
  one.part = part;
  return one;
}

inline operation waited(const told& whom, const during& when, outcome how) {
  return said(verb::acquire, whom, when, how);
}

inline operation gave(const told& whom, const during& when, outcome how = outcome::released) {
  return said(verb::release, whom, when, how);
}

inline operation locked_again(const told& whom, const during& when, std::uint64_t token) {
  auto one = said(verb::again, whom, when, outcome::done);
  one.token = token;
  return one;
}

inline operation unlocked_once(const told& whom, const during& when) {
  return said(verb::back, whom, when, outcome::done);
}

inline operation dropped(const told& whom, const during& when) { return said(verb::drop, whom, when, outcome::done); }

inline operation unlocked(const told& whom, const during& when) {
  return said(verb::unlock, whom, when, outcome::done);
}

inline operation downgraded(const told& whom, const during& when, outcome how = outcome::done) {
  return said(verb::downgrade, whom, when, how);
}

constexpr lock_kind a_fenced_mutex{lock_kind::is::fenced_mutex};
constexpr lock_kind a_reentrant_mutex{lock_kind::is::reentrant_mutex};
constexpr lock_kind a_shared_mutex{lock_kind::is::shared_mutex};
constexpr lock_kind a_semaphore(int size) { return {lock_kind::is::semaphore, size}; }

}  // namespace holdfast::test::history
