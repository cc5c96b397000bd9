// SPDX-License-Identifier: Apache-2.0
// Harms servers of a quorum, one after the other and a minority at a time, in every way that a server can be gone.
// Clients reach the servers over relays, which can be silent and slow. Servers of one machine have one clock, by which
// tokens would increase whatever is done about them: so some of these have clocks of their own, ahead and behind.
#pragma once

#include "integration/quorum_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"
#include "support/skewed_clock.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::test {

//  what happens | to the server's data | the end of it
//  -------------+----------------------+----------------------------------------------------------------
//  stopped      | kept                 | SIGCONT: what was asked meanwhile takes effect late
//  killed       | lost                 | started again, empty, and its quarantine is over
//  silent       | kept                 | the relay lets flow what it held in both directions, or cuts it
//  slow         | kept                 | the relay delays no more
enum class harm { stopped, killed, silent, slow };
inline constexpr std::array harms{harm::stopped, harm::killed, harm::silent, harm::slow};
inline constexpr std::array harm_names{"stopped", "killed", "silent", "slow"};

class with_relays : public with_quorum {
protected:
  // Server, and how far its clock is ahead.
  using clocks = std::map<int, std::chrono::milliseconds>;
  explicit with_relays(const clocks& turned) : with_quorum{5} {
    for (const auto& [node, ahead] : turned) put_one_with_a_clock_of_its_own(node, ahead);
    for (const auto& one : nodes_) relays_.emplace_back(port_of(one));
  }

  std::string relayed_uri() const;

  void begin(int node, harm what, std::minstd_rand& random);
  void end(int node, harm what, std::minstd_rand& random);
  // Its epoch as the clients have written it: from then on it votes.
  void await_end_of_quarantine(int node);
  std::chrono::microseconds time_of(int node) const;  // As it says itself.

  // One harm after the other until it is stopped. Several threads may: no two harm the same server.
  void torment(const std::stop_token& stop, unsigned seed);
  // How often each came about.
  std::array<int, harms.size()> counts() const;

private:
  // A server of our own: a lab's gets nothing of our environment.
  struct with_its_clock {
    skewed_clock clock{};
    redis_server server{{.tcp = true, .environment = clock.environment()}};
  };
  void put_one_with_a_clock_of_its_own(int node, std::chrono::milliseconds ahead);
  redis_server* one_of_ours(int node);  // Null: it is the lab's.
  void restart(int node);
  int pick(std::minstd_rand& random);

  std::map<int, with_its_clock> turned_{};
  std::deque<fault_proxy> relays_{};
  mutable std::mutex mutex_{};
  std::vector<int> harmed_{};
  std::array<int, harms.size()> counts_{};
};

}  // namespace holdfast::test
