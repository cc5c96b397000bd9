// SPDX-License-Identifier: Apache-2.0
#include "local/lab_ports.hpp"

#include "local/descriptor.hpp"
#include "local/failure.hpp"
#include "local/lab_record.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace holdfast::local {
namespace {

constexpr int lowest = 10'000;
constexpr int width = 10'000;

bool is_free(int port) {
  const descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) fail_with_errno("127.0.0.1", "No socket can be made.", errno);
  const int on = 1;  // As redis-server sets it: a connection that has just ended is in nobody's way.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(socket.get(), 1) == 0;
}

int random_port() {
  std::uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) fail_with_errno("getrandom", "No random bits.", errno);
  return lowest + static_cast<int>(bits % width);
}

}  // namespace

std::vector<int> free_ports(std::size_t count) {
  std::vector<int> ports;
  for (int tries = 0; tries < width; ++tries) {
    if (ports.size() == count) return ports;
    const int port = random_port();
    const bool is_new = std::find(ports.begin(), ports.end(), port) == ports.end();
    if (is_new && is_free(port) && is_free(port + bus_offset)) ports.push_back(port);
  }
  fail("127.0.0.1", "No free ports were found between 10000 and 19999.");
}

}  // namespace holdfast::local
