// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstring>

namespace holdfast::net {

// As connect(2) takes it.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family() const { return bytes.ss_family; }
  friend bool operator==(const socket_address& a, const socket_address& b) {
    return a.size == b.size && std::memcmp(&a.bytes, &b.bytes, a.size) == 0;
  }
};

}  // namespace holdfast::net
