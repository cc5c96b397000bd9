// SPDX-License-Identifier: Apache-2.0
#include "process_group.hpp"

#include "escape.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

namespace holdfast::cli {
namespace {

struct process {
  std::string name{};
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
};

// "4711 (name with ) and spaces) S 1 4711 ...": the name ends at the last parenthesis.
std::optional<process> parse(const std::string& stat) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close < open) return std::nullopt;
  process out{.name = stat.substr(open + 1, close - open - 1)};
  std::istringstream rest{stat.substr(close + 1)};
  if (!(rest >> out.state >> out.parent >> out.group)) return std::nullopt;
  return out;
}

// Calls `see(pid, process)` with each that lives, until it returns false. True: there are no others. They may be hidden
// (no /proc in a chroot, hidepid=, which hides process 1 as well), or there are too few descriptors to look.
template <class See>
bool look_at_group(pid_t group, See see) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc{::opendir("/proc"), ::closedir};
  if (!proc) return false;
  bool is_all = true;
  bool is_first_there = false;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    is_first_there = is_first_there || std::string_view{entry->d_name} == "1";
    errno = 0;
    std::ifstream file{fmt::format("/proc/{}/stat", entry->d_name)};
    std::string stat;
    if (!std::getline(file, stat)) {
      is_all = is_all && (errno == ENOENT || errno == ESRCH);  // It has just ended.
      continue;
    }
    const auto one = parse(stat);
    if (!one || one->group != group || one->state == 'Z' || one->state == 'X') continue;
    if (!see(std::string_view{entry->d_name}, *one)) return false;
  }
  return is_all && is_first_there;
}

}  // namespace

std::vector<std::string> processes_of_group(pid_t group) {
  std::vector<std::string> out;
  look_at_group(group, [&](std::string_view pid, const process& one) {
    out.push_back(fmt::format("{} ({})", visible(one.name), pid));
    return out.size() < 4;
  });
  return out;
}

bool has_group_ended(pid_t group) {
  return look_at_group(group, [](std::string_view, const process&) { return false; });
}

bool is_group_stopped(pid_t group) {
  bool is_stopped = true;
  look_at_group(group, [&](std::string_view, const process& one) {
    is_stopped = one.state == 'T' || one.state == 't';
    return is_stopped;
  });
  return is_stopped;
}

bool can_be_woken() {
  if (::getpid() == 1) return false;
  const pid_t group = ::getpgrp();
  const pid_t session = ::getsid(0);
  const auto could = [&](pid_t parent) {
    return parent > 0 && ::getpgid(parent) != group && ::getsid(parent) == session;
  };
  bool found = could(::getppid());
  if (found) return true;
  look_at_group(group, [&](std::string_view, const process& one) {
    found = could(one.parent);
    return !found;
  });
  return found;
}

}  // namespace holdfast::cli
