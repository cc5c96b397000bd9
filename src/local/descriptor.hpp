// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace holdfast::local {

class descriptor {
public:
  descriptor() = default;
  // What open(2), socket(2) and the like return: negative is none.
  explicit descriptor(int fd) noexcept : fd_{fd} {}
  ~descriptor() { close(); }
  descriptor(descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  descriptor& operator=(descriptor&&) = delete;

  bool is_open() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }

  // For who closes it otherwise; negative if there is none.
  int release() noexcept { return std::exchange(fd_, -1); }

  // errno stays what it was: it says why the descriptor is closed.
  void close() noexcept {
    if (fd_ < 0) return;
    const int error_number = errno;
    ::close(std::exchange(fd_, -1));
    errno = error_number;
  }

private:
  int fd_ = -1;
};

}  // namespace holdfast::local
