// SPDX-License-Identifier: Apache-2.0
// The way out of a fault can be typed as it is printed: it is about the lock, the server and the prefix that were
// meant.
#include "message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace {

using namespace holdfast::cli;
using holdfast::errc;
using testing::HasSubstr;

TEST(ways_out, name_the_lock_with_the_options_without_which_it_is_another) {
  const auto fix = [](std::string_view prefix, bool plain) {
    return describe(holdfast::error{errc::changed_hands}, {.lock = "x", .prefix = prefix, .plain = plain}).fix;
  };
  EXPECT_EQ(fix("hf:", false), "look again: holdfast show x");
  EXPECT_EQ(fix("hf:", true), "look again: holdfast show --plain x");
  EXPECT_EQ(fix("b:", false), "look again: holdfast show --prefix b: x");
}

// It says so of all of them.
TEST(ways_out, end_the_quarantine_of_a_quorum_where_none_has_forgotten) {
  const holdfast::error e{errc::quarantined, {.endpoint = "redis+quorum://a:1,b:1,c:1", .why = "the server started"}};
  EXPECT_EQ(describe(e, {.lock = "x"}).fix,
            "wait for it (-w); if none of its servers has forgotten a lock: holdfast init");
}

TEST(ways_out, end_the_quarantine_of_a_cluster_where_none_has_forgotten_C1) {
  for (const auto* why : {"the server started", "the server restarted or was promoted 3 s ago"}) {
    const holdfast::error e{errc::quarantined, {.endpoint = "redis+cluster://a:1,b:1,c:1", .why = why}};
    EXPECT_EQ(describe(e, {.lock = "x"}).fix,
              "wait for it (-w); if none of its nodes has forgotten a lock: holdfast init");
  }
}

// It writes down for how long a lease may live, and would write the default.
TEST(ways_out, end_a_quarantine_with_the_max_ttl_that_was_given) {
  const auto fix = [](std::chrono::milliseconds max_ttl) {
    return describe(holdfast::error{errc::quarantined, {.endpoint = "redis://db1:6379"}},
                    {.lock = "x", .prefix = "b:", .uri = "redis://db1", .max_ttl = max_ttl})
        .fix;
  };
  EXPECT_THAT(fix(std::chrono::seconds{5400}),
              testing::EndsWith(": holdfast init --uri redis://db1 --prefix b: --max-ttl 5400s"));
  EXPECT_THAT(fix(std::chrono::milliseconds{1500}), testing::EndsWith(" --max-ttl 1500ms"));
}

TEST(ways_out, name_the_node_of_a_cluster_that_was_not_reached) {
  const holdfast::error e{errc::server_silent, {.endpoint = "redis+cluster://a:1,b:1,c:1", .subject = "b:1"}};
  EXPECT_THAT(describe(e, {.lock = "x"}).text, HasSubstr("b:1 of redis+cluster://a:1,b:1,c:1 accepts connections"));
}

// Otherwise they would ask or change the server of HOLDFAST_URI, or the local: one.
TEST(ways_out, name_the_server_and_the_prefix_that_were_named) {
  const auto fix = [](errc cause) {
    return describe(holdfast::error{cause, {.endpoint = "redis://db1:6379"}},
                    {.lock = "x", .prefix = "b$c:", .uri = "redis://db1", .uri_option = "redis://db1"})
        .fix;
  };
  EXPECT_EQ(fix(errc::changed_hands), "look again: holdfast show --uri redis://db1 --prefix 'b$c:' x");
  EXPECT_THAT(fix(errc::not_held), testing::EndsWith(": holdfast ls --uri redis://db1 --prefix 'b$c:'"));
  EXPECT_THAT(fix(errc::quarantined), testing::EndsWith(": holdfast init --uri redis://db1 --prefix 'b$c:'"));
  EXPECT_THAT(fix(errc::lease_gone), testing::EndsWith("holdfast doctor --uri redis://db1 --prefix 'b$c:'"));
  EXPECT_THAT(fix(errc::not_replicated), HasSubstr("doctor --uri redis://db1 --prefix 'b$c:' --replicas K"));
}

// Whoever copies them out of cron's mail has another server in that variable, or none.
TEST(ways_out, name_the_server_of_the_variable_where_they_change_something) {
  const auto fix = [](errc cause, std::string_view uri) {
    return describe(holdfast::error{cause, {.endpoint = "redis://db1:6379"}}, {.lock = "x", .uri = uri}).fix;
  };
  EXPECT_THAT(fix(errc::quarantined, "redis://db1"), testing::EndsWith(": holdfast init --uri redis://db1"));
  EXPECT_THAT(fix(errc::quarantined, "redis://me:secret@db1"), testing::EndsWith(": holdfast init --uri URI"));
  EXPECT_THAT(fix(errc::other_size, "redis://db1"), HasSubstr("holdfast resize --uri redis://db1 x N"));
  EXPECT_EQ(fix(errc::changed_hands, "redis://db1"), "look again: holdfast show x");
}

// Pasted without them, they would end at the TLS handshake, or be asked for a password.
TEST(ways_out, name_the_files_that_were_named) {
  const auto fix = [](errc cause) {
    return describe(holdfast::error{cause, {.endpoint = "rediss://db1:6379"}},
                    {.lock = "x",
                     .uri = "rediss://db1",
                     .files = {.password = "/pw", .cacert = "/ca.pem", .cert = "/me.pem", .key = "/me.key"}})
        .fix;
  };
  constexpr auto files = " --password-file /pw --cacert /ca.pem --cert /me.pem --key /me.key";
  EXPECT_EQ(fix(errc::changed_hands), std::string{"look again: holdfast show"} + files + " x");
  EXPECT_THAT(fix(errc::quarantined), HasSubstr(std::string{"holdfast init --uri rediss://db1"} + files));
}

TEST(ways_out, set_no_variable_where_an_option_named_the_server) {
  const auto fix = [](errc cause, std::string_view uri_option) {
    return describe(holdfast::error{cause, {.endpoint = "local:", .subject = "/d"}}, {.uri_option = uri_option}).fix;
  };
  for (const auto cause : {errc::cannot_connect, errc::cannot_resolve, errc::local_server}) {
    EXPECT_THAT(fix(cause, "local:"), testing::EndsWith(": --uri redis://HOST:PORT"));
    EXPECT_THAT(fix(cause, ""), testing::EndsWith(": export HOLDFAST_URI=redis://HOST:PORT"));
  }
}

TEST(ways_out, list_no_plain_keys) {
  const auto what = describe(holdfast::error{errc::not_held}, {.lock = "x", .prefix = "hf:", .plain = true});
  EXPECT_EQ(what.fix, "nothing is to be done; look again: holdfast show --plain x");
}

}  // namespace
