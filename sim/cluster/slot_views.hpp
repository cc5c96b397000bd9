// SPDX-License-Identifier: Apache-2.0
// Who serves which slot of a cluster: what is so, and what each node believes, who hears of a change later. The slots
// lie in equal parts on the shards, but for those that were moved.
//
// What an answer of CLUSTER SLOTS says, and what a majority of answers says, is worked out by the code that we ship
// (engine/cluster_slots.hpp); once for each combination of beliefs, because it looks at 16384 slots.
#pragma once

#include "replicas/silence.hpp"

#include "engine/cluster_slots.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sim {

class slot_views : public silence {
public:
  // Server `shard` * `of_each` is the primary of each shard in the beginning.
  slot_views(std::size_t shards, std::size_t of_each);

  // ---- what is so ----
  int shard_of(int slot) const;
  // From now on it is that one's. Nobody has heard of it yet.
  void move(int slot, int shard) { moved_[slot] = shard; }

  // ---- what `who`, a server, believes ----
  int primary_of(int who, int slot) const;
  // From the one that has it: so it knows who that shard's primary is, too.
  void learn_slot(int who, int slot, int shard, int primary);
  void learn_primary(int who, int shard, int primary);
  // Which slots were moved.
  void learn_all(int who) { views_[static_cast<std::size_t>(who)].moved = moved_; }

  // It answers with this one now. A number for each that there ever was.
  int view_of(int who);
  const engine::slots_answer& answer(int number) const { return known_[static_cast<std::size_t>(number)].second; }

  // ---- what a majority says; its asked_at means nothing ----
  using map = std::shared_ptr<const engine::slot_map>;
  using votes = std::vector<std::pair<int, int>>;  // A server, and the view that it answered with; in their order.
  // Null: nothing.
  map named_by(const votes& all);
  map merged(const map& before, const map& round);

  static std::string id_of(int server);
  static engine::cluster_address address_of(int server);
  static int server_of(const engine::cluster_address& where);

private:
  struct view {
    std::vector<int> primaries{};  // By shard.
    std::map<int, int> moved{};
    friend bool operator==(const view&, const view&) = default;
  };
  int shard_of(int slot, const std::map<int, int>& moved) const;
  engine::slots_answer answer_of(const view& what) const;

  int shards_;
  std::map<int, int> moved_{};
  std::vector<view> views_{};
  std::vector<std::pair<view, engine::slots_answer>> known_{};
  std::map<votes, map> named_{};
  std::map<std::pair<map, map>, map> merged_{};
};

}  // namespace holdfast::sim
