// SPDX-License-Identifier: Apache-2.0
// What needs no server; the handshakes are in tests/.
#include "net/tls_session.hpp"

#include "support/scratch_directory.hpp"
#include "support/tls_material.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace holdfast::net {
namespace {

using testing::HasSubstr;

TEST(tls_session, names_the_file_of_authorities_that_it_cannot_read) {
  std::string why;
  bool passes = false;
  EXPECT_EQ(tls_session::make({.cacert = "/no/such/authorities.pem", .cert = "", .key = ""}, "db1", why, passes),
            nullptr);
  EXPECT_THAT(why, HasSubstr("'/no/such/authorities.pem'"));
}

TEST(tls_session, names_the_certificate_that_it_cannot_use) {
  std::string why;
  bool passes = false;
  EXPECT_EQ(tls_session::make({.cacert = "", .cert = "/no/such/me.pem", .key = ""}, "db1", why, passes), nullptr);
  EXPECT_THAT(why, HasSubstr("'/no/such/me.pem'"));
}

// OpenSSL would ask for its pass phrase on the terminal, of whichever thread connects.
TEST(tls_session, asks_nobody_for_a_pass_phrase) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const auto key = place / "encrypted.key";
  for (const auto* how : {"pkcs8 -topk8 -v2 aes-256-cbc", "ec -aes128"}) {
    const auto make = std::string{"openssl "} + how + " -passout pass:secret -in '" + material + "/client.key' -out '" +
                      key + "' 2>/dev/null";
    ASSERT_EQ(std::system(make.c_str()), 0) << make;
    std::string why;
    bool passes = false;
    EXPECT_EQ(tls_session::make({.cacert = "", .cert = material + "/client.pem", .key = key}, "db1", why, passes),
              nullptr);
    EXPECT_THAT(why, HasSubstr("'" + key + "'"));
    EXPECT_THAT(why, HasSubstr("is encrypted"));
  }
}

// OpenSSL takes no note of such names, and a certificate of anybody would do.
TEST(tls_session, is_not_made_for_a_host_whose_certificate_could_not_be_checked) {
  for (const auto& host : {std::string{"db1\0.evil.test", 14}, std::string(300, 'h'), std::string{}}) {
    std::string why;
    bool passes = false;
    EXPECT_EQ(tls_session::make({}, host, why, passes), nullptr) << host;
    EXPECT_THAT(why, HasSubstr("host name")) << host;
  }
}

TEST(tls_session, speaks_first) {
  std::string why;
  bool passes = false;
  const auto session = tls_session::make({}, "db1", why, passes);
  ASSERT_NE(session, nullptr) << why;
  EXPECT_FALSE(session->shake_hands({}, why));
  std::string wire;
  session->take_wire(wire);
  EXPECT_THAT(wire, HasSubstr("db1")) << "a client hello carries the server's name";
}

// A plain Redis behind rediss: must be a failure, not a wait.
TEST(tls_session, fails_for_good_when_the_server_speaks_plainly) {
  std::string why;
  bool passes = false;
  const auto session = tls_session::make({}, "db1", why, passes);
  ASSERT_NE(session, nullptr) << why;
  EXPECT_FALSE(session->shake_hands("-ERR unknown command\r\n", why));
  EXPECT_NE(why, "");
}

}  // namespace
}  // namespace holdfast::net
