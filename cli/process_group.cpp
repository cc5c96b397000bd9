// SPDX-License-Identifier: Apache-2.0
// Who is in a process group, from /proc. Apart from child.cpp because it only tells people, or decides about the
// terminal; nothing of the lock's safety hangs on it.
#include "child.hpp"
#include "escape.hpp"

#include <dirent.h>
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <memory>

namespace holdfast::cli {
namespace {

// "4711 (name with ) and spaces) S 1 4711 ...": the name ends at the last parenthesis.
bool is_living_member(const std::string& stat, pid_t group, std::string& name) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close + 4 >= stat.size()) return false;
  name = stat.substr(open + 1, close - open - 1);
  const char state = stat[close + 2];
  const auto parent_end = stat.find(' ', close + 4);
  if (parent_end == stat.npos) return false;
  pid_t found = 0;
  std::from_chars(stat.data() + parent_end + 1, stat.data() + stat.size(), found);
  return found == group && state != 'Z' && state != 'X';
}

}  // namespace

std::vector<std::string> processes_of_group(pid_t group) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc{::opendir("/proc"), ::closedir};
  if (!proc) return out;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    std::ifstream file{fmt::format("/proc/{}/stat", entry->d_name)};
    std::string stat;
    std::string name;
    if (!std::getline(file, stat) || !is_living_member(stat, group, name)) continue;
    out.push_back(fmt::format("{} ({})", visible(name), entry->d_name));
    if (out.size() == 4) break;
  }
  return out;
}

}  // namespace holdfast::cli
