// SPDX-License-Identifier: Apache-2.0
#include "support/witness.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

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

std::vector<sighted_hold> holds_of(const std::vector<sighting>& all) {
  std::map<std::pair<std::int32_t, std::uint64_t>, sighted_hold> found;
  for (const auto& s : all) {
    const std::chrono::nanoseconds at{s.boottime_ns};
    if (s.what == sighting::kind::enter) {
      found[{s.who, s.token}] = {s.who, s.token, at, at};
    } else if (const auto one = found.find({s.who, s.token}); one != found.end()) {
      one->second.last = at;
    }
  }
  std::vector<sighted_hold> holds;
  for (const auto& [key, one] : found) holds.push_back(one);
  std::sort(holds.begin(), holds.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return holds;
}

verdict judge_by_instants(const std::vector<sighted_hold>& all) {
  verdict result;
  sighted_hold before;  // That ended last.
  std::uint64_t largest = 0;
  const auto offence = [&](const std::string& what, const sighted_hold& h) {
    if (!result.first_offence.empty()) return;
    result.first_offence = "worker " + std::to_string(h.who) + ", token " + std::to_string(h.token) + ", at " +
                           std::to_string(h.first.count()) + ": " + what;
  };
  for (const auto& h : all) {
    ++result.holds;
    if (h.first < before.last) {
      ++result.overlaps;
      offence("valid " + std::to_string((before.last - h.first).count()) + " ns before worker " +
                  std::to_string(before.who) + " with token " + std::to_string(before.token) + " ended",
              h);
    }
    if (h.token <= largest) {
      ++result.token_regressions;
      offence("not above token " + std::to_string(largest), h);
    }
    largest = std::max(largest, h.token);
    if (h.last > before.last) before = h;
  }
  return result;
}

}  // namespace holdfast::test
