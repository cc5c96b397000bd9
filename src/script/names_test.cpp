// SPDX-License-Identifier: Apache-2.0
#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <gtest/gtest.h>

namespace holdfast {

namespace {

using namespace std::string_literals;

std::string why_refused(std::string_view name, naming how = naming::holdfast) {
  std::error_code ec;
  std::string why;
  const auto parsed = lock_name::parse(name, how, ec, &why);
  EXPECT_EQ(parsed.has_value(), !ec) << name;
  if (ec) {
    EXPECT_EQ(ec, make_error_code(errc::invalid_name));
  }
  return why;
}

TEST(lock_name, takes_what_people_write_H70_B95) {
  for (const auto& name : {"x"s, "jobs:nightly"s, "a:b:q"s, "invoice 42"s, "j\u00f6bs/\u00dcn\u00efcode"s, "{}"s,
                           "%41"s, "\U0001F512"s, "a|b"s, "*"s, std::string(512, 'x')}) {
    EXPECT_EQ(why_refused(name), "") << name;
  }
}

TEST(lock_name, refuses_control_characters_and_names_the_byte_H70) {
  EXPECT_EQ(why_refused("jobs\n"), "lock name 'jobs\\x0A' has a control character at byte 5");
  for (const auto& name :
       {"\0"s, "a\0b"s, "a\tb"s, "a\r\nFLUSHALL\r\n"s, "\x1b[2J"s, "a\x7f"s, "a\u0085"s, "\u009b"s}) {
    EXPECT_NE(why_refused(name), "");
  }
}

TEST(lock_name, refuses_what_is_not_utf_8_H70) {
  EXPECT_EQ(why_refused("ab\xff"), "lock name 'ab\\xFF' is not UTF-8 at byte 3");
  for (const auto& name : {"\x80"s, "\xc0\x80"s, "\xc3"s, "\xc3x"s, "\xe0\x80\x80"s, "\xed\xa0\x80"s,
                           "\xf0\x80\x80\x80"s, "\xf4\x90\x80\x80"s, "\xf8\x88\x80\x80\x80"s, "\xe2\x82"s}) {
    EXPECT_NE(why_refused(name), "");
  }
}

TEST(lock_name, refuses_empty_and_too_long_H70) {
  EXPECT_NE(why_refused(""), "");
  EXPECT_NE(why_refused(std::string(513, 'x')).find("513 bytes"), std::string::npos);
  EXPECT_NE(why_refused("", naming::plain), "");
  EXPECT_NE(why_refused(std::string(513, 'x'), naming::plain), "");
}

TEST(lock_name, plain_takes_any_bytes) { EXPECT_EQ(why_refused("\0\xff\r\n"s, naming::plain), ""); }

TEST(fencing_token, writes_and_reads_decimal) {
  EXPECT_EQ(fencing_token{1795212800000042}.to_string(), "1795212800000042");
  EXPECT_EQ(fencing_token::parse("1795212800000042"), fencing_token{1795212800000042});
  EXPECT_EQ(fencing_token::parse("0000000000000007"), fencing_token{7});
  EXPECT_EQ(fencing_token::parse("9007199254740991"), fencing_token{fencing_token::max_value});
}

TEST(fencing_token, refuses_what_is_no_token) {
  for (const auto* text : {"", "-1", "+1", " 1", "1 ", "1e15", "0x10", "1.7e+15", "9007199254740992",
                           "99999999999999999", "00000000000000001"}) {
    EXPECT_EQ(fencing_token::parse(text), std::nullopt) << text;
  }
}

TEST(owner_id, is_the_hex_of_its_bytes) {
  std::array<unsigned char, 16> bytes{};
  bytes[0] = 0xab;
  bytes[15] = 0x01;
  EXPECT_EQ(owner_id{bytes}.hex(), "ab000000000000000000000000000001");
}

}  // namespace

}  // namespace holdfast
