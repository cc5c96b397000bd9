// SPDX-License-Identifier: Apache-2.0
#include "client/settings.hpp"

#include "local/sandbox.hpp"
#include "support/scratch_directory.hpp"
#include "support/tls_material.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <variant>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::HasSubstr;

// Runs with an environment of its own, and leaves the one it found.
class settings_of : public testing::Test {
protected:
  settings_of() {
    for (auto& v : variables) {
      if (const char* text = std::getenv(v.name)) v.before = text;
      unsetenv(v.name);
    }
  }
  ~settings_of() override {
    for (const auto& v : variables) v.before ? setenv(v.name, v.before->c_str(), 1) : unsetenv(v.name);
  }

private:
  struct variable {
    const char* name;
    std::optional<std::string> before{};
  };
  variable variables[4] = {
      {"HOLDFAST_URI"}, {"REDISCLI_AUTH"}, {"HOLDFAST_SENTINEL_USER"}, {"HOLDFAST_SENTINEL_PASSWORD"}};
};

void set(const char* name, const char* text) { setenv(name, text, 1); }

std::string password_of(const char* uri, client_options options = {}) {
  return resolve(uri, std::move(options)).server.who.password;
}

struct refusal {
  std::error_code code{};
  error_detail detail{};
};

refusal refusal_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const error& e) {
    return {e.code(), e.detail()};
  }
  return {};
}

TEST_F(settings_of, no_uri_come_from_the_environment) {
  set("HOLDFAST_URI", "redis://env:6380");
  EXPECT_EQ(resolve(std::nullopt, {}).server.display, "redis://env:6380");
}

TEST_F(settings_of, a_uri_are_those_of_the_argument) {
  set("HOLDFAST_URI", "redis://env:6380");
  EXPECT_EQ(resolve("redis://argument", {}).server.display, "redis://argument:6379");
}

TEST_F(settings_of, neither_argument_nor_environment_have_no_server) {
  EXPECT_EQ(refusal_of([] { resolve(std::nullopt, {}); }).code, errc::no_server);
  set("HOLDFAST_URI", "");
  EXPECT_EQ(refusal_of([] { resolve(std::nullopt, {}); }).code, errc::no_server);
}

// An unset shell variable must not turn into the server of the environment.
TEST_F(settings_of, an_empty_argument_are_not_those_of_the_environment) {
  set("HOLDFAST_URI", "redis://env:6380");
  EXPECT_EQ(refusal_of([] { resolve("", {}); }).code, errc::invalid_uri);
}

TEST_F(settings_of, a_bad_uri_say_so) {
  EXPECT_EQ(refusal_of([] { resolve("http://db1", {}); }).code, errc::invalid_uri);
}

TEST_F(settings_of, passwords_prefer_option_to_uri_to_environment) {
  set("REDISCLI_AUTH", "of-environment");
  client_options options;
  EXPECT_EQ(password_of("redis://db1"), "of-environment");
  EXPECT_EQ(password_of("redis://app@db1"), "of-environment");
  EXPECT_EQ(password_of("redis://:of-uri@db1"), "of-uri");
  options.password = "of-option";
  EXPECT_EQ(password_of("redis://:of-uri@db1", options), "of-option");
}

TEST_F(settings_of, users_prefer_option_to_uri) {
  client_options options;
  options.user = "of-option";
  EXPECT_EQ(resolve("redis://of-uri:p@db1", options).server.who.user, "of-option");
  EXPECT_EQ(resolve("redis://of-uri:p@db1", {}).server.who.user, "of-uri");
}

// Its password is nobody's in the environment.
TEST_F(settings_of, a_local_server_do_not_take_the_password_of_another) {
  set("REDISCLI_AUTH", "of-environment");
  EXPECT_EQ(password_of("local:"), "");
}

TEST_F(settings_of, tls_files_prefer_option_to_uri) {
  client_options options;
  options.cacert = "/dev/null";
  EXPECT_EQ(resolve("rediss://db1?cacert=/no/such/ca.pem", options).server.where.tls.cacert, "/dev/null");
}

TEST_F(settings_of, tls_files_for_a_server_without_TLS_are_refused) {
  for (const auto& [field, options] : {std::pair<std::string, client_options>{"cacert", {.cacert = "/dev/null"}},
                                       {"cert", {.cert = "/dev/null"}},
                                       {"key", {.key = "/dev/null"}}}) {
    for (const char* uri : {"redis://db1", "redis+unix:///run/redis.sock", "redis+cluster://a,b,c",
                            "redis+quorum://a,b,c", "redis+sentinel://s/main", "local:"}) {
      const auto seen = refusal_of([&, &how = options] { resolve(uri, how); });
      EXPECT_EQ(seen.code, errc::invalid_option) << uri;
      EXPECT_EQ(seen.detail.subject, field + " '/dev/null'") << uri;
      EXPECT_THAT(seen.detail.why, HasSubstr("rediss:")) << uri;
    }
  }
}

