// SPDX-License-Identifier: Apache-2.0
#include "net/standing_connections.hpp"

#include <algorithm>
#include <new>

namespace holdfast::net {

void standing_connections::add(const std::string& name, const socket_address& to) noexcept try {
  const std::lock_guard lock{mutex_};
  all_.push_back({name, to});
} catch (const std::bad_alloc&) {
}

void standing_connections::remove(std::string_view name, const socket_address& to) noexcept {
  const std::lock_guard lock{mutex_};
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const connection& one) { return one.name == name && one.to == to; });
  if (found != all_.end()) all_.erase(found);
}

std::vector<socket_address> standing_connections::of(std::string_view name) const {
  std::vector<socket_address> found;
  const std::lock_guard lock{mutex_};
  for (auto one = all_.rbegin(); one != all_.rend(); ++one) {
    if (one->name == name && std::find(found.begin(), found.end(), one->to) == found.end()) found.push_back(one->to);
  }
  return found;
}

}  // namespace holdfast::net
