// SPDX-License-Identifier: Apache-2.0
#include "net/link.hpp"

#include "base/assert.hpp"
#include "net/clock.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace holdfast::net {

namespace {

std::string system_text(int error) { return std::generic_category().message(error); }

// How long a reader looks again before it sleeps.
constexpr auto brief = std::chrono::microseconds{50};

// Who speaks for no longer has refused us: it is a replica by now, say.
constexpr auto brief_life = std::chrono::seconds{1};

// From here on every call says by its own flag whether it waits.
void let_reads_wait(int fd) {
  const timeval most{0, std::chrono::microseconds{link::patience}.count()};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

// Of a port of this machine on which nobody listens, the system may make our own end, and TCP connects it with itself.
bool is_own_address(int fd, const sockaddr_storage& peer, socklen_t size) {
  if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) return false;
  sockaddr_storage own{};
  socklen_t own_size = sizeof own;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 && own_size == size &&
         std::memcmp(&own, &peer, size) == 0;
}

// Otherwise the port is in use for a minute more, and the server whose it is could not be started.
void leave_no_trace(int fd) {
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

link::link(endpoint where) : where_{std::move(where)}, attempts_{where_.silent} {}

link::~link() { reset(); }

void link::close() {
  const bool waits_for_peer = phase_ == phase::connecting || (fd_ >= 0 && !has_spoken_);
  if (waits_for_peer && phase_ != phase::reading_files) attempts_.on_silence();
  reset();
}

void link::reset() {
  if (has_spoken_) {
    where_.standing->remove(fd_);
    // What was to be looked up for this connection is no news for the next one, unless this one was no use at all.
    if (boottime_now() - spoke_at_ > brief_life) resolver_.reset();
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  phase_ = phase::closed;
  tls_.reset();
  wire_.clear();
  handshake_wants_write_ = has_spoken_ = false;
  term_ = 0;
}

link::progress link::fail(errc code, std::string text, bool is_final, bool refusal) {
  reset();
  failure_ = {code, std::move(text), is_final, refusal};
  return progress::failed;
}

// A plain Redis may do so, and so does a proxy whose Redis is being started: that passes.
link::progress link::fail_handshake(const std::string& text) {
  attempts_.on_silence();  // Another address may have more to say.
  return fail(errc::tls_failed, text + " during the handshake", false, false);
}

// Of certificates, keys and authorities, ours or the server's. Where they were good before, somebody is changing them
// just now, in more steps than one.
link::progress link::fail_tls(std::string why) { return fail(errc::tls_failed, std::move(why), !was_good_, false); }

link::progress link::open() {
  HOLDFAST_ASSERT(is_closed());
  if (!resolver_ || !resolver_->is_good_for(where_, boottime_now())) look_up();
  phase_ = phase::resolving;
  return advance();
}

void link::look_up() {
  resolver_ = std::make_unique<resolver>(where_);
  ++steps_;
}

link::progress link::advance() try {
  switch (phase_) {
    case phase::closed: return progress::failed;
    case phase::open: return progress::open;
    case phase::resolving: return on_resolved();
    case phase::connecting: return on_connected();
    case phase::reading_files: return on_read();
    case phase::shaking_hands: break;
  }
  std::array<char, 16 * 1024> buffer;
  const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n == 0) return fail_handshake("the server closed the connection");
  if (n < 0 && errno != EAGAIN && errno != EINTR) return fail_handshake(system_text(errno));
  return shake_hands({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
} catch (...) {  // Nobody would come back to where it had no memory to go on.
  reset();
  throw;
}

link::progress link::on_resolved() {
  if (resolver_->is_too_old(boottime_now())) look_up();  // Nobody was there to take it: all of us were stopped.
  auto answer = resolver_->take();
  if (!answer) return progress::pending;
  if (!answer->is_under_way) resolver_.reset();
  if (answer->addresses.empty()) {
    // As in connect_next().
    const bool is_refusal = answer->term == 0 && answer->is_refusal;
    return fail(answer->code, std::move(answer->failure), answer->is_final, is_refusal);
  }
  attempts_.begin(std::move(answer->addresses));
  host_ = std::move(answer->host);
  name_ = std::move(answer->name);
  term_ = answer->term;
  return connect_next();
}

// One address after the other; a refused one costs nothing, a silent one the channel's connect timeout.
link::progress link::connect_next() {
  fd_ = attempts_.connect_next();
  if (fd_ < 0) {
    // Where others name the primary, that it is down is why they will name another.
    const bool is_refusal = term_ == 0 && attempts_.is_refusal();
    return fail(errc::cannot_connect, system_text(attempts_.error()), false, is_refusal);
  }
  phase_ = phase::connecting;
  ++steps_;
  return on_connected();
}

link::progress link::on_connected() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  // poll may wake for other reasons: ask whether there is a peer.
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof peer;
  const bool has_peer = getpeername(fd_, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0;
  if (has_peer && is_own_address(fd_, peer, peer_size)) {
    leave_no_trace(fd_);
    error = ECONNREFUSED;
  }
  if (error != 0) {
    attempts_.on_error(error);
    ::close(std::exchange(fd_, -1));
    return connect_next();
  }
  if (!has_peer) return progress::pending;
  if (!where_.uses_tls) {
    let_reads_wait(fd_);
    phase_ = phase::open;
    return progress::open;
  }
  return read_files();
}

link::progress link::read_files() {
  const time_point now = boottime_now();
  if (!reader_ || !reader_->is_good_for(now)) read_anew(now);
  phase_ = phase::reading_files;
  ++steps_;
  return on_read();
}

void link::read_anew(time_point now) { reader_ = std::make_unique<tls_reader>(where_.tls, now, reader_.get()); }

link::progress link::on_read() {
  // Nobody was there to take it.
  if (const time_point now = boottime_now(); reader_->is_too_old(now)) {
    read_anew(now);
    ++steps_;
  }
  const auto files = reader_->take();
  if (!files) return progress::pending;
  reader_.reset();
  if (!files->context) {
    return files->passes ? fail(errc::cannot_connect, files->failure, false, false) : fail_tls(files->failure);
  }
  std::string why;
  tls_ = tls_session::make(*files->context, host_.empty() ? std::string{"localhost"} : host_, why);
  if (!tls_) return fail_tls(why);
  phase_ = phase::shaking_hands;
  return shake_hands({});
}

std::string link::reads() const { return phase_ == phase::reading_files ? reader_->at() : std::string{}; }

link::progress link::shake_hands(std::string_view bytes) {
  std::string why;
  const bool is_done = tls_->shake_hands(bytes, why);
  const auto unsent = wire_.size();
  tls_->take_wire(wire_);  // Also an alert that says why we refuse.
  if (wire_.size() > unsent) ++steps_;
  const written sent = send_from(wire_);
  if (!why.empty()) return fail_tls(why);
  if (sent == written::failed) return fail_handshake(system_text(errno));
  handshake_wants_write_ = sent == written::some;
  if (!is_done || handshake_wants_write_) return progress::pending;
  phase_ = phase::open;
  return progress::open;
}

pollfd link::poll_for(bool wants_write) const {
  switch (phase_) {
    case phase::closed: break;
    case phase::resolving: return {resolver_->wake_fd(), POLLIN, 0};
    case phase::connecting: return {fd_, POLLOUT, 0};
    case phase::reading_files: return {reader_->wake_fd(), POLLIN, 0};
    case phase::shaking_hands: return {fd_, static_cast<short>(handshake_wants_write_ ? POLLIN | POLLOUT : POLLIN), 0};
    case phase::open: return {fd_, static_cast<short>(wants_write ? POLLIN | POLLOUT : POLLIN), 0};
  }
  return {-1, 0, 0};
}

bool link::read(std::string& into) { return receive(into, MSG_DONTWAIT); }

bool link::read_waiting(std::string& into) {
  HOLDFAST_ASSERT(waits_in_read());
  if (!spinning_.should_try()) return receive(into, 0);
  const auto before = into.size();
  // It yields in between, so that a server on the same core gets its turn.
  for (const time_point until = boottime_now() + brief; boottime_now() < until; sched_yield()) {
    if (!receive(into, MSG_DONTWAIT)) return false;
    if (into.size() == before) continue;
    spinning_.hit();
    return true;
  }
  spinning_.miss();
  return receive(into, 0);
}

bool link::receive(std::string& into, int flags) {
  HOLDFAST_ASSERT(is_open());
  const auto before = into.size();
  const bool is_alive = receive_into(into, flags);
  // Not before: where a server is stopped, or is away behind its proxy, somebody accepts, and shakes hands.
  if (!has_spoken_ && into.size() > before) {
    has_spoken_ = was_good_ = true;
    attempts_.on_spoken();
    spoke_at_ = boottime_now();
    if (!name_.empty()) where_.standing->add(name_, attempts_.last(), fd_);
  }
  return is_alive;
}

bool link::receive_into(std::string& into, int flags) {
  std::array<char, 16 * 1024> buffer;
  for (std::size_t taken = 0; taken < most_at_once; taken += buffer.size()) {
    const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), std::exchange(flags, MSG_DONTWAIT));
    const bool is_over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (is_over && tls_) {
      // What came with the end of the handshake was not asked for there.
      const int how = errno;
      std::string why;
      tls_->decrypt({}, into, why);
      errno = how;
    }
    if (n == 0) {
      failure_ = {errc::connection_lost, "the server closed the connection", false, false};
      return false;
    }
    if (n < 0) {
      if (!is_over) return true;
      failure_ = {errc::connection_lost, system_text(errno), false, false};
      return false;
    }
    const std::string_view bytes{buffer.data(), static_cast<std::size_t>(n)};
    if (!tls_) {
      into.append(bytes);
    } else if (std::string why; !tls_->decrypt(bytes, into, why)) {
      const bool is_refused = tls_->is_refused();
      failure_ = {is_refused ? errc::tls_failed : errc::connection_lost, why, is_refused && !was_good_, false};
      return false;
    }
    if (bytes.size() < buffer.size()) return true;  // Most likely that was all; poll will tell.
  }
  return true;
}

link::written link::write(std::string& plain) {
  HOLDFAST_ASSERT(is_open());
  if (!tls_) return send_from(plain);
  tls_->encrypt(plain);
  plain.clear();
  tls_->take_wire(wire_);
  return send_from(wire_);
}

link::written link::send_from(std::string& bytes) {
  std::size_t sent = 0;
  written result = written::all;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      result = written::some;
      break;
    } else if (errno != EINTR) {
      result = written::failed;
      break;
    }
  }
  bytes.erase(0, sent);
  return result;
}

}  // namespace holdfast::net
