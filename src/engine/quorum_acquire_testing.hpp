// SPDX-License-Identifier: Apache-2.0
// A try for a lock of a quorum, and what each of its servers was asked.
#pragma once

#include "engine/quorum_acquire.hpp"
#include "engine/quorum_testing.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine::quorum_testing {

class quorum_acquire_test : public quorum_test {
protected:
  using quorum_test::quorum_test;
  using result = quorum_acquire::result;

  void start() {
    votes.clear();
    round.emplace(all, wants, somebody, now());
    run(*round);
  }
  // Connected, and each server has the request for its vote.
  void start_voting() {
    connect_all();
    start();
    take_votes();
  }
  void take_votes() {
    for (auto& one : servers) {
      const auto requests = one.take();
      ASSERT_EQ(requests.size(), 1u);
      ASSERT_THAT(named(requests[0]), testing::StartsWith("vote"));
      votes.push_back(requests[0]);
    }
  }
  void grant(std::size_t i) { say(i, granted(servers[i], proposal_of(votes.at(i)))); }
  bool is_over(result how) const { return round->is_over() && round->outcome() == how; }
  // Is something of it to be withdrawn there, or released, for all that is known?
  bool is_open_at(std::size_t i) const { return round->votes()[i].not_after != server_time{}; }

  quorum_acquire::request wants{keys,
                                std::make_shared<const std::string>("ann"),
                                ttl,
                                max_ttl,
                                fencing_token{},
                                drift,
                                patience,
                                time_point{std::chrono::hours{1}} + std::chrono::seconds{2},
                                "hf:",
                                record};
  std::optional<quorum_acquire> round{};
  std::vector<request> votes{};
};

class quorum_acquire_of_five : public quorum_acquire_test {
protected:
  quorum_acquire_of_five() : quorum_acquire_test{5} {}
};

}  // namespace holdfast::engine::quorum_testing
