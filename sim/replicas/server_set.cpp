// SPDX-License-Identifier: Apache-2.0
#include "replicas/server_set.hpp"

#include "script/slot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr server_time start_of_server{1'795'212'800'000'042us};

}  // namespace

server_set::server_set(event_queue& events, const plan& what, const std::shared_ptr<lua_host>& scripts,
                       const hooks_of& tell)
    : events_{&events},
      rng_{seeded_random::of(what.seed, 'r')},
      of_each_{1 + what.replicas},
      slots_{static_cast<std::size_t>(what.shards), static_cast<std::size_t>(of_each_)} {
  // docs/topologies.md: a slot that moves to a node whose clock is ahead takes that much of a counted lease.
  const bool has_counted =
      std::any_of(what.locks.begin(), what.locks.end(), [](const lock& l) { return l.keys.is_counted; });
  for (int i = 0; i < what.shards * of_each_; ++i) {
    // docs/topologies.md: the clocks of those that stand in for each other agree to a second.
    auto ahead = i == 0 ? duration{0} : rng_.span(-500ms, 500ms);
    if (what.shards > 1 && has_counted) ahead = duration{0};
    const wall_clock clock{start_of_server + std::chrono::floor<server_time::duration>(ahead), what.server_ppm};
    auto hooks = tell(i);
    if (what.replicas > 0) {
      hooks.on_written = [this, i] { send_to_all(i); };
      hooks.on_started = [this, i] { start_again(i); };
      hooks.copies_of = [this, i](std::uint64_t writes) { return copies_of(i, writes); };
    }
    if (what.shards > 1) {
      hooks.refuses = [this, i](const std::string& key) { return refuses(i, key); };
      hooks.on_said = [this, i](const std::string& channel, const std::string& text) { spread(i, channel, text); };
    }
    auto& server = servers_.emplace_back(events, clock, scripts, std::move(hooks), i);
    const auto which = static_cast<std::uint64_t>(i);
    server.attach(nets_.emplace_back(events, server, seeded_random::of(what.seed, 'n', which), i * ids_of_one));
    if (what.has_scripts) server.redis().learn_scripts();
    if (what.shards > 1) server.redis().set_node_id(slot_views::id_of(i));
    auto& made = links_.emplace_back();
    made.least = rng_.any_size(50us, 5ms);
    made.jitter = rng_.any_size(10us, 2 * made.least);
    const int primary = i - i % of_each_;
    if (i == primary) {
      primaries_.push_back(i);
    } else {
      follow(i, primary);
    }
  }
}

std::vector<int> server_set::open_connections() const {
  auto all = nets_.front().open_connections();
  for (std::size_t i = 1; i < nets_.size(); ++i) {
    const auto more = nets_[i].open_connections();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// ---- copying ----

void server_set::send_to_all(int from) {
  data what;
  const auto& redis = servers_[static_cast<std::size_t>(from)].redis();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].from != from) continue;
    if (!what) what = std::make_shared<const model_redis::keyspace>(redis.all());
    send(i, what, redis.writes());
  }
}

void server_set::send(std::size_t replica, const data& what, std::uint64_t writes) {
  auto& on = links_[replica];
  on.last_at = std::max({on.last_at, events_->now() + on.least + rng_.span(duration{0}, on.jitter), on.held_until});
  on.under_way.push_back({what, writes});
  events_->at(on.last_at, [=, this, number = on.number] { deliver(replica, number); });
}

// Each event delivers the first of what is under way, so nothing overtakes anything.
void server_set::deliver(std::size_t replica, std::uint64_t number) {
  auto& on = links_[replica];
  auto& server = servers_[replica];
  if (on.number != number) return;
  const instant until = std::max(on.held_until, server.up_at());
  if (until > events_->now()) return events_->at(until, [=, this] { deliver(replica, number); });
  const auto [what, writes] = std::move(on.under_way.front());
  on.under_way.pop_front();
  server.redis().load(*what);
  on.writes = writes;
  events_->after(on.least + rng_.span(duration{0}, on.jitter), [this, replica, number, writes = writes] {
    auto& told = links_[replica];
    if (told.number != number) return;
    told.told = std::max(told.told, writes);
    servers_[static_cast<std::size_t>(told.from)].on_copied();
  });
}

