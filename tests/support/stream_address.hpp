// SPDX-License-Identifier: Apache-2.0
// Where a stream socket listens or connects to: a path, or a port of the loopback.
#pragma once

#include <string>
#include <variant>

namespace holdfast::test {

using stream_address = std::variant<std::string, int>;

// Non-blocking. A path is taken over from whoever had it; port 0 is any that is free. -1: it cannot be had.
int listen_at(const stream_address& where);
// Non-blocking; -1: nobody listens there.
int connect_to(const stream_address& where);
// Who has come to a listening socket, non-blocking; -1: nobody.
int accept_from(int listener);
// Of a socket of the loopback.
int port_of(int socket);

}  // namespace holdfast::test
