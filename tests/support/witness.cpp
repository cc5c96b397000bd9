// SPDX-License-Identifier: Apache-2.0
#include "support/witness.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace holdfast::test {

witness::witness(const std::string& path) : fd_{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {
  if (fd_ < 0) throw std::runtime_error("no witness file at " + path);
}

witness::~witness() { ::close(fd_); }

void witness::write(sighting::kind what, int who, std::uint64_t token, instant at) {
  const sighting record{what, who, token, at.value_or(boottime()).count()};
  if (::write(fd_, &record, sizeof record) != static_cast<ssize_t>(sizeof record)) {
    throw std::runtime_error("the witness file cannot be written");
  }
}

std::vector<sighting> read_sightings(const std::string& path) {
  std::vector<sighting> all;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  sighting record;
  while (fd >= 0 && ::read(fd, &record, sizeof record) == static_cast<ssize_t>(sizeof record)) all.push_back(record);
  if (fd >= 0) ::close(fd);
  return all;
}

verdict judge(const std::vector<sighting>& all) {
  verdict result;
  const sighting* inside = nullptr;
  std::uint64_t largest = 0;
  const auto offence = [&](const std::string& what, const sighting& s) {
    if (!result.first_offence.empty()) return;
    result.first_offence = what + ": worker " + std::to_string(s.who) + ", token " + std::to_string(s.token) + ", at " +
                           std::to_string(s.boottime_ns);
  };
  for (const auto& s : all) {
    if (s.what == sighting::kind::enter) {
      ++result.holds;
      if (inside) {
        ++result.overlaps;
        offence("entered while worker " + std::to_string(inside->who) + " was inside", s);
      }
      if (s.token != 0 && s.token <= largest) {
        ++result.token_regressions;
        offence("token not above " + std::to_string(largest), s);
      }
      largest = std::max(largest, s.token);
      inside = &s;
    } else if (inside && inside->who == s.who) {
      inside = nullptr;
    }
  }
  return result;
}

}  // namespace holdfast::test
