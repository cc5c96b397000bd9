// SPDX-License-Identifier: Apache-2.0
#include "net/standing_connections.hpp"

#include <poll.h>

#include <algorithm>
#include <new>

namespace holdfast::net {

namespace {

bool has_ended(int fd) {
  pollfd look{fd, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) != 0;
}

}  // namespace

void standing_connections::add(const std::string& name, const socket_address& to, int fd) noexcept try {
  const std::lock_guard lock{mutex_};
  all_.push_back({name, to, fd});
} catch (const std::bad_alloc&) {
}

void standing_connections::remove(int fd) noexcept {
  const std::lock_guard lock{mutex_};
  std::erase_if(all_, [fd](const connection& one) { return one.fd == fd; });
}

std::vector<socket_address> standing_connections::of(std::string_view name) const {
  std::vector<socket_address> found;
  const std::lock_guard lock{mutex_};
  for (auto one = all_.rbegin(); one != all_.rend(); ++one) {
    if (one->name != name || has_ended(one->fd)) continue;
    if (std::find(found.begin(), found.end(), one->to) == found.end()) found.push_back(one->to);
  }
  return found;
}

}  // namespace holdfast::net
