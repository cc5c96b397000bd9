// SPDX-License-Identifier: Apache-2.0
// Which addresses of a host were silent, as all connections to one endpoint know it. The one over which a lease is
// renewed is made when the first renewal is due: would it find that out for itself, the lease could be over by then.
#pragma once

#include "net/socket_address.hpp"

#include <cstddef>
#include <mutex>
#include <vector>

namespace holdfast::net {

// Any thread may call it.
class silent_addresses {
public:
  silent_addresses() { all_.reserve(most); }  // So that note() needs no memory.

  void note(const socket_address& one);
  void forget(const socket_address& one);
  // Behind the others in `found`, who was silent most lately is last.
  void put_last(std::vector<socket_address>& found) const;

private:
  static constexpr std::size_t most = 32;  // Of more the oldest is forgotten.

  mutable std::mutex mutex_{};
  std::vector<socket_address> all_{};  // In the order in which they were.
};

}  // namespace holdfast::net
