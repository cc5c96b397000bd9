// SPDX-License-Identifier: Apache-2.0
// The calls that share one connection, and its news handed to each of them.
#pragma once

#include "base/random.hpp"
#include "engine/call.hpp"

#include <boost/intrusive/list.hpp>

#include <functional>
#include <string_view>
#include <utility>

namespace holdfast::engine {

// The calls of one connection: hands the connection's news to each of them.
class caller final : public channel_listener {
public:
  // What the client wants to know. Called under the driver's mutex; must not call back, but that on_up may end the
  // connection.
  struct hooks {
    std::function<void(time_point now)> on_up{};
    std::function<void(const connection_failure&)> on_down{};
    // The server's clock went so far against ours, and is seen so now.
    std::function<void(duration, const core::server_clock& seen)> on_clock_step{};
    // A hint for an owner id that no call of ours waits as.
    std::function<void(std::string_view owner, server_time said_at)> on_stray_hint{};
  };

  caller(channel::settings settings, base::random_source& rng, hooks tell)
      : tell_{std::move(tell)}, channel_{std::move(settings), rng, *this} {}

  channel& wire() { return channel_; }

  // A call must be stopped before it goes away: late replies to it are dropped from then on.
  void start(call& what, time_point now);
  void stop(call& what);

  // There may be many that wait in line from now on: the scripts for that are loaded ahead of them, on each connection.
  void expect_many(time_point now);

  void on_hint(time_point now, std::string_view owner, server_time said_at, duration look_in);
  void on_hearing_changed(time_point now);

  // Those whose slot is served elsewhere are done here.
  void leave_server(time_point now, const std::function<bool(int slot)>& is_served_here);

  void on_ready(time_point now) override;
  void on_down(time_point now, const connection_failure& failure, bool was_ready) override;
  void on_clock_step(time_point now, duration step) override;

private:
  template <class Tell>
  void tell_all(Tell&& tell);
  void update_demand() { channel_.set_demand(!calls_.empty(), giving_back_ > 0); }

  using call_list =
      boost::intrusive::list<call,
                             boost::intrusive::member_hook<call, boost::intrusive::list_member_hook<>, &call::listed_>,
                             boost::intrusive::constant_time_size<false>>;

  hooks tell_;
  call_list calls_;  // In the order of their starts, which is the order in which they are told.
  call_index index_;
  int giving_back_ = 0;
  bool expects_many_ = false;
  channel channel_;
};

}  // namespace holdfast::engine
