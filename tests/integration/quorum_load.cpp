// SPDX-License-Identifier: Apache-2.0
// `script/campaign quorum`: processes contend for locks of a quorum of five while two of its servers are gone at any
// time, and then what three that are gone cost. No test of ctest: it takes minutes (docs/campaigns.md).
#include "integration/torment.hpp"
#include "support/child_process.hpp"
#include "support/scratch_directory.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr int processes = 8;
constexpr auto least_ttl = 2s;
constexpr auto most_ttl = 3000ms;  // Of every client here: a small quarantine.
constexpr int goal = 10'000;       // Grants.
constexpr auto most_time = 900s;
constexpr auto most_idle =
    10s;  // Of the lock that most of them want: who waits in the line of a silent server finds out late.
constexpr auto own_timeout = 2s;

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

double seconds(std::chrono::nanoseconds span) { return std::chrono::duration<double>(span).count(); }

class quorum_load : public with_relays {
protected:
  // Half of max_ttl apart. Who is more than that away from the median has no vote (P24).
  quorum_load() : with_relays{{{1, most_ttl / 4}, {3, -most_ttl / 4}}} {}

  void start_workers() {
    const auto locks = "hot:" + std::to_string(std::chrono::milliseconds{least_ttl}.count()) +
                       ",warm:2000,long1:" + std::to_string(most_ttl.count());
    child_process::options how;
    how.environment = {"HOLDFAST_TEST_MAX_TTL_MS=" + std::to_string(most_ttl.count())};
    for (int i = 0; i < processes; ++i) {
      workers_.emplace_back(std::vector<std::string>{HOLDFAST_WORKER, relayed_uri(), "endure", locks, scratch_.path()},
                            how);
    }
  }

  std::vector<sighted_hold> holds(const std::string& lock) const {
    return holds_of(read_sightings(scratch_ / (lock + ".witness")));
  }
  int grants() const {
    std::size_t all = 0;
    for (const auto* lock : lock_names) all += holds(lock).size();
    return static_cast<int>(all);
  }

  // What they have counted, together.
  std::map<std::string, long> end_workers() {
    std::ofstream{scratch_ / "stop"};
    std::map<std::string, long> all;
    for (auto& worker : workers_) {
      std::istringstream said{worker.read_line(60s).value_or("")};
      std::string word;
      long count = 0;
      said >> word;
      EXPECT_EQ(word, "done") << said.str();
      while (said >> word >> count) all[word] += count;
    }
    return all;
  }

  client ours() const {
    client_options how;
    how.max_ttl = most_ttl;
    how.timeout = own_timeout;
    return client{relayed_uri(), how};
  }

  // A majority is gone in this way: the longest time until a call says so.
  std::chrono::nanoseconds refusal_without_majority(harm what) {
    std::minstd_rand random{1};
    auto known = ours();
    auto held = std::optional{known.acquire("held", {.ttl = most_ttl, .wait = long_enough})};
    for (const int i : {0, 2, 4}) begin(i, what, random);
    const auto gone_at = boottime();
    std::chrono::nanoseconds longest{0};
    const auto refused = [&](client& locks, const acquire_options& wish) {
      const auto began = boottime();
      const auto code = code_of([&] { (void)locks.acquire("x", wish); });
      longest = std::max(longest, boottime() - began);
      return code;
    };
    // They may have voted before they fell silent (docs/topologies.md).
    EXPECT_THAT(refused(known, {.ttl = most_ttl, .wait = 0s}), testing::AnyOf(errc::no_quorum, errc::reply_lost));
    EXPECT_EQ(refused(known, {.ttl = most_ttl, .wait = long_enough}), errc::no_quorum);
    auto fresh = ours();
    EXPECT_EQ(refused(fresh, {.ttl = most_ttl, .wait = 0s}), errc::no_quorum);
    EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }, 2 * most_ttl - (boottime() - gone_at)));
    EXPECT_FALSE(held->valid());
    held.reset();
    std::vector<std::jthread> healing;
    for (const int i : {0, 2, 4}) {
      healing.emplace_back([this, i, what] {
        std::minstd_rand mine{2};
        end(i, what, mine);
      });
    }
    // The first to ask begins the quarantine of those that were started again.
    EXPECT_TRUE(eventually(
        [&] {
          std::error_code ec;
          return known.acquire("x", {.ttl = most_ttl, .wait = long_enough}, ec).has_value();
        },
        long_enough))
        << harm_names[static_cast<std::size_t>(what)];
    return longest;
  }

  static constexpr std::array lock_names{"hot", "warm", "long1"};
  scratch_directory scratch_{};
  std::vector<child_process> workers_{};
};

