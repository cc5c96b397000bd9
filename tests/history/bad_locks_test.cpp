// SPDX-License-Identifier: Apache-2.0
// What the checker is worth: locks with a known mistake, recorded as ours are, must be refused, and the same lock
// without a mistake must not be. A mistake shows by chance, so a run is repeated until it has; one that does not show
// in a minute is a failure.
#include "history/checker.hpp"
#include "history/crew.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace holdfast::test::history {
namespace {

verdict recorded(const std::string& mistake, const std::string& worker_kind, const lock_kind& kind, unsigned seed,
                 int workers) {
  redis_server server{{.keys_may_stay = true}};
  crew_options options;
  options.direct = workers;
  options.through_faults = 0;
  options.length = 1s;
  options.longest_stop = 120ms;
  options.enough = 20'000;
  options.seed = seed;
  crew all{server,
           [&](const std::string& socket, const std::string& log, unsigned its_seed, bool /*is_direct*/) {
             return std::vector<std::string>{HOLDFAST_HISTORY_BAD_WORKER, socket, log, mistake, worker_kind,
                                             std::to_string(its_seed)};
           },
           options};
  return check(all.run(), kind);
}

void is_refused(const std::string& mistake, const std::string& worker_kind, const lock_kind& kind, int workers = 6) {
  const auto give_up_at = boottime() + 60s;
  for (unsigned seed = 1; boottime() < give_up_at; ++seed) {
    const auto result = recorded(mistake, worker_kind, kind, seed, workers);
    ASSERT_NE(result.what, answer::undecided);
    if (result.what == answer::linearizable) continue;
    std::cout << mistake << ": " << to_string(result) << '\n' << result.explanation;
    return;
  }
  FAIL() << "never refused";
}

constexpr lock_kind mutex{lock_kind::is::fenced_mutex};

TEST(history_of_a_bad_lock, is_refused_when_it_deletes_anothers_B42) {
  is_refused("deletes_anothers", "fenced_mutex", mutex);
}

TEST(history_of_a_bad_lock, is_refused_when_it_does_not_look_at_the_clock) {
  is_refused("does_not_look_at_the_clock", "fenced_mutex", mutex);
}

TEST(history_of_a_bad_lock, is_refused_when_it_renews_by_set) { is_refused("renews_by_set", "fenced_mutex", mutex); }

TEST(history_of_a_bad_lock, is_refused_when_its_tokens_are_not_counted_in_one_step) {
  is_refused("counts_tokens_by_get_and_set", "fenced_mutex", mutex);
}

TEST(history_of_a_bad_lock, is_refused_when_a_semaphore_only_counts) {
  is_refused("counts_only", "semaphore", {lock_kind::is::semaphore, 2});
}

TEST(history_of_a_bad_lock, is_refused_when_writers_ignore_readers) {
  is_refused("ignores_readers", "shared_mutex", {lock_kind::is::shared_mutex});
}

TEST(history_of_a_bad_lock, is_refused_when_the_first_unlock_frees_it) {
  is_refused("frees_at_the_first_unlock", "reentrant_mutex", {lock_kind::is::reentrant_mutex});
}

TEST(history_of_a_bad_lock, is_refused_when_it_says_busy_unasked) {
  is_refused("says_busy_unasked", "fenced_mutex", mutex, 2);  // With more of them it is hardly ever free.
}

TEST(history_of_a_lock_without_a_mistake, is_linearizable) {
  const auto result = recorded("none", "fenced_mutex", mutex, 1, 6);
  std::cout << to_string(result) << '\n';
  EXPECT_EQ(result.what, answer::linearizable) << result.explanation;
  EXPECT_GT(result.holds, 0);
  EXPECT_GT(result.busy, 0);
}

}  // namespace
}  // namespace holdfast::test::history
