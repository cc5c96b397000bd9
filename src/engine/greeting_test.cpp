// SPDX-License-Identifier: Apache-2.0
// The exchange is scripted once; then every step of it is failed in turn.
#include "engine/greeting.hpp"

#include "engine/peer_testing.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using words = std::vector<std::string>;

constexpr server_time s0{500'000h + 42us};

// Says the usual replies, but `instead` at step `at`. What came of it.
struct outcome_of {
  outcome_of(int database, std::size_t at, const std::string& instead) {
    g.begin(out, {.database = database});
    out.clear();
    auto replies = greeting_replies(s0, database != 0);
    if (at < replies.size()) replies[at] = instead;
    for (; steps < replies.size(); ++steps) {
      failure = g.on_reply({}, parsed(replies[steps]), out);
      if (failure) return;
    }
  }
  greeting g;
  std::string out;  // Without the first write.
  std::size_t steps = 0;
  std::optional<connection_failure> failure;
};

constexpr std::size_t nowhere = 100;
constexpr std::size_t steps_with_select = 5;
constexpr std::size_t info_with_select = 3;
constexpr std::size_t scripts_with_select = 4;

TEST(greeting, says_everything_in_one_write) {
  std::string out;
  greeting{}.begin(out, {.database = 15});
  const auto said = requests_in(out);
  ASSERT_EQ(said.size(), steps_with_select);
  EXPECT_EQ(said[0], (words{"HELLO", "2"}));
  EXPECT_EQ(said[1], (words{"SELECT", "15"}));
  EXPECT_EQ(said[2], (words{"TIME"}));
  EXPECT_EQ(said[3], (words{"INFO", "server"}));
  words exists{"SCRIPT", "EXISTS"};
  for (const auto& source : script::all()) exists.emplace_back(source.sha1);
  EXPECT_EQ(said[4], exists);
  EXPECT_LT(out.size(), 1'500u) << "more than a packet";
}

// A connection that only listens needs no scripts.
TEST(greeting, asks_for_no_scripts_when_told_so) {
  std::string out;
  greeting g;
  g.begin(out, {.needs_scripts = false});
  EXPECT_EQ(requests_in(out).size(), 3u);
  EXPECT_FALSE(g.on_reply({}, parsed(hello("master", "standalone", "7.0.15")), out));
  EXPECT_FALSE(g.is_done());
  EXPECT_FALSE(g.on_reply({}, parsed(time_of_day(server_time{std::chrono::hours{500'000}})), out));
  EXPECT_FALSE(g.on_reply({}, parsed(info("a run")), out));
  EXPECT_TRUE(g.is_done());
  EXPECT_FALSE(g.has_script(script::id::acquire));
}

// ---- The scripts ----

TEST(greeting, loads_nothing_where_the_usual_scripts_are) {
  const outcome_of all_there{0, nowhere, ""};
  EXPECT_TRUE(all_there.g.is_done());
  EXPECT_EQ(all_there.out, "");
  EXPECT_TRUE(all_there.g.has_script(script::id::release));
  EXPECT_FALSE(all_there.g.has_script(script::id::vote)) << "the server said that it is not there";
}

// After a restart, SCRIPT FLUSH, or with another version of ours.
TEST(greeting, loads_those_of_the_usual_ones_that_are_missing_and_checks_each_H28) {
  for (std::size_t there = 0; there < script::usual().size(); ++there) {
    outcome_of some{0, 3, scripts_there(there)};
    const auto said = requests_in(some.out);
    const auto missing = script::usual().subspan(there);
    ASSERT_EQ(said.size(), missing.size());
    for (std::size_t i = 0; i < missing.size(); ++i) {
      EXPECT_EQ(said[i], (words{"SCRIPT", "LOAD", std::string{missing[i].text}}));
      EXPECT_FALSE(some.g.is_done());
      EXPECT_FALSE(some.g.has_script(missing[i].which));
      EXPECT_FALSE(some.g.on_reply({}, parsed(bulk(missing[i].sha1)), some.out));
      EXPECT_TRUE(some.g.has_script(missing[i].which));
    }
    EXPECT_TRUE(some.g.is_done());
  }
}

// One that was made for a version before this one.
TEST(greeting, loads_all_of_the_usual_scripts_under_an_ACL_rule_that_does_not_let_it_ask) {
  outcome_of denied{0, 3, refusal("NOPERM this user has no permissions to run the 'script|exists' command")};
  EXPECT_FALSE(denied.failure);
  EXPECT_EQ(requests_in(denied.out).size(), script::usual().size());
  for (const auto& source : script::usual()) EXPECT_FALSE(denied.g.on_reply({}, parsed(bulk(source.sha1)), denied.out));
  EXPECT_TRUE(denied.g.is_done());
}

// Who has no right to load any cannot work either; each other word is its own error there, too.
TEST(greeting, ends_when_a_script_is_not_taken) {
  for (const auto& [text, code] :
       {std::pair{"NOPERM this user has no permissions to run the 'script|load' command", errc::no_permission},
        std::pair{"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
        std::pair{"BUSY Redis is busy running a script.", errc::server_busy}}) {
    outcome_of none{0, 3, scripts_there(0)};
    const auto failure = none.g.on_reply({}, parsed(refusal(text)), none.out);
    ASSERT_TRUE(failure) << text;
    EXPECT_EQ(failure->code, code);
  }
  outcome_of none{0, 3, scripts_there(0)};
  EXPECT_EQ(none.g.on_reply({}, parsed(integer(1)), none.out)->code, errc::wrong_server);
}

// The way back of the second write says nothing about the first.
TEST(greeting, was_heard_when_the_first_write_was_answered) {
  greeting g;
  std::string out;
  g.begin(out, {});
  auto replies = greeting_replies(s0);
  replies.back() = scripts_there(0);
  const time_point answered{5ms};
  for (const auto& reply : replies) EXPECT_FALSE(g.on_reply(answered, parsed(reply), out));
  for (const auto& source : script::usual()) EXPECT_FALSE(g.on_reply(time_point{9ms}, parsed(bulk(source.sha1)), out));
  EXPECT_TRUE(g.is_done());
  EXPECT_EQ(g.heard_at(), answered);
}

TEST(greeting, selects_nothing_for_database_0) {
  std::string out;
  greeting{}.begin(out, {});
  EXPECT_EQ(requests_in(out)[1], (words{"TIME"}));
}

TEST(greeting, gives_the_password_to_the_default_user_or_to_the_named_one) {
  std::string out;
  greeting{}.begin(out, {.who = {"", "secret"}});
  EXPECT_EQ(requests_in(out)[0], (words{"HELLO", "2", "AUTH", "default", "secret"}));
  out.clear();
  greeting{}.begin(out, {.who = {"ann", "secret"}});
  EXPECT_EQ(requests_in(out)[0], (words{"HELLO", "2", "AUTH", "ann", "secret"}));
}

// Else `redis://bob@host` would be the user `default`.
TEST(greeting, names_a_user_who_has_no_password) {
  std::string out;
  greeting{}.begin(out, {.who = {"bob", ""}});
  EXPECT_EQ(requests_in(out)[0], (words{"HELLO", "2", "AUTH", "bob", ""}));
}

TEST(greeting, ends_with_the_time_and_the_version) {
  for (const int database : {0, 15}) {
    const outcome_of all_well{database, nowhere, ""};
    EXPECT_FALSE(all_well.failure);
    EXPECT_TRUE(all_well.g.is_done());
    EXPECT_EQ(all_well.g.now(), s0);
    EXPECT_EQ(all_well.g.server_version(), "7.0.15");
  }
}

// P6: which run of which server it is. Who may not ask for it is served all the same.
TEST(greeting, learns_the_run_id_where_info_is_allowed_P6) {
  const outcome_of allowed{0, nowhere, ""};
  EXPECT_EQ(allowed.g.run_id(), "a run");
  for (const auto& instead : {refusal("NOPERM this user has no permissions to run the 'info' command"), bulk(""),
                              bulk("# Server\r\nredis_version:7.0.15\r\n")}) {
    const outcome_of denied{0, 2, instead};
    EXPECT_FALSE(denied.failure) << instead;
    EXPECT_EQ(denied.g.run_id(), "");
  }
}

TEST(greeting, begins_anew_on_each_connection) {
  greeting g;
  for (int i = 0; i < 2; ++i) {
    std::string out;
    g.begin(out, {});
    EXPECT_FALSE(g.is_done());
    for (const auto& reply : greeting_replies(s0)) EXPECT_FALSE(g.on_reply({}, parsed(reply), out));
    EXPECT_TRUE(g.is_done());
  }
}

// Valkey 9.1, where HELLO is renamed. "None was given" would be false.
TEST(greeting, with_a_password_that_is_told_that_there_was_none_was_no_HELLO_there) {
  greeting g;
  std::string out;
  g.begin(out, {.who = {"", "secret"}});
  const auto failure = g.on_reply({}, parsed(refusal("NOAUTH Authentication required.")), out);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, errc::wrong_server);
  EXPECT_NE(failure->text.find("HELLO may be renamed"), std::string::npos);
  EXPECT_TRUE(failure->is_final);
}

// H27 to H31, H37: each word of the server is its own error, at every step, and none is "busy" or "lost".
TEST(greeting, every_error_word_at_every_step_ends_it_as_itself) {
  const struct {
    const char* text;
    errc code;
    bool is_final;
  } table[] = {
      {"WRONGPASS invalid username-password pair or user is disabled.", errc::wrong_password, true},
      {"NOAUTH HELLO must be called with the client already authenticated", errc::no_password, true},
      {"NOPERM this user has no permissions to run the 'script|load' command", errc::no_permission, true},
      {"LOADING Redis is loading the dataset in memory", errc::server_loading, false},
      {"MASTERDOWN Link with MASTER is down", errc::server_loading, false},
      {"BUSY Redis is busy running a script.", errc::server_busy, false},
      {"ERR max number of clients reached", errc::server_refused, false},
      {"ERR DB index is out of range", errc::wrong_database, true},
      {"ERR unknown command `HELLO`", errc::wrong_server, true},
      {"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory, true},
      {"DENIED Redis is running in protected mode", errc::server_refused, true},
  };
  for (const auto& row : table) {
    for (std::size_t at = 0; at < steps_with_select; ++at) {
      const bool may_be_denied = at == info_with_select || at == scripts_with_select;
      if (may_be_denied && row.code == errc::no_permission) continue;
      const outcome_of failed{15, at, refusal(row.text)};
      ASSERT_TRUE(failed.failure) << row.text << " at step " << at;
      EXPECT_EQ(failed.steps, at);
      EXPECT_EQ(failed.failure->code, row.code) << row.text;
      EXPECT_EQ(failed.failure->is_final, row.is_final) << row.text;
      EXPECT_EQ(failed.failure->text, row.text);
      EXPECT_FALSE(failed.g.is_done());
    }
  }
}

TEST(greeting, every_reply_of_a_wrong_type_ends_it) {
  for (const auto& wrong : {integer(1), std::string{"$-1\r\n"}, list({}), list({integer(1), integer(2)}), bulk("OK")}) {
    for (std::size_t at = 0; at < steps_with_select; ++at) {
      if (at == info_with_select && wrong == bulk("OK")) continue;
      const outcome_of failed{15, at, wrong};
      ASSERT_TRUE(failed.failure) << wrong << " at step " << at;
      EXPECT_EQ(failed.steps, at);
      EXPECT_TRUE(failed.failure->is_final);
    }
  }
}

TEST(greeting, times_that_are_none_end_it) {
  for (const auto& wrong : {list({bulk("1"), bulk("x")}), list({bulk("-1"), bulk("0")}), list({bulk("1")}),
                            list({bulk("99999999999999"), bulk("0")}), list({bulk(""), bulk("0")}),
                            list({bulk("10000000000"), bulk("0")}), list({bulk("9999999999"), bulk("1000000")})}) {
    const outcome_of failed{0, 1, wrong};
    ASSERT_TRUE(failed.failure) << wrong;
    EXPECT_EQ(failed.failure->code, errc::wrong_server);
  }
}

TEST(greeting, the_first_and_the_last_time_that_scripts_can_say_are_some) {
  EXPECT_FALSE((outcome_of{0, 1, list({bulk("1000000000"), bulk("0")})}.failure));
  EXPECT_FALSE((outcome_of{0, 1, list({bulk("9999999999"), bulk("999999")})}.failure));
}

// A board without a clock of its own, before NTP has set it.
TEST(greeting, a_clock_that_scripts_cannot_say_is_named) {
  for (const auto* seconds : {"79001", "999999999", "10000000000"}) {
    const outcome_of failed{0, 1, list({bulk(seconds), bulk("999999")})};
    ASSERT_TRUE(failed.failure) << seconds;
    EXPECT_EQ(failed.failure->code, errc::wrong_server);
    EXPECT_EQ(failed.failure->text.find(std::string{"its clock shows "} + seconds + " s since 1970"), 0u);
  }
}

TEST(greeting, a_replica_keeps_no_locks_H37) {
  for (const auto* role : {"slave", "replica"}) {
    const outcome_of failed{0, 0, hello(role, "standalone", "7.0.15")};
    ASSERT_TRUE(failed.failure);
    EXPECT_EQ(failed.failure->code, errc::not_a_primary);
    EXPECT_TRUE(failed.failure->is_final);
  }
}

TEST(greeting, a_sentinel_keeps_no_locks) {
  const outcome_of failed{0, 0, hello("sentinel", "sentinel", "7.0.15")};
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->code, errc::wrong_server);
}

TEST(greeting, versions_before_6_2_are_refused) {
  for (const auto* old : {"5.0.7", "6.0.16", "6.1.240", "6", "", "x"}) {
    const outcome_of failed{0, 0, hello("master", "standalone", old)};
    ASSERT_TRUE(failed.failure) << old;
    EXPECT_EQ(failed.failure->code, errc::wrong_server);
  }
}

TEST(greeting, versions_from_6_2_on_are_welcome) {
  for (const auto* good : {"6.2.0", "6.2", "7.0.15", "7.2.4-rc1", "8", "10.1.0", "255.255.255"}) {
    EXPECT_FALSE((outcome_of{0, 0, hello("master", "standalone", good)}.failure)) << good;
  }
}

TEST(greeting, a_cluster_node_is_welcome) {
  EXPECT_FALSE((outcome_of{0, 0, hello("master", "cluster", "7.0.15")}.failure));
}

// ---- Which node of a cluster it is ----

// What comes of it when CLUSTER MYID, in the place of "aa11", is answered so.
struct node_outcome {
  explicit node_outcome(const std::string& answer) {
    std::string out;
    g.begin(out, {.node_id = "aa11"});
    EXPECT_EQ(requests_in(out)[3], (words{"CLUSTER", "MYID"}));
    auto replies = greeting_replies(s0);
    replies.insert(replies.begin() + 3, answer);
    for (const auto& reply : replies) {
      failure = g.on_reply({}, parsed(reply), out);
      if (failure) return;
    }
  }
  greeting g;
  std::optional<connection_failure> failure;
};

TEST(greeting, of_the_node_that_is_named_here_goes_on) {
  const node_outcome same{bulk("aa11")};
  EXPECT_FALSE(same.failure);
  EXPECT_TRUE(same.g.is_done());
}

// Who names it may not have heard of it yet, so that is not the end.
TEST(greeting, of_another_server_at_the_nodes_address_ends_it_and_is_not_final) {
  for (const auto& other : {bulk("aa112"), bulk(""), refusal("ERR This instance has cluster support disabled")}) {
    const node_outcome failed{other};
    ASSERT_TRUE(failed.failure) << other;
    EXPECT_EQ(failed.failure->code, errc::wrong_server);
    EXPECT_FALSE(failed.failure->is_final);
    EXPECT_NE(failed.failure->text.find("aa11"), std::string::npos);
  }
  EXPECT_EQ(node_outcome{bulk("bb22")}.failure->text, "this is node bb22, and the cluster has its node aa11 here");
}

// Of a node of a cluster it is the slot of one key that is on its way; elsewhere the server is the wrong one.
TEST(no_epoch, of_a_key_that_is_elsewhere_is_no_fault_of_a_node) {
  const auto said = parsed(refusal("ASK 1584 127.0.0.1:7001"));
  EXPECT_EQ(no_epoch(said, "run", true).code, errc::no_primary);
  EXPECT_FALSE(no_epoch(said, "run", true).is_final);
  EXPECT_EQ(no_epoch(said, "run").code, errc::wrong_server);
  EXPECT_TRUE(no_epoch(said, "run").is_final) << "it is no server alone, however often it is asked";
}

TEST(greeting, of_a_node_that_does_not_say_which_it_is_goes_on) {
  for (const auto* text : {"NOPERM this user has no permissions to run the 'cluster|myid' command",
                           "ERR unknown command 'CLUSTER', with args beginning with: 'MYID' ",
                           "ERR unknown subcommand 'MYID'. Try CLUSTER HELP."}) {
    EXPECT_FALSE(node_outcome{refusal(text)}.failure) << text;
  }
  EXPECT_EQ(node_outcome{refusal("LOADING Redis is loading the dataset in memory")}.failure->code,
            errc::server_loading);
  EXPECT_EQ(node_outcome{integer(1)}.failure->code, errc::wrong_server);
}

// B58: redsync hashed with SHA-256 for a while, and every call was NOSCRIPT.
TEST(greeting, a_digest_that_differs_ends_it_at_each_script_B58) {
  for (std::size_t i = 0; i < script::usual().size(); ++i) {
    outcome_of some{0, 3, scripts_there(i)};
    const auto failure = some.g.on_reply({}, parsed(bulk("da39a3ee5e6b4b0d3255bfef95601890afd80709")), some.out);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, errc::script_mismatch);
    EXPECT_NE(failure->text.find(script::usual()[i].name), std::string::npos);
  }
}

}  // namespace

}  // namespace holdfast::engine
