// SPDX-License-Identifier: Apache-2.0
// News on their way to the user: log sink, observer and the stop tokens of leases. Everything is posted to the callback
// thread; nothing here runs user code itself.
#pragma once

#include "client/callback_thread.hpp"
#include "engine/keeper.hpp"

#include <holdfast/info.hpp>
#include <holdfast/observer.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

class node;

// A lease as its handle, the keeper and the callbacks share it.
struct lease_record final : engine::held_lease {
  lease_record(std::string n, script::lock_keys k, owner_id o, fencing_token t, std::chrono::milliseconds lasts,
               time_point granted, time_point ends)
      : held_lease{std::move(k), o, t, lasts, ends}, name{std::move(n)}, granted_at{granted} {}
  // What `giver` had, under its next token.
  lease_record(const lease_record& giver, fencing_token t, time_point granted, time_point ends)
      : held_lease{giver.keys, giver.owner, giver.grant, t, giver.ttl, ends},
        name{giver.name},
        granted_at{granted},
        mode{giver.mode} {
    hold_at_most(giver.max_hold, granted);
    was_in_line = giver.was_in_line;
    kept_at = giver.kept_at;
  }
  // `one` as a part of several that are lost together and told so once. `falls`: as held_lease::falls_with.
  lease_record(const lease_record& one, time_point ends, std::stop_source lost_with, std::stop_source at_risk_with,
               std::shared_ptr<std::atomic<errc>> falls)
      : held_lease{one.keys, one.owner, one.grant, one.token, one.ttl, ends},
        name{one.name},
        granted_at{one.granted_at},
        mode{one.mode},
        lost{std::move(lost_with)},
        at_risk{std::move(at_risk_with)},
        unsettled_until{one.unsettled_until} {
    last = one.last;
    was_in_line = one.was_in_line;
    falls_with = std::move(falls);
  }

  // Before anybody else has it.
  void hold_at_most(std::optional<std::chrono::milliseconds> so_long, time_point from) {
    max_hold = so_long;
    if (so_long) last = from + *so_long;
  }

  const std::string name;
  const time_point granted_at;
  renewal mode = renewal::automatic;      // Set before anybody else has it,
  lock_kind kind = lock_kind::exclusive;  // and this.
  std::optional<std::chrono::milliseconds> max_hold{};
  // Of a cluster: whose keeper has it. Under cluster_nodes::moving(). Null: there is only one.
  const std::shared_ptr<node>* kept_at = nullptr;
  std::stop_source lost{};
  std::stop_source at_risk{};
  // Until when an unanswered copy of its acquire may still take effect, by the server's clock and by ours; the epoch
  // when there is none.
  struct unsettled {
    server_time not_after{};
    time_point not_after_local{};
  };
  unsettled unsettled_until{};
  std::atomic<bool> is_let_go{false};  // Released or dropped: no callback may fire any more.

  // Of one of which the server has nothing, whether its keeper has heard of that or not.
  errc why_gone() const {
    const errc reason = lost_reason;
    return reason != errc{} ? reason : errc::lease_gone;
  }
};

class reporter final : public engine::keeper_listener {
public:
  reporter(std::shared_ptr<callback_thread> callbacks, std::string endpoint, log_sink log,
           std::shared_ptr<observer> observe);
  // To the same sink and observer, of another endpoint.
  reporter(const reporter& as, std::string endpoint)
      : callbacks_{as.callbacks_}, endpoint_{std::move(endpoint)}, log_{as.log_}, observe_{as.observe_} {}

  callback_thread& callbacks() { return *callbacks_; }
  const std::string& endpoint() const { return endpoint_; }

  void log(log_level level, std::string_view text) noexcept;

  // Posts `call(observer&)` if there is an observer.
  template <class Call>
  void tell(Call call) noexcept {
    if (!observe_) return;
    try {
      callbacks_->post([to = observe_, call = std::move(call)] { call(*to); });
    } catch (...) {
      // No memory for news; the lock goes on.
    }
  }

  void on_up() override;
  void on_down(const engine::connection_failure&) override;
  void on_clock_step(duration step) override;
  void on_at_risk(const std::shared_ptr<engine::held_lease>&) override;
  void on_lost(const std::shared_ptr<engine::held_lease>&, errc reason) override;
  void on_renewed(const std::shared_ptr<engine::held_lease>&, duration margin) override;
  void on_renew_failed(const std::shared_ptr<engine::held_lease>&, errc reason) override;

private:
  const std::shared_ptr<callback_thread> callbacks_;
  const std::string endpoint_;
  const std::shared_ptr<const log_sink> log_;  // Shared, because to copy it is to run the user's code.
  const std::shared_ptr<observer> observe_;
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
