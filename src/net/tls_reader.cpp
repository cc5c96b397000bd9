// SPDX-License-Identifier: Apache-2.0
#include "net/tls_reader.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::net {

namespace {

// Of an error of OpenSSL's: what the system could not do. 0: it is none of the system's.
int errno_of(unsigned long code) {
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

// Into a context of OpenSSL's own. Not Asio's ssl::context: that one counts on an object of Asio's that is static, and
// ends, in a program with the static library, before a client that is static too.
class file_loader {
public:
  explicit file_loader(const std::function<void(const std::string&)>& tell) : tell_{tell} {
    begin("no TLS session can be made");
    context_ = {SSL_CTX_new(TLS_client_method()), &SSL_CTX_free};
    if (!context_) return;
    // Without one, OpenSSL asks on the terminal or reads the program's input, on whichever thread reads the files.
    SSL_CTX_set_default_passwd_cb(context_.get(), [](char*, int, int, void* was_asked) {
      *static_cast<bool*>(was_asked) = true;
      return 0;
    });
    SSL_CTX_set_default_passwd_cb_userdata(context_.get(), &was_asked_);
  }
  file_loader(const file_loader&) = delete;
  file_loader& operator=(const file_loader&) = delete;

  bool load(const tls_files& files) {
    if (!context_) return fails();  // There was no memory.
    return load_authorities(files.cacert) && load_ours(files);
  }

  bool load_ours(const tls_files& files) {
    if (files.cert.empty()) return true;
    begin("cannot use client certificate '" + files.cert + "'");
    if (!load_chain(files.cert)) return false;
    const std::string& key = files.key.empty() ? files.cert : files.key;
    begin("cannot use private key '" + key + "'");
    return load_key(key);
  }

  // Null: there was no memory for one.
  const std::shared_ptr<SSL_CTX>& context() const { return context_; }
  const std::string& why() const { return why_; }
  bool passes() const { return passes_; }
  bool is_encrypted() const { return was_asked_; }

private:
  bool load_authorities(const std::string& file) {
    if (!file.empty()) {
      begin("cannot read authorities from '" + file + "'");
      return SSL_CTX_load_verify_locations(context_.get(), file.c_str(), nullptr) == 1 || fails();
    }
    begin("cannot read the system's authorities");
    if (SSL_CTX_set_default_verify_paths(context_.get()) != 1) return fails();
    const int error = errno_of_one_more_file();
    return !is_scarcity(error) || fails(error, "");
  }

  // Our own certificate, and those of the authorities between it and one that is known.
  bool load_chain(const std::string& file) {
    const auto in = open(file);
    if (!in) return false;
    const owned<X509> ours{PEM_read_bio_X509_AUX(in.get(), nullptr, ask(), &was_asked_), &X509_free};
    if (!ours || SSL_CTX_use_certificate(context_.get(), ours.get()) != 1) return fails();
    for (;;) {
      owned<X509> next{PEM_read_bio_X509(in.get(), nullptr, ask(), &was_asked_), &X509_free};
      if (!next) break;
      if (SSL_CTX_add0_chain_cert(context_.get(), next.get()) != 1) return fails();
      (void)next.release();
    }
    // The end of the file is an error, too.
    const unsigned long last = ERR_peek_last_error();
    const bool is_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
    return is_end || fails();
  }

  bool load_key(const std::string& file) {
    const auto in = open(file);
    if (!in) return false;
    const owned<EVP_PKEY> key{PEM_read_bio_PrivateKey(in.get(), nullptr, ask(), &was_asked_), &EVP_PKEY_free};
    return (key && SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1) || fails();
  }

  template <class T>
  using owned = std::unique_ptr<T, void (*)(T*)>;
  using file_to_read = std::unique_ptr<BIO, int (*)(BIO*)>;

  pem_password_cb* ask() const { return SSL_CTX_get_default_passwd_cb(context_.get()); }

  // As OpenSSL opens it, a program that another thread starts meanwhile would have it: the key, whoever it runs as.
  file_to_read open(const std::string& file) {
    std::FILE* const opened = std::fopen(file.c_str(), "re");
    if (!opened) {
      fails(errno, "");
      return {nullptr, &BIO_free};
    }
    file_to_read in{BIO_new_fp(opened, BIO_CLOSE), &BIO_free};
    if (in) return in;
    std::fclose(opened);
    fails(ENOMEM, "");
    return in;
  }

  void begin(std::string what) {
    ERR_clear_error();
    what_ = std::move(what);
    if (tell_) tell_(what_);
  }

  // The first of OpenSSL's errors is the cause of the others.
  bool fails() {
    const unsigned long code = ERR_get_error();
    const char* reason = ERR_reason_error_string(code);
    ERR_clear_error();  // The others would be taken for those of a session that the caller has.
    return fails(errno_of(code), reason ? reason : "unknown error");
  }

  bool fails(int error, const char* reason) {
    passes_ = is_scarcity(error);
    why_ = what_ + ": " + (error != 0 ? std::generic_category().message(error) : std::string{reason});
    if (is_encrypted()) {
      why_ = what_ + ": it is encrypted, and holdfast takes no pass phrase; `openssl pkey -in FILE -out DECRYPTED` " +
             "makes one that is not";
    }
    return false;
  }

  const std::function<void(const std::string&)>& tell_;
  std::shared_ptr<SSL_CTX> context_{};
  bool was_asked_ = false;
  std::string what_{};
  std::string why_{};
  bool passes_ = false;
};

read_tls_files nothing(std::string failure, bool passes) {
  read_tls_files result;
  result.failure = std::move(failure);
  result.passes = passes;
  return result;
}

// Threads that are in OpenSSL, which ends itself with exit() if the program has begun it (tls_session::keep_openssl):
// not under one of them. Who hangs for longer than that does not come back before the end.
constinit std::atomic<int> at_work{0};

void wait_for_those_at_work() {
  for (int ms = 0; ms < 1000 && at_work > 0; ++ms) ::poll(nullptr, 0, 1);
}

void let_the_end_wait() {
  [[maybe_unused]] static const bool is_done = [] {
    OPENSSL_atexit(wait_for_those_at_work);
    pthread_atfork(nullptr, nullptr, [] { at_work = 0; });  // A child has none of them.
    return true;
  }();
}

}  // namespace

read_tls_files read_now(const tls_files& files, const std::function<void(const std::string&)>& tell) {
  file_loader loader{tell};
  if (!loader.load(files)) return nothing(loader.why(), loader.passes());
  read_tls_files result;
  result.context = loader.context();
  return result;
}

std::string why_encrypted(const tls_files& files) {
  if (files.cert.empty()) return {};
  const std::function<void(const std::string&)> nobody{};
  file_loader loader{nobody};
  if (!loader.context()) return {};  // Whoever connects finds out.
  return loader.load_ours(files) || !loader.is_encrypted() ? std::string{} : loader.why();
}

// Shared with the thread, which may outlive the one who asked.
struct tls_reader::shared {
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int error_of_fd = fd < 0 ? errno : 0;
  std::mutex mutex{};
  std::string at = "cannot read the TLS files";
  std::optional<read_tls_files> answer{};
  time_point answered_at{};

