// SPDX-License-Identifier: Apache-2.0
#include "script/slot.hpp"

#include "script/keys.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::script {
namespace {

// The check value of CRC16/XMODEM is 0x31C3; the others are what CLUSTER KEYSLOT of 7.0 says.
TEST(slot_of, is_what_redis_says) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("bar"), 5061);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(slot_of, goes_by_the_first_hash_tag_alone) {
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("a{b}c{d}"), slot_of("b"));
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
}

TEST(slot_of, takes_the_whole_key_where_the_tag_is_empty_or_open) {
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));
  EXPECT_NE(slot_of("foo{bar"), slot_of("bar"));
}

TEST(slot_of, is_the_same_for_all_keys_of_a_lock_B67) {
  std::error_code ec;
  for (const auto* text : {"x", "a{b}c", "}{", "{}", "%7B", "{{", "a}b{c"}) {
    const auto name = lock_name::parse(text, naming::holdfast, ec);
    ASSERT_TRUE(name);
    const auto keys = keys_of(*name, "hf:", true);
    for (const auto& key : {keys.fence(), keys.line(), keys.waiters(), keys.broken(), keys.holders()}) {
      EXPECT_EQ(slot_of(key), slot_of(keys.holder)) << text;
    }
  }
}

}  // namespace
}  // namespace holdfast::script
