// SPDX-License-Identifier: Apache-2.0
#include "client/keeper_thread.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "net/wait_for.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

keeper_thread::keeper_thread(net::endpoint where, engine::channel::settings settings, core::clock_drift drift,
                             base::random_source& rng, std::shared_ptr<engine::keeper_listener> listener)
    : listener_{std::move(listener)},
      keeper_{std::move(settings), drift, rng, *listener_},
      line_{std::move(where), keeper_.wire(), mutex_} {}

void keeper_thread::start() {
  if (is_started_ || close_at_ != never) return;
  thread_ = net::start_quietly([self = shared_from_this()] { self->run(); });
  is_started_ = true;
}

void keeper_thread::wake_if_sooner() {
  if (keeper_.wake_at() >= asleep_until_) return;
  wake_.set();
  // A lease that is given back at once takes its time with it. The thread keeps this one nevertheless, so that the next
  // lease, which is due later, need not wake it again.
  comes_back_at_ = std::min(comes_back_at_, keeper_.wake_at());
}

void keeper_thread::keep(std::shared_ptr<engine::held_lease> lease, time_point granted_at, time_point deadline,
                         renewal mode, const core::server_clock& seen) {
  const std::lock_guard held{line_.mutex()};
  start();
  keeper_.wire().learn_clock(seen);
  keeper_.keep(std::move(lease), granted_at, deadline, mode);
  wake_if_sooner();
}

bool keeper_thread::let_go(const engine::held_lease& lease) {
  const std::lock_guard held{line_.mutex()};
  return keeper_.let_go(lease);
}

bool keeper_thread::hand_on(const engine::held_lease& giver, std::shared_ptr<engine::held_lease> next, time_point now,
                            time_point deadline, renewal mode) {
  const std::lock_guard held{line_.mutex()};
  if (!keeper_.let_go(giver)) return false;
  keeper_.keep(std::move(next), now, deadline, mode);
  wake_if_sooner();
  return true;
}

std::optional<std::size_t> keeper_thread::join(const engine::keeper::leases& each, engine::keeper::leases as_one,
                                               time_point deadline, renewal mode) {
  const std::lock_guard held{line_.mutex()};
  const auto gone = std::find_if(each.begin(), each.end(), [&](const auto& one) { return !keeper_.is_kept(*one); });
  if (gone != each.end()) return static_cast<std::size_t>(gone - each.begin());
  for (const auto& one : each) keeper_.let_go(*one);
  // Counted from where the earliest of them counts.
  keeper_.keep_as_one(std::move(as_one), never, deadline, mode);
  wake_if_sooner();
  return std::nullopt;
}

bool keeper_thread::renew_now(const engine::held_lease& lease, time_point give_up_at,
                              std::shared_ptr<engine::renewal_wish> whose) {
  const std::lock_guard held{line_.mutex()};
  if (!keeper_.renew_now(boottime_now(), lease, give_up_at, std::move(whose))) return false;
  wake_if_sooner();
  return true;
}

void keeper_thread::cancel(const engine::held_lease& lease, const engine::renewal_wish& whose) {
  const std::lock_guard held{line_.mutex()};
  keeper_.cancel(lease, whose);
}

void keeper_thread::reserve(engine::keeper::reservation what) {
  const std::lock_guard held{line_.mutex()};
  keeper_.reserve(boottime_now(), std::move(what));
  wake_if_sooner();
}

// Of whoever gives back, which does not fail for that: when there is no thread now, the next one that starts it takes
// it along, or the ttl ends it.
void keeper_thread::release_later(engine::keeper::background_release what) {
  const std::lock_guard held{line_.mutex()};
  keeper_.release_later(boottime_now(), std::move(what));
  try {
    start();
  } catch (const std::system_error&) {
    return;
  }
  wake_if_sooner();
}

void keeper_thread::on_stray_hint(std::string_view owner, server_time said_at) {
  const std::lock_guard held{line_.mutex()};
  keeper_.on_stray_hint(boottime_now(), owner, said_at);
  wake_if_sooner();
}

void keeper_thread::on_step_seen(duration step, const core::server_clock& seen) {
  const std::lock_guard held{line_.mutex()};
  keeper_.on_step_seen(boottime_now(), step, seen);
  wake_if_sooner();
}

std::vector<engine::keeper::departing> keeper_thread::take_away(
    const std::function<bool(const script::lock_keys&)>& which) {
  const std::lock_guard held{line_.mutex()};
  return keeper_.take_away(boottime_now(), which);
}

void keeper_thread::adopt(engine::keeper::departing what) {
  const std::lock_guard held{line_.mutex()};
  keeper_.adopt(boottime_now(), std::move(what));
  wake_if_sooner();
}

void keeper_thread::start_if_it_keeps() {
  const std::lock_guard held{line_.mutex()};
  if (keeper_.wake_at() != never) start();
}

void keeper_thread::stand_by() {
  if (is_started_) return;
  const std::lock_guard held{line_.mutex()};
  start();
}

void keeper_thread::close(duration at_most, bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{line_.mutex()};
    close_at_ = boottime_now() + at_most;
    ending = std::move(thread_);
  }
  wake_.set();
  net::let_end(std::move(ending), wait);
}

void keeper_thread::run() {
  connection::lock held{line_.mutex()};
  for (;;) {
    const time_point now = boottime_now();
    if (now >= comes_back_at_) comes_back_at_ = never;
    keeper_.on_wake(now);
    if (close_at_ != never && (now >= close_at_ || !keeper_.has_background_releases())) return;
    line_.prepare(held);
    line_.flush(held);
    wait_and_collect(held);
  }
}

void keeper_thread::wait_and_collect(connection::lock& held) {
  const time_point until = asleep_until_ = std::min({keeper_.wake_at(), comes_back_at_, close_at_});
  std::array<pollfd, 3> fds{line_.poll_for(), pollfd{wake_.get(), POLLIN, 0}, pollfd{timer_.get(), POLLIN, 0}};
  held.unlock();

  timer_.set(until);
  net::wait_for(fds, never);
  if (fds[1].revents) wake_.clear();
  if (fds[2].revents) timer_.went_off();

  held.lock();
  asleep_until_ = time_point{};
  line_.collect(held, fds[0].revents);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
