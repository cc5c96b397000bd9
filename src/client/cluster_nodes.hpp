// SPDX-License-Identifier: Apache-2.0
// The nodes of a cluster as one client has them: a connection pair for each primary, and who serves which slot. When
// that changes, the calls and the leases of a slot move to the node that serves it now, with their owner ids, their
// tickets and their deadlines (docs/decisions/0016-cluster.md).
#pragma once

#include "client/node.hpp"
#include "engine/cluster_slots.hpp"
#include "engine/named_primary.hpp"
#include "net/cluster_watch.hpp"
#include "script/keys.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class cluster_nodes : public std::enable_shared_from_this<cluster_nodes> {
public:
  // What a node is in its cluster; the rest of what it needs is the client's to know. Of the lobby: nothing.
  struct role {
    std::string id{};
    std::shared_ptr<const engine::named_primary> named{};
    std::shared_ptr<const std::atomic<int>> epoch_tag{};
    std::function<void()> redirected{};
  };
  using maker = std::function<std::shared_ptr<node>(net::endpoint where, const role& as)>;

  // `worth`, `drift`: of being named a primary, see engine/named_primary.hpp.
  static std::shared_ptr<cluster_nodes> make(const net::cluster_seeds& seeds, duration worth, core::clock_drift drift,
                                             maker make_node);
  cluster_nodes(const cluster_nodes&) = delete;
  cluster_nodes& operator=(const cluster_nodes&) = delete;

  // Who serves the slot of `key`. Until anybody is known to: the lobby, which never connects; what waits there goes on
  // at the right node as soon as there is one. Nodes live as long as this does.
  const std::shared_ptr<node>& node_for(std::string_view key) const;
  const std::shared_ptr<node>& lobby() const { return lobby_; }
  // Whose connection for commands it is.
  const std::shared_ptr<node>& node_of(const engine::channel& commands) const;
  // Has a majority named anybody yet?
  bool is_known() const;

  struct primary {
    std::string id;
    std::shared_ptr<node> at;
    net::tcp_address where;
    int replicas;
    std::size_t slots;
  };
  // Those that serve a slot, as far as is known.
  std::vector<primary> primaries() const;
  // And why one that a majority names is not among them: there was too little of something to have a node for it. The
  // next round tries again.
  std::vector<primary> primaries(std::optional<std::string>& why_one_is_missing) const;
  // Empty: of the lobby.
  std::string address_of(const node& which) const;
  // Under which number such a node's epoch is kept.
  int epoch_tag_of(const node& which) const;
  // All that there ever were, and the lobby.
  std::vector<std::shared_ptr<node>> all() const;

  // Who keeps a lease changes only under this; to be held while a keeper is told about one, and not while another mutex
  // is waited for with which a caller's thread may stand still.
  std::mutex& moving() const { return moving_; }
  // A lease was given to the keeper of a node that may not serve it any more: the next round looks.
  void move_soon() { is_move_due_ = true; }

  // Ends the threads of all of them, and the watch's. As node::close().
  void close(duration at_most, bool wait) noexcept;

private:
  struct member {
    std::string id;
    net::tcp_address where;
    std::shared_ptr<net::moving_address> lies_at;  // The same, for its connections.
    std::shared_ptr<engine::named_primary> named;
    std::shared_ptr<std::atomic<int>> epoch_tag;
    std::shared_ptr<node> at;
    int replicas = 0;
    std::size_t slots = 0;
  };

  cluster_nodes(const net::cluster_seeds& seeds, duration worth, core::clock_drift drift, maker make_node);
  void take(const engine::slot_map& map);
  member* known(const engine::cluster_primary& who) const;
  member& made_for(const engine::cluster_primary& who);
  bool name(member& who, const engine::cluster_primary& as, time_point asked_at);
  void move_on();

  const duration worth_;
  const core::clock_drift drift_;
  const maker make_node_;
  const net::endpoint security_;  // TLS or not, and with which files.
  const std::shared_ptr<net::cluster_watch> watch_;
  std::shared_ptr<node> lobby_{};
  // The watch's thread alone adds to it and changes what is in it; others read it under mutex_.
  std::vector<std::unique_ptr<member>> members_{};
  std::array<member*, engine::slot_count> serves_{};
  std::size_t covered_ = 0;
  std::optional<std::string> why_one_is_missing_{};
  bool is_closed_ = false;
  std::atomic<bool> is_move_due_{false};  // A slot has moved, and not all that it keeps.
  mutable std::mutex mutex_{};
  mutable std::mutex moving_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
