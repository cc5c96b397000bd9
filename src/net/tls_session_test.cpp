// SPDX-License-Identifier: Apache-2.0
// What needs no server; the handshakes are in tests/.
#include "net/tls_session.hpp"

#include "net/tls_reader.hpp"
#include "net/tls_server_testing.hpp"
#include "support/tls_material.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace holdfast::net {
namespace {

using testing::HasSubstr;

// Of files that are good.
std::unique_ptr<tls_session> session_of(const tls_files& files, const std::string& host, std::string& why) {
  const auto read = read_now(files);
  EXPECT_NE(read.context, nullptr) << read.failure;
  return read.context ? tls_session::make(*read.context, host, why) : nullptr;
}

// OpenSSL takes no note of such names, and a certificate of anybody would do.
TEST(tls_session, is_not_made_for_a_host_whose_certificate_could_not_be_checked) {
  for (const auto& host : {std::string{"db1\0.evil.test", 14}, std::string(300, 'h'), std::string{}}) {
    std::string why;
    EXPECT_EQ(session_of({}, host, why), nullptr) << host;
    EXPECT_THAT(why, HasSubstr("host name")) << host;
  }
}

// With a dot at its end a name is looked up as it is, without the search domains; a certificate has none (RFC 6066).
TEST(tls_session, expects_a_certificate_for_the_name_without_the_dot_at_its_end) {
  const auto trusted = test::tls_material(test::certificate::good) + "/ca.pem";
  for (const auto& [host, is_good] : {std::pair{"localhost.", true}, {"localhost", true}, {"localhost..", false}}) {
    a_tls_server server;
    std::string why;
    const auto session = session_of({.cacert = trusted, .cert = "", .key = ""}, host, why);
    ASSERT_NE(session, nullptr) << why;
    bool is_done = false;
    std::string wire;
    for (int turn = 0; turn < 4 && !is_done && why.empty(); ++turn) {
      is_done = session->shake_hands(server.answer(std::exchange(wire, {})), why);
      session->take_wire(wire);
    }
    EXPECT_EQ(is_done, is_good) << host << ": " << why;
    EXPECT_EQ(server.asked_for(), is_good ? "localhost" : "localhost.") << host;
  }
}

TEST(tls_session, speaks_first) {
  std::string why;
  const auto session = session_of({}, "db1", why);
  ASSERT_NE(session, nullptr) << why;
  EXPECT_FALSE(session->shake_hands({}, why));
  std::string wire;
  session->take_wire(wire);
  EXPECT_THAT(wire, HasSubstr("db1")) << "a client hello carries the server's name";
}

// A plain Redis behind rediss: must be a failure, not a wait.
TEST(tls_session, fails_for_good_when_the_server_speaks_plainly) {
  std::string why;
  const auto session = session_of({}, "db1", why);
  ASSERT_NE(session, nullptr) << why;
  EXPECT_FALSE(session->shake_hands("-ERR unknown command\r\n", why));
  EXPECT_NE(why, "");
}

}  // namespace
}  // namespace holdfast::net
