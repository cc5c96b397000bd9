// SPDX-License-Identifier: Apache-2.0
#include "client/node.hpp"

#include "net/clock.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

// No reference to the client: hooks may be called while it goes away.
engine::caller::hooks hooks_for(const std::shared_ptr<reporter>& to, const std::shared_ptr<keeper_thread>& keeper) {
  return {[to](time_point) { to->on_up(); }, [to](const engine::connection_failure& f) { to->on_down(f); },
          [to, keeper = std::weak_ptr{keeper}](duration step, const core::server_clock& seen) {
            to->on_clock_step(step);
            if (const auto k = keeper.lock()) k->on_step_seen(step, seen);
          }};
}

}  // namespace

node::node(const node_settings& from, base::random_source& rng, const std::shared_ptr<reporter>& tell,
           const std::shared_ptr<reporter>& tell_of_keeper,
           std::function<void(command_connection::ended_calls)> conclude)
    : uses_tls_{from.where.uses_tls},
      tls_{from.where.tls},
      login_{from.commands.who},
      keeper_{std::make_shared<keeper_thread>(from.where, from.keeper, from.drift, rng, tell_of_keeper)},
      commands_{std::make_shared<command_connection>(from.where, from.commands, rng, hooks_for(tell, keeper_),
                                                     from.ear_name)},
      deputy_{std::make_shared<deputy_thread>(commands_)} {
  commands_->on_refused(from.on_refused);
  keeper_->on_refused(from.on_refused);
  commands_->on_async_end(std::move(conclude));
  commands_->on_stray_hint([keeper = std::weak_ptr{keeper_}](std::string_view owner, server_time said_at) {
    if (const auto k = keeper.lock()) k->on_stray_hint(owner, said_at);
  });
  // Weak, because the deputy keeps the connection.
  commands_->on_lead_for_deputy([deputy = std::weak_ptr{deputy_}] {
    if (const auto d = deputy.lock()) d->wake();
  });
}

void node::stand_by() {
  keeper_->stand_by();
  deputy_->stand_by();
}

void node::start(const std::shared_ptr<async_call>& what) {
  stand_by();
  commands_->start(what);
}

// The deputy last, because a hint that it reads may let the keeper release something sooner.
void node::close(duration at_most, bool wait) noexcept {
  const time_point until = net::boottime_now() + at_most;
  keeper_->close(at_most, wait);
  const bool has_nothing_to_do = wait && !commands_->is_going_on();
  deputy_->close(has_nothing_to_do ? duration{0} : std::max(until - net::boottime_now(), duration{0}), wait);
}

void node::look_around() {
  keeper_->wake();
  deputy_->look_around();
  commands_->look_around();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
