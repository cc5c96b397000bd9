// SPDX-License-Identifier: Apache-2.0
// Servers that refuse, are full, are replicas, or are no Redis at all: each its own error, none reported as busy or
// lost, none hangs (H27 to H31, H37 to H39).
#include "integration/fixture.hpp"
#include "support/scripted_server.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class server_state : public on_redis {
protected:
  server_state() : on_redis{{.tcp = true}} {}
};

// H29, B70: a full memory stops a new grant and nothing else.
TEST_F(server_state, out_of_memory_refuses_acquire_and_lets_renew_and_release_pass) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 1500ms});
  auto admin = server_.connect();
  admin("CONFIG", "SET", "maxmemory", "1");
  const auto code = code_of([&] { (void)make_client(3s).try_acquire("y"); });
  EXPECT_EQ(code, errc::out_of_memory);
  EXPECT_EQ(code, outcome::not_applied);
  let_pass(4s);
  EXPECT_TRUE(held.valid()) << "renewed under full memory";
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(exists("hf:{x}"));
  EXPECT_FALSE(exists("hf:{y}"));
  admin("CONFIG", "SET", "maxmemory", "0");
}

TEST_F(server_state, out_of_memory_passes_and_the_waiter_gets_in) {
  auto locks = make_client();
  auto admin = server_.connect();
  admin("CONFIG", "SET", "maxmemory", "1");
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x"); }), errc::out_of_memory);
  admin("CONFIG", "SET", "maxmemory", "0");
  EXPECT_TRUE(locks.try_acquire("x"));
}

// H37, B71: a replica is named as such, not "busy".
TEST_F(server_state, replica_is_refused) {
  redis_server replica{{.config = {"replicaof 127.0.0.1 " + std::to_string(server_.port())}, .is_declared = false}};
  EXPECT_EQ(replica("ROLE").items.at(0), std::string{"slave"});
  client locks{replica.unix_uri()};
  const auto code = code_of([&] { (void)locks.try_acquire("x"); });
  EXPECT_EQ(code, errc::not_a_primary);
  EXPECT_EQ(code, outcome::misconfigured);
}

// A primary that was demoted under our connection.
TEST_F(server_state, demoted_primary_is_refused_and_no_lease_is_called_lost_early) {
  auto locks = make_client(500ms);
  auto held = locks.acquire("x", {.ttl = 3s});
  redis_server other{{.tcp = true}};
  server_("REPLICAOF", "127.0.0.1", std::to_string(free_port()));  // Nobody there: it keeps its data.
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("y"); }), errc::not_a_primary);
  EXPECT_TRUE(held.valid());
  server_("REPLICAOF", "NO", "ONE");
  EXPECT_TRUE(eventually([&] { return held.remaining() > 2s; }, 4s)) << "renewed again after it came back";
}

// The lock has ended here, and the new primary may have renewed it. Each of them over the connection that it had.
TEST_F(server_state, a_demoted_primary_says_nothing_of_who_holds_a_lock_H37) {
  auto looks = make_client(500ms);
  auto lists = make_client(500ms);
  auto breaks = make_client(500ms);
  auto held = looks.acquire("x", {.ttl = 1s, .renew = renewal::none});
  for (auto* one : {&looks, &lists, &breaks}) EXPECT_TRUE(one->inspect("x").held);
  server_("REPLICAOF", "127.0.0.1", std::to_string(free_port()));
  let_pass(1100ms);
  EXPECT_EQ(code_of([&] { (void)looks.inspect("x"); }), errc::not_a_primary);
  EXPECT_EQ(code_of([&] { (void)lists.list(); }), errc::not_a_primary);
  EXPECT_EQ(code_of([&] { breaks.break_lock("x", held.token(), {.why = "test"}); }), errc::not_a_primary);
}

// The name of the server leads to the new one since, and their connections to the old one.
TEST_F(server_state, who_lists_or_breaks_asks_the_new_primary_H37) {
  const redis_server next{};
  const std::string link = next.socket() + ".link";
  std::filesystem::create_symlink(server_.socket(), link);
  client lists{"redis+unix://" + link};
  client breaks{"redis+unix://" + link};
  for (auto* one : {&lists, &breaks}) EXPECT_TRUE(one->list().empty());
  client there{next.unix_uri()};
  auto held = there.acquire("x");
  server_("REPLICAOF", "127.0.0.1", std::to_string(free_port()));
  std::filesystem::remove(link);
  std::filesystem::create_symlink(next.socket(), link);
  let_pass(1100ms);
  const auto all = lists.list();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].token, held.token());
  breaks.break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_FALSE(there.inspect("x").held);
}

