// SPDX-License-Identifier: Apache-2.0
// Ports of 127.0.0.1 that nobody listens on.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace holdfast::local {

// Gives so many ports. A function, so that a test can give taken ones.
using port_source = std::function<std::vector<int>(std::size_t)>;

// Drawn at random from 10000 to 19999 and tried: below the ports that the kernel lends to clients, so that a node which
// is down for a while finds its port free when it is started again, and with room for a cluster's bus 10000 above,
// which is tried too. Another process may still take one before redis-server does: whoever asks is ready to ask again.
std::vector<int> free_ports(std::size_t count);

}  // namespace holdfast::local
