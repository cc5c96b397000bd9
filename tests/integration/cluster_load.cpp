// SPDX-License-Identifier: Apache-2.0
// `script/campaign cluster`: slots move and primaries fail over all the time under threads that contend for a thousand
// locks, some of which are held for longer than a ttl. No test of ctest, because it takes minutes (docs/campaigns.md).
#include "integration/cluster_crowd.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr auto between_failovers = 8s;

double seconds(std::chrono::nanoseconds span) { return std::chrono::duration<double>(span).count(); }

enum class failover { death, death_uncopied, hand_over };

// A death of a primary, and the long holds that it had.
struct killed {
  std::chrono::nanoseconds at{0};
  std::vector<stay> held{};
};

class cluster_load : public cluster_crowd {
protected:
  // By what they are now. A node that has just come back believes for a moment that it is what it was.
  std::vector<lab_node> primaries() override {
    std::vector<lab_node> now;
    for (const auto& node : lab_.nodes()) {
      if (is_primary(node)) now.push_back(node);
    }
    return now;
  }

  // A node that takes a slot raises its epoch above all that it knows. If it does not know the one that the giver has
  // got with the move before, it does not, the giver's last claim prevails there, and each of the two names the other
  // for ever: nobody serves the slot. Redis's own, again, and seen here on a busy machine.
  bool epochs_agree() {
    std::set<std::string> epochs;
    for (const auto& node : primaries()) {
      const auto said = ask(node, {"CLUSTER", "INFO"});
      const auto at = said.find("cluster_current_epoch:");
      epochs.insert(at == std::string::npos ? node.address : said.substr(at, said.find('\r', at) - at));
    }
    return epochs.size() == 1;
  }

  void move_a_slot(std::minstd_rand& random) {
    ASSERT_TRUE(eventually([&] { return epochs_agree(); }, long_enough));
    std::string name;
    lab_node from;
    do {
      name = "n" + std::to_string(random() % names);
      from = home_of(name);
    } while (boottime() < in_quarantine_until_[from.address]);  // docs/topologies.md: none away from there.
    const auto to = another_than(from);
    slot_move{*this, name, from, to}.finish();
    ASSERT_TRUE(eventually([&] { return all_say_that_it_is_at(to, name); }, long_enough)) << name;
    moved_[name] = to.address;
  }

  // A replica hears of a slot that its primary has got in the gossip of the next seconds. If it is promoted before, the
  // others go on naming the primary that is none any more, and nobody serves the slot: Redis's, and not what is tried
  // here.
  void await_gossip() {
    for (const auto& [name, to] : std::exchange(moved_, {})) {
      const auto key = "hf:{" + name + "}";
      const auto& address = to;  // clang 14 captures no structured binding.
      const auto port = to.substr(to.find(':'));
      for (const auto& node : lab_.nodes()) {
        const auto names_it = [&] {
          const auto answer = ask(node, {"TYPE", key.c_str()});
          return answer.starts_with("MOVED") ? answer.ends_with(port) : node.address == address;
        };
        ASSERT_TRUE(eventually(names_it, long_enough)) << node.address << " on " << name;
      }
    }
  }

  // The long holds of this primary.
  std::vector<stay> held_at(const lab_node& primary) {
    std::map<int, stay> all;
    {
      const std::lock_guard guard{diary_.mutex};
      all = diary_.stays;
    }
    std::vector<stay> held;
    for (const auto& [number, one] : all) {
      if (serves(primary, "hf:{" + one.name + "}")) held.push_back(one);
    }
    return held;
  }
  // It is valid still when somebody else has taken this primary's place.
  bool has_a_young_one_that_is_not_renewed(const lab_node& primary) {
    const auto all = held_at(primary);
    return std::any_of(all.begin(), all.end(),
                       [](const stay& one) { return !one.is_renewed && boottime() - one.since < ttl / 4; });
  }
  // Where the longest hold is that began last: it lasts until the primary has fallen over, if it is renewed.
  lab_node home_of_the_youngest() {
    stay youngest;
    EXPECT_TRUE(eventually(
        [&] {
          const std::lock_guard guard{diary_.mutex};
          for (const auto& [number, one] : diary_.stays) {
            if (one.is_renewed && one.since > youngest.since) youngest = one;
          }
          return !youngest.name.empty();
        },
        long_enough));
    return home_of(youngest.name);
  }

  // From now on the replica hears nothing of its primary, and does not come back to it. (One that is only stopped finds
  // in its socket what it has missed.)
  static void stop_copying(const lab_node& primary, const lab_node& replica) {
    ask(replica, {"CONFIG", "SET", "masterauth", "not the password"});
    ask(primary, {"CLIENT", "KILL", "TYPE", "replica"});
  }

  void kill(const lab_node& old, const lab_node& next, failover how) {
    if (how == failover::death_uncopied) {
      stop_copying(old, next);
      let_pass(ttl);  // Then there is no lease that the replica has, whenever it was granted.
      // Not for ever: a replica that has heard nothing for half a minute is promoted by nobody.
      (void)eventually([&] { return has_a_young_one_that_is_not_renewed(old); }, 10s);
    }
    killed_.push_back({boottime(), held_at(old)});
    lab_.kill(old);
    ASSERT_TRUE(becomes_primary(next)) << next.address;
    ask(next, {"CONFIG", "SET", "masterauth", ""});
    in_quarantine_until_[next.address] = boottime() + max_ttl + 1s;
    lab_.restart(old, lab_data::dropped);
  }

