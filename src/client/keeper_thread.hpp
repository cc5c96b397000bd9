// SPDX-License-Identifier: Apache-2.0
// The thread that renews, and its own connection. It does nothing else, and nobody else drives it, so that a stopped,
// throttled or cancelled caller cannot cost a lease (P32).
#pragma once

#include "client/connection.hpp"
#include "engine/keeper.hpp"
#include "net/event_fd.hpp"
#include "net/timer_fd.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class keeper_thread : public std::enable_shared_from_this<keeper_thread> {
public:
  keeper_thread(net::endpoint where, engine::channel::settings settings, core::clock_drift drift,
                base::random_source& rng, std::shared_ptr<engine::keeper_listener> listener);

  // As connection::on_refused.
  void on_refused(std::function<void()> tell) { line_.on_refused(std::move(tell)); }

  // See engine::keeper. Each starts the thread if need be.
  // `seen`: the server's clock at the grant, so that a step before the first renewal is noticed by it.
  void keep(std::shared_ptr<engine::held_lease> lease, time_point granted_at, time_point deadline, renewal mode,
            const core::server_clock& seen);
  bool let_go(const engine::held_lease& lease);
  // Lets `giver` go and keeps `next`, which has its lease from now on. False if the giver's was lost before.
  bool hand_on(const engine::held_lease& giver, std::shared_ptr<engine::held_lease> next, time_point now,
               time_point deadline, renewal mode);
  // Lets `each` go and keeps `as_one` instead. Nothing of it, but the index of one that was lost before, if there is
  // one.
  std::optional<std::size_t> join(const engine::keeper::leases& each, engine::keeper::leases as_one,
                                  time_point deadline, renewal mode);
  bool renew_now(const engine::held_lease& lease, time_point give_up_at, std::shared_ptr<engine::renewal_wish> whose);
  void cancel(const engine::held_lease& lease, const engine::renewal_wish& whose);
  void release_later(engine::keeper::background_release what);
  void reserve(engine::keeper::reservation what);
  void on_stray_hint(std::string_view owner, server_time said_at);
  void on_step_seen(duration step, const core::server_clock& seen);
  std::vector<engine::keeper::departing> take_away(const std::function<bool(const script::lock_keys&)>& which);
  // Its thread is started by start_if_it_keeps(), so that what fails there loses nobody's lease.
  void adopt(engine::keeper::departing what);
  void start_if_it_keeps();
  void wake() noexcept { wake_.set(); }
  // Starts the thread if need be: before what it may have to keep is asked for, because without a thread a grant would
  // be nobody's.
  void stand_by();

  // Ends the thread: at once if nothing waits to be released, else when that is done or `at_most` has passed.
  // Leases still kept are kept no longer. `wait`: until it has ended; not on the thread itself.
  void close(duration at_most, bool wait) noexcept;

private:
  void start();
  void run();
  void wait_and_collect(connection::lock& held);
  void wake_if_sooner();

  // Shared, because the thread may outlive the client: leases do.
  std::shared_ptr<engine::keeper_listener> listener_;
  engine::keeper keeper_;
  std::mutex mutex_{};
  connection line_;
  net::event_fd wake_{};
  net::timer_fd timer_{};  // The thread's own.
  std::thread thread_{};
  std::atomic<bool> is_started_{false};  // Written under the mutex.
  time_point close_at_ = never;          // Once closing: when to stop in any case.
  time_point asleep_until_ = time_point{};
  time_point comes_back_at_ = never;  // Whether there is something to do by then or not.
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
