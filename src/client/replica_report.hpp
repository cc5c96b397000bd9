// SPDX-License-Identifier: Apache-2.0
// What can cost a lock when a replica has become the primary. Views in, findings out, as server_report.hpp; all of them
// are warnings, because it is none yet.
#pragma once

#include "client/node.hpp"
#include "client/server_report.hpp"
#include "engine/replica_view.hpp"
#include "net/endpoint.hpp"

#include <holdfast/info.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

struct seen_replica {
  net::tcp_address where;
  engine::replica_view view;
};

// What the client relies on, of one that may become its primary.
struct relied_on_next {
  relied_on what{};
  // As of judge_backlog. Empty: nobody minds what it has forgotten.
  std::optional<std::chrono::milliseconds> hold{};
  // Does the client go to whoever is promoted, at that address? Else somebody else sees to it.
  bool is_followed = false;
  // Commands that the primary denies our login, too: it is told otherwise what that means.
  std::vector<std::string> lacks_anyway{};
};

// Asks each of them once, all at the same time, for a second at most, with the TLS and the login of `primary`. `key`:
// one of ours.
std::vector<seen_replica> ask_replicas(const node& primary, const std::vector<net::tcp_address>& where,
                                       const std::string& key, duration at_most);

// `now`: by this machine's wall clock.
std::vector<finding> judge_replica(const seen_replica& one, const relied_on_next& by, server_time now);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
