// SPDX-License-Identifier: Apache-2.0
// The TLS files, as OpenSSL takes them, without blocking the one who connects: of a file system that is away (NFS,
// autofs) open(2) does not come back, and the system's authorities take tens of milliseconds, while the keeper must say
// that a lease is over (C4). So they are read as a name is looked up (net/resolver.hpp), by a thread that nobody waits
// for.
#pragma once

#include "base/time.hpp"
#include "net/endpoint.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace holdfast::net {

struct read_tls_files {
  std::shared_ptr<ssl_ctx_st> context{};  // For a session (net/tls_session.hpp). Null: there is none, and
  std::string failure{};                  // why: of which file.
  bool passes = false;                    // This machine has not enough of something for now, descriptors say.
};

// On this thread, for as long as it takes. `tell` hears what it begins with, in the words of a failure of that.
read_tls_files read_now(const tls_files& files, const std::function<void(const std::string&)>& tell = {});
// Does a file want a pass phrase? There is nobody to ask: a thread of ours reads it. Empty, or why it cannot be used.
std::string why_encrypted(const tls_files& files);

// One reading. It serves one connection: files that were changed are seen by the next. Where whoever asked has given up
// before it came to an end, the next one goes on with it, or has what it came to, within `answer_lasts`: else who waits
// less long than it takes would never have it.
class tls_reader {
public:
  // `before`: the one that this replaces.
  tls_reader(const tls_files& files, time_point now, const tls_reader* before = nullptr);
  tls_reader(const tls_reader&) = delete;
  tls_reader& operator=(const tls_reader&) = delete;

  // Becomes readable when the answer is there.
  int wake_fd() const;
  // The answer, once.
  std::optional<read_tls_files> take();
  // What it is about, in the words of a failure of that.
  std::string at() const;

  // Is it worth more than a new one? It has come to a context not long ago, or is under way and may come to an end:
  // what hangs for a minute may hang for ever (a mount that was replaced), and another one, for which it is replaced
  // then, may not. Each has twice the time of the one before: a thread that hangs stays, and there must be few.
  bool is_good_for(time_point now) const;
  static constexpr std::chrono::minutes first_patience{1};
  // Is it answered, and has been for so long that the files may be others by now?
  bool is_too_old(time_point now) const;
  static constexpr std::chrono::seconds answer_lasts{5};

private:
  struct shared;
  bool is_answered() const;

  std::shared_ptr<shared> shared_;
  time_point begun_at_;
  duration patience_ = first_patience;
};

}  // namespace holdfast::net
