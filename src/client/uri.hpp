// SPDX-License-Identifier: Apache-2.0
// A server URI as a value. Parsing is Boost.URL's; what a part may be is ours.
#pragma once

#include "engine/greeting.hpp"
#include "net/cluster_watch.hpp"
#include "net/endpoint.hpp"
#include "net/sentinel_watch.hpp"

#include <holdfast/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

struct server_uri {
  net::endpoint where;
  engine::credentials who;
  int database = 0;
  std::optional<net::sentinel_set>
      sentinels{};  // Who says where the primary is; then `where` is for the client to fill.
  std::optional<net::cluster_seeds> cluster{};  // Some of its nodes, which say where all are; likewise.
  // The servers of a quorum, in one order, whatever the order in the URI is; then `where` is the first of them.
  std::vector<net::endpoint> quorum{};
  std::uint32_t generation = 1;  // Of that list: one more with each `holdfast quorum replace`.
  bool is_local = false;         // local: ; then `where` is filled in when the server is found or started.
  std::string local_directory;   // Empty: the default.
  std::string display;           // Without user and password, in one spelling: two URIs of one server are equal.
};

// How the local: server of a directory is displayed.
std::string local_display(std::string_view directory);

// Empty: `why` has the offending part and the reason, never the password.
std::optional<server_uri> parse_uri(std::string_view text, error_detail& why);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
