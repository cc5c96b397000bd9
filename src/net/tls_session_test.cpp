// SPDX-License-Identifier: Apache-2.0
// What needs no server; the handshakes are in tests/.
#include "net/tls_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holdfast::net {
namespace {

using testing::HasSubstr;

TEST(tls_session, names_the_file_of_authorities_that_it_cannot_read) {
  std::string why;
  EXPECT_EQ(tls_session::make({.cacert = "/no/such/authorities.pem", .cert = "", .key = ""}, "db1", why), nullptr);
  EXPECT_THAT(why, HasSubstr("'/no/such/authorities.pem'"));
}

TEST(tls_session, names_the_certificate_that_it_cannot_use) {
  std::string why;
  EXPECT_EQ(tls_session::make({.cacert = "", .cert = "/no/such/me.pem", .key = ""}, "db1", why), nullptr);
  EXPECT_THAT(why, HasSubstr("'/no/such/me.pem'"));
}

// OpenSSL takes no note of such names, and a certificate of anybody would do.
TEST(tls_session, is_not_made_for_a_host_whose_certificate_could_not_be_checked) {
  for (const auto& host : {std::string{"db1\0.evil.test", 14}, std::string(300, 'h'), std::string{}}) {
    std::string why;
    EXPECT_EQ(tls_session::make({}, host, why), nullptr) << host;
    EXPECT_THAT(why, HasSubstr("host name")) << host;
  }
}

TEST(tls_session, speaks_first) {
  std::string why;
  const auto session = tls_session::make({}, "db1", why);
  ASSERT_NE(session, nullptr) << why;
  EXPECT_FALSE(session->shake_hands({}, why));
  std::string wire;
  session->take_wire(wire);
  EXPECT_THAT(wire, HasSubstr("db1")) << "a client hello carries the server's name";
}

// A plain Redis behind rediss: must be a failure, not a wait.
TEST(tls_session, fails_for_good_when_the_server_speaks_plainly) {
  std::string why;
  const auto session = tls_session::make({}, "db1", why);
  ASSERT_NE(session, nullptr) << why;
  EXPECT_FALSE(session->shake_hands("-ERR unknown command\r\n", why));
  EXPECT_NE(why, "");
}

}  // namespace
}  // namespace holdfast::net
