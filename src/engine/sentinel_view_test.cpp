// SPDX-License-Identifier: Apache-2.0
#include "engine/sentinel_view.hpp"

#include "resp/writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace holdfast::engine {
namespace {

using testing::HasSubstr;

class a_sentinel_view : public testing::Test {
protected:
  sentinel_view heard(std::string_view bytes) {
    std::string out;
    talk_.ask(out);
    EXPECT_EQ(out,
              "*3\r\n$8\r\nSENTINEL\r\n$6\r\nMASTER\r\n$8\r\nmymaster\r\n"
              "*2\r\n$8\r\nSENTINEL\r\n$4\r\nMYID\r\n");
    const auto view = talk_.on_bytes(std::string{bytes} + identity_);
    EXPECT_TRUE(view);
    return view.value_or(sentinel_view{});
  }
  sentinel_view heard_of(const std::vector<std::string_view>& fields) {
    std::string bytes;
    resp::append_request(bytes, std::span{fields});  // A request has the form of such an answer.
    return heard(bytes);
  }

  std::string identity_ = "$3\r\nabc\r\n";
  sentinel_view_talk talk_{{}, "mymaster"};
};

TEST_F(a_sentinel_view, has_the_primary_and_who_else_watches_it) {
  const auto view = heard_of({"name", "mymaster", "ip", "10.0.0.1", "port", "6379", "flags", "master",
                              "num-other-sentinels", "4", "quorum", "3", "parallel-syncs", "1"});
  EXPECT_EQ(view.host, "10.0.0.1");
  EXPECT_EQ(view.port, "6379");
  EXPECT_EQ(view.others, 4);
  EXPECT_EQ(view.quorum, 3);
  EXPECT_FALSE(view.is_down);
  EXPECT_EQ(view.identity, "abc");
  EXPECT_TRUE(sentinel_view_talk::is_well(view));
}

TEST_F(a_sentinel_view, says_when_the_primary_is_taken_for_dead) {
  EXPECT_TRUE(heard_of({"ip", "10.0.0.1", "port", "6379", "flags", "s_down,o_down,master"}).is_down);
}

TEST_F(a_sentinel_view, tells_who_is_denied_from_who_is_away) {
  EXPECT_EQ(heard("-NOPERM this user has no permissions to run the 'sentinel|master' command\r\n").code,
            errc::no_permission);
  EXPECT_EQ(sentinel_view_talk::failed({errc::tls_failed, "no TLS there", false, false}).code, errc::tls_failed);
}

TEST_F(a_sentinel_view, of_an_unknown_name_is_no_trouble_of_the_connection) {
  const auto view = heard("-ERR No such master with that name\r\n");
  EXPECT_TRUE(view.is_unknown);
  EXPECT_EQ(view.failure, "it knows no primary 'mymaster'");
  EXPECT_TRUE(sentinel_view_talk::is_well(view));
}

TEST_F(a_sentinel_view, of_another_server_says_why_there_is_none) {
  EXPECT_THAT(heard("-NOPERM this user has no permissions\r\n").failure, HasSubstr("NOPERM"));
  for (const auto* nonsense : {"+OK\r\n", ":1\r\n", "*0\r\n", "*1\r\n$2\r\nip\r\n", "*2\r\n:1\r\n:2\r\n",
                               "*2\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n", "*-1\r\n"}) {
    talk_.begin();
    const auto view = heard(nonsense);
    EXPECT_THAT(view.failure, HasSubstr("none that a sentinel gives")) << nonsense;
    EXPECT_EQ(view.code, errc::wrong_server) << nonsense;
    EXPECT_FALSE(sentinel_view_talk::is_well(view));
  }
}

TEST_F(a_sentinel_view, waits_for_the_rest_of_an_answer) {
  std::string out;
  talk_.ask(out);
  EXPECT_FALSE(talk_.on_bytes("*4\r\n$2\r\nip\r\n$8\r\n10.0"));
  EXPECT_TRUE(talk_.on_bytes(".0.1\r\n$4\r\nport\r\n$4\r\n6379\r\n$3\r\nabc\r\n"));
}

TEST_F(a_sentinel_view, has_no_identity_that_the_acl_denies) {
  identity_ = "-NOPERM this user has no permissions to run the 'sentinel|myid' command\r\n";
  const auto view = heard_of({"ip", "10.0.0.1", "port", "6379", "flags", "master"});
  EXPECT_TRUE(sentinel_view_talk::is_well(view));
  EXPECT_EQ(view.host, "10.0.0.1");
  EXPECT_EQ(view.identity, "");
}

// An error is told at once, because nothing comes behind one that is for the whole connection. The identity that does
// come is no answer to the next question.
TEST_F(a_sentinel_view, behind_an_unknown_name_takes_no_identity_for_an_answer) {
  EXPECT_TRUE(heard("-ERR No such master with that name\r\n").is_unknown);
  EXPECT_FALSE(talk_.is_asked());
  std::string out;
  talk_.ask(out);
  const auto view = talk_.on_bytes("*4\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n$4\r\nport\r\n$4\r\n6379\r\n");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->port, "6379");
  EXPECT_EQ(view->identity, "abc");
}

}  // namespace
}  // namespace holdfast::engine
