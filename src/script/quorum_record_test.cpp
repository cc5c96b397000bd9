// SPDX-License-Identifier: Apache-2.0
#include "script/quorum_record.hpp"

#include <gtest/gtest.h>

namespace holdfast::script {

namespace {

TEST(quorum_record, is_read_as_it_is_written) {
  for (const auto& record :
       {quorum_record{1, true, "a:1,b:2,c:3"}, quorum_record{most_generations, false, "[::1]:1"}}) {
    EXPECT_EQ(parse_quorum_record(text_of(record)), record) << text_of(record);
  }
  EXPECT_EQ(text_of({7, true, "a:1"}), "v1|7|open|a:1");
  EXPECT_EQ(text_of({8, false, "a:1"}), "v1|8|closed|a:1");
}

TEST(quorum_record, what_is_not_ours_is_none) {
  for (const auto* text : {"", "v1", "v1|1", "v1|1|open", "v1|1|open|", "v2|1|open|a", "v1||open|a", "v1|x|open|a",
                           "v1|1|ajar|a", "v1|1234567890|open|a"}) {
    EXPECT_EQ(parse_quorum_record(text), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace holdfast::script
