// SPDX-License-Identifier: Apache-2.0
// TLS without a socket: bytes of the wire in, bytes of the wire out, as OpenSSL does it over memory BIOs.
//
// Asio's ssl::stream would own the socket and may be driven by one thread at a time; here one thread reads while
// another writes (docs/decisions/0002). The lock inside is held for the cryptography of one call, never for IO.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace holdfast::net {

class tls_session {
public:
  // Verifies the chain and the host name (or IP literal), sends SNI for names, TLS 1.2 or newer. `files`: as they were
  // read (net/tls_reader.hpp); for one session.
  // On a host name that OpenSSL cannot check (it is empty, too long, has a NUL) and without memory gives null and sets
  // `why`.
  static std::unique_ptr<tls_session> make(ssl_ctx_st& files, const std::string& host, std::string& why);
  // OpenSSL ends itself with exit(): before a client that is static, and under the threads of one that is never
  // destroyed. From here on it does not, unless the program has begun it by itself before. Reads OpenSSL's
  // configuration, once: for who makes a client, not for its threads.
  static void keep_openssl() noexcept;
  ~tls_session();
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  // Takes bytes from the wire (may be none, to begin) and goes on with the handshake. Bytes that must be written
  // appear in take_wire(). True: done. `why` is set when it failed for good.
  bool shake_hands(std::string_view from_wire, std::string& why);

  // Takes bytes from the wire, appends what they decrypt to. False: the peer ended or broke the session (`why`).
  bool decrypt(std::string_view from_wire, std::string& plain, std::string& why);
  // It broke before it said anything. So under TLS 1.3 a server refuses the client's certificate: it sees that when the
  // client's handshake is done.
  bool is_refused() const;

  // Encrypts all of `plain`; the bytes appear in take_wire().
  void encrypt(std::string_view plain);

  // Moves everything that waits to be written to the end of `out`.
  void take_wire(std::string& out);

private:
  struct hidden;
  explicit tls_session(std::unique_ptr<hidden>);
  std::unique_ptr<hidden> hidden_;
};

}  // namespace holdfast::net
