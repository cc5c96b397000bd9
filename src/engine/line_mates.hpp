// SPDX-License-Identifier: Apache-2.0
// Those of one connection who stand in line for the same lock, in the line's order. One look is enough for all of them
// (P8): the first makes it, because it is the first whose place the server has something to say about.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace holdfast::engine {

class acquire;

class line_mates {
public:
  using line = std::set<std::pair<std::uint64_t, acquire*>>;  // By ticket.

  void add(const std::string& key, std::uint64_t ticket, acquire& who) { lines_[key].emplace(ticket, &who); }
  void remove(const std::string& key, std::uint64_t ticket, acquire& who) {
    const auto found = lines_.find(key);
    if (found == lines_.end()) return;
    found->second.erase({ticket, &who});
    if (found->second.empty()) lines_.erase(found);
  }
  // Null: nobody stands there.
  const line* of(const std::string& key) const {
    const auto found = lines_.find(key);
    return found == lines_.end() ? nullptr : &found->second;
  }

private:
  std::unordered_map<std::string, line> lines_;  // By holder key.
};

}  // namespace holdfast::engine
