// SPDX-License-Identifier: Apache-2.0
#include "net/tls_session.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <boost/asio/ip/address.hpp>

#include <array>
#include <mutex>

namespace holdfast::net {

namespace asio = boost::asio;

struct tls_session::hidden {
  SSL* ssl = nullptr;
  BIO* from_wire = nullptr;  // Owned by `ssl`, as is the next.
  BIO* to_wire = nullptr;
  bool has_spoken = false;  // The peer, after the handshake.
  bool is_refused = false;
  std::mutex mutex{};

  ~hidden() { SSL_free(ssl); }
};

namespace {

std::string last_openssl_error() {
  std::string text = "unknown error";
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (reason) text = reason;
  }
  return text;
}

std::string describe_failure(SSL* ssl) {
  std::string text = last_openssl_error();
  const long verdict = SSL_get_verify_result(ssl);
  if (verdict != X509_V_OK) text += std::string{": "} + X509_verify_cert_error_string(verdict);
  return text;
}

// False: whose certificate it must be was not taken note of, and any would do.
bool expect_host(SSL* ssl, std::string host) {
  boost::system::error_code not_an_address;
  asio::ip::make_address(host, not_an_address);
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl);
  if (!not_an_address) return X509_VERIFY_PARAM_set1_ip_asc(verify, host.c_str()) == 1;
  // That it is a whole name is for the look-up; certificates and SNI have it without the dot (RFC 6066, 3).
  if (host.ends_with('.')) host.pop_back();
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return !host.empty() && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 &&
         X509_VERIFY_PARAM_set1_host(verify, host.data(), host.size()) == 1;
}

// Both sides of the session are memory.
bool open_wire(SSL* ssl, BIO*& from_wire, BIO*& to_wire) {
  from_wire = BIO_new(BIO_s_mem());
  to_wire = BIO_new(BIO_s_mem());
  if (from_wire && to_wire) {
    SSL_set_bio(ssl, from_wire, to_wire);
    return true;
  }
  BIO_free(from_wire);
  BIO_free(to_wire);
  return false;
}

}  // namespace

tls_session::tls_session(std::unique_ptr<hidden> h) : hidden_{std::move(h)} {}
tls_session::~tls_session() = default;

std::unique_ptr<tls_session> tls_session::make(SSL_CTX& files, const std::string& host, std::string& why) {
  auto h = std::make_unique<hidden>();
  ERR_clear_error();
  h->ssl = SSL_new(&files);  // Which keeps them.
  if (!h->ssl || !open_wire(h->ssl, h->from_wire, h->to_wire) ||
      SSL_set_min_proto_version(h->ssl, TLS1_2_VERSION) != 1) {
    why = "no TLS session can be made: " + last_openssl_error();
    return nullptr;
  }
  SSL_set_connect_state(h->ssl);
  // In the middle of a renegotiation SSL_write takes nothing, and a request would be thought to be sent.
  SSL_set_options(h->ssl, SSL_OP_NO_RENEGOTIATION);
  SSL_set_verify(h->ssl, SSL_VERIFY_PEER, nullptr);
  if (!expect_host(h->ssl, host)) {
    why = "no certificate can be checked for the host name that was given: " + last_openssl_error();
    return nullptr;
  }
  return std::unique_ptr<tls_session>{new tls_session{std::move(h)}};
}

void tls_session::keep_openssl() noexcept {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  OPENSSL_init_ssl(0, nullptr);  // The last to be begun is ended first: those who wait for threads must come behind it.
}

bool tls_session::shake_hands(std::string_view bytes, std::string& why) {
  const std::lock_guard lock{hidden_->mutex};
  ERR_clear_error();
  if (!bytes.empty()) BIO_write(hidden_->from_wire, bytes.data(), static_cast<int>(bytes.size()));
  const int result = SSL_do_handshake(hidden_->ssl);
  if (result == 1) return true;
  const int error = SSL_get_error(hidden_->ssl, result);
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) why = describe_failure(hidden_->ssl);
  return false;
}

bool tls_session::decrypt(std::string_view bytes, std::string& plain, std::string& why) {
  const std::lock_guard lock{hidden_->mutex};
  ERR_clear_error();
  if (!bytes.empty()) BIO_write(hidden_->from_wire, bytes.data(), static_cast<int>(bytes.size()));
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    const int n = SSL_read(hidden_->ssl, buffer.data(), static_cast<int>(buffer.size()));
    if (n > 0) {
      hidden_->has_spoken = true;
      plain.append(buffer.data(), static_cast<std::size_t>(n));
      continue;
    }
    const int error = SSL_get_error(hidden_->ssl, n);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return true;
    hidden_->is_refused = error == SSL_ERROR_SSL && !hidden_->has_spoken;
    why = error == SSL_ERROR_ZERO_RETURN ? "the server ended the TLS session" : describe_failure(hidden_->ssl);
    return false;
  }
}

bool tls_session::is_refused() const {
  const std::lock_guard lock{hidden_->mutex};
  return hidden_->is_refused;
}

void tls_session::encrypt(std::string_view plain) {
  const std::lock_guard lock{hidden_->mutex};
  ERR_clear_error();
  // A memory BIO takes everything, so this neither blocks nor writes in part.
  while (!plain.empty()) {
    const int n = SSL_write(hidden_->ssl, plain.data(), static_cast<int>(std::min<std::size_t>(plain.size(), 1 << 20)));
    if (n <= 0) {  // A session that is over: the reader finds out and says why.
      ERR_clear_error();
      return;
    }
    plain.remove_prefix(static_cast<std::size_t>(n));
  }
}

void tls_session::take_wire(std::string& out) {
  const std::lock_guard lock{hidden_->mutex};
  char* data = nullptr;
  const long size = BIO_get_mem_data(hidden_->to_wire, &data);
  if (size <= 0) return;
  out.append(data, static_cast<std::size_t>(size));
  (void)BIO_reset(hidden_->to_wire);
}

}  // namespace holdfast::net
