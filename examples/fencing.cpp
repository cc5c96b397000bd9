// SPDX-License-Identifier: Apache-2.0
// What a fencing token is for, with the whole protocol in forty lines: raise, then read, then write conditionally.
//
// The first owner loses its lock without knowing it (here somebody breaks it; in life it was suspended for a minute,
// or its network was cut). The second owner takes over. The first one's write arrives last, and is refused.
// docs/fencing.md has the same three steps for SQL, an object store and Redis.
//
//   HOLDFAST_URI=redis://db1 fencing
#include <holdfast/holdfast.hpp>

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace {

// The thing that the lock protects. It remembers the largest token it has seen and refuses smaller ones; comparing
// and acting are one step, here under a mutex, elsewhere in one statement or one transaction.
class fenced_store {
public:
  // Step 1, before reading: from here on nobody with a smaller token can write. Without it a write that an old owner
  // sent long ago could still land between our read and our write. False: you have been overtaken; stop.
  [[nodiscard]] bool raise(holdfast::fencing_token token) {
    const std::lock_guard guard{mutex_};
    if (token < highest_) return false;
    highest_ = token;
    return true;
  }

  // Step 2.
  std::string read() const {
    const std::lock_guard guard{mutex_};
    return value_;
  }

  // Step 3, as often as you like: it happens only if nobody newer has raised.
  [[nodiscard]] bool write(holdfast::fencing_token token, std::string value) {
    const std::lock_guard guard{mutex_};
    if (token < highest_) return false;
    highest_ = token;
    value_ = std::move(value);
    return true;
  }

private:
  mutable std::mutex mutex_;
  holdfast::fencing_token highest_;
  std::string value_ = "100";
};

}  // namespace

int main() {
  try {
    fenced_store account;
    holdfast::client locks;
    const char* name = "example:account:7";

    auto first = locks.acquire(name);
    if (!account.raise(first.token())) return std::fputs("first owner: overtaken before it began\n", stderr), 1;
    const std::string seen_by_first = account.read();

    // The first owner still believes that it holds the lock when the second one gets it.
    locks.break_lock(name, first.token(), {.why = "example", .mode = holdfast::break_mode::immediately});
    auto second = locks.acquire(name);
    if (!account.raise(second.token())) return std::fputs("second owner: overtaken before it began\n", stderr), 1;
    const bool second_wrote = account.write(second.token(), account.read() + " - 30");

    const bool first_wrote = account.write(first.token(), seen_by_first + " - 80");

    std::printf("first owner   token %s  write %s\n", first.token().to_string().c_str(),
                first_wrote ? "accepted" : "refused: a newer owner has been here");
    std::printf("second owner  token %s  write %s\n", second.token().to_string().c_str(),
                second_wrote ? "accepted" : "refused");
    std::printf("balance       %s\n", account.read().c_str());
    return second_wrote && !first_wrote ? 0 : 1;
  } catch (const holdfast::error& e) {
    std::fprintf(stderr, "fencing: %s\n", e.what());
    return 1;
  }
}
