// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

namespace holdfast::net {

// As connect(2) takes it.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family() const { return bytes.ss_family; }
};

}  // namespace holdfast::net
