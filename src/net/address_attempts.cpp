// SPDX-License-Identifier: Apache-2.0
#include "net/address_attempts.hpp"

#include "base/assert.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace holdfast::net {

namespace {

void tune(int fd, int family) {
  if (family != AF_INET && family != AF_INET6) return;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A peer that vanished without a word is found out also when nobody asks (H15). Open requests are watched by the
  // channel, much faster.
  const int idle_s = 15;
  const int every_s = 5;
  const int times = 3;
  // As soon where something was written that nobody acknowledges: then there are no probes, and the system would try
  // for a quarter of an hour. It ends the probes, too, so it is as long as they are.
  const int unheard_ms = (idle_s + times * every_s) * 1000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof unheard_ms);
}

// What is said of a host where none of its addresses will do: whatever has most of this, and came last.
int weight_of(int error, int family) {
  switch (error) {
    // That this machine has no such family, no address of it or no way to it says less than what came of another
    // address: `localhost` has two, also where there is no IPv6.
    case EAFNOSUPPORT: return 1;
    case ENETUNREACH: return 2;
    // This machine cannot ask for now, so what another address said is not the host's. (Of IPv4, no address is that all
    // ports to there are in use.)
    case EADDRNOTAVAIL: return family == AF_INET ? 4 : 1;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return 4;
    default: return 3;
  }
}

}  // namespace

void address_attempts::begin(std::vector<socket_address> found) {
  addresses_ = std::move(found);
  next_ = 0;
  error_ = weight_ = 0;
  silent_->put_last(addresses_);
}

int address_attempts::connect_next() {
  while (next_ < addresses_.size()) {
    const socket_address& to = addresses_[next_++];
    const int fd = ::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      on_error(errno);
      continue;
    }
    tune(fd, to.family());
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to.bytes), to.size) == 0 || errno == EINPROGRESS) return fd;
    on_error(errno);
    ::close(fd);
  }
  return -1;
}

void address_attempts::on_error(int error) {
  HOLDFAST_ASSERT(next_ > 0);
  const int weight = weight_of(error, last().family());
  if (weight < weight_) return;
  weight_ = weight;
  error_ = error;
}

void address_attempts::on_silence() {
  HOLDFAST_ASSERT(next_ > 0);
  silent_->note(last());
}

void address_attempts::on_spoken() {
  HOLDFAST_ASSERT(next_ > 0);
  silent_->forget(last());
}

// EAGAIN from a Unix socket is none: its backlog is full; that passes.
bool address_attempts::is_refusal() const {
  return error_ == ECONNREFUSED || error_ == ENOENT || error_ == EACCES || error_ == EHOSTUNREACH ||
         error_ == ENETUNREACH;
}

}  // namespace holdfast::net
