// SPDX-License-Identifier: Apache-2.0
// Stands between the library and a server and makes the network's faults: late, lost, cut, half open, in single
// bytes. It knows nothing of Redis; it counts bytes, so that a test can cut at every one of them.
//
// One thread of its own moves the bytes; every member may be called from the test's thread at any time and takes
// effect with the next byte.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::test {

// What happens to the bytes of one direction of a connection.
struct fault {
  enum class then { hold, fin, rst };  // After the last byte that passes: silence, an orderly end, a reset.

  std::chrono::milliseconds delay{0};
  std::optional<std::size_t> pass_only{};  // How many bytes pass, counted from when the fault was set. 0: none.
  then at_the_end = then::hold;
  bool single_bytes = false;  // Each byte is a segment of its own.
};

enum class direction { to_server, to_client };

class fault_proxy {
public:
  // Listens on a Unix socket and forwards to `target_socket`.
  explicit fault_proxy(const std::string& target_socket);
  // Listens on a free port of the loopback and forwards to another one.
  explicit fault_proxy(int target_port);
  ~fault_proxy();
  fault_proxy(const fault_proxy&) = delete;
  fault_proxy& operator=(const fault_proxy&) = delete;

  std::string socket() const;
  int port() const;
  std::string uri() const { return "redis+unix://" + socket(); }

  // For the connections that exist now; later ones are not harmed. The byte count starts again.
  void set_existing(direction which, const fault& what);

  // For those to come; of two clients that connect behind each other one may be farther away.
  void set_coming(direction which, const fault& what);

  // For the connections that exist now and all to come.
  void set(direction which, const fault& what);

  // No fault any more. What was held flows on.
  void heal();

  void cut_all();                    // RST on every connection.
  void refuse_connections(bool on);  // As a server that is down: the connection is refused.

  std::size_t bytes(direction which) const;  // Forwarded, ever.
  int connections() const;                   // Accepted, ever.
  int open_connections() const;

private:
  struct hidden;
  std::unique_ptr<hidden> hidden_;
};

}  // namespace holdfast::test
