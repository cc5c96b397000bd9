// SPDX-License-Identifier: Apache-2.0
#include "cluster/slot_views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace holdfast::sim {

namespace {

constexpr int slots = static_cast<int>(engine::slot_count);

}  // namespace

slot_views::slot_views(std::size_t shards, std::size_t of_each) : shards_{static_cast<int>(shards)} {
  view all;
  for (std::size_t i = 0; i < shards; ++i) all.primaries.push_back(static_cast<int>(i * of_each));
  views_.assign(shards * of_each, all);
}

int slot_views::shard_of(int slot, const std::map<int, int>& moved) const {
  const auto found = moved.find(slot);
  return found == moved.end() ? slot * shards_ / slots : found->second;
}

int slot_views::shard_of(int slot) const { return shard_of(slot, moved_); }

int slot_views::primary_of(int who, int slot) const {
  const auto& believed = views_[static_cast<std::size_t>(who)];
  return believed.primaries[static_cast<std::size_t>(shard_of(slot, believed.moved))];
}

void slot_views::learn_slot(int who, int slot, int shard, int primary) {
  learn_primary(who, shard, primary);
  views_[static_cast<std::size_t>(who)].moved[slot] = shard;
}

void slot_views::learn_primary(int who, int shard, int primary) {
  views_[static_cast<std::size_t>(who)].primaries[static_cast<std::size_t>(shard)] = primary;
}

int slot_views::view_of(int who) {
  const auto& believed = views_[static_cast<std::size_t>(who)];
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& k) { return k.first == believed; });
  if (found != known_.end()) return static_cast<int>(found - known_.begin());
  known_.emplace_back(believed, answer_of(believed));
  return static_cast<int>(known_.size()) - 1;
}

std::string slot_views::id_of(int server) { return fmt::format("node {}", server); }

engine::cluster_address slot_views::address_of(int server) { return {fmt::format("10.0.0.{}", server), "6379"}; }

int slot_views::server_of(const engine::cluster_address& where) {
  return std::stoi(where.host.substr(where.host.rfind('.') + 1));
}

engine::slots_answer slot_views::answer_of(const view& what) const {
  engine::slots_answer out;
  for (const int primary : what.primaries) {
    out.primaries.push_back({id_of(primary), address_of(primary), 0});
  }
  for (int slot = 0; slot < slots; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    const auto shard = static_cast<std::size_t>(shard_of(slot, what.moved));
    if (!out.ranges.empty() && out.ranges.back().primary == shard) {
      out.ranges.back().last = at;
    } else {
      out.ranges.push_back({at, at, shard});
    }
  }
  return out;
}

slot_views::map slot_views::named_by(const votes& all) {
  const auto [found, is_new] = named_.try_emplace(all);
  if (!is_new) return found->second;
  std::vector<engine::slots_vote> said;
  for (const auto& [who, believed] : all) said.push_back({address_of(who), answer(believed), time_point{}});
  if (auto round = engine::named_by_majority(said)) {
    found->second = std::make_shared<const engine::slot_map>(std::move(*round));
  }
  return found->second;
}

slot_views::map slot_views::merged(const map& before, const map& round) {
  if (!before) return round;
  auto& known = merged_[{before, round}];
  if (!known) {
    auto made = engine::merged(*before, *round);
    // What it says is what was known before, or what was said: then it is the same to whoever goes by it.
    const auto is = [&](const map& one) { return one->owner == made.owner && one->is_named == made.is_named; };
    known = is(round) ? round : std::make_shared<const engine::slot_map>(std::move(made));
  }
  return known;
}

}  // namespace holdfast::sim
