// SPDX-License-Identifier: Apache-2.0
// The test's hand on the clocks of a server or a client that runs with skew.c.
#pragma once

#include "support/scratch_directory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

class skewed_clock {
public:
  skewed_clock() {
    const int fd = ::open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (::ftruncate(fd, size) == 0) {
      void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (page != MAP_FAILED) turned_us_ = static_cast<volatile std::int64_t*>(page);
    }
    ::close(fd);
  }
  ~skewed_clock() { ::munmap(const_cast<std::int64_t*>(turned_us_), size); }
  skewed_clock(const skewed_clock&) = delete;
  skewed_clock& operator=(const skewed_clock&) = delete;

  // For redis_options::environment.
  std::vector<std::string> environment() const { return {"LD_PRELOAD=" HOLDFAST_SKEW_LIBRARY, "SKEW_FILE=" + file()}; }

  // The wall clock, against the true one.
  void set(std::chrono::microseconds offset) { turned_us_[0] = offset.count(); }
  // As if the machine had slept: for CLOCK_BOOTTIME that time has passed, and for no timer.
  void suspend(std::chrono::microseconds time) { turned_us_[1] = turned_us_[1] + time.count(); }

private:
  static constexpr std::size_t size = 2 * sizeof(std::int64_t);
  std::string file() const { return scratch_ / "skew"; }

  scratch_directory scratch_;
  volatile std::int64_t* turned_us_ = nullptr;
};

}  // namespace holdfast::test
