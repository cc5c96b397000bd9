// SPDX-License-Identifier: Apache-2.0
#include "engine/keeper.hpp"

#include "engine/keeper_task.hpp"
#include "engine/releasing.hpp"
#include "engine/renewing.hpp"
#include "engine/reserving.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace holdfast::engine {
namespace {

// More than a process can have had in the line in the moment that a replica was behind.
constexpr std::size_t most_ghosts = 256;
// A claim window is over by then, and it is out of the line by itself.
constexpr auto patience_with_ghost = std::chrono::seconds{5};

}  // namespace

keeper::keeper(channel::settings settings, core::clock_drift drift, base::random_source& rng, keeper_listener& listener)
    : drift_{drift},
      jitter_{rng},
      listener_{&listener},
      connect_timeout_{settings.connect_timeout},
      channel_{std::move(settings), rng, *this} {}

keeper::~keeper() {
  leases_.clear();
  releases_.clear();
  reservations_.clear();
}

void keeper::keep(std::shared_ptr<held_lease> lease, time_point granted_at, time_point deadline, renewal mode) {
  leases one;
  one.push_back(std::move(lease));
  keep_as_one(std::move(one), granted_at, deadline, mode);
}

void keeper::keep_as_one(leases several, time_point granted_at, time_point deadline, renewal mode) {
  const held_lease* key = several.front().get();
  const std::chrono::milliseconds ttl = key->ttl;
  time_point last = never;
  for (const auto& one : several) last = std::min(last, one->last);
  for (const auto& one : several) one->deadline.shorten(last);
  const core::lease_keeper plan{deadline, ttl, mode, drift_, granted_at, last};
  auto kept = std::make_unique<renewing>(*this, std::move(several), deadline - core::usable(ttl, drift_), plan);
  schedule(*kept, plan.first_wake_at(channel_.is_ready()));
  leases_.emplace(key, std::move(kept));
}

bool keeper::let_go(const held_lease& lease) {
  const auto kept = leases_.find(&lease);
  if (kept == leases_.end()) return false;
  kept->second->remember();
  leases_.erase(kept);
  update_demand();
  return true;
}

bool keeper::renew_now(time_point now, const held_lease& lease, time_point give_up_at,
                       std::shared_ptr<renewal_wish> whose) {
  const auto kept = leases_.find(&lease);
  if (kept == leases_.end()) return false;
  kept->second->add(now, give_up_at, std::move(whose));
  return true;
}

void keeper::cancel(const held_lease& lease, const renewal_wish& whose) {
  if (const auto kept = leases_.find(&lease); kept != leases_.end()) kept->second->cancel(whose);
}

void keeper::release_later(time_point now, background_release what) {
  const core::clean_up plan{now, what.not_after, what.not_after_local, what.give_up_at, what.went_by, what.place_until};
  auto background = std::make_unique<releasing>(*this, std::move(what), plan);
  const releasing* key = background.get();
  auto& started = *releases_.emplace(key, std::move(background)).first->second;
  schedule(started, now);
}

void keeper::reserve(time_point now, reservation what) {
  auto asked = std::make_unique<reserving>(*this, std::move(what));
  const reserving* key = asked.get();
  schedule(*reservations_.emplace(key, std::move(asked)).first->second, now);
}

void keeper::on_stray_hint(time_point now, std::string_view owner, server_time said_at) {
  bool is_released = false;
  for (auto& [key, background] : releases_) {
    if (!background->is_of(owner)) continue;
    background->hurry(now);
    is_released = true;
  }
  if (is_released) return;
  const auto found =
      std::find_if(ghosts_.begin(), ghosts_.end(), [&](const ghost& one) { return one.owner.hex() == owner; });
  if (found == ghosts_.end() || is_held(owner)) return;
  // A token is the server's time of its grant, or ahead of that.
  if (said_at <= server_time{std::chrono::microseconds{found->grant.value()}}) return;
  release_later(now, {found->keys, found->owner, {}, {}, {}, now + patience_with_ghost});
}

