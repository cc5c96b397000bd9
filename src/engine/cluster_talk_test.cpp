// SPDX-License-Identifier: Apache-2.0
#include "engine/cluster_talk.hpp"

#include "engine/peer_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::engine {
namespace {

using testing::HasSubstr;

constexpr auto question = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";

std::string one_primary() {
  return list({list({integer(0), integer(16383), list({bulk("10.0.0.1"), integer(7001), bulk("a")})})});
}

class a_cluster_talk : public testing::Test {
protected:
  std::string asked(cluster_talk& talk) {
    std::string out;
    talk.ask(out);
    return out;
  }
  cluster_answer answered(const std::string& bytes) {
    cluster_talk talk{{}, {"10.0.0.9", "7009"}};
    asked(talk);
    return talk.on_bytes(bytes).value();
  }
};

TEST_F(a_cluster_talk, asks_and_hears_who_serves_what) {
  cluster_talk talk{{}, {"10.0.0.9", "7009"}};
  EXPECT_EQ(asked(talk), question);
  EXPECT_FALSE(talk.on_bytes("*1\r\n*3\r\n:0\r\n"));
  EXPECT_TRUE(talk.is_asked());
  talk.begin();
  asked(talk);
  const auto answer = talk.on_bytes(one_primary());
  ASSERT_TRUE(answer && answer->slots);
  EXPECT_EQ(answer->failure, "");
  EXPECT_EQ(answer->slots->primaries[0].id, "a");
  EXPECT_EQ(asked(talk), question);
}

TEST_F(a_cluster_talk, says_who_we_are_once) {
  cluster_talk talk{{"ann", "secret"}, {}};
  EXPECT_EQ(asked(talk), "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n" + std::string{question});
  EXPECT_TRUE(talk.on_bytes(simple("OK") + one_primary())->slots);
  EXPECT_EQ(asked(talk), question);
}

TEST_F(a_cluster_talk, a_login_that_is_refused_stays_so) {
  const auto answer = answered(refusal("NOAUTH Authentication required."));
  EXPECT_EQ(answer.code, errc::no_password);
  EXPECT_TRUE(answer.is_final);
}

TEST_F(a_cluster_talk, a_single_server_is_no_cluster) {
  const auto answer = answered(refusal("ERR This instance has cluster support disabled"));
  EXPECT_EQ(answer.code, errc::wrong_server);
  EXPECT_TRUE(answer.is_final);
  EXPECT_THAT(answer.failure, HasSubstr("no cluster node"));
}

TEST_F(a_cluster_talk, what_passes_is_not_final) {
  const auto answer = answered(refusal("LOADING Redis is loading the dataset in memory"));
  EXPECT_EQ(answer.code, errc::no_primary);
  EXPECT_FALSE(answer.is_final);
  EXPECT_FALSE(answered(list({})).is_final);
}

TEST_F(a_cluster_talk, nonsense_is_a_failure) {
  EXPECT_NE(answered(simple("OK")).failure, "");
  EXPECT_NE(answered("nonsense\r\n").failure, "");
}

}  // namespace
}  // namespace holdfast::engine
