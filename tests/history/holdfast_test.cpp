// SPDX-License-Identifier: Apache-2.0
// The library: recorded runs with faults, of each model one, that must be linearizable. HOLDFAST_HISTORY_SECONDS says
// for how long instead of the usual four seconds, HOLDFAST_HISTORY_SEED which chances are taken: real processes do not
// repeat a run, but a campaign should not take the same chances each time.
#include "history/checker.hpp"
#include "history/crew.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace holdfast::test::history {
namespace {

int variable(const char* name, int usual) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::stoi(value) : usual;
}

void run(const std::string& worker_kind, const lock_kind& kind) {
  redis_server server;
  crew_options options;
  options.length = std::chrono::seconds{variable("HOLDFAST_HISTORY_SECONDS", 4)};
  options.seed = static_cast<unsigned>(variable("HOLDFAST_HISTORY_SEED", 1));
  crew all{
      server,
      [&](const std::string& socket, const std::string& log, unsigned seed, bool is_direct) {
        std::vector<std::string> words{
            HOLDFAST_HISTORY_WORKER, "redis+unix://" + socket, log, worker_kind, std::to_string(seed), "line", "line"};
        if (is_direct) words.push_back("try");
        return words;
      },
      options};
  const auto history = all.run();
  const auto result = check(history, kind, std::chrono::seconds{120});
  std::cout << worker_kind << ": " << to_string(result) << "; " << all.faults().kills << " kills, "
            << all.faults().stops << " stops, " << all.faults().server_stops << " of the server, "
            << all.faults().network << " network faults\n";
  EXPECT_EQ(result.what, answer::linearizable) << result.explanation;
  EXPECT_GT(result.holds, 0) << "nothing was looked at";
  EXPECT_GT(result.busy, 0) << "no answer of a try was looked at";
  EXPECT_GT(all.faults().kills + all.faults().stops, 0);
}

TEST(history_of_holdfast, fenced_mutex_is_linearizable) { run("fenced_mutex", {lock_kind::is::fenced_mutex}); }

TEST(history_of_holdfast, reentrant_mutex_is_linearizable) { run("reentrant_mutex", {lock_kind::is::reentrant_mutex}); }

TEST(history_of_holdfast, semaphore_is_linearizable) { run("3", {lock_kind::is::semaphore, 3}); }

TEST(history_of_holdfast, shared_mutex_is_linearizable) { run("shared_mutex", {lock_kind::is::shared_mutex}); }

}  // namespace
}  // namespace holdfast::test::history
