// SPDX-License-Identifier: Apache-2.0
// What befalls a cluster besides failovers: slots move, and processes hear nothing from some of its nodes.
#include "world.hpp"

#include <fmt/format.h>

#include <chrono>

namespace holdfast::sim {

using namespace std::chrono_literals;

void trouble::strike_cluster(fault what) {
  if (what == fault::slot_moves) return move_a_slot();
  process* who = somebody();
  if (!who) return;
  const duration time = rng_.any_size(5ms, 2 * duration{in_->what().ttl});
  for (std::size_t i = 0; i < in_->servers().size(); ++i) {
    if (rng_.chance(50)) in_->servers().slots().be_silent(who->number(), i, in_->now() + time);
  }
  in_->befall(who->number(), time + 3s);
}

bool trouble::clocks_agree(int shard, int other) {
  const auto apart = in_->server(shard).clock_now() - in_->server(other).clock_now();
  return std::chrono::abs(apart) <= 1ms;
}

// As redis-cli does it: the two nodes are told, the keys go over, the primaries are told that it is done. Not while a
// primary fails over, which is Redis's trouble (docs/campaigns.md).
void trouble::move_a_slot() {
  auto& servers = in_->servers();
  if (is_failing_over_ || servers.is_moving()) return;
  const lock& about = in_->what().locks[rng_.below(in_->what().locks.size())];
  // Or the slot in which a node keeps its epoch and is subscribed to: it has another one from then on.
  const bool is_of_node = rng_.chance(15);
  const auto keys = is_of_node ? script::lock_keys{script::epoch_key("hf:", rng_.number(0, 5))} : about.keys;
  const int from = servers.shard_of(servers.primary_of(keys));
  const int to = (from + rng_.number(1, static_cast<int>(servers.shards()) - 1)) % static_cast<int>(servers.shards());
  // docs/topologies.md: no slot leaves a node that may have forgotten locks, before its quarantine is over.
  if (in_->now() < in_->server(from).began_at() + 2 * duration{in_->what().max_ttl} + 1s) return;
  if (keys.is_counted && !clocks_agree(from, to)) return;
  if (in_->is_tracing()) in_->say(fmt::format("the slot of {} goes to shard {}", keys.holder, to));
  const duration takes = rng_.any_size(1ms, 500ms);
  servers.begin_move(keys, to);
  in_->befall_all(takes + 6s + (is_of_node ? 2 * duration{in_->what().max_ttl} : duration{0}));
  in_->queue().after(takes, [this, began_at = in_->now()] { finish_move(began_at); });
}

void trouble::finish_move(instant began_at) {
  auto& servers = in_->servers();
  if (!servers.is_moving()) return;
  const int from = servers.moves_from();
  const bool may_be_cut_short = servers.moving_keys().is_counted && !clocks_agree(from, servers.moves_to());
  if (in_->server(from).began_at() > began_at || may_be_cut_short) return servers.give_up_move();
  const auto is_up = [&](int shard) { return in_->server(shard).is_up(); };
  const int to = servers.moves_to();
  if (!is_up(from) || !is_up(to)) {
    in_->befall_all(6s);
    return in_->queue().after(20ms, [this, began_at] { finish_move(began_at); });
  }
  const int slot = servers.end_move();
  if (in_->is_tracing()) in_->say(fmt::format("slot {} is at server {}", slot, servers.primary(to)));
  for (std::size_t i = 0; i < servers.size(); ++i) {
    in_->queue().after(rng_.any_size(1ms, 1s), [this, number = static_cast<int>(i), slot, to] {
      auto& all = in_->servers();
      if (!is_over_ && all.slots().shard_of(slot) == to) all.slots().learn_slot(number, slot, to, all.primary(to));
    });
  }
}

}  // namespace holdfast::sim
