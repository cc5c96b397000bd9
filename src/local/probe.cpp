// SPDX-License-Identifier: Apache-2.0
#include "local/probe.hpp"

#include "local/clock.hpp"
#include "local/descriptor.hpp"
#include "local/failure.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
  explicit connection(const std::string& path)
      : socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (!socket_.is_open()) fail_with_errno(path, "It cannot be asked, for want of a socket (ulimit -n).", errno);
    if (path.size() >= sizeof address.sun_path) {
      error_ = ENAMETOOLONG;
      return;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) error_ = errno;
  }

  int error() const { return error_; }

  // The credentials are those of the process that called listen(2), so no pid file is needed or believed.
  int peer_pid() const {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
  }

  // Whether it was heard the answer says.
  void send(std::string_view bytes) {
    [[maybe_unused]] const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // One line without its CRLF; false at the deadline. Empty and true: the peer closed.
  bool receive_line(time_point give_up_at, std::string& line) {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - boottime_now()).count();
      pollfd waiting{socket_.get(), POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long long>(left, 0, 60'000)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      std::array<char, 512> bytes;
      const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
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
  descriptor socket_;
  int error_ = 0;
};

// Its queue of connections may be full, of a crowd that came while it could not look: that says nothing about it yet.
connection connect_to(const std::string& socket_path, time_point give_up_at) {
  for (;;) {
    connection server{socket_path};
    if (server.error() != EAGAIN || boottime_now() >= give_up_at) return server;
    pause_for(std::chrono::milliseconds{2});
  }
}

answer not_connected(const std::string& socket_path, int error_number) {
  answer a;
  a.words = std::strerror(error_number);
  switch (error_number) {
    case ENOENT: a.what = presence::absent; break;
    case ECONNREFUSED: a.what = presence::refusing; break;
    case EAGAIN: a.what = presence::silent; break;  // Its queue of connections is full.
    case EACCES:
    case EPERM: a.what = is_placeholder(socket_path) ? presence::refusing : presence::forbidden; break;
    default: a.what = presence::foreign; break;
  }
  return a;
}

presence presence_of(std::string_view words) {
  if (words == "+PONG" || words.starts_with("-MISCONF ")) return presence::running;
  if (words.empty()) return presence::refusing;  // It ended while we asked.
  if (words.starts_with("-LOADING ")) return presence::loading;
  if (words.starts_with("-BUSY ")) return presence::busy;
  if (words.starts_with("-ERR max number of clients")) return presence::crowded;
  return presence::foreign;
}

}  // namespace

bool is_placeholder(const std::string& socket_path) {
  struct stat seen {};
  return ::lstat(socket_path.c_str(), &seen) == 0 && S_ISREG(seen.st_mode);
}

answer ping(const std::string& socket_path, time_point give_up_at) {
  auto server = connect_to(socket_path, give_up_at);
  if (server.error() != 0) return not_connected(socket_path, server.error());
  answer a;
  a.pid = server.peer_pid();
  a.what = presence::silent;
  server.send("*1\r\n$4\r\nPING\r\n");  // One that has too many clients says so and closes, before it is asked.
  if (server.receive_line(give_up_at, a.words)) a.what = presence_of(a.words);
  return a;
}

answer shut_down(const std::string& socket_path, time_point give_up_at) {
  auto server = connect_to(socket_path, give_up_at);
  if (server.error() != 0) return not_connected(socket_path, server.error());
  answer a;
  a.pid = server.peer_pid();
  a.what = presence::silent;
  // The append-only file is flushed; NOSAVE because there is no snapshot to write beside it.
  server.send("*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n");
  if (!server.receive_line(give_up_at, a.words)) return a;
  a.what = presence_of(a.words);
  if (a.what != presence::refusing && a.what != presence::crowded) a.what = presence::foreign;
  return a;
}

}  // namespace holdfast::local
