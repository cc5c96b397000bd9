// SPDX-License-Identifier: Apache-2.0
#include "duration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using holdfast::cli::parse_duration;
using holdfast::cli::to_text;
using std::chrono::milliseconds;

std::optional<milliseconds> read(std::string_view text) {
  std::string why;
  return parse_duration(text, why);
}

std::string complaint(std::string_view text) {
  std::string why;
  parse_duration(text, why);
  return why;
}

struct good_case {
  const char* text;
  std::int64_t ms;
};

class duration_forms : public testing::TestWithParam<good_case> {};

TEST_P(duration_forms, mean_what_people_mean) { EXPECT_EQ(read(GetParam().text), milliseconds{GetParam().ms}); }

INSTANTIATE_TEST_SUITE_P(all, duration_forms,
                         testing::Values(good_case{"0", 0}, good_case{"90", 90'000}, good_case{"0.2", 200},
                                         good_case{".5", 500}, good_case{".25s", 250}, good_case{"500ms", 500},
                                         good_case{"1.5s", 1'500}, good_case{"2m", 120'000},
                                         good_case{"1h30m", 5'400'000}, good_case{"1m500ms", 60'500},
                                         good_case{"1d", 86'400'000}, good_case{"PT15M", 900'000},
                                         good_case{"PT1H30M", 5'400'000}, good_case{"PT0.5S", 500},
                                         good_case{"P1DT1S", 86'401'000}, good_case{"P2D", 172'800'000}));

class duration_mistakes : public testing::TestWithParam<const char*> {};

// H9: zero digits, signs, words, wrong order, other number formats.
TEST_P(duration_mistakes, are_refused_by_naming_them) {
  EXPECT_EQ(read(GetParam()), std::nullopt);
  EXPECT_THAT(complaint(GetParam()), testing::HasSubstr(*GetParam() ? GetParam() : "empty"));
}

INSTANTIATE_TEST_SUITE_P(all, duration_mistakes,
                         testing::Values("", "-1", "-5s", "nan", "inf", "1e3", "0x10", "1,5", " 1", "1 ", "+1", ".",
                                         ".s", "1.", "s", "10x", "1s2m", "1s1s", "1h30", "PT", "P", "P1", "PT1", "P1DT",
                                         "PT1H1H", "pt1m", "1.1.1", "0.0000000001"));

TEST(duration, that_overflows_milliseconds_is_refused_and_not_wrapped) {
  for (const char* text : {"9223372036854775808", "9223372036854775807", "9223372036854776s", "99999999999999999999d",
                           "106751991168d", "106751991167d106751991167h"})
    EXPECT_EQ(read(text), std::nullopt) << text;
}

TEST(duration, finer_than_a_millisecond_never_becomes_zero) { EXPECT_EQ(read("0.0001"), milliseconds{1}); }

TEST(duration, complaint_shows_no_control_characters) {
  EXPECT_THAT(complaint("1\x1b[31m"), testing::Not(testing::HasSubstr("\x1b")));
}

TEST(duration, is_written_with_the_two_places_that_matter) {
  EXPECT_EQ(to_text(milliseconds{0}), "0ms");
  EXPECT_EQ(to_text(milliseconds{999}), "999ms");
  EXPECT_EQ(to_text(milliseconds{6'740}), "6.7s");
  EXPECT_EQ(to_text(milliseconds{10'000}), "10s");
  EXPECT_EQ(to_text(milliseconds{192'000}), "3m12s");
  EXPECT_EQ(to_text(milliseconds{7'500'000}), "2h05m");
  EXPECT_EQ(to_text(milliseconds{273'600'000}), "3d04h");
}

}  // namespace
