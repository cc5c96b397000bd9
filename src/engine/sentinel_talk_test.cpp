// SPDX-License-Identifier: Apache-2.0
#include "engine/sentinel_talk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {
namespace {

using testing::HasSubstr;

constexpr auto question = "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$8\r\nmymaster\r\n";
constexpr auto which = "*2\r\n$8\r\nSENTINEL\r\n$4\r\nMYID\r\n";
constexpr auto here = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n";
constexpr auto me = "$3\r\nabc\r\n";
constexpr auto another = "$3\r\nxyz\r\n";
constexpr auto denied = "-NOPERM this user has no permissions to run the 'sentinel|myid' command\r\n";

class a_sentinel_talk : public testing::Test {
protected:
  std::string asked() {
    std::string out;
    talk_.ask(out);
    return out;
  }

  sentinel_talk talk_{{}, "mymaster"};
};

TEST_F(a_sentinel_talk, asks_and_hears_an_address) {
  EXPECT_EQ(asked(), std::string{question} + which);
  EXPECT_TRUE(talk_.is_asked());
  const auto answer = talk_.on_bytes(std::string{here} + me);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->host, "127.0.0.1");
  EXPECT_EQ(answer->port, "6379");
  EXPECT_EQ(answer->identity, "abc");
  EXPECT_FALSE(talk_.is_asked());
}

TEST_F(a_sentinel_talk, waits_for_the_rest_of_an_answer) {
  asked();
  EXPECT_FALSE(talk_.on_bytes("*2\r\n$9\r\n127.0."));
  EXPECT_FALSE(talk_.on_bytes("0.1\r\n$4\r\n6379\r\n$3\r\na"));
  EXPECT_TRUE(talk_.is_asked());
  EXPECT_TRUE(talk_.on_bytes("bc\r\n"));
}

TEST_F(a_sentinel_talk, says_who_we_are_once_on_a_connection) {
  talk_ = sentinel_talk{{"watcher", "secret"}, "mymaster"};
  EXPECT_EQ(asked(), std::string{"*3\r\n$4\r\nAUTH\r\n$7\r\nwatcher\r\n$6\r\nsecret\r\n"} + question + which);
  const auto answer = talk_.on_bytes(std::string{"+OK\r\n"} + here + me);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->port, "6379");
  EXPECT_EQ(asked(), question);
  talk_.begin();
  EXPECT_THAT(asked(), HasSubstr("AUTH"));
}

TEST_F(a_sentinel_talk, passes_a_refused_password_on) {
  talk_ = sentinel_talk{{"", "wrong"}, "mymaster"};
  asked();
  const auto answer = talk_.on_bytes("-WRONGPASS invalid username-password pair\r\n");
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->failure, HasSubstr("WRONGPASS"));
  EXPECT_EQ(answer->code, errc::wrong_password);
  EXPECT_TRUE(answer->is_final);
  EXPECT_FALSE(answer->is_unknown);
}

TEST_F(a_sentinel_talk, tells_an_unknown_name_from_trouble) {
  asked();
  const auto answer = talk_.on_bytes(std::string{"*-1\r\n"} + me);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is_unknown);
  EXPECT_TRUE(answer->is_final);
  EXPECT_EQ(answer->code, errc::no_primary);
  EXPECT_THAT(answer->failure, HasSubstr("mymaster"));
}

TEST_F(a_sentinel_talk, knows_who_is_no_sentinel) {
  asked();
  const auto answer = talk_.on_bytes("-ERR unknown command 'SENTINEL', with args beginning with: ...\r\n");
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->failure, HasSubstr("no sentinel"));
  EXPECT_EQ(answer->code, errc::wrong_server);
  EXPECT_TRUE(answer->is_final);
}

// What a single server would be told of at once, a sentinel is told of at once.
TEST_F(a_sentinel_talk, tells_what_will_not_pass_from_what_will_H22) {
  const auto said = [&](const char* error) {
    talk_.begin();
    asked();
    return talk_.on_bytes(error).value();
  };
  const auto no_password = said("-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(no_password.code, errc::no_password);
  EXPECT_TRUE(no_password.is_final);
  const auto no_permission = said("-NOPERM this user has no permissions to run the 'sentinel' command\r\n");
  EXPECT_EQ(no_permission.code, errc::no_permission);
  EXPECT_TRUE(no_permission.is_final);
  EXPECT_FALSE(said("-ERR max number of clients reached\r\n").is_final);
  EXPECT_FALSE(said("-LOADING Redis is loading the dataset in memory\r\n").is_final);
}

TEST_F(a_sentinel_talk, says_why_there_is_no_connection) {
  const auto for_good = sentinel_talk::failed({errc::tls_failed, "certificate verify failed", true, false});
  EXPECT_EQ(for_good.failure, "certificate verify failed");
  EXPECT_EQ(for_good.code, errc::tls_failed);
  EXPECT_TRUE(for_good.is_final);
  EXPECT_FALSE(sentinel_talk::failed({errc::cannot_connect, "Connection refused", false, true}).is_final);
}

// H27: what is no answer of a sentinel names nobody, and does not hang the question.
TEST_F(a_sentinel_talk, takes_nonsense_for_no_answer_H27) {
  for (const auto* bytes : {"+OK\r\n", "*0\r\n", "*1\r\n$1\r\na\r\n", "*2\r\n$0\r\n\r\n$0\r\n\r\n",
                            "*2\r\n:1\r\n:2\r\n", ":7\r\n", "?what\r\n", "-\r\n"}) {
    sentinel_talk talk{{}, "mymaster"};
    std::string out;
    talk.ask(out);
    const auto answer = talk.on_bytes(std::string{bytes} + me);
    ASSERT_TRUE(answer) << bytes;
    EXPECT_NE(answer->failure, "") << bytes;
    EXPECT_EQ(answer->host, "") << bytes;
    EXPECT_FALSE(talk.is_asked()) << bytes;
  }
}

// ---- which sentinel it is ----

TEST_F(a_sentinel_talk, asks_which_sentinel_it_is_once_on_a_connection) {
  asked();
  talk_.on_bytes(std::string{here} + me);
  EXPECT_EQ(asked(), question);
  const auto again = talk_.on_bytes(here);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->identity, "abc");
}