  void hand_over(const lab_node& next) {
    patience_of_nodes("2000");  // Between two votes of a node for replicas of one primary lie two of these.
    ASSERT_TRUE(eventually(
        [&] {
          // It is refused while the replica is not in sync, and one that has begun may take 5 s.
          ask(next, {"CLUSTER", "FAILOVER"});
          return eventually([&] { return is_primary(next); }, 12s);
        },
        long_enough))
        << next.address;
    in_quarantine_until_[next.address] = boottime() + max_ttl + 1s;
  }

  // By an operator, who has it handed over, or by the death of the primary, which comes back as an empty replica.
  void fail_over(failover how) {
    ASSERT_NO_FATAL_FAILURE(await_gossip());
    const auto old = home_of_the_youngest();
    const auto next = replica_of(old);
    ASSERT_NO_FATAL_FAILURE(how == failover::hand_over ? hand_over(next) : kill(old, next, how));
    ASSERT_TRUE(eventually([&] { return !is_primary(old) && follows(old, next); }, long_enough)) << old.address;
    patience_of_nodes("60000");
    ASSERT_TRUE(eventually([&] { return primaries().size() == 3; }, long_enough));
  }
  static bool follows(const lab_node& replica, const lab_node& primary) {
    const auto state = ask(replica, {"INFO", "replication"});
    const auto port = primary.address.substr(primary.address.find(':') + 1);
    return state.find("master_port:" + port + "\r") != std::string::npos &&
           state.find("master_link_status:up") != std::string::npos;
  }
  lab_node replica_of(const lab_node& primary) {
    for (const auto& node : lab_.nodes()) {
      if (follows(node, primary)) return node;
    }
    ADD_FAILURE() << "no replica of " << primary.address;
    return {};
  }

  // Those that were held at a kill; and those of them that were valid when all was over that the dead one had granted,
  // so that its successor had renewed them.
  std::array<int, 2> held_at_kills() const {
    std::array<int, 2> counts{};
    for (const auto& death : killed_) {
      for (const auto& one : death.held) {
        const auto found = diary_.holds.find(one.name);
        if (found == diary_.holds.end()) continue;
        for (const auto& hold : found->second) {
          if (hold.token != one.token || hold.last < death.at) continue;
          ++counts[0];
          counts[1] += hold.last > death.at + ttl ? 1 : 0;
        }
      }
    }
    return counts;
  }

  std::map<std::string, std::chrono::nanoseconds> in_quarantine_until_{};
  std::vector<killed> killed_{};
  std::map<std::string, std::string> moved_{};  // Since the last failover, and where to.
};

// No two hold one lock, no token goes back, nobody sees an error, and nobody waits past his time (B67, B68, H24, H25).
TEST_F(cluster_load, slots_move_and_primaries_fail_over_and_nobody_notices_more_than_a_pause_B67_B68_H25) {
  const char* asked = std::getenv("HOLDFAST_SECONDS");
  const std::chrono::seconds lasts{asked ? std::atoi(asked) : 60};
  std::vector<std::jthread> crowd;
  for (int i = 0; i < threads; ++i) {
    crowd.emplace_back([this, i](const std::stop_token& stop) { contend(stop, i); });
  }
  const auto began = boottime();
  std::minstd_rand random{static_cast<unsigned>(began.count())};
  int moves = 0;
  std::array<int, 3> failovers{};
  for (auto next_failover = began + 4s; boottime() - began < lasts && !HasFailure();) {
    if (boottime() < next_failover) {
      move_a_slot(random);
      ++moves;
      continue;
    }
    const auto fewest = std::min_element(failovers.begin(), failovers.end());
    fail_over(static_cast<failover>(fewest - failovers.begin()));
    ++*fewest;
    next_failover = boottime() + between_failovers;
  }
  const auto lasted = boottime() - began;
  for (auto& one : crowd) one.request_stop();
  crowd.clear();

  verdict all;
  for (const auto& [name, unsorted] : diary_.holds) {
    auto holds = unsorted;
    std::sort(holds.begin(), holds.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto one = judge_by_instants(holds);
    all.holds += one.holds;
    all.overlaps += one.overlaps;
    all.token_regressions += one.token_regressions;
    EXPECT_EQ(one.first_offence, "") << name;
  }
  int errors = 0;
  for (const auto& [what, count] : diary_.errors) errors += count;
  const auto [held, lived] = held_at_kills();
  std::printf("cluster: %.0f s | %d | %d, %d, %d | %zu | %d | %d, %d | %d | %d | %d, %d | %d | %.2f s | %.2f s, %d\n",
              seconds(lasted), moves, failovers[0], failovers[1], failovers[2], diary_.holds.size(), all.holds, held,
              lived, all.overlaps, all.token_regressions, diary_.lost, diary_.untold, errors, seconds(diary_.longest),
              seconds(diary_.longest_release), diary_.unknown_releases);
  EXPECT_GT(held, 0) << "nothing was at stake";
  EXPECT_GT(lived, 0);
  EXPECT_EQ(all.overlaps, 0);
  EXPECT_EQ(all.token_regressions, 0);
  EXPECT_EQ(diary_.untold, 0);
  EXPECT_THAT(diary_.errors, testing::IsEmpty());
  EXPECT_LT(seconds(diary_.longest), seconds(waits + 1s));
  EXPECT_LT(seconds(diary_.longest_release), seconds(own_timeout + 1s));
}

}  // namespace
}  // namespace holdfast::test
