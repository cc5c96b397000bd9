// SPDX-License-Identifier: Apache-2.0
// To which servers of the world a client of a quorum goes.
#pragma once

#include "script/quorum_record.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::sim {

struct server_list {
  script::quorum_record record{};
  std::vector<std::size_t> nodes{};  // In the order of the record.

  friend bool operator==(const server_list&, const server_list&) = default;
  bool has(std::size_t node) const { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); }
};

inline std::string name_of_server(std::size_t node) { return "n" + std::to_string(node) + ":6379"; }

}  // namespace holdfast::sim
