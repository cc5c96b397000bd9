// SPDX-License-Identifier: Apache-2.0
#include "support/reserved_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace holdfast::test {

// The connections of the server that has ended may still be there, and only who says SO_REUSEADDR gets the port then;
// while we say it, everybody else who does gets it, too.
reserved_port::reserved_port(int port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
}

reserved_port::reserved_port(reserved_port&& from) noexcept : socket_{std::exchange(from.socket_, -1)} {}

reserved_port::~reserved_port() {
  if (socket_ >= 0) ::close(socket_);
}

}  // namespace holdfast::test