  ~shared() {
    if (fd >= 0) ::close(fd);
  }

  void set(read_tls_files what) {
    {
      const std::lock_guard lock{mutex};
      answer = std::move(what);
      answered_at = boottime_now();
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
  }

  // Of a thread that what is thrown would end, and the program with it. These words need no memory.
  read_tls_files read_or_say_why(const tls_files& files) try {
    return read_now(files, [this](const std::string& what) {
      const std::lock_guard lock{mutex};
      at = what;
    });
  } catch (const std::bad_alloc&) {
    return nothing("out of memory", true);
  }
};

tls_reader::tls_reader(const tls_files& files, time_point now, const tls_reader* before)
    : shared_{std::make_shared<shared>()}, begun_at_{now} {
  if (before && !before->is_answered()) patience_ = 2 * before->patience_;
  // Nobody would hear of an answer that comes later.
  if (shared_->fd < 0) {
    shared_->set(nothing(std::generic_category().message(shared_->error_of_fd), true));
    return;
  }
  let_the_end_wait();
  ++at_work;
  try {
    start_quietly([into = shared_, files]() mutable {
      into->set(into->read_or_say_why(files));
      into.reset();           // If nobody takes it any more, the context goes with it.
      OPENSSL_thread_stop();  // Else it would let go of what it has for this thread behind our end.
      --at_work;
    }).detach();
  } catch (const std::system_error& e) {
    --at_work;
    shared_->set(nothing(std::string{"no thread to read the TLS files: "} + e.what(), true));
  } catch (...) {
    --at_work;
    throw;
  }
}

int tls_reader::wake_fd() const { return shared_->fd; }

std::optional<read_tls_files> tls_reader::take() {
  const std::lock_guard lock{shared_->mutex};
  return std::exchange(shared_->answer, std::nullopt);
}

std::string tls_reader::at() const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->at;
}

bool tls_reader::is_answered() const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->answer.has_value();
}

bool tls_reader::is_too_old(time_point now) const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->answer && now - shared_->answered_at > answer_lasts;
}

bool tls_reader::is_good_for(time_point now) const {
  if (is_too_old(now)) return false;
  const std::lock_guard lock{shared_->mutex};
  if (shared_->answer) return shared_->answer->context != nullptr;  // Else perhaps it is better now.
  return now - begun_at_ < patience_;
}

}  // namespace holdfast::net