// Letting go must not fail for this.
void keeper::remember(const script::lock_keys& keys, const owner_id& owner, fencing_token grant) noexcept {
  if (!ghosts_.empty() && ghosts_.back().owner == owner) return;  // It was handed on in the process.
  if (ghosts_.size() == most_ghosts) ghosts_.pop_front();
  try {
    ghosts_.push_back({keys, owner, grant});
  } catch (const std::bad_alloc&) {
    // Then a server that calls it again waits for the claim in vain.
  }
}

// By a thread to which it was handed on, too.
bool keeper::is_held(std::string_view owner) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto& one) { return one.second->is_of(owner); });
}

void keeper::on_wake(time_point now) {
  while (agenda_.next() <= now) {
    task& due = agenda_.first();
    agenda_.remove(due.place);
    due.run(now);
  }
  update_demand();
}

time_point keeper::wake_at() const { return std::min(agenda_.next(), channel_.wake_at()); }

// A silent connection must be given up while there is time for another, and no sooner than the shortest lease needs it:
// that costs all of them a new one.
void keeper::mind_silence() {
  const duration in_time = ttls_.empty() ? duration::max() : duration{ttls_.begin()->first} / 4;
  const duration least = std::min(longest_silence, in_time);
  // So must an address that says nothing, while there is time for the next one. But the far ones must be reached, too.
  channel_.set_connect_timeout(std::min(connect_timeout_, std::max(longest_silence, in_time)));
  // Nor may it matter that the server was slow once. A renewal goes out at 0.37 of the ttl at the latest: what is left
  // behind such a silence is enough for a connection and another one.
  channel_.set_most_silence(ttls_.empty() ? duration::max() : duration{ttls_.begin()->first} * 9 / 20);
  if (least == least_silence_) return;
  least_silence_ = least;
  channel_.set_least_silence(least);
}

void keeper::schedule(task& what, time_point at) { agenda_.put(what, what.place, at); }

void keeper::update_demand() {
  if (is_idle()) is_waiting_for_connection_ = false;
  channel_.set_demand(is_waiting_for_connection_);
}

void keeper::on_ready(time_point now) {
  is_waiting_for_connection_ = false;
  listener_->on_up();
  // A task may end itself while it runs, and no other one: listeners and wishes must not call back, and no answer comes
  // before all of them have run. So the pointers to those that are still to run stay good.
  for (task* t : all_tasks()) t->on_ready(now);
  update_demand();
}

std::vector<keeper::task*> keeper::all_tasks() const {
  std::vector<task*> all;
  for (const auto& [key, kept] : leases_) all.push_back(kept.get());
  for (const auto& [key, background] : releases_) all.push_back(background.get());
  std::sort(all.begin(), all.end(), [](const task* a, const task* b) { return a->number < b->number; });
  return all;
}

void keeper::on_down(time_point now, const connection_failure& failure, bool was_ready) {
  if (was_ready) {
    listener_->on_down(failure);
    for (task* t : all_tasks()) t->on_down(now);
  }
  const bool has_said_why = failure.is_final || failure.code == errc::server_refused ||
                            failure.code == errc::server_loading || failure.code == errc::server_busy ||
                            failure.code == errc::cannot_resolve;
  if (!was_ready && has_said_why) {
    for (task* t : all_tasks()) t->on_unsent(failure.code);
  }
  update_demand();
}

void keeper::on_clock_step(time_point now, duration step) {
  listener_->on_clock_step(step);
  verify_all(now, step);
}

void keeper::on_step_seen(time_point now, duration step, const core::server_clock& seen) {
  verify_all(now, step);
  // Not before: without memory for that, the next answer of our own shows the step again.
  channel_.learn_clock(seen);
}

// The server's clock went forward against ours: its, or we and our clock were frozen, and every deadline here is too
// late (H3). The renewals find out, all at once; what is not renewed by itself is not asked about.
void keeper::verify_all(time_point now, duration step) {
  if (step <= duration{0}) return;
  std::vector<renewing*> all;
  all.reserve(leases_.size());
  for (const auto& [key, kept] : leases_) all.push_back(kept.get());
  // In the order in which they came, because what is sent for them must not depend on where they lie in memory.
  std::sort(all.begin(), all.end(), [](const renewing* a, const renewing* b) { return a->number < b->number; });
  for (renewing* kept : all) kept->verify(now);
}

}  // namespace holdfast::engine
