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

TEST(quorum_record, is_not_open_yet_where_another_step_of_its_own_list_was_seen_P26) {
  const quorum_record wanted{2, true, "a:1,b:1,d:1"};
  for (const auto* text :
       {"", "v1|1|open|a:1,b:1,c:1", "v1|1|closed|x:1", "v1|2|closed|a:1,b:1,d:1", "v1|2|closed|a:1,b:1,e:1"}) {
    EXPECT_TRUE(is_not_open_yet(text, wanted)) << text;
  }
}

// The list may be another quorum's, and in use.
TEST(quorum_record, is_opened_by_clients_where_nothing_is_open_P26) {
  const quorum_record wanted{2, true, "a:1,b:1,d:1"};
  for (const auto* text : {"", "v1|1|closed|x:1", "v1|2|closed|a:1,b:1,d:1", "v1|2|closed|a:1,b:1,e:1"}) {
    EXPECT_TRUE(may_open(text, wanted)) << text;
  }
  EXPECT_FALSE(may_open("v1|1|open|a:1,b:1,c:1", wanted));
}

TEST(quorum_record, is_never_opened_over_another_open_list_of_its_generation_or_a_later_one_P26) {
  const quorum_record wanted{2, true, "a:1,b:1,d:1"};
  for (const auto* text : {"v1|2|open|a:1,b:1,e:1", "v1|3|open|a:1,b:1,d:1", "no record"}) {
    EXPECT_FALSE(may_open(text, wanted)) << text;
  }
  EXPECT_FALSE(may_open("", {1, true, "a:1"})) << "the first list needs no opening";
}

}  // namespace

}  // namespace holdfast::script
