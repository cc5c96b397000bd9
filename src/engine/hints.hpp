// SPDX-License-Identifier: Apache-2.0
// What the server's line says to this process: one subscription to one channel, on a connection of its own. A message
// is a hint to look and nothing else (H20, B31): whatever is lost here costs time and no more.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/acquire_call.hpp"
#include "engine/channel.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace holdfast::engine {

//  hearing | subscribed  | refused, final failure | connection ended | wanted | message
//  --------+-------------+------------------------+------------------+--------+--------
//  pending | -> yes      | -> no                  | pending          | connects | hint
//  yes     | -           | -                      | -> pending       | -      | hint
//  no      | -> yes      | no                     | no               | -      | -
//
// Subscribed counts only while the command connection has reached the same server.
//
// `no` is kept until a connection of its own comes up again: who may not subscribe should not be waited for each time.
class hints final : public channel_listener, public reply_sink {
public:
  struct hooks {
    // `owner`: 32 hex digits. `said_at`: by the server's clock. Look after `look_in`.
    std::function<void(time_point now, std::string_view owner, server_time said_at, duration look_in)> on_hint{};
    std::function<void(time_point now)> on_hearing_changed{};
  };

  // `commands`: on which the entries are sent that name our channel.
  hints(channel::settings settings, std::string channel_name, channel& commands, base::random_source& rng, hooks tell);

  channel& wire() { return channel_; }
  const std::string& channel_name() const { return name_; }
  core::hearing hearing() const { return hearing_; }
  // From the first waiter on.
  void want();
  bool is_wanted() const { return is_wanted_; }
  // A turn was missed that should have been said here. A connection that was cut off silently looks well from this end
  // and subscribed from the other: it is made anew, or each turn would be missed.
  void doubt(time_point now);
  // One of the two connections is ready. Both must have reached the same run of the same server, or what is queued on
  // one would be told on none: else both end, to be made anew (P6).
  void compare(time_point now);

  void on_ready(time_point now) override;
  void on_down(time_point now, const connection_failure& failure, bool was_ready) override;
  void on_clock_step(duration) override {}
  bool on_push(time_point now, const resp::value& what) override;
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point) override {}

private:
  void set(time_point now, core::hearing what);

  std::string name_;
  channel* commands_;
  hooks tell_;
  core::hearing hearing_ = core::hearing::pending;
  bool is_wanted_ = false;
  time_point subscribed_at_{};
  channel channel_;
};

}  // namespace holdfast::engine
