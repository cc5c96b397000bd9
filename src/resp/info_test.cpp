// SPDX-License-Identifier: Apache-2.0
#include "resp/info.hpp"

#include <gtest/gtest.h>

namespace holdfast::resp {
namespace {

constexpr auto info = "# Server\r\nprocess_id:4711\r\n\r\n# Replication\r\nmy_role:slave\r\nrole:master\r\nrole:slave";

TEST(info_field, is_the_value_of_its_own_name_only) {
  EXPECT_EQ(info_field(info, "process_id"), "4711");
  EXPECT_EQ(info_field(info, "process"), "");
  EXPECT_EQ(info_field(info, "id"), "");
}

TEST(info_field, is_the_first_of_that_name) { EXPECT_EQ(info_field(info, "role"), "master"); }

TEST(info_field, is_the_first_and_the_last_line_too) {
  EXPECT_EQ(info_field("role:master\r\n", "role"), "master");
  EXPECT_EQ(info_field("role:master", "role"), "master");
  EXPECT_EQ(info_field("a:1\nrole:master", "role"), "master");
}

TEST(info_field, keeps_colons_of_the_value) { EXPECT_EQ(info_field("executable:/a:b\r\n", "executable"), "/a:b"); }

TEST(info_field, of_nothing_is_empty) {
  EXPECT_EQ(info_field("", "role"), "");
  EXPECT_EQ(info_field("role", "role"), "");
  EXPECT_EQ(info_field("role:\r\n", "role"), "");
}

}  // namespace
}  // namespace holdfast::resp
