// SPDX-License-Identifier: Apache-2.0
#include "support/stream_address.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace holdfast::test {
namespace {

struct address {
  explicit address(const stream_address& where) {
    if (const auto* path = std::get_if<std::string>(&where)) {
      auto& local = reinterpret_cast<sockaddr_un&>(bytes);
      local.sun_family = AF_UNIX;
      std::strncpy(local.sun_path, path->c_str(), sizeof local.sun_path - 1);
      size = sizeof local;
    } else {
      auto& loopback = reinterpret_cast<sockaddr_in&>(bytes);
      loopback.sin_family = AF_INET;
      loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      loopback.sin_port = htons(static_cast<std::uint16_t>(std::get<int>(where)));
      size = sizeof loopback;
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }

  sockaddr_storage bytes{};
  socklen_t size = 0;
};

int socket_for(const stream_address& where) {
  const bool is_path = std::holds_alternative<std::string>(where);
  const int fd = ::socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (!is_path) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd;
}

// Of a socket that is none of TCP it is refused, which is as well.
void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

int listen_at(const stream_address& where) {
  if (const auto* path = std::get_if<std::string>(&where)) ::unlink(path->c_str());
  const int fd = socket_for(where);
  const address at{where};
  if (::bind(fd, at.get(), at.size) != 0 || ::listen(fd, 512) != 0) {
    ::close(fd);
    return -1;
  }
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

int connect_to(const stream_address& where) {
  const int fd = socket_for(where);
  const address at{where};
  if (::connect(fd, at.get(), at.size) != 0) {
    ::close(fd);
    return -1;
  }
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  send_at_once(fd);
  return fd;
}

int accept_from(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) send_at_once(fd);
  return fd;
}

int port_of(int socket) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

}  // namespace holdfast::test
