// SPDX-License-Identifier: Apache-2.0
// Keeps a port of 127.0.0.1 while nobody listens there: who connects is refused, and no other program gets it. Without
// it another test's server may listen where a killed one has been, and answer whoever asks that one.
#pragma once

namespace holdfast::test {

class reserved_port {
public:
  // Of a server that has ended. Somebody else who was faster has it: then nothing is kept.
  explicit reserved_port(int port);
  ~reserved_port();
  reserved_port(reserved_port&& from) noexcept;
  reserved_port(const reserved_port&) = delete;
  reserved_port& operator=(const reserved_port&) = delete;
  reserved_port& operator=(reserved_port&&) = delete;

private:
  int socket_;
};

}  // namespace holdfast::test
