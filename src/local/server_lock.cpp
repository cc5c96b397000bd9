// SPDX-License-Identifier: Apache-2.0
#include "local/server_lock.hpp"

#include "local/failure.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::local {
namespace {

// Sets errno. Each opens it for itself: a flock goes with the open file, and who shares that shares the lock.
int open_and_lock(const char* directory, int flags) noexcept {
  const int fd = ::open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | flags);
  if (fd < 0) return -1;
  int done = -1;
  do {
    done = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return fd;
  const int error_number = errno;
  ::close(fd);
  errno = error_number;
  return -1;
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

int lock_for_life(const char* directory) noexcept { return open_and_lock(directory, 0) >= 0 ? 0 : errno; }

}  // namespace holdfast::local
