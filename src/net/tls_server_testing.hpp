// SPDX-License-Identifier: Apache-2.0
// The other side of a TLS handshake, for tests of this room.
#pragma once

#include "support/tls_material.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <string>

namespace holdfast::net {

// A server of the good certificate, which is for localhost, in memory.
class a_tls_server {
public:
  explicit a_tls_server(int newest_version = TLS1_3_VERSION) {
    const auto& material = test::tls_material(test::certificate::good);
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(files_.get(), (material + "/tls.pem").c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(files_.get(), (material + "/tls.key").c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_set_max_proto_version(files_.get(), newest_version), 1);
    ssl_.reset(SSL_new(files_.get()));
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_accept_state(ssl_.get());
  }

  std::string answer(const std::string& wire) {
    BIO_write(in_, wire.data(), static_cast<int>(wire.size()));
    SSL_do_handshake(ssl_.get());
    return wire_out();
  }
  bool is_done() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  // When it is done.
  std::string say(const std::string& plain) {
    EXPECT_EQ(SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())), static_cast<int>(plain.size()));
    return wire_out();
  }
  std::string asked_for() const {
    const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
    return name ? name : "";
  }

private:
  std::string wire_out() {
    std::string said(64 * 1024, '\0');
    const int size = BIO_read(out_, said.data(), static_cast<int>(said.size()));
    said.resize(static_cast<std::size_t>(std::max(size, 0)));
    return said;
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> files_{SSL_CTX_new(TLS_server_method()), &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
  BIO* in_ = BIO_new(BIO_s_mem());
  BIO* out_ = BIO_new(BIO_s_mem());
};

}  // namespace holdfast::net
