// SPDX-License-Identifier: Apache-2.0
#include "local/process.hpp"

#include <linux/magic.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace holdfast::local {
namespace {

constexpr const char* boot_id_file = "/proc/sys/kernel/random/boot_id";

// Field `number` of /proc/PID/stat, counted as proc(5) does, from 3 on: the second is a name and may hold anything, but
// its closing parenthesis is the last one.
std::string field_of(int pid, int number) {
  if (pid <= 0) return {};
  std::ifstream stat{"/proc/" + std::to_string(pid) + "/stat"};
  std::ostringstream all;
  all << stat.rdbuf();
  const auto text = all.str();
  const auto end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream words{text.substr(end + 1)};
  std::string word;
  for (int at = 3; at <= number; ++at) {
    if (!(words >> word)) return {};
  }
  return word;
}

}  // namespace

std::uint64_t started_at(int pid) {
  const auto text = field_of(pid, 22);
  return text.empty() ? 0 : std::stoull(text);
}

char state_of(int pid) {
  const auto text = field_of(pid, 3);
  return text.empty() ? '\0' : text.front();
}

std::string boot_id() {
  std::string id;
  std::ifstream{boot_id_file} >> id;
  return id;
}

std::string kernel_boot_id() {
  struct statfs seen {};
  if (::statfs(boot_id_file, &seen) != 0 || seen.f_type != PROC_SUPER_MAGIC)
    return {};  // Something is mounted over it.
  return boot_id();
}

process_handle::process_handle(int pid) : fd_{pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1} {}

// First the descriptor, then the question: if the process that is there now is the one that we mean, it was there a
// moment ago too.
process_handle::process_handle(int pid, std::uint64_t started) : process_handle{pid} {
  if (fd_ >= 0 && (started == 0 || started_at(pid) != started)) {
    ::close(fd_);
    fd_ = -1;
  }
}

process_handle::~process_handle() {
  if (fd_ >= 0) ::close(fd_);
}

bool process_handle::ended_within(std::chrono::milliseconds time) const {
  if (fd_ < 0) return true;
  pollfd watched{fd_, POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(time.count())) > 0;
}

bool process_handle::signal(int number) const {
  // A zombie takes signals too, and nothing comes of them.
  return running() && ::syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0) == 0;
}

}  // namespace holdfast::local
