// SPDX-License-Identifier: Apache-2.0
#include "engine/replica_view.hpp"

#include "engine/peer_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

namespace holdfast::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string denied = "NOPERM this user has no permissions to run the 'x' command";

class a_replica_view : public testing::Test {
protected:
  // In their order: INFO, TIME, repl-backlog-ttl, appendfsync, EVAL, EVALSHA.
  std::array<std::string, 6> answers_{bulk("role:slave\r\n"),
                                      list({bulk("1700000000"), bulk("5")}),
                                      list({bulk("repl-backlog-ttl"), bulk("3600")}),
                                      list({bulk("appendfsync"), bulk("everysec")}),
                                      list({}),
                                      refusal("NOSCRIPT No matching script.")};

  std::string asked(credentials who = {}) {
    talk_ = replica_view_talk{std::move(who), "hf:{x}"};
    talk_.begin();
    std::string out;
    talk_.ask(out);
    return out;
  }
  replica_view heard() {
    std::string bytes;
    for (const auto& one : answers_) bytes += one;
    return heard(bytes);
  }
  // Byte by byte, as it may come.
  replica_view heard(const std::string& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (auto view = talk_.on_bytes(std::string_view{bytes}.substr(i, 1))) {
        EXPECT_FALSE(talk_.is_asked());
        return *view;
      }
    }
    ADD_FAILURE() << "there is no end to it";
    return {};
  }

  replica_view_talk talk_{{}, "hf:{x}"};
};

TEST_F(a_replica_view, has_what_the_server_says_of_itself) {
  (void)asked();
  const auto view = heard();
  EXPECT_EQ(view.failure, "");
  EXPECT_EQ(view.info, "role:slave\r\n");
  EXPECT_EQ(view.clock, server_time{std::chrono::seconds{1'700'000'000}});
  EXPECT_EQ(view.backlog_ttl, "3600");
  EXPECT_EQ(view.appendfsync, "everysec");
  EXPECT_EQ(view.refusal, "");
  EXPECT_THAT(view.lacks, IsEmpty());
}

TEST_F(a_replica_view, asks_for_what_scripts_need_and_for_no_message) {
  const auto out = asked();
  for (const auto* word : {"MGET", "PEXPIRE", "ZRANGEBYSCORE", "hf:{x}"}) EXPECT_THAT(out, HasSubstr(bulk(word)));
  for (const auto* word : {"PUBLISH", "SPUBLISH", "PUBSUB", "SCAN"}) EXPECT_THAT(out, Not(HasSubstr(bulk(word))));
}

TEST_F(a_replica_view, names_the_commands_that_our_login_lacks_there) {
  answers_[4] = list({bulk("HSET"), bulk("ZADD")});
  (void)asked();
  EXPECT_THAT(heard().lacks, ElementsAre("HSET", "ZADD"));
}

// What every client sends, and does not outlive without; CONFIG is none of it.
TEST_F(a_replica_view, has_its_words_for_what_it_denies) {
  const auto well = answers_;
  for (const std::size_t one : {0U, 1U, 4U, 5U}) {
    answers_ = well;
    answers_[one] = refusal(denied);
    (void)asked();
    EXPECT_EQ(heard().refusal, denied) << one;
  }
  answers_ = well;
  answers_[2] = answers_[3] = refusal(denied);
  (void)asked();
  EXPECT_EQ(heard().refusal, "");
}

// A script does not run while it loads its data, or has lost its primary: that is no refusal of ours.
TEST_F(a_replica_view, minds_nothing_that_passes) {
  answers_[4] = refusal("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
  (void)asked();
  const auto view = heard();
  EXPECT_EQ(view.refusal, "");
  EXPECT_EQ(view.failure, "");
}

TEST_F(a_replica_view, says_who_it_is_first_and_is_over_with_a_refused_login) {
  EXPECT_TRUE(asked({"app", "secret"}).starts_with("*3\r\n$4\r\nAUTH\r\n$3\r\napp\r\n$6\r\nsecret\r\n"));
  const auto view = heard(refusal("WRONGPASS invalid username-password pair or user is disabled."));
  EXPECT_EQ(view.code, errc::wrong_password);
  EXPECT_FALSE(replica_view_talk::is_well(view));
  (void)asked({"", "secret"});
  answers_[0] = simple("OK") + answers_[0];
  EXPECT_EQ(heard().info, "role:slave\r\n");
}

TEST_F(a_replica_view, is_none_of_a_server_that_wants_a_password_or_is_no_server) {
  answers_[0] = refusal("NOAUTH Authentication required.");
  (void)asked();
  EXPECT_EQ(heard().code, errc::no_password);
  (void)asked();
  EXPECT_EQ(heard("HTTP/1.1 400 Bad Request\r\n").code, errc::wrong_server);
  answers_[0] = integer(1);
  (void)asked();
  EXPECT_EQ(heard().code, errc::wrong_server);
}

}  // namespace
}  // namespace holdfast::engine
