// SPDX-License-Identifier: Apache-2.0
#include "local/server_lock.hpp"

#include "local/failure.hpp"
#include "local/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace holdfast::local {
namespace {

namespace fs = std::filesystem;

// Sets errno. Each opens it for itself: a flock goes with the open file, and who shares that shares the lock.
int open_and_lock(const char* directory, int flags, int how = LOCK_EX) noexcept {
  const int fd = ::open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | flags);
  if (fd < 0) return -1;
  int done = -1;
  do {
    done = ::flock(fd, how | LOCK_NB);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return fd;
  const int error_number = errno;
  ::close(fd);
  errno = error_number;
  return -1;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator at{directory, ec}; !ec && at != fs::directory_iterator{}; at.increment(ec))
    names.push_back(at->path().filename().string());
  return names;
}

// 0 for what is no number.
int pid_of(const std::string& name) {
  int pid = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return ec == std::errc{} && end == name.data() + name.size() ? pid : 0;
}

// The kernel shows a flock(2) with the open files that have it.
bool has_lock_of(int pid, const std::string& directory) {
  struct stat named {};
  if (::stat(directory.c_str(), &named) != 0) return false;
  for (const auto& fd : names_in(fmt::format("/proc/{}/fd", pid))) {
    struct stat its {};
    if (::stat(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), &its) != 0 || its.st_dev != named.st_dev ||
        its.st_ino != named.st_ino)
      continue;
    // It may be closed, or the process end, between any two of these.
    const auto text = text_of_proc(fmt::format("/proc/{}/fdinfo/{}", pid, fd));
    if (text && text->find("FLOCK") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::optional<server_lock> server_lock::try_take(const std::string& directory) {
  const int fd = open_and_lock(directory.c_str(), O_CLOEXEC);
  if (fd >= 0) return server_lock{fd};
  if (errno == EWOULDBLOCK) return std::nullopt;
  fail_with_errno(directory, "Whether a server of it runs cannot be told: it cannot be locked.", errno);
}

// Not by close(2) alone: another thread may have forked, and the child would keep it.
server_lock::~server_lock() {
  if (fd_ < 0) return;
  ::flock(fd_, LOCK_UN);
  ::close(fd_);
}

int lock_for_life(const char* directory) noexcept {
  const int fd = open_and_lock(directory, 0);
  return fd >= 0 && ::fchdir(fd) == 0 ? 0 : errno;
}

void keep_from_cleaners(const char* directory) noexcept { open_and_lock(directory, 0, LOCK_SH); }

std::vector<int> servers_of(const std::string& directory) {
  std::vector<int> found;
  for (const auto& name : names_in("/proc"))
    if (const int pid = pid_of(name); works_in(pid, directory) && has_lock_of(pid, directory)) found.push_back(pid);
  return found;
}

}  // namespace holdfast::local
