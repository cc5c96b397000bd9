// SPDX-License-Identifier: Apache-2.0
#include "local/probe.hpp"

#include "local/clock.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

namespace holdfast::local {
namespace {

class connection {
public:
  explicit connection(const std::string& path) : fd_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (fd_ < 0 || path.size() >= sizeof address.sun_path) {
      error_ = fd_ < 0 ? errno : ENAMETOOLONG;
      return;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) error_ = errno;
  }
  ~connection() {
    if (fd_ >= 0) ::close(fd_);
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  int error() const { return error_; }

  // The credentials are those of the process that called listen(2), so no pid file is needed or believed.
  int peer_pid() const {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
  }

  bool send(std::string_view bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  // One line without its CRLF; false at the deadline. Empty and true: the peer closed.
  bool receive_line(time_point give_up_at, std::string& line) {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - boottime_now()).count();
      pollfd waiting{fd_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long long>(left, 0, 60'000)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      std::array<char, 512> bytes;
      const auto count = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return true;
      line.append(bytes.data(), static_cast<std::size_t>(count));
      if (const auto end = line.find("\r\n"); end != std::string::npos || line.size() > 1024) {
        line.resize(std::min(end, line.size()));
        return true;
      }
    }
  }

private:
  int fd_;
  int error_ = 0;
};

answer not_connected(int error_number) {
  answer a;
  a.words = std::strerror(error_number);
  switch (error_number) {
    case ENOENT: a.what = presence::absent; break;
    case ECONNREFUSED: a.what = presence::refusing; break;
    case EAGAIN: a.what = presence::silent; break;  // Its queue of connections is full.
    default: a.what = presence::foreign; break;
  }
  return a;
}

}  // namespace

answer ping(const std::string& socket_path, time_point give_up_at) {
  connection server{socket_path};
  if (server.error() != 0) return not_connected(server.error());
  answer a;
  a.pid = server.peer_pid();
  a.what = presence::silent;
  if (!server.send("*1\r\n$4\r\nPING\r\n")) return a;
  if (!server.receive_line(give_up_at, a.words)) return a;
  if (a.words == "+PONG") {
    a.what = presence::running;
  } else if (a.words.empty()) {
    a.what = presence::refusing;  // It ended while we asked.
  } else {
    a.what = a.words.starts_with("-LOADING") ? presence::loading : presence::foreign;
  }
  return a;
}

answer shut_down(const std::string& socket_path, time_point give_up_at) {
  connection server{socket_path};
  if (server.error() != 0) return not_connected(server.error());
  answer a;
  a.pid = server.peer_pid();
  a.what = presence::silent;
  // The append-only file is flushed; NOSAVE because there is no snapshot to write beside it.
  if (!server.send("*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n")) return a;
  if (!server.receive_line(give_up_at, a.words)) return a;
  a.what = a.words.empty() ? presence::refusing : presence::foreign;
  return a;
}

}  // namespace holdfast::local
