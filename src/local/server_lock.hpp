// SPDX-License-Identifier: Apache-2.0
// Whether a server of a directory lives. Each has the directory's own flock(2), exclusively, from before it is run
// until it has ended, whoever started it and whatever became of its socket:
// docs/decisions/0028-one-server-one-directory.md.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// For who becomes the server, between fork and exec: the lock is its own, and stays over exec; from then on it works in
// the directory, by which it is found. 0, EWOULDBLOCK, or what open(2), flock(2) or chdir(2) say.
int lock_for_life(const char* directory) noexcept;

// For the same: one that others share, so that nobody cleans this directory meanwhile, either. Whether it can be had or
// not.
void keep_from_cleaners(const char* directory) noexcept;

// Those that have the lock and work in the directory: a server, whoever started it, and its children. A cleaner has no
// business in there and is none of them; nor is who cannot be seen from here.
std::vector<int> servers_of(const std::string& directory);

}  // namespace holdfast::local
