// SPDX-License-Identifier: Apache-2.0
#include "local/directory_lock.hpp"

#include "local/clock.hpp"
#include "local/failure.hpp"
#include "local/plain_file.hpp"
#include "local/shell_word.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

// Whoever ends a lab removes the lock's file too; then what we waited for locks nothing any more.
bool is_still_there(int fd, const std::string& file) {
  struct stat ours {};
  struct stat named {};
  return ::fstat(fd, &ours) == 0 && ::stat(file.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

// Not by close(2) alone: another thread may have forked, and the child has the same open file. It may never exec.
void let_go(int fd) {
  ::flock(fd, LOCK_UN);
  ::close(fd);
}

}  // namespace

directory_lock::directory_lock(const std::string& file, mode_t mode, time_point give_up_at) {
  for (;;) {
    if (fd_ < 0) {
      fd_ = open_or_make_plain(file, O_RDWR, mode).release();
      if (fd_ < 0) fail_with_errno(file, "The lock file cannot be opened.", errno);
    }
    const bool is_locked = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
    const int error_number = errno;
    if (is_locked && is_still_there(fd_, file)) return;
    if (is_locked || (error_number != EWOULDBLOCK && error_number != EINTR)) {
      let_go(fd_);
      fd_ = -1;
      if (!is_locked) fail_with_errno(file, "It cannot be locked.", error_number);
    }
    if (boottime_now() >= give_up_at) {
      if (fd_ >= 0) ::close(fd_);
      fail(file, "Another process has been starting or stopping this server for too long: `lslocks | grep -F " +
                     shell_word(file) + "` shows it.");
    }
    pause_for(2ms);
  }
}

directory_lock::~directory_lock() { let_go(fd_); }

}  // namespace holdfast::local
