// SPDX-License-Identifier: Apache-2.0
// Whether a server of a directory lives. Each has the directory's own flock(2), exclusively, from before it is run
// until it has ended, whoever started it and whatever became of its socket:
// docs/decisions/0028-one-server-one-directory.md.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace holdfast::local {

// As long as it is there, no server of the directory is, nor can one be run.
class server_lock {
public:
  // nullopt while somebody else has it: a server, or a cleaner such as systemd-tmpfiles, for a moment. Throws error
  // with errc::local_server where the directory cannot be locked.
  static std::optional<server_lock> try_take(const std::string& directory);

  ~server_lock();
  server_lock(server_lock&& other) noexcept : fd_{other.fd_} { other.fd_ = -1; }
  server_lock(const server_lock&) = delete;
  server_lock& operator=(const server_lock&) = delete;
  server_lock& operator=(server_lock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

private:
  explicit server_lock(int fd) : fd_{fd} {}

  int fd_;
};

// For who becomes the server, between fork and exec: the lock is its own, and stays over exec. 0, EWOULDBLOCK, or what
// open(2) or flock(2) say.
int lock_for_life(const char* directory) noexcept;

}  // namespace holdfast::local
