// SPDX-License-Identifier: Apache-2.0
// Which primary of a cluster serves which slot: what one node says (CLUSTER SLOTS), and what of that a majority says.
// Pure: answers come in, a map goes out. net/ asks, client/ goes by the map.
//
// A node that is cut off from its cluster goes on believing that it is a primary (P22), and so does one that was
// stopped and wakes. A failover takes the votes of more than half of the primaries, so what more than half of them say
// holds.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"

#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace holdfast::engine {

inline constexpr std::size_t slot_count = 16'384;

struct cluster_address {
  std::string host;  // Empty: nobody knows it.
  std::string port;  // Then: the node's id.
  friend bool operator==(const cluster_address&, const cluster_address&) = default;
  friend bool operator<(const cluster_address& one, const cluster_address& other) {
    return std::tie(one.host, one.port) < std::tie(other.host, other.port);
  }
};

struct cluster_primary {
  std::string id;  // The cluster's name for it, which stays when its address changes.
  cluster_address where;
  int replicas = 0;
  friend bool operator==(const cluster_primary&, const cluster_primary&) = default;
};

// What one node says.
struct slots_answer {
  struct range {
    std::size_t first;
    std::size_t last;
    std::size_t primary;  // Index below.
    friend bool operator==(const range&, const range&) = default;
  };
  std::vector<range> ranges{};
  std::vector<cluster_primary> primaries{};  // That serve something.
  struct replica {
    std::string id;
    cluster_address where;
    std::size_t primary;  // Index above.
    friend bool operator==(const replica&, const replica&) = default;
  };
  std::vector<replica> replicas{};  // One for each range of its primary's.
  friend bool operator==(const slots_answer&, const slots_answer&) = default;
};

// `asked`: where, for nodes that say "the one that you asked" instead of an address. Empty: it is no such answer, names
// two primaries for one slot, or more than 1,000.
std::optional<slots_answer> parse_cluster_slots(const resp::value& reply, const cluster_address& asked);

// An answer, from whom, and when he was asked.
struct slots_vote {
  cluster_address from;
  slots_answer what;
  time_point asked_at;
  bool is_of_uri = false;  // The URI names him.
};

using node_ids = std::set<std::string, std::less<>>;

struct slot_map {
  static constexpr std::uint16_t nobody = 0xffff;

  std::vector<cluster_primary> primaries{};
  // Index of a primary, or nobody. Not in the map itself: several of these are more than a small stack has.
  std::vector<std::uint16_t> owner = std::vector<std::uint16_t>(slot_count);
  std::bitset<slot_count> is_unserved{};  // A majority says that nobody serves it.
  // Which of them a majority has named for each slot that is its own, in the last round,
  std::vector<bool> is_named{};
  time_point asked_at{};  // the first question of which was put then.
  // Of all nodes of the cluster, replicas too, by what those who voted say.
  node_ids ids{};

  std::size_t covered() const;
};

// Does it name any of those nodes? The nodes of a cluster change one after the other, so what it was and what it is
// have some in common. Of another cluster, whose node has got the address of one of ours, none is known.
bool is_of_cluster(const slots_answer& what, const node_ids& ids);
// How many nodes of the URI have answered as one of that cluster does.
std::size_t of_uri(std::span<const slots_vote> votes, const node_ids& ids);

// A primary serves a slot if more than half of all primaries say so, those that are silent included. Which primaries
// there are is what any of the answers says, as long as more than half of those agree. Empty: none are named by a
// majority, or those who agree name more than a map has numbers for.
//
// Answers that have a node in common are of one cluster. `before`: what was known of it. Another one, of whose answers
// none names any of its nodes, does not count. Nothing is known in the beginning: should two clusters answer, it is the
// one of which more nodes of the URI are, and neither when there are as many. A primary that is known has another
// address when more than half say the same one, or nobody says the old one any more.
std::optional<slot_map> named_by_majority(std::span<const slots_vote> votes, const slot_map& before = {});

// What is known after a round: a slot for which there is no majority stays where it was, and who serves it is not
// named.
slot_map merged(const slot_map& before, slot_map round);

}  // namespace holdfast::engine
