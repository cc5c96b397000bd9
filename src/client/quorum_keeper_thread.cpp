// SPDX-License-Identifier: Apache-2.0
#include "client/quorum_keeper_thread.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "net/wait_for.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

namespace {

std::vector<engine::keeper_listener*> plain(const quorum_keeper_thread::listeners& all) {
  std::vector<engine::keeper_listener*> out;
  for (const auto& one : all) out.push_back(one.get());
  return out;
}

}  // namespace

quorum_keeper_thread::quorum_keeper_thread(const std::vector<net::endpoint>& where, engine::quorum_keeper::settings how,
                                           base::random_source& rng, listeners of_nodes,
                                           std::shared_ptr<engine::keeper_listener> listener)
    : of_nodes_{std::move(of_nodes)},
      listener_{std::move(listener)},
      keeper_{std::move(how), rng, plain(of_nodes_), *listener_} {
  for (std::size_t i = 0; i < where.size(); ++i) {
    lines_.push_back(std::make_unique<connection>(where[i], keeper_.wire(i), mutex_));
  }
}

void quorum_keeper_thread::start() {
  if (is_started_) return;
  thread_ = net::start_quietly([self = shared_from_this()] { self->run(); });
  is_started_ = true;
}

void quorum_keeper_thread::stand_by() {
  if (is_started_) return;
  const std::lock_guard held{mutex_};
  start();
}

void quorum_keeper_thread::wake_if_sooner() {
  if (keeper_.wake_at() < asleep_until_) wake_.set();
}

void quorum_keeper_thread::keep(std::shared_ptr<engine::held_lease> lease, std::string label,
                                std::vector<engine::quorum_vote> votes, time_point sent_at, renewal mode,
                                const script::part& what, const std::vector<core::server_clock>& seen) {
  const std::lock_guard held{mutex_};
  start();
  for (std::size_t i = 0; i < seen.size(); ++i) keeper_.wire(i).learn_clock(seen[i]);
  keeper_.keep(std::move(lease), std::move(label), std::move(votes), sent_at, mode, what);
  wake_if_sooner();
}

engine::votes_left quorum_keeper_thread::let_go(const engine::held_lease& lease) {
  const std::lock_guard held{mutex_};
  return keeper_.let_go(lease);
}

std::optional<std::size_t> quorum_keeper_thread::join(const engine::keeper::leases& several,
                                                      const engine::keeper::leases& joined) {
  const std::lock_guard held{mutex_};
  const auto gone =
      std::find_if(several.begin(), several.end(), [&](const auto& one) { return !keeper_.is_kept(*one); });
  if (gone != several.end()) return static_cast<std::size_t>(gone - several.begin());
  for (std::size_t i = 0; i < several.size(); ++i) {
    // It may have been renewed since it was copied, or its end have come nearer.
    const auto until = several[i]->deadline.at();
    joined[i]->deadline.extend(net::boottime_now(), until);
    joined[i]->deadline.shorten(until);
    keeper_.go_on_as(*several[i], joined[i]);
  }
  wake_if_sooner();
  return std::nullopt;
}

std::vector<fencing_token> quorum_keeper_thread::begin_narrowing(const engine::held_lease& lease) {
  const std::lock_guard held{mutex_};
  return keeper_.begin_narrowing(lease);
}

void quorum_keeper_thread::end_narrowing(const engine::held_lease& lease, const std::optional<script::part>& to) {
  const std::lock_guard held{mutex_};
  keeper_.end_narrowing(lease, to);
  wake_if_sooner();
}

bool quorum_keeper_thread::renew_now(const engine::held_lease& lease, time_point give_up_at,
                                     std::shared_ptr<engine::renewal_wish> whose) {
  const std::lock_guard held{mutex_};
  if (!keeper_.renew_now(boottime_now(), lease, give_up_at, std::move(whose))) return false;
  wake_if_sooner();
  return true;
}

void quorum_keeper_thread::cancel(const engine::held_lease& lease, const engine::renewal_wish& whose) {
  const std::lock_guard held{mutex_};
  keeper_.cancel(lease, whose);
}

void quorum_keeper_thread::on_step_seen(std::size_t node, duration step, const core::server_clock& seen) {
  const std::lock_guard held{mutex_};
  keeper_.on_step_seen(boottime_now(), node, step, seen);
  wake_if_sooner();
}

void quorum_keeper_thread::release_later(std::size_t node, engine::keeper::background_release what) {
  const std::lock_guard held{mutex_};
  start();
  keeper_.release_later(boottime_now(), node, std::move(what));
  wake_if_sooner();
}

void quorum_keeper_thread::close(duration at_most, bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{mutex_};
    close_at_ = boottime_now() + at_most;
    ending = std::move(thread_);
  }
  wake_.set();
  net::let_end(std::move(ending), wait);
}

void quorum_keeper_thread::run() {
  connection::lock held{mutex_};
  for (;;) {
    const time_point now = boottime_now();
    keeper_.on_wake(now);
    if (close_at_ != never && (now >= close_at_ || !keeper_.has_background_releases())) return;
    for (auto& line : lines_) line->prepare(held);
    for (auto& line : lines_) line->flush(held);
    wait_and_collect(held);
  }
}

void quorum_keeper_thread::wait_and_collect(connection::lock& held) {
  const time_point until = std::min(keeper_.wake_at(), close_at_);
  asleep_until_ = until;
  std::vector<pollfd> fds;
  for (const auto& line : lines_) fds.push_back(line->poll_for());
  fds.push_back({wake_.get(), POLLIN, 0});
  fds.push_back({timer_.get(), POLLIN, 0});
  held.unlock();

  timer_.set(until);
  net::wait_for(fds, never);
  if (fds[lines_.size()].revents) wake_.clear();
  if (fds.back().revents) timer_.went_off();

  held.lock();
  asleep_until_ = time_point{};
  for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i]->collect(held, fds[i].revents);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
