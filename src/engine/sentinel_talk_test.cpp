// SPDX-License-Identifier: Apache-2.0
#include "engine/sentinel_talk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::engine {
namespace {

using testing::HasSubstr;

constexpr auto question = "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$8\r\nmymaster\r\n";
constexpr auto here = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n";

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
  EXPECT_EQ(asked(), question);
  EXPECT_TRUE(talk_.is_asked());
  const auto answer = talk_.on_bytes(here);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->host, "127.0.0.1");
  EXPECT_EQ(answer->port, "6379");
  EXPECT_FALSE(talk_.is_asked());
}

TEST_F(a_sentinel_talk, waits_for_the_rest_of_an_answer) {
  asked();
  EXPECT_FALSE(talk_.on_bytes("*2\r\n$9\r\n127.0."));
  EXPECT_TRUE(talk_.is_asked());
  EXPECT_TRUE(talk_.on_bytes("0.1\r\n$4\r\n6379\r\n"));
}

TEST_F(a_sentinel_talk, says_who_we_are_once_on_a_connection) {
  talk_ = sentinel_talk{{"watcher", "secret"}, "mymaster"};
  EXPECT_EQ(asked(), std::string{"*3\r\n$4\r\nAUTH\r\n$7\r\nwatcher\r\n$6\r\nsecret\r\n"} + question);
  const auto answer = talk_.on_bytes(std::string{"+OK\r\n"} + here);
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
  EXPECT_FALSE(answer->is_unknown);
}

TEST_F(a_sentinel_talk, tells_an_unknown_name_from_trouble) {
  asked();
  const auto answer = talk_.on_bytes("*-1\r\n");
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is_unknown);
  EXPECT_THAT(answer->failure, HasSubstr("mymaster"));
}

TEST_F(a_sentinel_talk, knows_who_is_no_sentinel) {
  asked();
  const auto answer = talk_.on_bytes("-ERR unknown command 'SENTINEL', with args beginning with: ...\r\n");
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->failure, HasSubstr("no sentinel"));
}

// H27: what is no answer of a sentinel names nobody, and does not hang the question.
TEST_F(a_sentinel_talk, takes_nonsense_for_no_answer_H27) {
  for (const auto* bytes : {"+OK\r\n", "*0\r\n", "*1\r\n$1\r\na\r\n", "*2\r\n$0\r\n\r\n$0\r\n\r\n",
                            "*2\r\n:1\r\n:2\r\n", ":7\r\n", "?what\r\n"}) {
    sentinel_talk talk{{}, "mymaster"};
    std::string out;
    talk.ask(out);
    const auto answer = talk.on_bytes(bytes);
    ASSERT_TRUE(answer) << bytes;
    EXPECT_NE(answer->failure, "") << bytes;
    EXPECT_EQ(answer->host, "") << bytes;
    EXPECT_FALSE(talk.is_asked()) << bytes;
  }
}

}  // namespace
}  // namespace holdfast::engine
