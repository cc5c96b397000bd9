// SPDX-License-Identifier: Apache-2.0
#include "client/connection.hpp"

#include "net/clock.hpp"

#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using namespace std::chrono_literals;

namespace {
// A read that finds nothing costs little beside a request, and one that is sent over a connection that has ended is
// answered by nobody; but whoever calls again and again need not look each time.
constexpr duration stale_after = 20ms;

// What ten thousand requests at once needed is not kept for ever.
void empty(std::string& buffer) {
  constexpr std::size_t worth_keeping = 64 * 1024;
  buffer.clear();
  if (buffer.capacity() > worth_keeping) std::string{}.swap(buffer);
}

}  // namespace

std::optional<engine::connection_failure> connection::silence() const {
  using failure = engine::connection_failure;
  if (const auto what = link_.reads(); !what.empty())
    return failure{errc::tls_failed, what + ": the file system does not answer", false, false};
  if (const auto name = link_.looks_up(); !name.empty())
    return failure{errc::cannot_resolve, "the name service says nothing of " + name, false, false};
  if (!link_.is_shaking_hands()) return std::nullopt;
  // Who has spoken TLS with us hangs now, or is stopped.
  if (channel_->was_ever_ready()) return failure{errc::server_silent, "no answer to the TLS handshake", false, false};
  return failure{errc::tls_failed, "the handshake got no answer; that port probably speaks plain Redis", false, false};
}

void connection::flush(lock& held) {
  while (!is_writing_ && is_open_ && !is_write_over_ && !wants_write_ &&
         (is_cut_short_ || !outgoing_.empty() || !channel_->output().empty())) {
    if (outgoing_.empty()) {
      std::swap(outgoing_, channel_->output());
    } else {
      outgoing_.append(channel_->output());
      empty(channel_->output());
    }
    is_writing_ = true;
    auto result = net::link::written::failed;
    held.unlock();
    try {
      result = link_.write(outgoing_);
    } catch (...) {
      end_writing(held);
      is_open_ = false;  // Nobody knows what is missing: the driver closes it.
      throw;
    }
    end_writing(held);
    is_cut_short_ = wants_write_ = result == net::link::written::some;
    // A failed write is found out by the reader, which also knows what the server said before. Nothing goes out behind
    // it, also where the connection lives (ENOBUFS): its answer would be taken for that of what is missing.
    if (result == net::link::written::failed) {
      is_write_over_ = true;
      return outgoing_.clear();
    }
    if (outgoing_.empty()) empty(outgoing_);
  }
}

void connection::end_writing(lock& held) {
  held.lock();
  is_writing_ = false;
  written_.notify_all();
}

void connection::close_link(lock& held) {
  is_open_ = false;
  while (is_writing_) written_.wait(held);
  link_.close();
  outgoing_.clear();
  is_cut_short_ = wants_write_ = is_write_over_ = false;
}

void connection::prepare(lock& held) {
  // What nobody was there to take in, because all of us were stopped or had left, is no silence.
  if (!channel_->is_closed() && boottime_now() >= channel_->wake_at()) collect(held, POLLIN);
  const time_point now = boottime_now();
  // Somebody had no memory to go on with it.
  const bool is_opening = !link_.is_open() && !link_.is_closed();
  if (!is_open_ && !is_opening) channel_->on_closed(now, {errc::cannot_connect, "out of memory", false, false});
  if (now >= channel_->wake_at()) {
    if (const auto why = silence()) channel_->on_closed(now, *why);
  }
  if (channel_->mind_primary(now, link_.term())) close_link(held);
  if (channel_->on_wake(now) || (channel_->is_closed() && !link_.is_closed())) close_link(held);
  if (!channel_->wants_connection(now)) return;
  if (!link_.is_closed()) close_link(held);
  channel_->on_connecting(now);
  held.unlock();
  const auto progress = link_.open();
  held.lock();
  note(progress);
}

void connection::note(net::link::progress progress) {
  const time_point now = boottime_now();
  if (progress == net::link::progress::failed) {
    if (tell_of_refusal_ && link_.failure().is_refusal) tell_of_refusal_();
    channel_->on_closed(now, link_.failure());
  }
  if (progress != net::link::progress::open) return;
  channel_->on_connected(now, link_.term());
  is_open_ = true;
}

void connection::collect(lock& held, short happened) {
  if (happened == 0 || link_.is_closed()) return;
  if (!is_open_) {
    if (link_.is_open()) return;
    const auto before = link_.steps();
    held.unlock();
    const auto progress = link_.advance();
    held.lock();
    if (progress == net::link::progress::pending && link_.steps() != before) channel_->on_nearer(boottime_now());
    return note(progress);
  }
  if (happened & POLLOUT) wants_write_ = false;
  if (!(happened & ~POLLOUT)) return;

  take_in(held, &net::link::read);
}

bool connection::wait_in_read(lock& held, time_point until) {
  if (!is_open_ || wants_write_ || !link_.waits_in_read()) return false;
  if (until - boottime_now() < net::link::patience) return false;  // It would wake too late.
  take_in(held, &net::link::read_waiting);
  return true;
}

void connection::take_in(lock& held, bool (net::link::*read)(std::string&)) try {
  incoming_.clear();
  held.unlock();
  const bool is_alive = (link_.*read)(incoming_);
  held.lock();
  const time_point now = heard_at_ = boottime_now();
  if (!incoming_.empty()) channel_->on_bytes(now, incoming_);
  if (!is_alive) channel_->on_closed(now, link_.failure());
  if (!is_alive || channel_->must_close()) close_link(held);
  empty(incoming_);
} catch (...) {
  // Of what was read, some may be lost: were it the answer to one request, the next one's would be taken for it.
  if (!held.owns_lock()) held.lock();
  is_open_ = false;
  throw;
}

void connection::collect_if_stale(lock& held) {
  if (is_open_ && boottime_now() - heard_at_ > stale_after) collect(held, POLLIN);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
