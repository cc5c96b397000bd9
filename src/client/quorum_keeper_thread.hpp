// SPDX-License-Identifier: Apache-2.0
// The thread that renews at the servers of a quorum: one for all of them, with a connection of its own to each. As
// keeper_thread, for one server.
#pragma once

#include "client/connection.hpp"
#include "engine/quorum_keeper.hpp"
#include "net/event_fd.hpp"
#include "net/timer_fd.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class quorum_keeper_thread : public std::enable_shared_from_this<quorum_keeper_thread> {
public:
  // `of_nodes`: who hears of each server's connection; `listener`: of the leases.
  using listeners = std::vector<std::shared_ptr<engine::keeper_listener>>;
  quorum_keeper_thread(const std::vector<net::endpoint>& where, engine::quorum_keeper::settings how,
                       base::random_source& rng, listeners of_nodes, std::shared_ptr<engine::keeper_listener> listener);

  // See engine::quorum_keeper. Each starts the thread if need be.
  // `seen`: each server's clock at the grant.
  void keep(std::shared_ptr<engine::held_lease> lease, std::string label, std::vector<engine::quorum_vote> votes,
            time_point sent_at, renewal mode, const script::part& what, const std::vector<core::server_clock>& seen);
  engine::votes_left let_go(const engine::held_lease& lease);
  // Each of `several` is kept as the one of `joined` in its place from now on; or none of them, when one is not kept
  // any more: its index.
  std::optional<std::size_t> join(const engine::keeper::leases& several, const engine::keeper::leases& joined);
  std::vector<fencing_token> begin_narrowing(const engine::held_lease& lease);
  void end_narrowing(const engine::held_lease& lease, const std::optional<script::part>& to);
  bool renew_now(const engine::held_lease& lease, time_point give_up_at, std::shared_ptr<engine::renewal_wish> whose);
  void cancel(const engine::held_lease& lease, const engine::renewal_wish& whose);
  void release_later(std::size_t node, engine::keeper::background_release what);
  void on_step_seen(std::size_t node, duration step, const core::server_clock& seen);

  // As keeper_thread::stand_by, and close.
  void stand_by();
  void close(duration at_most, bool wait) noexcept;

private:
  void start();
  void run();
  void wait_and_collect(connection::lock& held);
  void wake_if_sooner();

  // Shared, because the thread may outlive the client: leases do.
  const listeners of_nodes_;
  const std::shared_ptr<engine::keeper_listener> listener_;
  engine::quorum_keeper keeper_;
  std::mutex mutex_{};
  std::vector<std::unique_ptr<connection>> lines_{};
  net::event_fd wake_{};
  net::timer_fd timer_{};  // The thread's own.
  std::thread thread_{};
  std::atomic<bool> is_started_{false};  // Written under the mutex.
  time_point close_at_ = never;          // Once closing: when to stop in any case.
  time_point asleep_until_ = time_point{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
