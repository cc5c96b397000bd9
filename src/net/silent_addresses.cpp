// SPDX-License-Identifier: Apache-2.0
#include "net/silent_addresses.hpp"

#include <algorithm>

namespace holdfast::net {

namespace {

// Was it there?
bool take_out(std::vector<socket_address>& all, const socket_address& one) { return std::erase(all, one) > 0; }

}  // namespace

void silent_addresses::note(const socket_address& one) {
  const std::lock_guard lock{mutex_};
  take_out(all_, one);
  if (all_.size() == most) all_.erase(all_.begin());
  all_.push_back(one);
}

void silent_addresses::forget(const socket_address& one) {
  const std::lock_guard lock{mutex_};
  take_out(all_, one);
}

void silent_addresses::put_last(std::vector<socket_address>& found) const {
  const std::lock_guard lock{mutex_};
  for (const auto& one : all_) {
    if (take_out(found, one)) found.push_back(one);
  }
}

}  // namespace holdfast::net
