// SPDX-License-Identifier: Apache-2.0
// A test on one real server, and the three ways to log in to it. The whole functional suite runs once as the default
// user, once as an ACL user with no more rights than docs/acl.md gives (B98 to B100), and once over TLS:
// HOLDFAST_TEST_LOGIN is empty, "acl" or "tls".
#pragma once

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

// How holdfast's values look in a failed assertion. Found by ADL, so they stand in its namespace.
namespace holdfast {
inline namespace v0 {
void PrintTo(const errc& code, std::ostream* out);
void PrintTo(const release_outcome& outcome, std::ostream* out);
}  // namespace v0
}  // namespace holdfast

namespace holdfast::test {

// A loop that shows a race by its length: shorter where a sanitizer makes each turn dear.
constexpr int scaled(int turns) {
#ifdef HOLDFAST_SANITIZED
  return turns > 1000 ? turns / 20 : turns;
#else
  return turns;
#endif
}

// For how long a test waits in vain for what somebody else holds: long enough for a first connection, with TLS, and an
// answer, under a sanitizer on a busy machine. With less the end may be that the server did not answer.
constexpr std::chrono::milliseconds in_vain{scaled(2000) == 2000 ? 1500 : 3000};

// What a test allows beyond the time that the contract names: nothing, but where a sanitizer makes each step dear.
#ifdef HOLDFAST_SANITIZED
constexpr std::chrono::milliseconds when_busy{2000};
#else
constexpr std::chrono::milliseconds when_busy{0};
#endif

class on_redis : public testing::Test {
protected:
  explicit on_redis(redis_options options = {});

  // The server as the login under test names it; a socket is that of a proxy in front of it.
  std::string uri(int database = 0) const;
  client_options options() const;

  // A client, with `timeout` for what a test wants to see fail soon.
  client make_client(std::chrono::milliseconds timeout = std::chrono::seconds{5}) const;
  client make_client(client_options over) const { return client{uri(), login(std::move(over))}; }

  // Through a proxy, which speaks Unix sockets: the TLS login is left out there.
  client make_client_at(const std::string& where, std::chrono::milliseconds timeout = std::chrono::seconds{5}) const;
  client make_client_at(const std::string& where, client_options over) const {
    return client{where, login(std::move(over))};
  }

  // Adds user and password of the login under test.
  client_options login(client_options over) const;

  // What docs/acl.md adds to its rule for a purpose of this test ("+scan" for listing); nothing for other logins.
  void allow_also(const std::vector<std::string>& words);

  // The environment that a worker process needs to log in likewise.
  std::vector<std::string> worker_environment() const;

  bool exists(const std::string& key) { return server_("EXISTS", key) == 1; }
  std::chrono::milliseconds pttl(const std::string& key) {
    return std::chrono::milliseconds{server_("PTTL", key).number};
  }

  redis_server server_;
};

// What an observer hears of the last lease.
class stop_watch : public observer {
public:
  void on_acquire(const std::string&, acquire_result, std::chrono::microseconds took, int) override { waited = took; }
  void on_released(const std::string&, release_outcome, std::chrono::microseconds since) override { held = since; }
  std::atomic<std::chrono::microseconds> waited{};
  std::atomic<std::chrono::microseconds> held{};
};

// The code that `call` throws; no code if it throws none.
template <class Call>
std::error_code code_of(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return e.code();
  }
  return {};
}

// The whole error that `call` throws.
template <class Call>
std::optional<error> error_of(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return e;
  }
  return std::nullopt;
}

}  // namespace holdfast::test
