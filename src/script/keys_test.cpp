// SPDX-License-Identifier: Apache-2.0
#include "script/keys.hpp"

#include "script/glob.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <system_error>

namespace holdfast::script {

namespace {

using namespace std::string_literals;

lock_keys keys(std::string_view name, naming how = naming::holdfast, std::string_view prefix = "hf:") {
  std::error_code ec;
  return keys_of(lock_name::parse(name, how, ec).value(), prefix);
}

// What a cluster hashes of a key, written from its specification.
std::string slot_part(const std::string& key) {
  const auto open = key.find('{');
  if (open == std::string::npos) return key;
  const auto close = key.find('}', open + 1);
  if (close == std::string::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

std::string any_bytes() {
  return *rc::gen::nonEmpty(rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::element('{', '}', '%', ':', '\0', '\n', 'a'))));
}

TEST(keys, of_a_simple_name) {
  const auto k = keys("nightly");
  EXPECT_EQ(k.holder, "hf:{nightly}");
  EXPECT_EQ(k.fence(), "hf:{nightly}:fence");
  EXPECT_EQ(k.line(), "hf:{nightly}:line");
  EXPECT_EQ(k.waiters(), "hf:{nightly}:waiters");
  EXPECT_EQ(k.broken(), "hf:{nightly}:break");
}

TEST(keys, escape_what_would_move_the_hash_tag_H70_B67) {
  EXPECT_EQ(keys("a}b{c%").holder, "hf:{a%7Db%7Bc%25}");
  EXPECT_EQ(keys("{}").holder, "hf:{%7B%7D}");
  EXPECT_EQ(keys("%7B").holder, "hf:{%257B}");
}

TEST(keys, all_follow_the_prefix_B29_B97_B99) {
  const auto k = keys("x", naming::holdfast, "app1/");
  for (const auto& key : {k.holder, k.fence(), k.line(), k.waiters(), k.broken()})
    EXPECT_TRUE(key.starts_with("app1/{x}")) << key;
}

TEST(keys, plain_leaves_the_key_and_keeps_side_keys_under_our_prefix) {
  const auto k = keys("REDIS_LOCK_20171228", naming::plain);
  EXPECT_EQ(k.holder, "REDIS_LOCK_20171228");
  EXPECT_EQ(k.fence(), "hf:plain:{REDIS_LOCK_20171228}:REDIS_LOCK_20171228:fence");
  EXPECT_EQ(k.line(), "hf:plain:{REDIS_LOCK_20171228}:REDIS_LOCK_20171228:line");
  EXPECT_EQ(k.waiters(), "hf:plain:{REDIS_LOCK_20171228}:REDIS_LOCK_20171228:waiters");
  EXPECT_EQ(k.broken(), "hf:plain:{REDIS_LOCK_20171228}:REDIS_LOCK_20171228:break");
}

TEST(keys, plain_uses_the_hash_tag_of_the_key) {
  EXPECT_EQ(keys("user:{42}:lock", naming::plain).fence(), "hf:plain:{42}:user:%7B42%7D:lock:fence");
}

// On a cluster all keys of one call must be in one slot. Only a `}` outside of a tag makes that impossible.
TEST(keys, plain_side_keys_share_the_slot_of_the_key_B67) {
  for (const auto& key : {"k"s, "a{b}c"s, "{a{b}"s, "a{b"s, "a%b"s, "{{x}}"s, "a\nb"s, "x{%7D}"s}) {
    const auto k = keys(key, naming::plain);
    for (const auto& side : {k.fence(), k.line(), k.waiters(), k.broken()})
      EXPECT_EQ(slot_part(side), slot_part(key)) << key;
  }
}

TEST(keys, of_any_name_share_one_slot_B67) {
  EXPECT_TRUE(rc::check([] {
    std::error_code ec;
    const auto name = lock_name::parse(any_bytes(), naming::plain, ec);
    RC_PRE(name.has_value());
    const auto k = keys_of(*name, "hf:");
    for (const auto& side : {k.line(), k.waiters(), k.broken()}) RC_ASSERT(slot_part(side) == slot_part(k.fence()));
    RC_ASSERT(!slot_part(k.fence()).empty());
  }));
}

// H72: no two names share a key, side keys included.
TEST(keys, of_two_names_are_all_different_H72) {
  EXPECT_TRUE(rc::check([] {
    const auto a = any_bytes();
    const auto b = any_bytes();
    RC_PRE(a != b && a.size() <= 512 && b.size() <= 512);
    const auto ka = keys(a, naming::plain);
    const auto kb = keys(b, naming::plain);
    const std::set<std::string> all{ka.fence(), ka.line(), ka.waiters(), ka.broken(),
                                    kb.fence(), kb.line(), kb.waiters(), kb.broken()};
    RC_ASSERT(all.size() == 8u);
  }));
}

TEST(keys, a_name_can_never_be_a_side_key_of_another_H72_B95) {
  const auto x = keys("x");
  for (const auto& name : {"x}:fence"s, "x:fence"s, "x}:break"s, "x%7D:fence"s, "x}:line"s, "x}:waiters"s}) {
    const auto k = keys(name);
    for (const auto& side : {x.fence(), x.line(), x.waiters(), x.broken()}) EXPECT_NE(k.holder, side);
  }
}

TEST(holder_key, gives_its_name_back) {
  for (const auto& name : {"nightly"s, "a}b{c%"s, "%7B"s, "x}:fence"s, "\u00e4"s}) {
    EXPECT_EQ(name_of_holder_key(keys(name).holder, "hf:"), name);
  }
}

TEST(holder_key, is_told_from_every_other_key) {
  for (const auto& key :
       {"hf:{x}:fence"s, "hf:{x}:break"s, "hf:{x}:line"s, "hf:{x}:waiters"s, "hf:{}"s, "hf:x"s, "other:{x}"s,
        "hf:plain:{x}:x:fence"s, ""s, "hf:{"s, "hf:{a}b}"s, "hf:{%4}"s, "hf:{%zz}"s, "hf:{%41}"s, "hf:{a\nb}"s}) {
    EXPECT_EQ(name_of_holder_key(key, "hf:"), std::nullopt) << key;
  }
}

TEST(holder_pattern, keeps_the_stars_and_escapes_the_rest) {
  EXPECT_EQ(holder_pattern(glob{"job:*"}, "hf:"), "hf:{job:*}");
  EXPECT_EQ(holder_pattern(glob{"a{*}%\n"}, "hf:"), "hf:{a%7B*%7D%25%0A}");
  EXPECT_EQ(holder_pattern(glob{"\\*\\?\\[\\\\]"}, "hf:"), "hf:{\\*\\?\\[\\\\]}");
}

// In the key one byte may be `%7B`.
TEST(holder_pattern, has_a_star_for_what_stands_for_one_byte) {
  EXPECT_EQ(holder_pattern(glob{"a?b[{]c"}, "hf:"), "hf:{a*b*c}");
  EXPECT_EQ(holder_pattern(glob{"?*[a-z]?"}, "hf:"), "hf:{*}");
}

}  // namespace

}  // namespace holdfast::script
