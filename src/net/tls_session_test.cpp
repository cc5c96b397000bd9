// SPDX-License-Identifier: Apache-2.0
// What needs no server; the handshakes are in tests/.
#include "net/tls_session.hpp"

#include "net/tls_server_testing.hpp"
#include "support/scratch_directory.hpp"
#include "support/tls_material.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>

#include <cstdlib>
#include <string>
#include <utility>

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

// The calling thread may have a session of its own, which OpenSSL calls broken by what it finds there.
TEST(tls_session, leaves_no_errors_to_its_caller) {
  const auto& material = test::tls_material(test::certificate::good);
  for (const tls_files& files : {tls_files{.cacert = "/no/such/authorities.pem", .cert = "", .key = ""},
                                 tls_files{.cacert = material + "/client.key", .cert = "", .key = ""},
                                 tls_files{.cacert = "", .cert = "/no/such/me.pem", .key = ""},
                                 tls_files{.cacert = "", .cert = material + "/client.key", .key = ""}}) {
    std::string why;
    bool passes = false;
    EXPECT_EQ(tls_session::make(files, "db1", why, passes), nullptr);
    EXPECT_EQ(ERR_peek_error(), 0U) << why;
  }
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

TEST(tls_session, finds_the_key_in_the_certificate_s_file_where_none_is_named) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const auto both = place / "both.pem";
  const auto make = "cat '" + material + "/client.pem' '" + material + "/client.key' >'" + both + "'";
  ASSERT_EQ(std::system(make.c_str()), 0) << make;
  std::string why;
  bool passes = false;
  EXPECT_NE(tls_session::make({.cacert = material + "/ca.pem", .cert = both, .key = ""}, "db1", why, passes), nullptr)
      << why;
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

// With a dot at its end a name is looked up as it is, without the search domains; a certificate has none (RFC 6066).
TEST(tls_session, expects_a_certificate_for_the_name_without_the_dot_at_its_end) {
  const auto trusted = test::tls_material(test::certificate::good) + "/ca.pem";
  for (const auto& [host, is_good] : {std::pair{"localhost.", true}, {"localhost", true}, {"localhost..", false}}) {
    a_tls_server server;
    std::string why;
    bool passes = false;
    const auto session = tls_session::make({.cacert = trusted, .cert = "", .key = ""}, host, why, passes);
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
