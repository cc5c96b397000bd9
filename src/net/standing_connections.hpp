// SPDX-License-Identifier: Apache-2.0
// Where a host's name leads, as those connections to one endpoint know it that stand there. For when the name service
// is slow or away: the connection over which a lease is renewed is made long after the one over which it was granted,
// and that still stands.
#pragma once

#include "net/socket_address.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::net {

// Any thread may call it. `name`: host and port, as text_of(tcp_address) has them.
class standing_connections {
public:
  // The socket `fd`, until it is removed, which comes before it is closed. Without memory it is not known.
  void add(const std::string& name, const socket_address& to, int fd) noexcept;
  // Also one that is not there.
  void remove(int fd) noexcept;
  // The addresses, each once, those of the latest connections first. Not of one that the other end has closed, though
  // nobody has read that yet.
  std::vector<socket_address> of(std::string_view name) const;

private:
  struct connection {
    std::string name;
    socket_address to;
    int fd;
  };

  mutable std::mutex mutex_{};
  std::vector<connection> all_{};
};

}  // namespace holdfast::net
