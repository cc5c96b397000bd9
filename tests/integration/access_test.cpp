// SPDX-License-Identifier: Apache-2.0
// Passwords and permissions: denied is denied, at every command and also inside the scripts; never busy, never lost,
// and no password in any text (H74, H78, B98 to B100).
#include "integration/fixture.hpp"

#include <cstdlib>

namespace holdfast::test {
namespace {

client_options as(std::string user, std::string password) {
  client_options how;
  how.user = std::move(user);
  how.password = std::move(password);
  how.timeout = std::chrono::seconds{1};
  return how;
}

TEST(access, without_a_password_is_told_so) {
  redis_server server{{.password = "opensesame"}};
  ::unsetenv("REDISCLI_AUTH");
  client locks{server.unix_uri(), as("", "")};
  const auto code = code_of([&] { (void)locks.try_acquire("x"); });
  EXPECT_EQ(code, errc::no_password);
  EXPECT_EQ(code, outcome::denied);
}

TEST(access, with_a_wrong_password_is_told_so_without_showing_it) {
  redis_server server{{.password = "opensesame"}};
  client locks{server.unix_uri(), as("", "open barley")};
  const auto failure = error_of([&] { (void)locks.try_acquire("x"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::wrong_password);
  EXPECT_EQ(failure->code(), outcome::denied);
  EXPECT_EQ(std::string{failure->what()}.find("barley"), std::string::npos);
  EXPECT_EQ(failure->detail().endpoint.find("barley"), std::string::npos);
}

// What a server does not know it repeats, and behind HELLO comes the password (B98).
TEST(access, to_a_server_that_does_not_know_hello_shows_no_password) {
  redis_server server{{.password = "opensesame", .config = {"rename-command HELLO \"\""}}};
  client locks{server.unix_uri(), as("", "opensesame")};
  const auto failure = error_of([&] { (void)locks.try_acquire("x"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::wrong_server);
  EXPECT_NE(failure->detail().server_text.find("HELLO"), std::string::npos);
  EXPECT_EQ(failure->detail().server_text.find("opensesame"), std::string::npos);
  EXPECT_EQ(std::string{failure->what()}.find("opensesame"), std::string::npos);
}

TEST(access, with_the_password_of_the_environment_works) {
  redis_server server{{.password = "opensesame"}};
  ::setenv("REDISCLI_AUTH", "opensesame", 1);
  client locks{server.unix_uri()};
  EXPECT_TRUE(locks.try_acquire("x"));
  ::unsetenv("REDISCLI_AUTH");
}

TEST(access, with_a_percent_encoded_password_in_the_uri_works) {
  redis_server server{{.tcp = true, .password = "p@ss:w/rd%"}};
  client locks{"redis://:p%40ss%3Aw%2Frd%25@127.0.0.1:" + std::to_string(server.port())};
  EXPECT_TRUE(locks.try_acquire("x"));
  EXPECT_EQ(locks.endpoint().find("ss"), std::string::npos) << locks.endpoint();
}

// One command after the other is taken away from a user who may do everything else. Whatever acquire makes of it, it
// is "no permission" or it works; it is never busy and never unknown (B98, B99).
class without_command : public testing::TestWithParam<const char*> {};

TEST_P(without_command, is_denied_or_not_needed) {
  redis_server server;
  const auto made =
      server("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-" + std::string{GetParam()});
  ASSERT_FALSE(made.is_error()) << testing::PrintToString(made);
  client locks{server.unix_uri(), as("app", "secret")};
  std::error_code ec;
  auto held = locks.try_acquire("x", {}, ec);
  if (held) {
    EXPECT_EQ(held->release(), release_outcome::released) << "acquired and then stuck (B99)";
  } else {
    EXPECT_EQ(ec, errc::no_permission) << ec.message();
    EXPECT_EQ(ec, outcome::denied);
    EXPECT_EQ(server("EXISTS", "hf:{x}"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(hazard_35, without_command,
                         testing::Values("evalsha", "eval", "script", "set", "get", "mget", "pttl", "type", "time",
                                         "hello"));

// Denied behind the grant: what a script had written by then is given back, and other clients need not wait for its
// ttl.
class semaphore_without_command : public testing::TestWithParam<const char*> {};

TEST_P(semaphore_without_command, keeps_no_permit_that_nobody_has) {
  redis_server server;
  (void)server("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-" + std::string{GetParam()});
  client locks{server.unix_uri(), as("app", "secret")};
  semaphore two{locks, "x", 2};
  const auto code = code_of([&] { (void)two.acquire(); });
  EXPECT_EQ(code, errc::no_permission) << code.message();
  client others{server.unix_uri()};
  semaphore theirs{others, "x", 2};
  EXPECT_TRUE(eventually([&] { return theirs.try_acquire({.permits = 2}).has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(commands_of_the_line, semaphore_without_command,
                         testing::Values("del", "hdel", "hset", "set", "pexpire", "exists"));

// Whether the server has forgotten locks is asked with several commands, and Redis 7.0 does not say which was denied.
TEST(access, is_told_to_allow_info_where_that_is_what_is_missing_and_nowhere_else) {
  for (const std::string what : {"info", "type", "get", "time"}) {
    redis_server server;
    (void)server("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-" + what);
    client locks{server.unix_uri(), as("app", "secret")};
    const auto failure = error_of([&] { (void)locks.try_acquire("x"); });
    ASSERT_TRUE(failure) << what;
    EXPECT_EQ(failure->code(), errc::no_permission) << what;
    EXPECT_EQ(std::string{failure->what()}.find("allow +info") != std::string::npos, what == "info") << failure->what();
  }
}

TEST(access, without_the_key_pattern_is_denied) {
  redis_server server;
  server("ACL", "SETUSER", "app", "on", ">secret", "~other:*", "&*", "+@all");
  client locks{server.unix_uri(), as("app", "secret")};
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x"); }), errc::no_permission);
}

// B99: the release script has a command more than the acquire script; then it says unknown or denied, and the lock
// ends with its ttl. It must not be called lost.
TEST(access, release_without_del_is_not_called_lost) {
  redis_server server;
  server("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-del");
  client locks{server.unix_uri(), as("app", "secret")};
  auto held = locks.try_acquire("x", {.ttl = 500ms, .renew = renewal::none});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->release(), release_outcome::unknown);
}

// H74: the user is switched off while we hold a lease. It lives until its deadline and ends as expired.
TEST(access, revoked_in_mid_hold_ends_the_lease_at_its_deadline) {
  redis_server server;
  server("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all");
  client locks{server.unix_uri(), as("app", "secret")};
  auto held = locks.acquire("x", {.ttl = 900ms});
  server("ACL", "SETUSER", "app", "off");
  server("CLIENT", "KILL", "USER", "app");
  const auto deadline = boottime() + held.remaining();
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 3s + slack));
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  EXPECT_LE(boottime(), deadline + 5ms + 900ms / 3 + when_busy) << "a renewal may have been answered just then";
}

}  // namespace
}  // namespace holdfast::test
