// SPDX-License-Identifier: Apache-2.0
// A process as a cluster's client: as src/client/cluster_nodes.cpp, async_call.cpp (go_on) and net/resolver.cpp.
#include "process.hpp"
#include "replicas/server_set.hpp"

#include "script/slot.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

std::size_t slot_of(const script::lock_keys& keys) { return static_cast<std::size_t>(script::slot_of(keys.holder)); }

}  // namespace

std::unique_ptr<map_watch> process::watch_map() {
  if (!what_.is_in_cluster) return nullptr;
  map_watch::news tell;
  tell.on_map = [this](const slot_views::map& map, time_point asked_at) { take(map, asked_at); };
  tell.believes_anybody = tell_.is_planted(canary_switch::any_node_names);
  return std::make_unique<map_watch>(*events_, *what_.servers, watch_settings(), seeded_random{what_.rng.next()},
                                     watch_hooks(), std::move(tell));
}

node& process::node_for(const script::lock_keys& keys) const {
  if (!map_) return home();
  const auto owner = map_->owner[slot_of(keys)];
  return owner == engine::slot_map::nobody ? home() : *serving_[owner];
}

node& process::node_at(const engine::cluster_primary& who) {
  const int server = slot_views::server_of(who.where);
  for (const auto& one : nodes_) {
    if (one->server() == server) return *one;
  }
  auto s = home_settings();
  s.server = server;
  s.named = std::make_shared<engine::named_primary>(core::usable(what_.max_ttl, rho));
  s.epoch_tag = std::make_shared<std::atomic<int>>(0);
  for (auto* of : {&s.commands, &s.keeper}) {
    of->node_id = who.id;
    of->primary = s.named;
    of->epoch.tag = s.epoch_tag;
    of->redirected = [this] { map_watch_->look(); };
  }
  engine::keeper_listener& listener = *this;
  return *nodes_.emplace_back(std::make_unique<node>(s, what_.rng, listener, node_hooks()));
}

// ---- what the watch found out ----

void process::take(const slot_views::map& map, time_point asked_at) {
  const bool has_changed = map != map_;
  if (has_changed) {
    serving_.clear();
    for (const auto& one : map->primaries) serving_.push_back(&node_at(one));
    map_ = map;
  }
  name(*map, asked_at);
  if (has_changed) move_leases();
  if (tell_.is_planted(canary_switch::calls_stay_behind)) return drive();
  for (const auto& at : nodes_) {
    at->caller.leave_server(now(), [this, &at](int slot) {
      const auto owner = map_->owner[static_cast<std::size_t>(slot)];
      return at->server() == nobody ? owner == engine::slot_map::nobody
                                    : owner != engine::slot_map::nobody && serving_[owner] == at.get();
    });
  }
  drive();
}

void process::name(const engine::slot_map& map, time_point asked_at) {
  for (std::size_t i = 0; i < serving_.size(); ++i) {
    if (map.is_named[i]) serving_[i]->named().name(map.primaries[i].id, asked_at, now());
  }
  for (const auto& one : nodes_) {
    if (one->server() == nobody) continue;
    const auto is_its = [&](std::size_t slot) {
      return map.owner[slot] != engine::slot_map::nobody && serving_[map.owner[slot]] == one.get();
    };
    const auto slot_of_tag = [](int tag) { return static_cast<std::size_t>(script::slot_of(std::to_string(tag))); };
    bool serves = false;
    for (std::size_t slot = 0; slot < engine::slot_count && !serves; ++slot) serves = is_its(slot);
    // What it says counts no more.
    if (!serves) one->named().name_nobody();
    if (!serves) continue;
    int tag = 0;
    while (!is_its(slot_of_tag(tag))) ++tag;
    one->epoch_tag() = tag;
  }
}

void process::move_leases() {
  for (const auto& at : nodes_) {
    auto leaving =
        at->keeper.take_away(now(), [&](const script::lock_keys& keys) { return &node_for(keys) != at.get(); });
    for (auto& one : leaving) {
      node& next = node_for(one.keys());
      for (const auto& lease : one.several) static_cast<kept_lease&>(*lease).kept_at = &next;
      next.keeper.adopt(now(), std::move(one));
    }
  }
}

// ---- calls and connections ----

void process::know_slot(open_call& call) {
  if (map_watch_) call.flow().set_slot(static_cast<int>(slot_of(call.keys)));
}

void process::go_on(open_call& call) {
  node& next = node_for(call.keys);
  call.at = &next;
  call.flow().go_on(next.caller.wire(), next.ear, now());
  next.unattended.start(call.flow(), now());
}

// Who connects makes the watch look: should nobody be there, that is told better the next time.
void process::connect_in_cluster(wire& of, node& at) {
  if (at.server() != nobody) {
    map_watch_->look();
    of.term = at.named().term();
    of.net = &what_.servers->net(static_cast<std::size_t>(at.server()));
    of.id = of.net->connect(*this, what_.number);
    return;
  }
  map_watch_->look([this, &of, attempt = of.attempt] {
    if (of.attempt != attempt || of.channel->is_closed()) return;
    of.channel->on_closed(now(), {errc::no_primary, "the cluster was not known until now", false, false});
    drive();
  });
}

}  // namespace holdfast::sim
