// SPDX-License-Identifier: Apache-2.0
#include "script/message.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::script {

namespace {

using namespace std::chrono_literals;

const std::string owner(32, 'b');

TEST(message, grant_is_to_be_followed_now) {
  const std::string text = "v1|grant|" + owner + "|1795212800000042|1795212801000";
  const auto m = parse_message(text);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->owner, owner);
  EXPECT_EQ(m->said_at, server_time{1795212800000042us});
  EXPECT_EQ(m->look_in, 0s);
  EXPECT_EQ(parse_message("v1|grant|" + owner + "|1795212800000042|9999999999999999").value().look_in, 0s);
}

TEST(message, look_says_when) {
  const std::string text = "v1|look|" + owner + "|1795212800000042|1795212801200042";
  EXPECT_EQ(parse_message(text).value().look_in, 1200ms);
}

// Whatever it says, it is only a hint (H20): never into the past, never so far ahead that a heartbeat could be missed.
TEST(message, look_is_between_now_and_a_minute) {
  EXPECT_EQ(parse_message("v1|look|" + owner + "|1795212800000042|1795212800000041").value().look_in, 0s);
  EXPECT_EQ(parse_message("v1|look|" + owner + "|1795212800000042|9999999999999999").value().look_in, 1min);
  EXPECT_EQ(parse_message("v1|look|" + owner + "|1795212800000042|1795212860000042").value().look_in, 1min);
  EXPECT_EQ(parse_message("v1|look|" + owner + "|1795212800000042|1795212859999042").value().look_in, 59'999ms);
  EXPECT_EQ(parse_message("v1|look|" + owner + "|0000000000000000|0").value().look_in, 0s);
  EXPECT_EQ(parse_message("v1|look|" + owner + "|0000000000000000|9999999999999999").value().look_in, 1min);
}

TEST(message, anything_else_is_none) {
  for (const auto& text :
       {std::string{}, std::string{"unlock"}, "v2|grant|" + owner + "|1795212800000042|1", "v1|grant|" + owner,
        "v1|grant|" + owner + "|17952128000000|1", "v1|grant|" + owner + "x|1795212800000042|1",
        "v1|grant|" + owner + "|1795212800000042|", "v1|look|" + owner + "|1795212800000042|x",
        "v1|grant|" + owner + "|179521280000004x|1", "v1|give|" + owner + "|1795212800000042|1",
        "v1|look|" + owner + "|1795212800000042|17952128000000420", "v1|look|" + owner + "|1795212800000042|-1",
        "v1|look|" + owner + "|1795212800000042|1|1", "v1|look|" + owner + "|-795212800000042|1",
        "v1|look|" + owner.substr(1) + "|1795212800000042|1", " v1|look|" + owner + "|1795212800000042|1",
        "v1|look|" + owner + "|1795212800000042 1", std::string{"v1|grant|"}, std::string(100, '|')}) {
    EXPECT_FALSE(parse_message(text)) << text;
  }
}

}  // namespace

}  // namespace holdfast::script
