// SPDX-License-Identifier: Apache-2.0
// One channel on one link under one mutex: what all of a client's connections have in common. Bytes flow here;
// who drives is decided by command_connection (calling threads and the deputy) and keeper_thread.
//
// Nobody holds the mutex in a system call: output is taken out under it and written without it, by one thread at a
// time; input is read without it, by the driver, and handed in under it.
#pragma once

#include "base/time.hpp"
#include "engine/channel.hpp"
#include "net/link.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

class connection {
public:
  // `mutex`: guards it and the channel; shared with whoever else touches them, and outlives it.
  connection(net::endpoint where, engine::channel& channel, std::mutex& mutex)
      : mutex_{&mutex}, channel_{&channel}, link_{std::move(where)} {}

  using lock = std::unique_lock<std::mutex>;
  std::mutex& mutex() { return *mutex_; }

  // Who hears that a connection was refused. Set once, before the first of them; called under our mutex, and must
  // neither call back nor throw.
  void on_refused(std::function<void()> tell) { tell_of_refusal_ = std::move(tell); }

  // Writes what waits, unless another thread is at it (then that thread goes on until nothing waits: calls that come
  // together share one write).
  void flush(lock& held);

  // The driver's, in this order; `now` is read by the callee where it matters.
  //   prepare: closes and opens what must be; poll_for: what to wait for; collect: takes in what has come.
  void prepare(lock& held);
  pollfd poll_for() const { return link_.poll_for(wants_write_); }
  time_point wake_at() const { return channel_->wake_at(); }
  void collect(lock& held, short happened);

  // Instead of waiting for poll_for() and collect(): waits in the read itself, at most net::link::patience. False: this
  // connection cannot, now.
  bool wait_in_read(lock& held, time_point until);

  // Takes in what has come already, without waiting: finds out that a server closed an idle connection.
  void collect_if_stale(lock& held);

  engine::channel& channel() { return *channel_; }
  bool is_shaking_hands() const { return link_.is_shaking_hands(); }
  // What it means when nothing comes of what it is at: a TLS handshake, or the files for one. Null: the channel knows.
  std::optional<engine::connection_failure> silence() const;

private:
  void close_link(lock& held);
  void note(net::link::progress progress);
  void take_in(lock& held, bool (net::link::*read)(std::string&));
  void end_writing(lock& held);

  std::mutex* mutex_;
  engine::channel* channel_;
  net::link link_;
  std::function<void()> tell_of_refusal_{};
  std::condition_variable written_{};
  // As the link, but read under the mutex while the driver is at work on the link. False although it is open: somebody
  // had no memory to read or to write all of something.
  bool is_open_ = false;
  bool is_writing_ = false;
  bool wants_write_ = false;    // Until poll says that there is room.
  bool is_write_over_ = false;  // One failed: nothing goes out any more.
  bool is_cut_short_ = false;   // The link has taken a part: under TLS it has the rest, and outgoing_ is empty.
  time_point heard_at_{};
  std::string outgoing_{};  // The writer's.
  std::string incoming_{};  // The driver's.
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
