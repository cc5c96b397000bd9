// SPDX-License-Identifier: Apache-2.0
#include "process_group.hpp"

#include "escape.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace holdfast::cli {
namespace {

struct process {
  std::string name{};
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
};

// "4711 (name with ) and spaces) S 1 4711 ...": the name ends at the last parenthesis, and may have line breaks in it.
std::optional<process> parse(const std::string& stat) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close < open) return std::nullopt;
  process out{.name = stat.substr(open + 1, close - open - 1)};
  std::istringstream rest{stat.substr(close + 1)};
  if (!(rest >> out.state >> out.parent >> out.group)) return std::nullopt;
  return out;
}

// What /proc says of a process or of one of its threads. Nothing: it has just ended (`has_ended`), or cannot be seen.
std::optional<process> look_at(const std::string& directory, bool& has_ended) {
  errno = 0;
  std::ifstream file{directory + "/stat"};
  std::string stat;
  const bool is_read = static_cast<bool>(std::getline(file, stat, '\0'));
  has_ended = !is_read && (errno == ENOENT || errno == ESRCH);
  return is_read ? parse(stat) : std::nullopt;
}

bool is_number(const dirent& entry) { return entry.d_name[0] >= '1' && entry.d_name[0] <= '9'; }

using directory = std::unique_ptr<DIR, int (*)(DIR*)>;

// The state of a thread that lives, of a process whose first one has ended; 'Z': there is none, or none can be seen.
char state_of_the_rest(const std::string& of, bool& is_all) {
  errno = 0;
  const directory threads{::opendir((of + "/task").c_str()), ::closedir};
  is_all = is_all && (threads || errno == ENOENT || errno == ESRCH);
  while (const dirent* entry = threads ? ::readdir(threads.get()) : nullptr) {
    if (!is_number(*entry)) continue;
    bool has_ended = false;
    const auto one = look_at(fmt::format("{}/task/{}", of, entry->d_name), has_ended);
    is_all = is_all && (one || has_ended);
    if (one && one->state != 'Z' && one->state != 'X') return one->state;
  }
  return 'Z';
}

constexpr pid_t any_group = -1;

// Nothing: it does not live, or is of another group, or cannot be seen, which `is_all` says.
std::optional<process> member(pid_t group, std::string_view pid, bool& is_all) {
  const auto where = fmt::format("/proc/{}", pid);
  bool has_ended = false;
  auto one = look_at(where, has_ended);
  is_all = is_all && (one || has_ended);
  if (!one || (group != any_group && one->group != group)) return std::nullopt;
  if (one->state == 'Z') one->state = state_of_the_rest(where, is_all);
  return one->state == 'Z' || one->state == 'X' ? std::nullopt : one;
}

// Calls `see(pid, process)` with each that lives, until it returns false. True: there are no others. They may be hidden
// (no /proc in a chroot, hidepid=, which hides process 1 as well), or there are too few descriptors to look.
template <class See>
bool look_at_group(pid_t group, See see) {
  const directory proc{::opendir("/proc"), ::closedir};
  if (!proc) return false;
  bool is_all = true;
  bool is_first_there = false;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (!is_number(*entry)) continue;
    is_first_there = is_first_there || std::string_view{entry->d_name} == "1";
    const auto one = member(group, entry->d_name, is_all);
    if (one && !see(std::string_view{entry->d_name}, *one)) return false;
  }
  return is_all && is_first_there;
}

bool is_nobody_listed(pid_t group) {
  return look_at_group(group, [](std::string_view, const process&) { return false; });
}

// The one that a process or a thread got last. Whoever comes later has a larger one, until they begin anew at 300.
std::optional<pid_t> last_number() {
  std::ifstream file{"/proc/loadavg"};
  std::string before;
  pid_t last = 0;
  for (int i = 0; i < 4; ++i) file >> before;
  return file >> last ? std::optional{last} : std::nullopt;
}

// More come only where a look takes very long; then we look again another time.
constexpr pid_t most_meanwhile = 2000;

