// SPDX-License-Identifier: Apache-2.0
#include "local/shell_word.hpp"

#include <gtest/gtest.h>

namespace holdfast::local {
namespace {

TEST(shell_word, is_quoted_where_a_shell_would_read_something_else) {
  EXPECT_EQ(shell_word("/var/tmp/holdfast-1000"), "/var/tmp/holdfast-1000");
  EXPECT_EQ(shell_word("/srv/b c"), "'/srv/b c'");
  EXPECT_EQ(shell_word("/it's"), "'/it'\\''s'");
  EXPECT_EQ(shell_word("/$(id)"), "'/$(id)'");
  EXPECT_EQ(shell_word("-d"), "'-d'");
}

}  // namespace
}  // namespace holdfast::local
