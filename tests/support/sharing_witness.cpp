// SPDX-License-Identifier: Apache-2.0
#include "support/sharing_witness.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace holdfast::test {

sharing_witness::sharing_witness(const std::string& path, part mine)
    : mine_{mine}, fd_{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {
  if (fd_ < 0) throw std::runtime_error("no witness file at " + path);
}

sharing_witness::~sharing_witness() { ::close(fd_); }

void sharing_witness::ask() { write(what::ask, ::getpid(), 0); }
void sharing_witness::enter(std::uint64_t token) { write(what::enter, ::getpid(), token); }
void sharing_witness::exit(std::uint64_t token) { write(what::exit, ::getpid(), token); }
void sharing_witness::is_dead(int pid) { write(what::exit, pid, 0); }

void sharing_witness::write(what happened, int who, std::uint64_t token) {
  const record one{happened, mine_, who, token, boottime().count()};
  if (::write(fd_, &one, sizeof one) != static_cast<ssize_t>(sizeof one)) {
    throw std::runtime_error("the witness file cannot be written");
  }
}

sharing_verdict judge_sharing(const std::string& path, int size, const on_the_way& most) {
  using record = sharing_witness::record;
  using what = sharing_witness::what;
  sharing_verdict result;
  std::map<int, record> asking;
  std::map<int, record> inside;
  std::set<int> have_entered;  // At any time.
  const auto offence = [&](const std::string& text, const record& r) {
    if (!result.first_offence.empty()) return;
    result.first_offence = text + ": " + std::to_string(r.who) + " at " + std::to_string(r.boottime_ns);
  };

  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  record r;
  while (fd >= 0 && ::read(fd, &r, sizeof r) == static_cast<ssize_t>(sizeof r)) {
    if (r.happened == what::ask) {
      asking[r.who] = r;
      continue;
    }
    if (r.happened == what::exit) {
      inside.erase(r.who);
      asking.erase(r.who);                          // Also when it died while it asked.
      if (r.token == 0) have_entered.erase(r.who);  // Dead: the next process may get its number.
      continue;
    }
    const auto asked = asking.extract(r.who);
    const bool has_writer =
        std::any_of(inside.begin(), inside.end(), [](const auto& i) { return i.second.took == part::all; });
    const bool is_full = static_cast<int>(inside.size()) >= size;
    if (has_writer || is_full || (r.took == part::all && !inside.empty())) {
      ++result.intrusions;
      offence("entered beside " + std::to_string(inside.size()), r);
    }
    for (const auto& [who, writer] : asking) {
      if (r.took != part::some || writer.took != part::all || asked.empty()) continue;
      const auto arrives_after = have_entered.contains(who) ? most.later : most.first;
      if (asked.mapped().boottime_ns > writer.boottime_ns + arrives_after.count()) {
        ++result.overtakings;
        offence("went before writer " + std::to_string(who) + ", which asked earlier", r);
      }
    }
    ++result.holds;
    if (r.took == part::all) ++result.writers;
    inside[r.who] = r;
    have_entered.insert(r.who);
    result.most_inside = std::max(result.most_inside, static_cast<int>(inside.size()));
  }
  if (fd >= 0) ::close(fd);
  return result;
}

}  // namespace holdfast::test