TEST_F(settings_of, unreadable_tls_files_are_named) {
  for (const std::string field : {"cacert", "cert", "key"}) {
    const auto seen = refusal_of([&] { resolve("rediss://db1?" + field + "=/no/such.pem", {}); });
    EXPECT_EQ(seen.code, errc::invalid_option);
    EXPECT_EQ(seen.detail.subject, field + " '/no/such.pem'");
    EXPECT_NE(seen.detail.why, "");
  }
}

// A program that has another user's rights, or has given up its own.
TEST_F(settings_of, tls_files_are_looked_at_by_the_user_who_will_read_them) {
  if (::getuid() != 0) GTEST_SKIP() << "it takes root to be somebody else";
  constexpr uid_t nobody = 65534;
  const test::scratch_directory place;
  const auto file = place / "ca.pem";
  std::ofstream{file} << "not for everybody";
  ASSERT_EQ(::chmod(place.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const auto uri = "rediss://db1?cacert=" + file;
  ASSERT_EQ(::setresuid(0, nobody, 0), 0);
  const auto as_nobody = refusal_of([&] { resolve(uri, {}); });
  ASSERT_EQ(::setresuid(nobody, 0, 0), 0);
  const auto as_root = refusal_of([&] { resolve(uri, {}); });
  ASSERT_EQ(::setresuid(0, 0, 0), 0);
  EXPECT_EQ(as_nobody.code, errc::invalid_option);
  EXPECT_EQ(as_nobody.detail.why, "Permission denied");
  EXPECT_EQ(as_root.code, std::error_code{}) << as_root.detail.why;
}

TEST_F(settings_of, a_directory_in_the_place_of_a_tls_file_is_named) {
  const test::scratch_directory place;
  const auto seen = refusal_of([&] { resolve("rediss://db1?cacert=" + place.path(), {}); });
  EXPECT_EQ(seen.code, errc::invalid_option);
  EXPECT_EQ(seen.detail.why, "Is a directory");
}

// A shell's <(command): the first connection would have all of it, and the keeper's nothing, so that the lease ends.
TEST_F(settings_of, a_pipe_in_the_place_of_a_tls_file_is_refused) {
  const test::scratch_directory place;
  const auto pipe = place / "ca.pem";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto seen = refusal_of([&] { resolve("rediss://db1?cacert=" + pipe, {}); });
  EXPECT_EQ(seen.code, errc::invalid_option);
  EXPECT_EQ(seen.detail.subject, "cacert '" + pipe + "'");
  EXPECT_THAT(seen.detail.why, testing::HasSubstr("a pipe"));
}

// Sandboxes that are older than that call refuse it as forbidden, so that libc does not try another.
TEST_F(settings_of, tls_files_are_readable_in_a_sandbox_without_faccessat2) {
  const auto is_taken =
      local::in_sandbox([] { return local::refuse(SYS_faccessat2, EPERM); },
                        [] { return !refusal_of([] { resolve("rediss://db1?cacert=/dev/null", {}); }).code; });
  if (!is_taken) GTEST_SKIP() << "seccomp is not permitted here";
  EXPECT_TRUE(*is_taken);
}

// Else whoever connects, be it the keeper, would ask for it on the terminal.
TEST_F(settings_of, a_key_with_a_pass_phrase_is_refused_with_the_way_out) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const auto both = place / "both.pem";
  const auto make = "cat '" + material + "/client.pem' >'" + both +
                    "' && openssl ec -aes128 -passout pass:secret -in '" + material + "/client.key' >>'" + both +
                    "' 2>/dev/null";
  ASSERT_EQ(std::system(make.c_str()), 0) << make;
  for (const auto& query : {"?cert=" + both, "?cert=" + material + "/client.pem&key=" + both}) {
    const auto seen = refusal_of([&] { resolve("rediss://db1" + query, {}); });
    EXPECT_EQ(seen.code, errc::invalid_option) << query;
    EXPECT_NE(seen.detail.why.find("openssl pkey"), std::string::npos) << seen.detail.why;
  }
  const auto plain = "rediss://db1?cert=" + material + "/client.pem&key=" + material + "/client.key";
  EXPECT_EQ(resolve(plain, {}).server.where.tls.key, material + "/client.key");
}

struct option_case {
  const char* field;
  std::function<void(client_options&)> set;
};

const option_case bad_options[] = {
    {"prefix", [](auto& o) { o.prefix = ""; }},
    {"prefix", [](auto& o) { o.prefix = std::string(65, 'p'); }},
    {"prefix", [](auto& o) { o.prefix = "a b"; }},
    {"prefix", [](auto& o) { o.prefix = "a{b"; }},
    {"prefix", [](auto& o) { o.prefix = "a\\b"; }},
    {"prefix", [](auto& o) { o.prefix = "a*"; }},
    {"prefix", [](auto& o) { o.prefix = "a|b"; }},
    {"prefix", [](auto& o) { o.prefix = "a\xc3\xa9"; }},
    {"prefix", [](auto& o) { o.prefix = std::string("a\0b", 3); }},
    {"timeout", [](auto& o) { o.timeout = 9ms; }},
    {"timeout", [](auto& o) { o.timeout = 0ms; }},
    {"timeout", [](auto& o) { o.timeout = -1ms; }},
    {"timeout", [](auto& o) { o.timeout = 1h + 1ms; }},
    {"timeout", [](auto& o) { o.timeout = milliseconds::max(); }},
    {"timeout", [](auto& o) { o.timeout = milliseconds::min(); }},
    {"max_ttl", [](auto& o) { o.max_ttl = 99ms; }},
    {"max_ttl", [](auto& o) { o.max_ttl = 24h + 1ms; }},
    {"max_ttl", [](auto& o) { o.max_ttl = milliseconds::max(); }},
    {"clock_drift", [](auto& o) { o.clock_drift = 0; }},
    {"clock_drift", [](auto& o) { o.clock_drift = 0.0009; }},
    {"clock_drift", [](auto& o) { o.clock_drift = 0.21; }},
    {"clock_drift", [](auto& o) { o.clock_drift = std::nan(""); }},
    {"clock_drift", [](auto& o) { o.clock_drift = std::numeric_limits<double>::infinity(); }},
    {"owner", [](auto& o) { o.owner = std::string(257, 'o'); }},
    {"hand_overs", [](auto& o) { o.hand_overs = -1; }},
    {"hand_overs", [](auto& o) { o.hand_overs = 1001; }},
    {"hand_over_span", [](auto& o) { o.hand_over_span = -1ms; }},
    {"hand_over_span", [](auto& o) { o.hand_over_span = 1s + 1ms; }},
    {"durability.replicas", [](auto& o) { o.durability.replicas = -1; }},
    {"durability.replicas", [](auto& o) { o.durability.replicas = 101; }},
    {"durability.timeout", [](auto& o) { o.durability = {.replicas = 1, .timeout = 0ms}; }},
    {"durability.timeout", [](auto& o) { o.durability = {.replicas = 1, .timeout = 2501ms}; }},
    {"durability.timeout", [](auto& o) { o.durability = {.replicas = 1, .timeout = milliseconds::max()}; }},
};

const option_case good_options[] = {
    {"prefix", [](auto& o) { o.prefix = "p"; }},
    {"prefix", [](auto& o) { o.prefix = std::string(64, 'p'); }},
    {"prefix", [](auto& o) { o.prefix = "!~"; }},
    {"timeout", [](auto& o) { o.timeout = 10ms; }},
    {"timeout", [](auto& o) { o.timeout = 1h; }},
    {"max_ttl", [](auto& o) { o.max_ttl = 100ms; }},
    {"max_ttl", [](auto& o) { o.max_ttl = 24h; }},
    {"clock_drift", [](auto& o) { o.clock_drift = 0.001; }},
    {"clock_drift", [](auto& o) { o.clock_drift = 0.2; }},
    {"owner", [](auto& o) { o.owner = std::string(256, 'o'); }},
    {"hand_overs", [](auto& o) { o.hand_overs = 0; }},
    {"hand_overs", [](auto& o) { o.hand_overs = 1000; }},
    {"hand_over_span", [](auto& o) { o.hand_over_span = 0ms; }},
    {"hand_over_span", [](auto& o) { o.hand_over_span = 1s; }},
    {"durability.replicas", [](auto& o) { o.durability.replicas = 100; }},
    {"durability.timeout", [](auto& o) { o.durability = {.replicas = 1, .timeout = 1ms}; }},
    {"durability.timeout", [](auto& o) { o.durability = {.replicas = 1, .timeout = 2500ms}; }},
    {"durability.timeout", [](auto& o) { o.durability.timeout = milliseconds::max(); }},  // Of no replicas.
};

TEST_F(settings_of, client_options_out_of_range_name_the_field) {
  for (const auto& bad : bad_options) {
    client_options options;
    bad.set(options);
    const auto seen = refusal_of([&] { resolve("redis://db1", options); });
    EXPECT_EQ(seen.code, errc::invalid_option) << bad.field << " no. " << &bad - bad_options;
    EXPECT_THAT(seen.detail.subject, HasSubstr(bad.field));
    EXPECT_NE(seen.detail.why, "") << bad.field;
  }
}

TEST_F(settings_of, client_options_at_the_ends_of_their_range_are_good) {
  for (const auto& good : good_options) {
    client_options options;
    good.set(options);
    EXPECT_NO_THROW(resolve("redis://db1", options)) << good.field << " no. " << &good - good_options;
  }
}

struct acquire_case {
  const char* field;
  std::function<void(acquire_options&)> set;
};

// H9.
TEST(acquire_options_check, names_the_field_that_is_out_of_range) {
  const acquire_case bad_ones[] = {
      {"ttl", [](auto& o) { o.ttl = 0ms; }},
      {"ttl", [](auto& o) { o.ttl = -1ms; }},
      {"ttl", [](auto& o) { o.ttl = 1ms; }},
      {"ttl", [](auto& o) { o.ttl = 99ms; }},
      {"ttl", [](auto& o) { o.ttl = 60s + 1ms; }},
      {"ttl", [](auto& o) { o.ttl = milliseconds::max(); }},
      {"ttl", [](auto& o) { o.ttl = milliseconds::min(); }},
      {"wait", [](auto& o) { o.wait = -1ms; }},
      {"wait", [](auto& o) { o.wait = 24h * 366 + 1ms; }},
      {"wait", [](auto& o) { o.wait = milliseconds::max(); }},
      {"wait", [](auto& o) { o.wait = milliseconds::min(); }},
      {"max_hold", [](auto& o) { o.max_hold = o.ttl - 1ms; }},
      {"max_hold", [](auto& o) { o.max_hold = 24h * 366 + 1ms; }},
      {"max_hold", [](auto& o) { o.max_hold = milliseconds::max(); }},
      {"max_hold", [](auto& o) { o.max_hold = milliseconds::min(); }},
      {"owner", [](auto& o) { o.owner = std::string(257, 'o'); }},
      {"min_fence", [](auto& o) { o.min_fence = fencing_token{fencing_token::max_value}; }},
      {"min_fence", [](auto& o) { o.min_fence = fencing_token{UINT64_MAX}; }},
  };
  for (const auto& bad : bad_ones) {
    acquire_options options;
    bad.set(options);
    const auto seen = refusal_of([&] { check(options, {}); });
    EXPECT_EQ(seen.code, errc::invalid_option) << bad.field << " no. " << &bad - bad_ones;
    EXPECT_THAT(seen.detail.subject, HasSubstr(bad.field));
    EXPECT_NE(seen.detail.why, "") << bad.field;
  }
}

TEST(acquire_options_check, lets_the_ends_of_each_range_pass) {
  const acquire_case good_ones[] = {
      {"ttl", [](auto& o) { o.ttl = 100ms; }},
      {"ttl", [](auto& o) { o.ttl = 60s; }},
      {"wait", [](auto& o) { o.wait = 0ms; }},
      {"wait", [](auto& o) { o.wait = 24h * 365; }},
      {"max_hold", [](auto& o) { o.max_hold = o.ttl; }},
      {"max_hold", [](auto& o) { o.max_hold = 24h * 366; }},
      {"owner", [](auto& o) { o.owner = std::string(256, 'o'); }},
      {"min_fence", [](auto& o) { o.min_fence = fencing_token{fencing_token::max_value - 1}; }},
  };
  for (const auto& good : good_ones) {
    acquire_options options;
    good.set(options);
    EXPECT_NO_THROW(check(options, {})) << good.field << " no. " << &good - good_ones;
  }
}

TEST(acquire_options_check, goes_by_the_max_ttl_of_the_client) {
  client_options within;
  within.max_ttl = 1h;
  acquire_options options;
  options.ttl = 1h;
  EXPECT_NO_THROW(check(options, within));
  within.max_ttl = 1h - 1ms;
  EXPECT_EQ(refusal_of([&] { check(options, within); }).code, errc::invalid_option);
}

TEST(acquire_options_check, wants_a_ttl_of_four_times_the_wait_for_replicas) {
  client_options within;
  within.durability = {.replicas = 1, .timeout = 500ms};
  acquire_options options;
  options.ttl = 2s;
  EXPECT_NO_THROW(check(options, within));
  options.ttl = 2s - 1ms;
  const auto seen = refusal_of([&] { check(options, within); });
  EXPECT_EQ(seen.code, errc::invalid_option);
  EXPECT_THAT(seen.detail.subject, HasSubstr("ttl"));
  EXPECT_THAT(seen.detail.why, HasSubstr("2000 ms"));
  within.durability.replicas = 0;
  EXPECT_NO_THROW(check(options, within));
}

// By a server's clock that is as fast as it may be; what forgot its locks grants nothing for so long.
TEST(hold_of, is_longer_than_a_lease_lives_by_any_clock_C1) {
  EXPECT_EQ(hold_of({.max_ttl = 60s}), 60'602ms);
  EXPECT_EQ(hold_of({.max_ttl = 100ms, .clock_drift = 0.001}), 103ms);
  EXPECT_EQ(hold_of({.max_ttl = 24h, .clock_drift = 0.2}), 103'680'002ms);
}

TEST(check_no_permits, refuses_what_counts_nothing) {
  EXPECT_NO_THROW(check_no_permits({}));
  for (const int permits : {0, 2}) {
    const auto seen = refusal_of([&] { check_no_permits({.permits = permits}); });
    EXPECT_EQ(seen.code, errc::invalid_option);
    EXPECT_EQ(seen.detail.subject, "permits = " + std::to_string(permits));
  }
}

// A password, and files, that are given as options are those of each of its servers.
TEST_F(settings_of, a_cluster_are_those_of_its_nodes) {
  client_options options;
  options.user = "app";
  options.password = "secret";
  options.cacert = "/dev/null";
  const auto found = resolve("rediss+cluster://a,b,c", options).server.cluster;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->who.user, "app");
  EXPECT_EQ(found->who.password, "secret");
  EXPECT_EQ(found->tls.cacert, "/dev/null");
}

TEST_F(settings_of, a_quorum_are_those_of_its_servers) {
  client_options options;
  options.cacert = "/dev/null";
  const auto all = resolve("rediss+quorum://a,b,c", options).server.quorum;
  ASSERT_EQ(all.size(), 3u);
  for (const auto& one : all) EXPECT_EQ(one.tls.cacert, "/dev/null");
}

TEST_F(settings_of, sentinels_have_a_user_of_their_own_and_prefer_option_to_environment) {
  const auto who = [](const client_options& options) {
    const auto set = resolve("redis+sentinel://app:secret@s/main", options).server.sentinels;
    return set ? set->who.user + ":" + set->who.password : "none";
  };
  EXPECT_EQ(who({}), ":") << "not the primary's";
  set("HOLDFAST_SENTINEL_USER", "env");
  set("HOLDFAST_SENTINEL_PASSWORD", "of-env");
  EXPECT_EQ(who({}), "env:of-env");
  client_options options;
  options.sentinel_user = "option";
  options.sentinel_password = "of-option";
  EXPECT_EQ(who(options), "option:of-option");
}

// Whoever takes it for a mistake of his own does not try again.
TEST_F(settings_of, tls_files_for_which_there_is_no_descriptor_now_are_waited_for) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{0, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto seen = refusal_of([] { resolve("rediss://db1?cacert=/dev/null", {}); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(seen.code, errc::cannot_connect);
  EXPECT_THAT(seen.detail.server_text, HasSubstr("'/dev/null': Too many open files"));
}

// Each of these would let two clients have a majority, or one that nobody else knows of.
TEST_F(settings_of, a_quorum_refuses_what_would_undo_its_majority_P24) {
  const std::string uri = "redis+quorum://a,b,c";
  EXPECT_NO_THROW(resolve(uri, {}));
  client_options trusting;
  trusting.quarantine = quarantine_mode::trust_every_write_is_synced;
  client_options durable;
  durable.durability.replicas = 1;
  client_options plain;
  plain.names = naming::plain;
  for (const auto& how : {trusting, durable, plain}) {
    const auto seen = refusal_of([&] { resolve(uri, how); });
    EXPECT_EQ(seen.code, errc::invalid_option);
    EXPECT_THAT(seen.detail.subject, HasSubstr("quorum"));
    EXPECT_NE(seen.detail.why, "");
  }
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
