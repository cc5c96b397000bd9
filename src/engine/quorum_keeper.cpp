// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_keeper.hpp"

#include "engine/quorum_kept.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

// ---- a server ----

void quorum_keeper::server::on_lost(const std::shared_ptr<held_lease>& lease, errc reason) {
  static_cast<share&>(*lease).whole->on_lost(index_, reason);
}

void quorum_keeper::server::on_renewed(const std::shared_ptr<held_lease>& lease, duration /*margin*/) {
  static_cast<share&>(*lease).whole->on_renewed(index_, lease->deadline.at());
}

void quorum_keeper::server::on_renew_failed(const std::shared_ptr<held_lease>& lease, errc reason) {
  of_->listener_->on_renew_failed(static_cast<share&>(*lease).whole->lease(), reason);
}

// ---- all of them ----

quorum_keeper::quorum_keeper(settings how, base::random_source& rng, std::vector<keeper_listener*> of_nodes,
                             keeper_listener& listener)
    : how_{std::move(how)}, rng_{&rng}, listener_{&listener} {
  for (std::size_t i = 0; i < how_.nodes.size(); ++i) {
    servers_.push_back(std::make_unique<server>(*this, i, how_.nodes[i], rng, *of_nodes[i]));
  }
}

quorum_keeper::~quorum_keeper() { leases_.clear(); }

channel& quorum_keeper::wire(std::size_t node) { return servers_[node]->flow.wire(); }

void quorum_keeper::keep(std::shared_ptr<held_lease> lease, std::string label, std::vector<quorum_vote> votes,
                         time_point sent_at, renewal mode, const script::part& what) {
  const held_lease* key = lease.get();
  auto whole = std::make_unique<kept>(*this, std::move(lease), std::move(label), std::move(votes), mode, what);
  whole->begin(sent_at);
  leases_.emplace(key, std::move(whole));
}

votes_left quorum_keeper::let_go(const held_lease& lease) {
  const auto found = leases_.find(&lease);
  if (found == leases_.end()) return {};
  const auto whole = std::move(found->second);
  leases_.erase(found);
  return whole->take_votes();
}

void quorum_keeper::go_on_as(const held_lease& lease, std::shared_ptr<held_lease> next) {
  auto node = leases_.extract(&lease);
  node.key() = next.get();
  node.mapped()->go_on_as(std::move(next));
  leases_.insert(std::move(node));
}

std::vector<fencing_token> quorum_keeper::begin_narrowing(const held_lease& lease) {
  const auto found = leases_.find(&lease);
  return found != leases_.end() ? found->second->begin_narrowing() : std::vector<fencing_token>{};
}

void quorum_keeper::end_narrowing(const held_lease& lease, const std::optional<script::part>& to) {
  if (const auto found = leases_.find(&lease); found != leases_.end()) found->second->end_narrowing(to);
}

bool quorum_keeper::renew_now(time_point now, const held_lease& lease, time_point give_up_at,
                              std::shared_ptr<renewal_wish> whose) {
  const auto found = leases_.find(&lease);
  if (found == leases_.end()) return false;
  found->second->renew_now(now, give_up_at, std::move(whose));
  return true;
}

void quorum_keeper::cancel(const held_lease& lease, const renewal_wish& whose) {
  if (const auto found = leases_.find(&lease); found != leases_.end()) found->second->cancel(whose);
}

void quorum_keeper::release_later(time_point now, std::size_t node, keeper::background_release what) {
  servers_[node]->flow.release_later(now, std::move(what));
}

void quorum_keeper::on_step_seen(time_point now, std::size_t node, duration step, const core::server_clock& seen) {
  servers_[node]->flow.on_step_seen(now, step, seen);
}

// In the order in which they came, because what is sent for them must not depend on where they lie in memory.
std::vector<quorum_keeper::kept*> quorum_keeper::in_order() const {
  std::vector<kept*> all;
  for (const auto& [lease, whole] : leases_) all.push_back(whole.get());
  std::sort(all.begin(), all.end(), [](const kept* a, const kept* b) { return a->number < b->number; });
  return all;
}

void quorum_keeper::on_wake(time_point now) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    servers_[i]->flow.on_wake(now);
    if (!servers_[i]->is_wanted || !wire(i).is_ready()) continue;
    for (kept* whole : in_order()) whole->mend_on(i);
  }
  while (agenda_.next() <= now) {
    kept& due = agenda_.first();
    agenda_.remove(due.place);
    if (!due.look(now)) leases_.erase(due.lease().get());
  }
  for (auto& one : servers_) {
    channel& wire = one->flow.wire();
    one->is_wanted = one->is_wanted && !wire.is_ready() && !leases_.empty();
    if (one->is_wanted) wire.set_demand(true);
  }
}

time_point quorum_keeper::wake_at() const {
  time_point at = agenda_.next();
  for (const auto& one : servers_) at = std::min(at, one->flow.wake_at());
  return at;
}

bool quorum_keeper::has_background_releases() const {
  return std::any_of(servers_.begin(), servers_.end(),
                     [](const auto& one) { return one->flow.has_background_releases(); });
}

void quorum_keeper::look_at(kept& whole, time_point at) { agenda_.put(whole, whole.place, at); }

}  // namespace holdfast::engine