pid_t number(std::string_view pid) { return std::atoi(std::string{pid}.c_str()); }

bool is_out_of_reach(std::string_view pid) { return ::kill(number(pid), 0) != 0 && errno == EPERM; }

bool is_stopped(const process& one) { return one.state == 'T' || one.state == 't'; }

bool descends_from(pid_t ancestor, pid_t pid) {
  while (pid > 1 && pid != ancestor) {
    bool has_ended = false;
    const auto one = look_at(fmt::format("/proc/{}", pid), has_ended);
    pid = one ? one->parent : 0;
  }
  return pid == ancestor;
}

// At most four of them.
template <class Which>
std::vector<std::string> names_of(pid_t group, Which which) {
  std::vector<std::string> out;
  look_at_group(group, [&](std::string_view pid, const process& one) {
    if (which(pid, one)) out.push_back(fmt::format("{} ({})", visible(one.name), pid));
    return out.size() < 4;
  });
  return out;
}

}  // namespace

std::vector<std::string> processes_of_group(pid_t group) {
  return names_of(group, [](std::string_view, const process&) { return true; });
}

std::vector<std::string> processes_out_of_reach(pid_t group) {
  return names_of(group, [](std::string_view pid, const process&) { return is_out_of_reach(pid); });
}

std::vector<std::string> processes_that_cannot_be_stopped(pid_t command) {
  const pid_t session = ::getsid(0);
  return names_of(any_group, [&](std::string_view pid, const process& one) {
    if (is_stopped(one) || ::getsid(number(pid)) != session || !is_out_of_reach(pid)) return false;
    return one.group == command || descends_from(command, number(pid));
  });
}

// A list is no instant: who has forked and ended before it was read has left somebody behind whose smaller number had
// been passed already. So everybody who has come since we began is looked at by number, until nobody comes meanwhile:
// parents before their children, which are there when their parent has ended. The second list has those who had a
// number when we began and were not there yet; where numbers are hidden (ProcSubset=pid), it has to be enough.
bool has_group_ended(pid_t group) {
  const auto first = last_number();
  if (!is_nobody_listed(group) || !is_nobody_listed(group)) return false;
  if (!first) return true;
  for (auto seen = *first;;) {
    const auto last = last_number();
    if (!last || *last < seen || *last - *first > most_meanwhile) return false;
    if (*last == seen) return true;
    bool is_all = true;
    while (seen < *last)
      if (member(group, std::to_string(++seen), is_all) || !is_all) return false;
  }
}

bool is_group_stopped(pid_t group) {
  bool is_all = true;
  look_at_group(group, [&](std::string_view, const process& one) {
    is_all = is_stopped(one);
    return is_all;
  });
  return is_all;
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

// Most often a parent of a parent is it, which costs a look at each. Where the head is in another namespace of
// processes its number is 0, and that is ourselves. Whose parents we may not see (hidepid=) may have the head above.
bool is_left_behind() {
  const pid_t session = ::getsid(0);
  const pid_t group_of_head = ::getpgid(session);
  std::vector<pid_t> above{::getpgrp()};
  const auto has = [&](pid_t group) { return std::find(above.begin(), above.end(), group) != above.end(); };
  bool is_hidden = false;
  const auto climb = [&](pid_t parent) {
    while (parent > 0 && ::getsid(parent) == session) {
      if (const pid_t group = ::getpgid(parent); !has(group)) above.push_back(group);
      bool has_ended = false;
      const auto one = look_at(fmt::format("/proc/{}", parent), has_ended);
      is_hidden = is_hidden || !one;
      parent = one ? one->parent : 0;
    }
  };
  climb(::getppid());
  for (std::size_t i = 0; i < above.size(); ++i) {
    if (is_hidden || has(group_of_head)) return false;
    look_at_group(above[i], [&](std::string_view, const process& one) {
      climb(one.parent);
      return true;
    });
  }
  return !is_hidden;
}

}  // namespace holdfast::cli
