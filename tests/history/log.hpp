// SPDX-License-Identifier: Apache-2.0
// The file of one worker: a line before each call, a line after it, and a line for each time that its lease tells it
// how long it will stand. Every line is one write(2), so a worker that is killed leaves whole lines, and a call without
// its return stays open.
#pragma once

#include "history/operation.hpp"

#include <atomic>
#include <string>

namespace holdfast::test::history {

class log {
public:
  explicit log(const std::string& path);
  ~log();
  log(const log&) = delete;
  log& operator=(const log&) = delete;

  // The instant just before a call; the number that its return names. Safe from any thread, as all of these.
  int called(verb what, int thread, int hold, const std::string& name, int part, std::int64_t ttl_ms);
  void returned(int number, outcome how, std::uint64_t token = 0);
  void stands_until(int hold, instant until);

private:
  void write(const std::string& line) const;

  int fd_;
  std::atomic<int> next_{1};
};

// The operations of one file, in the order of their calls. A last line without its end is left out.
operations read_log(const std::string& path, int worker, bool through_faults);

}  // namespace holdfast::test::history
