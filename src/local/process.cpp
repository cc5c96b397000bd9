// SPDX-License-Identifier: Apache-2.0
#include "local/process.hpp"

#include "local/clock.hpp"
#include "local/failure.hpp"
#include "local/plain_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace holdfast::local {
namespace {

constexpr const char* boot_id_file = "/proc/sys/kernel/random/boot_id";

std::string name_of(int pid) { return "process " + std::to_string(pid); }

// What is said of a process is believed by those who start another one in its place or remove its files: so "it has
// ended" is nothing that may be supposed.
[[noreturn]] void fail_to_see(const std::string& subject, const std::string& by, int error_number) {
  const auto way_out = error_number == EMFILE || error_number == ENFILE
                           ? "more descriptors are needed (ulimit -n)."
                           : "outside of this sandbox or container it can, on Linux 5.3 or later.";
  fail_with_errno(subject, "Whether it runs cannot be told by " + by + "; " + way_out, error_number);
}

// Field `number` of /proc/PID/stat, counted as proc(5) does, from 3 on: the second is a name and may hold anything, but
// its closing parenthesis is the last one. Empty if there is no such file.
std::string field_of(int pid, int number) {
  if (pid <= 0) return {};
  const auto path = "/proc/" + std::to_string(pid) + "/stat";
  const auto text = text_of_proc(path);
  if (!text && errno != ENOENT && errno != ESRCH) fail_to_see(name_of(pid), path, errno);
  if (!text) return {};
  const auto end = text->rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream words{text->substr(end + 1)};
  std::string word;
  for (int at = 3; at <= number; ++at) {
    if (!(words >> word)) return {};
  }
  return word;
}

std::optional<std::string> boot_id_if_readable() {
  auto id = text_of_proc(boot_id_file);
  if (id) id->erase(std::min(id->find('\n'), id->size()));
  return id;
}

}  // namespace

std::optional<std::string> text_of_proc(const std::string& path) {
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  return file.is_open() ? rest_of(file) : std::nullopt;
}

std::uint64_t started_at(int pid) {
  const auto text = field_of(pid, 22);
  return text.empty() ? 0 : std::stoull(text);
}

char state_of(int pid) {
  const auto text = field_of(pid, 3);
  return text.empty() ? '\0' : text.front();
}

bool works_in(int pid, const std::string& directory) {
  struct stat its {};
  struct stat named {};
  return pid > 0 && ::stat(("/proc/" + std::to_string(pid) + "/cwd").c_str(), &its) == 0 &&
         ::stat(directory.c_str(), &named) == 0 && its.st_dev == named.st_dev && its.st_ino == named.st_ino;
}

std::string pattern_for_pkill(const std::string& socket) {
  std::string pattern = "'unixsocket[: ]";  // As it calls itself, and in its arguments before that.
  for (const char c : socket) {
    if (c == '\'') pattern += "'\\'";
    if (std::string_view{"\\.[{()*+?^$|"}.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "'";
}

std::string boot_id() {
  auto id = boot_id_if_readable();
  if (id && !id->empty()) return std::move(*id);
  fail_with_errno(boot_id_file, "Whether the machine was booted since cannot be told.", id ? EIO : errno);
}

std::string kernel_boot_id() {
  struct statfs seen {};
  if (::statfs(boot_id_file, &seen) != 0 || seen.f_type != PROC_SUPER_MAGIC)
    return {};  // Something is mounted over it.
  return boot_id_if_readable().value_or("");
}

void check_that_processes_can_be_watched() {
  const int ours = ::getpid();
  const process_handle self{ours};
  if (started_at(ours) == 0) fail_to_see(name_of(ours), "/proc", ENOENT);
}

process_handle::process_handle(int pid) : process_{pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1} {
  if (process_.is_open()) return;
  if (pid <= 0) fail_to_see(name_of(pid), "its number, which is of another container", ESRCH);
  if (errno != ESRCH) fail_to_see(name_of(pid), "pidfd_open(2)", errno);
}

// First the descriptor, then the question: if the process that is there now is the one that we mean, it was there a
// moment ago too.
process_handle::process_handle(int pid, std::uint64_t started) : process_handle{pid} {
  if (!process_.is_open()) return;
  const auto seen = started_at(pid);
  if (seen != 0 && seen == started) return;
  if (seen == 0 && running()) fail_to_see(name_of(pid), "/proc", ENOENT);
  process_.close();
}

bool process_handle::ended_within(std::chrono::milliseconds time) const {
  if (!process_.is_open()) return true;
  const auto give_up_at = boottime_now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - boottime_now()).count();
    pollfd watched{process_.get(), POLLIN, 0};
    const int ended = ::poll(&watched, 1, static_cast<int>(std::clamp<long long>(left, 0, 60'000)));
    if (ended > 0) return true;
    if (ended < 0 && errno != EINTR) fail_to_see("a process", "poll(2)", errno);
    if (ended == 0 && boottime_now() >= give_up_at) return false;
  }
}

bool process_handle::signal(int number) const {
  // A zombie takes signals too, and nothing comes of them.
  if (!running()) return false;
  if (::syscall(SYS_pidfd_send_signal, process_.get(), number, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  fail_with_errno("signal " + std::to_string(number), "It cannot be sent to a process of ours.", errno);
}

}  // namespace holdfast::local
