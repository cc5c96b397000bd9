// SPDX-License-Identifier: Apache-2.0
#include "net/tls_session.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>

#include <array>
#include <cerrno>
#include <mutex>
#include <system_error>

namespace holdfast::net {

namespace asio = boost::asio;

struct tls_session::hidden {
  asio::ssl::context context{asio::ssl::context::tls_client};
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

// Of an error of OpenSSL's: what the system could not do. 0: it is none of the system's.
int errno_of(const boost::system::error_code& ec) {
  const auto code = static_cast<unsigned long>(static_cast<unsigned>(ec.value()));
  if (ec.category() == boost::system::system_category()) return ec.value();  // As Asio translates some of them.
  if (ec.category() != asio::error::get_ssl_category()) return 0;
  if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE) return ENOMEM;
  return ERR_GET_LIB(code) == ERR_LIB_SYS ? ERR_GET_REASON(code) : 0;
}

bool is_scarcity(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// OpenSSL says nothing of authorities of the system's that it could not open; whoever they vouch for is unknown then.
int errno_of_one_more_file() {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

class file_loader {
public:
  explicit file_loader(asio::ssl::context& into) : into_{into} {
    // Without one, OpenSSL asks on the terminal or reads the program's input, on whichever thread connects.
    into_.set_password_callback([was_asked = was_asked_](std::size_t, asio::ssl::context::password_purpose) {
      *was_asked = true;
      return std::string{};
    });
  }

  bool load(const tls_files& files) { return load_authorities(files.cacert) && load_ours(files); }

  bool load_authorities(const std::string& file) {
    if (!file.empty()) {
      into_.load_verify_file(file, ec_);
      return !ec_ || fails("cannot read authorities from '" + file + "'");
    }
    into_.set_default_verify_paths(ec_);
    if (ec_) return fails("cannot read the system's authorities");
    if (const int error = errno_of_one_more_file(); is_scarcity(error)) {
      ec_.assign(error, boost::system::system_category());
      return fails("cannot read the system's authorities");
    }
    return true;
  }

  bool load_ours(const tls_files& files) {
    if (files.cert.empty()) return true;
    into_.use_certificate_chain_file(files.cert, ec_);
    if (ec_) return fails("cannot use client certificate '" + files.cert + "'");
    const std::string& key = files.key.empty() ? files.cert : files.key;
    into_.use_private_key_file(key, asio::ssl::context::pem, ec_);
    return !ec_ || fails("cannot use private key '" + key + "'");
  }

  const std::string& why() const { return why_; }
  bool passes() const { return passes_; }
  bool is_encrypted() const { return *was_asked_; }

private:
  bool fails(const std::string& what) {
    const int error = errno_of(ec_);
    passes_ = is_scarcity(error);
    why_ = what + ": " + (error != 0 ? std::generic_category().message(error) : ec_.message());
    if (is_encrypted()) {
      why_ = what + ": it is encrypted, and holdfast takes no pass phrase; `openssl pkey -in FILE -out DECRYPTED` " +
             "makes one that is not";
    }
    return false;
  }

  asio::ssl::context& into_;
  const std::shared_ptr<bool> was_asked_ = std::make_shared<bool>(false);
  boost::system::error_code ec_{};
  std::string why_{};
  bool passes_ = false;
};

// False: whose certificate it must be was not taken note of, and any would do.
bool expect_host(SSL* ssl, const std::string& host) {
  boost::system::error_code not_an_address;
  asio::ip::make_address(host, not_an_address);
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl);
  if (!not_an_address) return X509_VERIFY_PARAM_set1_ip_asc(verify, host.c_str()) == 1;
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

std::unique_ptr<tls_session> tls_session::make(const tls_files& files, const std::string& host, std::string& why,
                                               bool& passes) try {
  auto h = std::make_unique<hidden>();
  file_loader loader{h->context};
  if (!loader.load(files)) {
    why = loader.why();
    passes = loader.passes();
    return nullptr;
  }
  h->ssl = SSL_new(h->context.native_handle());
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
} catch (const boost::system::system_error& e) {  // Of the context.
  why = std::string{"no TLS session can be made: "} + e.what();
  return nullptr;
}

std::string tls_session::why_encrypted(const tls_files& files) try {
  if (files.cert.empty()) return {};
  asio::ssl::context nobody{asio::ssl::context::tls_client};
  file_loader loader{nobody};
  return loader.load_ours(files) || !loader.is_encrypted() ? std::string{} : loader.why();
} catch (const boost::system::system_error&) {
  return {};  // Whoever connects finds out.
}

void tls_session::keep_openssl() noexcept { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

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
    if (n <= 0) return;  // A session that is over: the reader finds out and says why.
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
