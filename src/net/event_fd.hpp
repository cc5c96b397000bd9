// SPDX-License-Identifier: Apache-2.0
// How one thread wakes another that is waiting in poll(2).
#pragma once

#include "net/uncancelled.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace holdfast::net {

class event_fd {
public:
  event_fd() : fd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (fd_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
  }
  ~event_fd() { ::close(fd_); }
  event_fd(const event_fd&) = delete;
  event_fd& operator=(const event_fd&) = delete;

  int get() const { return fd_; }
  void set() noexcept {
    const uncancelled until_done;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd_, &one, sizeof one);
  }
  void clear() noexcept {
    const uncancelled until_done;
    std::uint64_t count = 0;
    [[maybe_unused]] const auto n = ::read(fd_, &count, sizeof count);
  }

private:
  int fd_;
};

}  // namespace holdfast::net
