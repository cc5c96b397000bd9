// SPDX-License-Identifier: Apache-2.0
// A program that is at its end, and what of it is static makes connections with TLS still: what is static in the
// libraries below may have ended by then (docs/threads.md). SERVER in the environment is the server's URI.
#include <holdfast/holdfast.hpp>

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace {

holdfast::client connected() {
  holdfast::client_options how;
  how.quarantine = holdfast::quarantine_mode::trust_every_write_is_synced;
  return holdfast::client{std::getenv("SERVER"), how};
}

struct last_words {
  ~last_words() {
    for (int i = 0; i < 5; ++i) {  // What one spoils the next ones stumble over.
      std::error_code ec;
      auto locks = connected();
      if (locks.try_acquire("x", {}, ec)) continue;
      std::fprintf(stderr, "%s\n", ec.message().c_str());
      std::_Exit(1);
    }
  }
};

const holdfast::client first = connected();
const last_words at_the_end;

}  // namespace

int main() {}
