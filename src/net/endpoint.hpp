// SPDX-License-Identifier: Apache-2.0
// Where a server is and how to talk to it. A value, made from a URI by client/uri.
#pragma once

#include "engine/named_primary.hpp"
#include "net/silent_addresses.hpp"
#include "net/standing_connections.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

namespace holdfast::net {

struct tcp_address {
  std::string host;  // A name or a literal, IPv6 without brackets.
  std::string port;
};
// As in a URI: an IPv6 literal in brackets.
inline std::string text_of(const tcp_address& where) {
  const bool is_literal6 = where.host.find(':') != std::string::npos;
  return (is_literal6 ? "[" + where.host + "]" : where.host) + ":" + where.port;
}

struct unix_address {
  std::string path;
};
// Wherever the sentinels say, each time (net/sentinel_watch.hpp).
class sentinel_watch;
using named_address = std::shared_ptr<sentinel_watch>;

// Where somebody is who may move. Any thread reads it.
class moving_address {
public:
  explicit moving_address(tcp_address where) : where_{std::move(where)} {}
  tcp_address get() const {
    const std::lock_guard held{mutex_};
    return where_;
  }
  void move_to(tcp_address where) {
    const std::lock_guard held{mutex_};
    where_ = std::move(where);
  }

private:
  mutable std::mutex mutex_{};
  tcp_address where_;
};

// A node of a cluster, while it is a primary; without a host: none yet, so that nobody connects there before the
// watch knows one (net/cluster_watch.hpp). Whoever moves it has it named anew after that, so that what was connected to
// the old address ends.
class cluster_watch;
struct cluster_node_address {
  std::shared_ptr<cluster_watch> watch;
  std::shared_ptr<const moving_address> where;  // Null: nowhere.
  std::shared_ptr<const engine::named_primary> named;
};

struct tls_files {
  std::string cacert;  // Empty: the system's authorities.
  std::string cert;    // Empty: no client certificate.
  std::string key;     // Empty: the key is in `cert`.
};

struct endpoint {
  std::variant<tcp_address, unix_address, named_address, cluster_node_address> where;
  bool uses_tls = false;
  tls_files tls{};
  // A copy has the same.
  std::shared_ptr<silent_addresses> silent = std::make_shared<silent_addresses>();
  std::shared_ptr<standing_connections> standing = std::make_shared<standing_connections>();
};

}  // namespace holdfast::net
