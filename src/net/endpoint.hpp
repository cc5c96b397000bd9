// SPDX-License-Identifier: Apache-2.0
// Where a server is and how to talk to it. A value, made from a URI by client/uri.
#pragma once

#include "engine/named_primary.hpp"

#include <memory>
#include <string>
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

// A node of a cluster, while it is a primary; without a host: none yet, so that nobody connects there before the
// watch knows one (net/cluster_watch.hpp).
class cluster_watch;
struct cluster_node_address {
  std::shared_ptr<cluster_watch> watch;
  tcp_address where;
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
};

}  // namespace holdfast::net