int server_set::copies_of(int from, std::uint64_t writes) const {
  int count = 0;
  for (const auto& one : links_) count += one.from == from && one.told >= writes ? 1 : 0;
  return count;
}

// Its replicas begin anew with what it has now.
void server_set::start_again(int server) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].from == server) follow(static_cast<int>(i), server);
  }
}

int server_set::best_copy_of(int whom) const {
  int best = nobody;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].from != whom || !servers_[i].is_up()) continue;
    if (best == nobody || links_[i].writes > links_[static_cast<std::size_t>(best)].writes) best = static_cast<int>(i);
  }
  return best;
}

// ---- what befalls it ----

void server_set::promote(int server) {
  auto& on = links_[static_cast<std::size_t>(server)];
  on.from = nobody;
  ++on.number;
  on.under_way.clear();
  primaries_[static_cast<std::size_t>(shard_of(server))] = server;
  slots_.learn_primary(server, shard_of(server), server);
  servers_[static_cast<std::size_t>(server)].become_primary();
}

void server_set::follow(int server, int whom) {
  const auto which = static_cast<std::size_t>(server);
  auto& on = links_[which];
  on.from = whom;
  ++on.number;
  on.writes = on.told = 0;
  on.last_at = on.held_until = instant{};
  on.under_way.clear();
  auto& copied = servers_[static_cast<std::size_t>(whom)];
  if (!servers_[which].redis().is_replica()) servers_[which].become_replica();
  send(which, std::make_shared<const model_redis::keyspace>(copied.redis().all()), copied.redis().writes());
}

void server_set::hold_back(int replica, instant until) {
  auto& on = links_[static_cast<std::size_t>(replica)];
  on.held_until = std::max(on.held_until, until);
}

void server_set::settle() {
  give_up_move();
  for (std::size_t i = 0; i < sentinels::count; ++i) named_.name(i, primary(), events_->now());
  named_.speak();
  slots_.speak();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const int number = static_cast<int>(i);
    const int its_primary = primary(shard_of(number));
    links_[i].held_until = links_[i].last_at = events_->now();
    // What is under way was to come when the link would have been well again.
    const bool is_late = links_[i].from != its_primary || !links_[i].under_way.empty();
    if (number != its_primary && is_late) follow(number, its_primary);
    for (std::size_t shard = 0; shard < shards(); ++shard) {
      const int which = static_cast<int>(shard);
      slots_.learn_primary(number, which, primary(which));
    }
    slots_.learn_all(number);
  }
}

// ---- a cluster ----

namespace {

int slot_of(const script::lock_keys& keys) { return script::slot_of(keys.holder); }

}  // namespace

int server_set::primary_of(const script::lock_keys& keys) const {
  return shards() == 1 ? primary() : primary(slots_.shard_of(slot_of(keys)));
}

std::optional<std::string> server_set::refuses(int server, const std::string& key) const {
  const int slot = script::slot_of(key);
  const int serves = slots_.primary_of(server, slot);
  const auto address = [](int of) {
    const auto where = slot_views::address_of(of);
    return where.host + ":" + where.port;
  };
  if (serves != server) return fmt::format("MOVED {} {}", slot, address(serves));
  if (moving_ && moving_->slot == slot) return fmt::format("ASK {} {}", slot, address(primary(moving_->shard)));
  return std::nullopt;
}

// Over the bus, which nobody waits for.
void server_set::spread(int from, const std::string& channel, const std::string& text) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (static_cast<int>(i) == from) continue;
    events_->after(links_[i].least + rng_.span(duration{0}, links_[i].jitter),
                   [this, i, channel, text] { servers_[i].hear(channel, text); });
  }
}

void server_set::begin_move(const script::lock_keys& keys, int shard) { moving_ = move{slot_of(keys), shard, keys}; }

int server_set::end_move() {
  const auto [slot, shard, keys] = *std::exchange(moving_, std::nullopt);
  const int from = primary(slots_.shard_of(slot));
  const int to = primary(shard);
  servers_[static_cast<std::size_t>(from)].migrate(keys, servers_[static_cast<std::size_t>(to)]);
  slots_.move(slot, shard);
  for (const int who : {from, to}) slots_.learn_slot(who, slot, shard, to);
  servers_[static_cast<std::size_t>(from)].lose_slot(slot);
  return slot;
}

}  // namespace holdfast::sim
