// SPDX-License-Identifier: Apache-2.0
// The texts are what redis-server 7.0.15 sent, unless a line says otherwise.
#include "script/server_error.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace holdfast::script {

namespace {

struct seen {
  const char* text;
  errc code;
  reaction what;
};

void PrintTo(const seen& s, std::ostream* out) { *out << s.text; }

class server_error : public testing::TestWithParam<seen> {};

// H27: each error word means one thing to us, and none means busy or lost.
TEST_P(server_error, is_classified_H27) {
  const auto got = classify(GetParam().text);
  EXPECT_EQ(got.code, GetParam().code);
  EXPECT_EQ(got.what, GetParam().what);
}

constexpr auto give_up = reaction::give_up;
constexpr auto keep = reaction::keep;
constexpr auto try_again = reaction::try_again;
constexpr auto elsewhere = reaction::elsewhere;

INSTANTIATE_TEST_SUITE_P(
    outside_a_script, server_error,
    testing::Values(
        seen{"NOSCRIPT No matching script. Please use EVAL.", errc::server_refused, reaction::load_script},
        seen{"LOADING Redis is loading the dataset in memory", errc::server_loading, try_again},
        seen{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", errc::server_loading,
             try_again},
        seen{"CLUSTERDOWN The cluster is down", errc::server_refused, try_again},
        seen{"TRYAGAIN Multiple keys request during rehashing of slot", errc::server_refused, try_again},
        seen{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
             errc::server_busy, try_again},
        seen{"UNKILLABLE Sorry the script already executed write commands against the dataset.", errc::server_busy,
             try_again},
        seen{"READONLY You can't write against a read only replica.", errc::not_a_primary, reaction::reconnect},
        seen{"NOAUTH Authentication required.", errc::no_password, give_up},
        seen{"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "
             "<user> "
             "<pass> option can be used to authenticate the client and select the RESP protocol version at the same "
             "time",
             errc::no_password, give_up},
        seen{"WRONGPASS invalid username-password pair or user is disabled.", errc::wrong_password, give_up},
        seen{"ERR AUTH <password> called without any password configured for the default user. Are you sure your "
             "configuration is correct?",
             errc::wrong_password, give_up},
        seen{"NOPERM this user has no permissions to run the 'eval' command", errc::no_permission, give_up},
        seen{"NOPERM this user has no permissions to access one of the keys used as arguments", errc::no_permission,
             give_up},
        seen{"NOPERM this user has no permissions to access one of the channels used as arguments", errc::no_permission,
             give_up},
        seen{"ERR DB index is out of range", errc::wrong_database, give_up},
        seen{"ERR SELECT is not allowed in cluster mode", errc::wrong_database, give_up},
        seen{"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_kind, give_up},
        seen{"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory, keep},
        seen{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
             errc::server_refused, keep},
        seen{"NOREPLICAS Not enough good replicas to write.", errc::server_refused, keep},
        seen{"ERR max number of clients reached", errc::server_refused, reaction::reconnect},
        seen{"ERR Protocol error: invalid bulk length", errc::server_refused, reaction::reconnect},
        seen{"DENIED Redis is running in protected mode because protected mode is enabled", errc::server_refused,
             give_up},
        seen{"EXECABORT Transaction discarded because of previous errors.", errc::server_refused, give_up},
        seen{"MOVED 3999 127.0.0.1:6381", errc::wrong_server, elsewhere},
        seen{"ASK 3999 127.0.0.1:6381", errc::wrong_server, elsewhere},
        seen{"CROSSSLOT Keys in request don't hash to the same slot", errc::wrong_server, give_up},
        seen{"ERR unknown command 'evalsha', with args beginning with: ", errc::wrong_server, give_up},
        seen{"SOMETHING new", errc::server_refused, give_up}, seen{"ERR something new", errc::server_refused, give_up},
        seen{"BUSYGROUP Consumer Group name already exists", errc::server_refused, give_up},
        seen{"", errc::server_refused, give_up}));

INSTANTIATE_TEST_SUITE_P(
    in_a_script, server_error,
    testing::Values(
        seen{"OOM command not allowed when used memory > 'maxmemory'. script: 1f8f4cfb, on @user_script:1.",
             errc::out_of_memory, keep},
        seen{"WRONGTYPE Operation against a key holding the wrong kind of value script: 620cd258, on @user_script:1.",
             errc::wrong_kind, give_up},
        seen{"READONLY You can't write against a read only replica. script: 1f8f4cfb, on @user_script:1.",
             errc::not_a_primary, reaction::reconnect},
        seen{"NOREPLICAS Not enough good replicas to write. script: 1f8f4cfb, on @user_script:1.", errc::server_refused,
             keep},
        // B98: a missing permission must not look like a lost lock.
        seen{"ERR The user executing the script can't run this command or subcommand script: 1f8f, on @user_script:1.",
             errc::no_permission, give_up},
        seen{"ERR The user executing the script can't access at least one of the keys mentioned in the command "
             "arguments "
             "script: d7fa, on @user_script:1.",
             errc::no_permission, give_up},
        seen{"ERR Unknown Redis command called from script script: 985c, on @user_script:1.", errc::wrong_server,
             give_up},
        seen{"ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: c843, on "
             "@user_script:1.",
             errc::server_refused, give_up}));

// By reading 6.2's source, not captured: it wraps what a script raised.
INSTANTIATE_TEST_SUITE_P(
    given_back_by_a_script_of_6_2, server_error,
    testing::Values(seen{"@user_script: 132: -OOM command not allowed when used memory > 'maxmemory'.",
                         errc::out_of_memory, keep},
                    seen{"@user_script: 132: -READONLY You can't write against a read only replica.",
                         errc::not_a_primary, reaction::reconnect},
                    seen{"@user_script: 132: The user executing the script can't run this command or subcommand",
                         errc::no_permission, give_up}));

INSTANTIATE_TEST_SUITE_P(
    in_a_script_of_6_2, server_error,
    testing::Values(
        seen{
            "ERR Error running script (call to f_1f8f): @user_script:1: @user_script: 1: -OOM command not allowed when "
            "used memory > 'maxmemory'.",
            errc::out_of_memory, keep},
        seen{"ERR Error running script (call to f_1f8f): @user_script:1: WRONGTYPE Operation against a key holding the "
             "wrong kind of value",
             errc::wrong_kind, give_up},
        seen{"ERR Error running script (call to f_1f8f): @user_script:1: @user_script: 1: -READONLY You can't write "
             "against a read only replica.",
             errc::not_a_primary, reaction::reconnect},
        seen{"ERR Error running script (call to f_1f8f): @user_script:1: The user executing the script can't run this "
             "command or subcommand",
             errc::no_permission, give_up},
        seen{"ERR Error running script (call to f_1f8f): @user_script:1: attempt to index a nil value",
             errc::server_refused, give_up}));

TEST(server_error, of_a_server_that_is_of_no_cluster) {
  EXPECT_TRUE(is_of_no_cluster("ERR This instance has cluster support disabled"));
  EXPECT_FALSE(is_of_no_cluster("ERR unknown command 'CLUSTER', with args beginning with: 'MYID' "));
}

}  // namespace

}  // namespace holdfast::script
