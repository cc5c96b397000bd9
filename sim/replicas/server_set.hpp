// SPDX-License-Identifier: Apache-2.0
// A primary and the replicas that copy it, some time later, as Redis does it; and the sentinels that name one of them.
// With no replicas it is one server, and nobody is asked. Or the shards of a cluster, each a primary with replicas, and
// what each of them believes of who serves which slot.
//
// A replica has what its primary had when it wrote last, later: all of its data goes over with each write, because
// Redis sends effects, in order, so that a replica is always what its primary was. What is under way on a link that
// ends is lost. A new link begins with all of the data.
#pragma once

#include "cluster/slot_views.hpp"
#include "event_queue.hpp"
#include "model_server.hpp"
#include "network.hpp"
#include "plan.hpp"
#include "replicas/sentinels.hpp"
#include "seeded_random.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim {

class server_set {
public:
  using hooks_of = std::function<model_server::hooks(int server)>;
  server_set(event_queue& events, const plan& what, const std::shared_ptr<lua_host>& scripts, const hooks_of& tell);

  std::size_t size() const { return servers_.size(); }
  model_server& of(std::size_t server) { return servers_[server]; }
  const model_server& of(std::size_t server) const { return servers_[server]; }
  network& net(std::size_t server) { return nets_[server]; }
  // The net of one server that has this connection.
  network& net_with(int connection) { return nets_[static_cast<std::size_t>(connection / ids_of_one)]; }
  std::vector<int> open_connections() const;

  std::size_t shards() const { return primaries_.size(); }
  int shard_of(int server) const { return server / of_each_; }
  // Who was made it last: one that was before may still take itself for it.
  int primary(int shard = 0) const { return primaries_[static_cast<std::size_t>(shard)]; }
  sentinels& named() { return named_; }
  slot_views& slots() { return slots_; }
  // Who serves these keys.
  int primary_of(const script::lock_keys& keys) const;

  // ---- what befalls it ----
  // It copies nobody from now on, and takes writes.
  void promote(int server);
  // From now on it copies that one, and takes no writes.
  void follow(int server, int whom);
  // What is under way to this replica, and what follows, comes no sooner.
  void hold_back(int replica, instant until);
  int follows(int server) const { return links_[static_cast<std::size_t>(server)].from; }
  // The one of those that copy `whom` and are up that has most; nobody: there is none.
  int best_copy_of(int whom) const;
  // Everybody agrees on the primary, and all copy it.
  void settle();
  // The slot of these keys is on its way to that shard: until it is there, no script about them runs anywhere, because
  // each names a key that there is not (docs/decisions/0016-cluster.md).
  void begin_move(const script::lock_keys& keys, int shard);
  bool is_moving() const { return moving_.has_value(); }
  const script::lock_keys& moving_keys() const { return moving_->keys; }
  int moves_from() const { return slots_.shard_of(moving_->slot); }
  int moves_to() const { return moving_->shard; }
  // It is there, with what there was of them, and the two primaries know it. The slot.
  int end_move();
  void give_up_move() { moving_.reset(); }

private:
  static constexpr int ids_of_one = 1'000'000;
  using data = std::shared_ptr<const model_redis::keyspace>;

  struct copy {
    data what;
    std::uint64_t writes;  // So many of the primary's have made it.
  };
  // A replica's, to whom it copies.
  struct link {
    int from = nobody;
    std::uint64_t number = 0;
    std::deque<copy> under_way{};
    instant last_at{};
    instant held_until{};
    std::uint64_t writes = 0;  // So many of that one's, it has
    std::uint64_t told = 0;    // and has said so.
    duration least{};
    duration jitter{};
  };

  struct move {
    int slot;
    int shard;
    script::lock_keys keys;
  };
  // What a node of a cluster says to who asks for this key, if it does not serve it.
  std::optional<std::string> refuses(int server, const std::string& key) const;
  // To those who have subscribed at another node.
  void spread(int from, const std::string& channel, const std::string& text);
  void send_to_all(int from);
  void send(std::size_t replica, const data& what, std::uint64_t writes);
  void deliver(std::size_t replica, std::uint64_t number);
  int copies_of(int from, std::uint64_t writes) const;
  void start_again(int server);

  event_queue* events_;
  seeded_random rng_;
  std::deque<model_server> servers_;
  std::deque<network> nets_;
  std::deque<link> links_;
  int of_each_;
  sentinels named_{};
  slot_views slots_;
  std::optional<move> moving_{};
  std::vector<int> primaries_{};  // By shard.
};

}  // namespace holdfast::sim
