// SPDX-License-Identifier: Apache-2.0
// Names, options and URIs that are refused before anything is sent, naming the value (H9, H70 to H72, B36 to B38,
// B95, B103, B104), and odd ones that must work.
#include "integration/fixture.hpp"

#include <climits>
#include <cstdint>
#include <mutex>
#include <string>

namespace holdfast::test {
namespace {

class bad_input : public on_redis {
protected:
  // Nothing at all reaches the server for a refused call.
  template <class Call>
  void refused(errc code, Call&& call) {
    const auto before = server_.info("total_connections_received");
    const auto failure = error_of(call);
    ASSERT_TRUE(failure) << "it was accepted";
    EXPECT_EQ(failure->code(), code) << failure->what();
    EXPECT_EQ(failure->code(), outcome::misconfigured);
    EXPECT_EQ(server_.info("total_connections_received"), before);
  }
};

TEST_F(bad_input, ttl_outside_its_range_is_refused) {  // H9
  auto locks = make_client();
  using std::chrono::milliseconds;
  for (const auto ttl : {0ms, -1ms, 1ms, 99ms, milliseconds{60'001}, milliseconds{INT_MAX}, milliseconds{LLONG_MAX},
                         milliseconds{LLONG_MIN}}) {
    refused(errc::invalid_option, [&] { (void)locks.try_acquire("x", {.ttl = ttl}); });
  }
}

TEST_F(bad_input, ttl_at_the_ends_of_its_range_works) {
  auto locks = make_client();
  EXPECT_TRUE(locks.try_acquire("short", {.ttl = 100ms}));
  EXPECT_TRUE(locks.try_acquire("long", {.ttl = 60s}));
}

TEST_F(bad_input, wait_outside_its_range_is_refused) {  // B38
  auto locks = make_client();
  using std::chrono::milliseconds;
  for (const auto wait : {-1ms, milliseconds{LLONG_MIN}, milliseconds{LLONG_MAX},
                          std::chrono::duration_cast<milliseconds>(std::chrono::hours{24 * 367})}) {
    refused(errc::invalid_option, [&] { (void)locks.acquire("x", {.wait = wait}); });
  }
}

TEST_F(bad_input, wait_of_the_32_bit_overflow_is_a_long_wait) {  // B38: 49.7 days and INT_MAX.
  auto locks = make_client();
  EXPECT_TRUE(locks.acquire("a", {.wait = std::chrono::milliseconds{INT_MAX}}).valid());
  EXPECT_TRUE(locks.acquire("b", {.wait = std::chrono::milliseconds{4'294'967'297}}).valid());
}

TEST_F(bad_input, owner_that_is_too_long_is_refused) {
  auto locks = make_client();
  refused(errc::invalid_option, [&] { (void)locks.try_acquire("x", {.owner = std::string(257, 'o')}); });
  EXPECT_TRUE(locks.try_acquire("x", {.owner = std::string(256, 'o')}));
}

TEST_F(bad_input, token_out_of_range_is_refused) {
  auto locks = make_client();
  refused(errc::invalid_option,
          [&] { (void)locks.try_acquire("x", {.min_fence = fencing_token{fencing_token::max_value + 1}}); });
}

// What the script says of it is no answer to a break: asked, it would be an unknown outcome.
TEST_F(bad_input, token_of_a_break_that_no_grant_has_is_refused) {
  auto locks = make_client();
  for (const auto token : {std::uint64_t{0}, fencing_token::max_value + 1, UINT64_MAX}) {
    refused(errc::invalid_option, [&] { locks.break_lock("x", fencing_token{token}); });
  }
}

TEST_F(bad_input, why_of_a_break_that_is_too_long_is_refused) {
  auto locks = make_client();
  refused(errc::invalid_option, [&] { locks.break_lock("x", fencing_token{1}, {.why = std::string(257, 'w')}); });
}

TEST_F(bad_input, names_that_are_none_are_refused) {  // H70
  auto locks = make_client();
  const std::vector<std::string> names{"",
                                       std::string(513, 'n'),
                                       "a\nb",
                                       "a\r\nFLUSHALL",
                                       std::string{"a\0b", 3},
                                       "\x1b[31m",
                                       "\x7f",
                                       "\xff\xfe",
                                       "\xc3",
                                       "\xed\xa0\x80",
                                       "\xc0\x80",
                                       "\xf4\x90\x80\x80"};
  for (const auto& name : names) {
    refused(errc::invalid_name, [&] { (void)locks.try_acquire(name); });
    refused(errc::invalid_name, [&] { (void)locks.inspect(name); });
    refused(errc::invalid_name, [&] { locks.break_lock(name, fencing_token{1}); });
  }
}

TEST_F(bad_input, refusal_of_a_name_says_where) {
  auto locks = make_client();
  const auto failure = error_of([&] { (void)locks.try_acquire("jobs/a\nb"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(std::string{failure->what()}.find('\n'), std::string::npos) << "the value is shown escaped";
  EXPECT_NE((failure->detail().why + failure->what()).find("byte 7"), std::string::npos) << failure->what();
}

// B95, H70 to H72: odd names lock and unlock, and no two of them share a key.
TEST_F(bad_input, odd_names_work_and_do_not_collide) {
  auto locks = make_client();
  const std::vector<std::string> names{"a",
                                       "a:b",
                                       ":",
                                       "a:fence",
                                       "a}:fence",
                                       "{a}",
                                       "{",
                                       "}",
                                       "{}",
                                       "%",
                                       "%7B",
                                       "%257B",
                                       "a b",
                                       "*",
                                       "?",
                                       "[a]",
                                       "\\",
                                       "\"",
                                       "'",
                                       "ä",
                                       "a\xcc\x88",
                                       "日本語",
                                       "🔒",
                                       "$(rm)",
                                       "../..",
                                       "-n",
                                       "hf:{a}",
                                       "fence",
                                       "a}:break",
                                       "a\xc2\xa0",
                                       std::string(512, 'n')};
  std::vector<lease> held;
  for (const auto& name : names) {
    auto one = locks.try_acquire(name);
    ASSERT_TRUE(one) << name << " collides with one before";
    EXPECT_EQ(one->name(), name);
    held.push_back(std::move(*one));
  }
  for (const auto& name : names) EXPECT_TRUE(locks.inspect(name).held) << name;
  EXPECT_EQ(locks.list().size(), names.size());
  for (auto& one : held) EXPECT_EQ(one.release(), release_outcome::released) << one.name();
}

TEST_F(bad_input, plain_names_may_be_any_bytes) {
  client_options how;
  how.names = naming::plain;
  auto locks = make_client(how);
  for (const std::string& name : {std::string{"a\0b", 3}, std::string{"\xff\n"}, std::string{"{}x"}}) {
    auto held = locks.acquire(name);
    EXPECT_TRUE(exists(name));
    EXPECT_EQ(held.release(), release_outcome::released);
  }
}

// A file of log records is read line by line, and so a name could forge one.
TEST_F(bad_input, plain_names_are_escaped_in_the_log) {
  std::mutex mutex;
  std::string logged;
  client_options how;
  how.names = naming::plain;
  how.log = [&](const log_record& record) {
    const std::lock_guard held{mutex};
    logged += record.text;
  };
  const auto says = [&](const std::string& what) {
    const std::lock_guard held{mutex};
    return logged.find(what) != std::string::npos;
  };
  auto locks = make_client(how);
  const auto held = locks.acquire("a\nb", {.ttl = 100ms, .renew = renewal::none});
  EXPECT_TRUE(eventually([&] { return says("lost 'a\\x0Ab'"); })) << logged;
  EXPECT_FALSE(says("\n"));
}

TEST_F(bad_input, client_options_outside_their_range_are_refused) {
  const auto with = [&](auto change) {
    client_options how;
    change(how);
    refused(errc::invalid_option, [&] { client locks(server_.unix_uri(), how); });
  };
  with([](client_options& o) { o.timeout = 0ms; });
  with([](client_options& o) { o.timeout = 9ms; });
  with([](client_options& o) { o.timeout = std::chrono::hours{2}; });
  with([](client_options& o) { o.max_ttl = 99ms; });
  with([](client_options& o) { o.max_ttl = std::chrono::hours{25}; });
  with([](client_options& o) { o.clock_drift = 0; });
  with([](client_options& o) { o.clock_drift = 0.5; });
  with([](client_options& o) { o.clock_drift = std::numeric_limits<double>::quiet_NaN(); });
  with([](client_options& o) { o.prefix = ""; });
  with([](client_options& o) { o.prefix = std::string(65, 'p'); });
  for (const char* prefix : {"a{b", "a}b", "a%b", "a*b", "a?b", "a[b", "a]b", "a\\b", "a\nb", "ä"}) {
    with([&](client_options& o) { o.prefix = prefix; });
  }
  with([](client_options& o) { o.owner = std::string(257, 'o'); });
}

class bad_uri : public testing::TestWithParam<const char*> {};

TEST_P(bad_uri, is_refused_with_the_value) {
  const auto failure = error_of([] { client locks{GetParam()}; });
  ASSERT_TRUE(failure) << "it was accepted";
  EXPECT_EQ(failure->code(), errc::invalid_uri) << failure->what();
  EXPECT_EQ(failure->code(), outcome::misconfigured);
  EXPECT_EQ(std::string{failure->what()}.find("secret"), std::string::npos) << failure->what();
}

INSTANTIATE_TEST_SUITE_P(table, bad_uri,
                         testing::Values("localhost", "localhost:6379", "http://localhost", "redis:/localhost",
                                         "redis://", "redis://host:notaport", "redis://host:0", "redis://host:65536",
                                         "redis://host:-1", "redis://host/notadb", "redis://host/-1",
                                         "redis://host/1/2", "redis://[::1", "redis://::1", "redis://host:1:2",
                                         "redis://us%er@host", "redis://:secret%zz@host", "redis://host?unknown=1",
                                         "redis://host/99999999999", "redis+unix://", "redis+unix://relative/path",
                                         "redis+unix:///a?db=x", "redis://:secret@", "REDIS", "redis://ho st",
                                         "redis://host#fragment"));

class good_uri : public testing::TestWithParam<const char*> {};

// Nothing is connected yet, so the host need not exist.
TEST_P(good_uri, is_accepted_and_shown_without_its_password) {
  std::optional<client> locks;
  const auto failure = error_of([&] { locks.emplace(GetParam()); });
  ASSERT_FALSE(failure) << failure->what();
  EXPECT_EQ(locks->endpoint().find("secret"), std::string::npos) << locks->endpoint();
}

INSTANTIATE_TEST_SUITE_P(table, good_uri,
                         testing::Values("redis://localhost", "redis://localhost:6380", "redis://localhost/15",
                                         "redis://[::1]", "redis://[::1]:6380/2", "redis://:secret@host",
                                         "redis://user:secret@host:1/0", "redis://us%65r:sec%72et@host",
                                         "rediss://host",
                                         "rediss://host:6380/1?cacert=/etc/ssl/certs/ca-certificates.crt",
                                         "redis+unix:///tmp/redis.sock", "redis+unix:///tmp/redis.sock?db=3",
                                         "redis://127.0.0.1/", "redis://host-name.example.:7000"));

TEST(environment, without_a_server_named_is_misconfigured) {
  ::unsetenv("HOLDFAST_URI");
  const auto failure = error_of([] { client locks; });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::no_server);
  EXPECT_EQ(failure->code(), outcome::misconfigured);
}

TEST(environment, names_the_server) {
  redis_server server;
  ::setenv("HOLDFAST_URI", server.unix_uri().c_str(), 1);
  client locks;
  EXPECT_TRUE(locks.try_acquire("x"));
  ::unsetenv("HOLDFAST_URI");
}

TEST(local_uri, starts_a_server_and_locks_on_it) {
  scratch_directory scratch;
  const auto directory = scratch / "server";
  {
    client locks{"local:" + directory};
    EXPECT_TRUE(locks.try_acquire("x"));
    EXPECT_TRUE(query_local(directory).running);
  }
  EXPECT_FALSE(stop_local(directory).running);
}

}  // namespace
}  // namespace holdfast::test
