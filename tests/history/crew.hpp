// SPDX-License-Identifier: Apache-2.0
// Processes at work on one server, and what happens to them: some are killed and replaced, some are stopped for longer
// than their leases, the server stands still, and the proxy in front of a part of them delays, holds and cuts.
#pragma once

#include "history/operation.hpp"
#include "support/child_process.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"
#include "support/scratch_directory.hpp"

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace holdfast::test::history {

struct crew_options {
  int direct = 4;          // Workers that talk to the server itself,
  int through_faults = 2;  // and through the proxy.
  bool stops = true;       // SIGSTOP, of workers and of the server.
  std::chrono::milliseconds longest_stop{900};
  std::chrono::milliseconds length{4000};
  std::size_t enough = 100'000;  // Bytes of log: on a slow machine it goes on until there are so many.
  unsigned seed = 1;
};

struct faults_made {
  int kills = 0;
  int stops = 0;
  int server_stops = 0;
  int network = 0;
};

class crew {
public:
  // The words that start a worker: on this socket, with this log, by this seed; it may use the names for those that do
  // not come through the proxy.
  using command = std::function<std::vector<std::string>(const std::string& socket, const std::string& log,
                                                         unsigned seed, bool is_direct)>;

  crew(redis_server& server, command how, const crew_options& options);

  // Works for the length, and gives what they wrote down. For a worker that fails by itself an EXPECT does.
  operations run();
  const faults_made& faults() const { return faults_; }

private:
  struct member {
    child_process process;
    bool is_direct = true;
    std::chrono::nanoseconds resume_at{0};  // 0: it runs.
  };

  std::string log_of(int worker) const { return scratch_ / ("worker-" + std::to_string(worker)); }
  member start(bool is_direct);
  void replace(member& dead);
  void make_a_fault();
  void disturb_the_network();
  void resume_the_stopped();
  void end();
  std::size_t written() const;
  int pick(int below) { return std::uniform_int_distribution<int>{0, below - 1}(random_); }
  std::chrono::milliseconds some_stop();

  redis_server& server_;
  command how_;
  crew_options options_;
  scratch_directory scratch_{};
  fault_proxy proxy_;
  std::mt19937 random_;
  std::vector<member> members_{};
  std::vector<bool> was_direct_{};  // Of each worker there ever was.
  faults_made faults_{};
  std::chrono::nanoseconds server_resumes_at_{0};
};

}  // namespace holdfast::test::history
