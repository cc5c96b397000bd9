// SPDX-License-Identifier: Apache-2.0
// tests/integration/operate_test.cpp compares it with what a server says.
#include "script/glob.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::script {

namespace {

struct row {
  std::string_view glob;
  std::string_view name;
  bool is_match;
};

void expect(std::initializer_list<row> rows) {
  for (const auto& [text, name, is_match] : rows) {
    EXPECT_EQ(glob{text}.matches(name), is_match) << "'" << text << "' and '" << name << "'";
  }
}

TEST(glob, a_byte_matches_itself_and_a_whole_name_only) {
  expect({{"ab", "ab", true}, {"ab", "abc", false}, {"ab", "a", false}, {"", "", true}, {"", "a", false}});
  expect({{"a{%}", "a{%}", true}, {"a]", "a]", true}, {"a-b^", "a-b^", true}});
}

TEST(glob, a_star_matches_any_run_also_none) {
  expect({{"*", "", true}, {"*", "a*{", true}, {"a*", "a", true}, {"a*b", "ab", true}, {"a*b", "aXbYb", true}});
  expect({{"a*b", "abc", false}, {"*a*b*", "bab", true}, {"*a*b*", "ba", false}, {"a**b", "axb", true}});
  expect({{"*ab", "aab", true}, {"*ab*ab", "ab", false}, {"*ab*ab", "abab", true}});
}

TEST(glob, a_question_mark_matches_one_byte) {
  expect({{"?", "a", true}, {"?", "", false}, {"?", "ab", false}, {"?", "{", true}, {"?", "%", true}});
  expect({{"?", "\xc3\xa4", false}, {"??", "\xc3\xa4", true}});
}

TEST(glob, a_set_matches_one_of_its_bytes) {
  expect({{"[ab]", "a", true}, {"[ab]", "c", false}, {"[ab]", "ab", false}, {"[{]", "{", true}, {"[%]", "7", false}});
  expect({{"[^ab]", "a", false}, {"[^ab]", "c", true}, {"[a^]", "^", true}, {"[*]", "*", true}, {"[*]", "a", false}});
  expect({{"[a-c]", "b", true}, {"[a-c]", "d", false}, {"[c-a]", "b", true}, {"[a-]", "-", false}});
  expect({{"[\\]]", "]", true}, {"[\\^]", "^", true}, {"[\\a-c]", "b", false}, {"[\\a-c]", "-", true}});
}

TEST(glob, a_set_ends_where_redis_ends_it) {
  expect({{"[]", "a", false}, {"[]a]", "a]", false}, {"[^]", "a", true}, {"[^]a", "xa", true}});
  expect({{"[ab", "b", true}, {"[a-]x]", "x", true}, {"[a-]x]", "x]", false}, {"[", "[", false}, {"[\\", "\\", true}});
}

TEST(glob, a_backslash_takes_the_meaning_from_the_next) {
  expect({{"a\\*b", "a*b", true}, {"a\\*b", "axb", false}, {"\\\\", "\\", true}, {"\\a", "a", true}});
  expect({{"\\?", "?", true}, {"\\?", "a", false}, {"\\[a]", "[a]", true}, {"a\\", "a\\", true}});
}

TEST(glob, is_quick_where_every_star_could_take_anything) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "*a";
  EXPECT_FALSE(glob{text + "b"}.matches(std::string(1000, 'a')));
}

}  // namespace

}  // namespace holdfast::script
