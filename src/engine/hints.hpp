// SPDX-License-Identifier: Apache-2.0
// What the server's line says to this process: one subscription to one channel, on a connection of its own. A message
// is a hint to look and nothing else (H20, B31): whatever is lost here costs time and no more.
//
// At a node of a cluster the channel is a sharded one, in a slot of that node, so that nothing of it goes over the
// cluster's bus: `NAME:{number}`, the number that its epoch is kept under. Where that is refused (Redis 6, its ACL, the
// slot has just moved), and when the slot leaves, it is `NAME` as on a single server
// (docs/decisions/0026-sharded-channels.md).
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/acquire_call.hpp"
#include "engine/channel.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::engine {

//  hearing | subscribed  | refused, final failure | connection ended | slot gone  | wanted   | message
//  --------+-------------+------------------------+------------------+------------+----------+--------
//  pending | -> yes      | -> no                  | pending          | -          | connects | hint
//  yes     | -           | -                      | -> pending       | -> pending | -        | hint
//  no      | -> yes      | no                     | no               | -          | asks     | -
//
// Refused is only what there is nothing left to try for. Where the server is busy for now, the connection ends and the
// next one subscribes.
//
// Subscribed counts only while the command connection has reached the same server.
//
// `no` is kept until a subscription is granted: who may not subscribe should not be waited for each time. It is asked
// for with each connection, and again while somebody waits, because an ACL is repaired without ending a connection.
class hints final : public channel_listener, public reply_sink {
public:
  struct hooks {
    // `owner`: 32 hex digits. `said_at`: by the server's clock. Look after `look_in`.
    std::function<void(time_point now, std::string_view owner, server_time said_at, duration look_in)> on_hint{};
    std::function<void(time_point now)> on_hearing_changed{};
  };

  // `commands`: on which the entries are sent that name our channel. settings.epoch.tag: the number; null: the server
  // is no node of a cluster.
  hints(channel::settings settings, std::string channel_name, channel& commands, base::random_source& rng, hooks tell);

  channel& wire() { return channel_; }
  // Another one after the subscription has ended, when hearing() is no longer yes.
  const std::string& channel_name() const { return channel_name_; }
  core::hearing hearing() const { return hearing_; }
  // From the first waiter on; said again whenever one of them wakes up.
  void want(time_point now);
  bool is_wanted() const { return is_wanted_; }
  // A turn was missed that should have been said here. A connection that was cut off silently looks well from this end
  // and subscribed from the other: it is made anew, or each turn would be missed.
  void doubt(time_point now);
  // One of the two connections is ready. Both must have reached the same run of the same server, or what is queued on
  // one would be told on none: else both end, to be made anew (P6).
  void compare(time_point now);

  void on_ready(time_point now) override;
  void on_down(time_point now, const connection_failure& failure, bool was_ready) override;
  void on_clock_step(time_point, duration) override {}
  bool on_push(time_point now, const resp::value& what) override;
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point) override {}

private:
  void subscribe(time_point now);
  bool is_sharded() const { return channel_name_.size() != name_.size(); }
  void set(time_point now, core::hearing what);

  const std::string name_;
  const std::shared_ptr<const std::atomic<int>> tag_;
  std::optional<int> tried_{};  // The number that was tried last, on this connection.
  std::string channel_name_ = name_;
  channel* commands_;
  hooks tell_;
  core::hearing hearing_ = core::hearing::pending;
  bool is_wanted_ = false;
  std::uint8_t put_off_ = 0;  // How often in a row the server was only busy. Each time costs a connection:
  static constexpr std::uint8_t most_put_off = 3;
  static constexpr std::chrono::seconds asked_again_after{10};
  time_point subscribed_at_{};  // Or asked for it, or was told that it may not.
  channel channel_;
};

}  // namespace holdfast::engine