// The longest time in which nobody had it.
std::chrono::nanoseconds longest_idle(const std::vector<sighted_hold>& holds) {
  std::chrono::nanoseconds longest{0};
  auto until = holds.front().last;
  for (const auto& one : holds) {
    longest = std::max(longest, one.first - until);
    until = std::max(until, one.last);
  }
  return longest;
}

std::string with_prefix(const std::map<std::string, long>& counts, const std::string& prefix) {
  std::string out;
  for (const auto& [what, count] : counts) {
    if (!what.starts_with(prefix)) continue;
    out += (out.empty() ? "" : " ") + what.substr(prefix.size()) + " " + std::to_string(count);
  }
  return out.empty() ? "none" : out;
}

TEST_F(quorum_load, two_of_five_are_gone_all_the_time_and_three_are_refused_C1_C4_R7) {
  const std::chrono::seconds least{number_of("HOLDFAST_SECONDS", 60)};
  const int wanted = number_of("HOLDFAST_GRANTS", goal);
  ASSERT_GT(seconds(time_of(1) - time_of(3)), seconds(most_ttl / 2) - 0.1) << "their clocks are not apart";
  start_workers();
  ASSERT_TRUE(eventually([&] { return grants() >= processes; }, long_enough));
  const auto began = boottime();
  {
    const auto seed = static_cast<unsigned>(began.count());
    std::vector<std::jthread> tormentors;
    for (unsigned i = 0; i < 2; ++i) {
      tormentors.emplace_back([this, i, seed](const std::stop_token& stop) { torment(stop, seed + i); });
    }
    while (boottime() - began < least || (grants() < wanted && boottime() - began < most_time)) let_pass(500ms);
  }
  const auto lasted = boottime() - began;
  auto counts = end_workers();

  verdict all;
  for (const auto* lock : lock_names) {
    const auto one = judge_by_instants(holds(lock));
    all.holds += one.holds;
    all.overlaps += one.overlaps;
    all.token_regressions += one.token_regressions;
    EXPECT_EQ(one.first_offence, "") << lock;
  }
  const auto idle = longest_idle(holds("hot"));
  std::string faults;
  for (std::size_t i = 0; i < harms.size(); ++i) {
    faults += (i > 0 ? ", " : "") + std::to_string(with_relays::counts()[i]) + " " + harm_names[i];
  }
  std::string refusals;
  for (std::size_t i = 0; i < harms.size(); ++i) {
    if (harms[i] == harm::slow) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%s%s %.2f s", refusals.empty() ? "" : ", ", harm_names[i],
                  seconds(refusal_without_majority(harms[i])));
    refusals += text;
  }
  std::printf("quorum: %.0f s | %s | %d | %d | %d | %s | %s | %.2f s | %s\n", seconds(lasted), faults.c_str(),
              all.holds, all.overlaps, all.token_regressions, with_prefix(counts, "told.").c_str(),
              with_prefix(counts, "failed.").c_str(), seconds(idle), refusals.c_str());
  EXPECT_EQ(all.overlaps, 0);
  EXPECT_EQ(all.token_regressions, 0);
  EXPECT_GE(all.holds, wanted);
  EXPECT_LT(seconds(idle), seconds(most_idle));
  for (const auto* what : {"untold", "refused_while_valid", "failed.timed_out"}) EXPECT_EQ(counts[what], 0) << what;
}

}  // namespace
}  // namespace holdfast::test