TEST_F(a_sentinel_talk, hears_who_is_there_after_a_reconnect_P22) {
  asked();
  talk_.on_bytes(std::string{here} + me);
  talk_.begin();
  EXPECT_EQ(asked(), std::string{question} + which);
  const auto answer = talk_.on_bytes(std::string{here} + another);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->identity, "xyz");
}

// One that does not say it after a reconnect is not taken for the one that was there before.
TEST_F(a_sentinel_talk, forgets_who_was_there_with_its_connection) {
  asked();
  talk_.on_bytes(std::string{here} + me);
  talk_.begin();
  asked();
  const auto answer = talk_.on_bytes(std::string{here} + denied);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->identity, "");
}

TEST_F(a_sentinel_talk, begins_anew_behind_a_connection_that_broke_between_the_two_answers) {
  asked();
  EXPECT_FALSE(talk_.on_bytes(here));
  talk_.begin();
  EXPECT_FALSE(talk_.is_asked());
  EXPECT_EQ(asked(), std::string{question} + which);
  EXPECT_FALSE(talk_.on_bytes("*-1\r\n"));
  const auto answer = talk_.on_bytes(another);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is_unknown) << "what the broken one had said is no answer of this one";
}

TEST_F(a_sentinel_talk, is_answered_by_one_that_may_not_say_who_it_is) {
  for (const auto* refusal : {denied, "-ERR Unknown sentinel subcommand 'MYID'\r\n", "$-1\r\n", ":7\r\n"}) {
    talk_.begin();
    asked();
    const auto answer = talk_.on_bytes(std::string{here} + refusal);
    ASSERT_TRUE(answer) << refusal;
    EXPECT_EQ(answer->port, "6379") << refusal;
    EXPECT_EQ(answer->failure, "") << refusal;
    EXPECT_EQ(answer->identity, "") << refusal;
    EXPECT_EQ(asked(), question) << "it is not asked again";
    EXPECT_TRUE(talk_.on_bytes(here)) << refusal;
  }
}

TEST_F(a_sentinel_talk, takes_nonsense_behind_an_answer_for_no_answer_H27) {
  asked();
  const auto answer = talk_.on_bytes(std::string{here} + "?what\r\n");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->host, "");
  EXPECT_NE(answer->failure, "");
  EXPECT_FALSE(talk_.is_asked());
}

// ---- how many voices they are ----

using voices = std::vector<sentinel_voice>;

TEST(named_by_majority_of_sentinels, counts_one_under_two_names_once_P22) {
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s1", "a"}, {}}), std::nullopt);
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {}, {"s1", "a"}}), std::nullopt);
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s1", "a"}, {"s2", "a"}}), "a");
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s1", "a"}}), std::nullopt) << "a majority of two";
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s1", "a"}, {"s1", "a"}, {"s2", "a"}, {}}), std::nullopt);
}

TEST(named_by_majority_of_sentinels, counts_different_ones_each_P22) {
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s2", "a"}, {}}), "a");
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s2", "b"}, {"s3", "b"}}), "b");
}

TEST(named_by_majority_of_sentinels, believes_who_does_not_say_who_it_is_to_be_another) {
  EXPECT_EQ(named_by_majority(voices{{"", "a"}, {"", "a"}, {}}), "a");
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"", "a"}, {}}), "a");
}

// It was asked before a failover over one line and behind it over the other.
TEST(named_by_majority_of_sentinels, counts_one_that_says_this_and_that_for_one_only) {
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s1", "b"}, {"s2", "b"}, {"s3", "a"}, {"s4", "a"}}), "a");
  EXPECT_EQ(named_by_majority(voices{{"s1", "a"}, {"s1", "b"}, {"s2", "b"}}), std::nullopt);
}

TEST(same_sentinel_as, is_the_first_line_to_it) {
  const voices all{{"s1", {}}, {"", {}}, {"s2", {}}, {"s1", {}}, {"", {}}, {"s1", {}}};
  for (const std::size_t own : {0u, 1u, 2u, 4u}) EXPECT_EQ(same_sentinel_as(all, own), std::nullopt) << own;
  for (const std::size_t twin : {3u, 5u}) EXPECT_EQ(same_sentinel_as(all, twin), 0u) << twin;
}

}  // namespace
}  // namespace holdfast::engine
