// SPDX-License-Identifier: Apache-2.0
#include "client/diagnose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using testing::HasSubstr;

way_out of_words(const std::string& said) { return way_out_of(error{errc::server_refused, {.server_text = said}}); }

// The server names nobody who is missing.
TEST(way_out, of_a_cluster_that_is_down_is_not_what_the_server_says) {
  for (const auto* said : {"CLUSTERDOWN The cluster is down", "CLUSTERDOWN Hash slot not served"}) {
    EXPECT_STREQ(of_words(said).code, "E25") << said;
    EXPECT_THAT(of_words(said).fix, HasSubstr("redis-cli --cluster check ANY")) << said;
  }
  EXPECT_STREQ(of_words("NOREPLICAS Not enough good replicas to write.").code, "E15");
  EXPECT_EQ(of_words("ERR max number of clients reached").fix, "do what the server says");
}

TEST(way_out, of_a_server_that_a_quorum_names_twice_is_to_name_it_once) {
  const auto found = way_out_of(error{errc::invalid_uri, {.subject = "a:1 and b:1"}});
  EXPECT_STREQ(found.code, "E17");
  EXPECT_THAT(found.fix, HasSubstr("each server once"));
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