// H30, B69: volatile-lru throws away keys with a ttl first.
TEST_F(server_state, eviction_policy_is_a_finding) {
  server_("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
  server_("CONFIG", "SET", "maxmemory", "100mb");
  const auto seen = make_client().diagnose();
  const auto found = std::find_if(seen.findings.begin(), seen.findings.end(),
                                  [](const finding& f) { return f.what.find("volatile-lru") != std::string::npos; });
  ASSERT_NE(found, seen.findings.end());
  EXPECT_GE(found->level, finding::severity::warning);
  EXPECT_NE(found->fix.find("noeviction"), std::string::npos);
}

// Then nothing shows that it was a replica for a time, and forgot.
TEST_F(server_state, a_backlog_that_is_given_up_sooner_than_a_lease_ends_is_a_finding_P19) {
  const auto backlog = [this] {
    const auto seen = make_client().diagnose();
    return std::count_if(seen.findings.begin(), seen.findings.end(),
                         [](const finding& f) { return f.what.find("repl-backlog-ttl") != std::string::npos; });
  };
  EXPECT_EQ(backlog(), 0);
  server_("CONFIG", "SET", "repl-backlog-ttl", "5");
  EXPECT_EQ(backlog(), 1);
}

// How long round trips take is the test machine's affair.
TEST_F(server_state, healthy_server_has_no_finding_above_ok) {
  const auto seen = make_client().diagnose();
  for (const auto& f : seen.findings) {
    if (f.what.starts_with("round trips take")) continue;
    EXPECT_EQ(f.level, finding::severity::ok) << f.what;
  }
  EXPECT_EQ(seen.role, "master");
  EXPECT_GT(seen.round_trip_median, 0us);
  EXPECT_FALSE(seen.server_version.empty());
}

// B96: SET NX on a list answers nil for ever; that is not "busy".
TEST_F(server_state, key_of_another_kind_is_named) {
  server_("RPUSH", "hf:{x}", "1");
  server_("PEXPIRE", "hf:{x}", "60000");
  auto locks = make_client();
  const auto failure = error_of([&] { (void)locks.try_acquire("x"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::wrong_kind);
  EXPECT_EQ(failure->code(), outcome::misconfigured);
  EXPECT_NE(std::string{failure->what()}.find("list"), std::string::npos) << failure->what();
}

TEST_F(server_state, foreign_string_under_our_key_is_busy_and_never_touched) {
  server_("SET", "hf:{x}", "not ours", "PX", "60000");
  auto locks = make_client();
  EXPECT_FALSE(locks.try_acquire("x"));
  EXPECT_TRUE(locks.inspect("x").foreign);
  EXPECT_EQ(server_("GET", "hf:{x}"), std::string{"not ours"});
}

TEST_F(server_state, database_that_does_not_exist_is_named) {
  client locks{server_.tcp_uri(99), options()};
  const auto code = code_of([&] { (void)locks.try_acquire("x"); });
  EXPECT_EQ(code, errc::wrong_database);
  EXPECT_EQ(code, outcome::misconfigured);
}

// A connection that is made again begins in database 0: it must be selected before anything else is asked. Ours are
// killed ten times a second, that of the calls and that of the renewals.
TEST_F(server_state, database_is_selected_on_every_connection_that_is_made_again_H38) {
  server_("FLUSHDB");
  server_.declare_nothing_forgotten(15);
  client locks{server_.tcp_uri(15), options()};
  const auto held = locks.acquire("x", {.ttl = 3s});
  std::int64_t rounds = 0;
  std::int64_t killed = 0;
  for (const auto until = boottime() + 5s; boottime() < until; ++rounds) {
    killed += server_("CLIENT", "KILL", "TYPE", "normal").number;
    EXPECT_TRUE(locks.try_acquire("y" + std::to_string(rounds)));  // Given back by the renewals' connection.
    let_pass(100ms);
    ASSERT_TRUE(held.valid()) << held.lost_reason().message();
  }
  EXPECT_GT(killed, rounds) << "both of them";
  EXPECT_EQ(server_("DBSIZE"), 0);
  auto other = server_.connect();
  other("SELECT", "15");
  EXPECT_EQ(other("EXISTS", "hf:{x}"), 1);
}

TEST_F(server_state, wrong_port_is_unreachable) {
  client_options how;
  how.timeout = 500ms;
  client locks{"redis://127.0.0.1:" + std::to_string(free_port()), how};
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x"); }), errc::cannot_connect);
}

TEST_F(server_state, host_without_address_is_named) {
  client_options how;
  how.timeout = 2s;
  client locks{"redis://no-such-host.invalid:6379", how};
  const auto code = code_of([&] { (void)locks.try_acquire("x"); });
  EXPECT_EQ(code, errc::cannot_resolve);
  EXPECT_EQ(code, outcome::unreachable);
}

// A server that answers every script with one and the same words (H27). None may read as busy, lost or acquired.
struct refusal {
  const char* words;
  errc code;
  outcome what;
};

void PrintTo(const refusal& r, std::ostream* out) { *out << r.words; }

class error_word : public testing::TestWithParam<refusal> {};

TEST_P(error_word, is_told_apart) {
  const scripted_server fake{
      scripted_server::greets_and_answers_scripts_with("-" + std::string{GetParam().words} + "\r\n")};
  client_options how;
  how.timeout = 1s;  // What passes is tried for so long; under a sanitizer a greeting alone may take 200 ms.
  client locks{fake.uri(), how};
  std::optional<error> failure;
  // On a busy machine the last request of a try may be unanswered when its time is up, and that is what it says then.
  for (int tries = 0; tries < 5 && (!failure || failure->code() == errc::reply_lost); ++tries) {
    const auto began = boottime();
    failure.reset();
    if (auto what = error_of([&] { EXPECT_FALSE(locks.try_acquire("x")) << "acquired"; })) failure.emplace(*what);
    EXPECT_LT(boottime() - began, 3s);
    ASSERT_TRUE(failure) << "reported as busy";
  }
  EXPECT_EQ(failure->code(), GetParam().code);
  EXPECT_EQ(failure->code(), GetParam().what);
}

INSTANTIATE_TEST_SUITE_P(
    hazard_27, error_word,
    testing::Values(
        refusal{"LOADING Redis is loading the dataset in memory", errc::server_loading, outcome::not_applied},
        refusal{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                errc::server_loading, outcome::not_applied},
        refusal{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
                errc::server_busy, outcome::not_applied},
        refusal{"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory, outcome::not_applied},
        refusal{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
                errc::server_refused, outcome::not_applied},
        refusal{"NOREPLICAS Not enough good replicas to write.", errc::server_refused, outcome::not_applied},
        refusal{"NOAUTH Authentication required.", errc::no_password, outcome::denied},
        refusal{"WRONGPASS invalid username-password pair or user is disabled.", errc::wrong_password, outcome::denied},
        refusal{"NOPERM this user has no permissions to run the 'evalsha' command", errc::no_permission,
                outcome::denied},
        // Inside a script the words are others, and moira (B98) read them as "lost the lock".
        refusal{"ERR The user executing the script can't run this command or subcommand script: "
                "4b0f9ad3d8a6dd6a1bd1c8a0a3a4a9f9bb3ad0f1, on @user_script:1.",
                errc::no_permission, outcome::denied},
        refusal{"ERR The user executing the script can't access at least one of the keys mentioned in the command "
                "arguments script: 4b0f9ad3d8a6dd6a1bd1c8a0a3a4a9f9bb3ad0f1, on @user_script:1.",
                errc::no_permission, outcome::denied},
        refusal{"READONLY You can't write against a read only replica.", errc::not_a_primary, outcome::misconfigured},
        refusal{"MOVED 3999 127.0.0.1:6381", errc::wrong_server, outcome::misconfigured},
        refusal{"ASK 3999 127.0.0.1:6381", errc::wrong_server, outcome::misconfigured},
        refusal{"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_kind,
                outcome::misconfigured}));

class strange_answer : public testing::TestWithParam<const char*> {};

// Not ours, not Redis, or not RESP2: never busy and never acquired; whether it took effect is unknown.
TEST_P(strange_answer, to_a_script_is_unknown) {
  const scripted_server fake{scripted_server::greets_and_answers_scripts_with(GetParam())};
  client_options how;
  how.timeout = 1s;
  client locks{fake.uri(), how};
  const auto failure = error_of([&] { EXPECT_FALSE(locks.try_acquire("x")) << "acquired"; });
  ASSERT_TRUE(failure) << "reported as busy";
  EXPECT_EQ(failure->code(), outcome::unknown) << failure->what();
}

INSTANTIATE_TEST_SUITE_P(hazard_27, strange_answer,
                         testing::Values("+OK\r\n", ":0\r\n", "$-1\r\n", "*0\r\n", "*-1\r\n", "$3\r\nabc\r\n",
                                         "*2\r\n:0\r\n$3\r\nabc\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n", "%1\r\n+a\r\n:1\r\n",
                                         "$99999999999\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "_\r\n",
                                         "$16\r\n12345678901234ab\r\n", "*99999999\r\n"));

// Answers one script with what nobody understands, and then says nothing more at all. To give a connection up takes
// longer than any of these calls.
class strange_and_then_silent : public testing::Test {
protected:
  static constexpr auto brief = 200ms;

  strange_and_then_silent() { EXPECT_NE(code_of_look(), std::error_code{}); }

  std::error_code code_of_look() {
    std::error_code code;
    (void)locks_.inspect("x", brief, code);
    return code;
  }

  std::atomic<bool> is_silent_ = false;
  const scripted_server::script strange_ =
      scripted_server::greets_and_answers_scripts_with("HTTP/1.1 400 Bad Request\r\n\r\n");
  const scripted_server fake_{[this](const std::vector<std::string>& words) {
    const bool is_call = words.at(0) == "EVALSHA";  // EVAL is of the greeting.
    return (is_call ? is_silent_.exchange(true) : is_silent_.load()) ? std::string{} : strange_(words);
  }};
  client locks_{fake_.uri()};
};

// No byte of it went out: what became of the one before is not its outcome.
TEST_F(strange_and_then_silent, is_not_unknown_to_a_call_that_was_never_sent_C5) {
  const auto code = code_of_look();
  EXPECT_EQ(code, errc::server_silent);
  EXPECT_EQ(code, outcome::not_applied);
}

TEST_F(strange_and_then_silent, is_not_unknown_to_who_waits_behind_such_a_call_C5) {
  std::array<std::error_code, 3> codes;
  {
    std::vector<std::jthread> all;
    for (auto& code : codes)
      all.emplace_back([&] { code = code_of([&] { (void)locks_.acquire("x", {.wait = brief}); }); });
  }
  for (const auto& code : codes) {
    EXPECT_EQ(code, errc::server_silent);
    EXPECT_EQ(code, outcome::not_applied);
  }
}

class strange_greeting : public testing::TestWithParam<const char*> {};

TEST_P(strange_greeting, is_an_error_in_time_and_changes_nothing) {
  const std::string words = GetParam();
  const scripted_server fake{[words](const std::vector<std::string>&) { return words; }};
  client_options how;
  how.timeout = 300ms;
  client locks{fake.uri(), how};
  const auto began = boottime();
  const auto failure = error_of([&] { EXPECT_FALSE(locks.try_acquire("x")); });
  EXPECT_LT(boottime() - began, how.timeout + slack);
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->code(), outcome::busy);
  EXPECT_NE(failure->code(), outcome::lost);
}

INSTANTIATE_TEST_SUITE_P(hazard_27, strange_greeting,
                         testing::Values("-ERR max number of clients reached\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
                                         "-DENIED Redis is running in protected mode because protected mode is on\r\n",
                                         "+OK\r\n", "-ERR unknown command 'HELLO'\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                         "-LOADING Redis is loading the dataset in memory\r\n",
                                         "-NOPROTO unsupported protocol version\r\n"));

// H39: the server is full.
TEST_F(server_state, too_many_clients_is_its_own_error) {
  server_("CONFIG", "SET", "maxclients", "1");
  client_options how;
  how.timeout = 300ms;
  const auto failure = error_of([&] { (void)make_client(how).try_acquire("x"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::server_refused);
  EXPECT_NE(failure->detail().server_text.find("max number of clients"), std::string::npos);
  server_("CONFIG", "SET", "maxclients", "1000");
}

}  // namespace
}  // namespace holdfast::test
