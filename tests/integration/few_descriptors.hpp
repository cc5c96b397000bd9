// SPDX-License-Identifier: Apache-2.0
// A process that has no more descriptors to spare, for tests.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <vector>

namespace holdfast::test {

// Of a few more than are in use: so that the limit is in reach.
class all_descriptors_but {
public:
  explicit all_descriptors_but(std::size_t spare) {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    const auto in_use = static_cast<rlim_t>(
        std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{}));
    const rlimit few{in_use + 20, usual_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int one = 0; (one = ::dup(STDERR_FILENO)) >= 0;) taken_.push_back(one);
    for (; spare > 0 && !taken_.empty(); --spare) give_one_back();
  }
  ~all_descriptors_but() {
    while (!taken_.empty()) give_one_back();
    ::setrlimit(RLIMIT_NOFILE, &usual_);
  }
  all_descriptors_but(const all_descriptors_but&) = delete;
  all_descriptors_but& operator=(const all_descriptors_but&) = delete;

private:
  void give_one_back() {
    ::close(taken_.back());
    taken_.pop_back();
  }
  rlimit usual_{};
  std::vector<int> taken_{};
};

}  // namespace holdfast::test
