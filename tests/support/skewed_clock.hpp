// SPDX-License-Identifier: Apache-2.0
// The test's hand on the clock of a server that runs with skew.c.
#pragma once

#include "support/scratch_directory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

class skewed_clock {
public:
  skewed_clock() {
    const int fd = ::open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (::ftruncate(fd, sizeof(std::int64_t)) == 0) {
      void* page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (page != MAP_FAILED) offset_us_ = static_cast<volatile std::int64_t*>(page);
    }
    ::close(fd);
  }
  ~skewed_clock() { ::munmap(const_cast<std::int64_t*>(offset_us_), sizeof(std::int64_t)); }
  skewed_clock(const skewed_clock&) = delete;
  skewed_clock& operator=(const skewed_clock&) = delete;

  // For redis_options::environment.
  std::vector<std::string> environment() const { return {"LD_PRELOAD=" HOLDFAST_SKEW_LIBRARY, "SKEW_FILE=" + file()}; }

  void set(std::chrono::microseconds offset) { *offset_us_ = offset.count(); }

private:
  std::string file() const { return scratch_ / "skew"; }

  scratch_directory scratch_;
  volatile std::int64_t* offset_us_ = nullptr;
};

}  // namespace holdfast::test
