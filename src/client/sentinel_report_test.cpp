// SPDX-License-Identifier: Apache-2.0
#include "client/sentinel_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using engine::sentinel_view;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const sentinel_view well{.host = "10.0.0.1", .port = "6379", .others = 2, .quorum = 2};

sentinel_view with(void (*change)(sentinel_view&)) {
  auto out = well;
  change(out);
  return out;
}

std::vector<std::string> said_of(const std::vector<sentinel_view>& views) {
  std::vector<seen_by_sentinel> all;
  for (const auto& one : views) all.push_back({"s" + std::to_string(all.size() + 1) + ":26379", one});
  std::vector<std::string> said;
  for (const auto& one : judge_sentinels("mymaster", all)) {
    EXPECT_EQ(one.level, finding::severity::warning) << one.what;
    EXPECT_NE(one.fix, "") << one.what;
    said.push_back(one.what);
  }
  return said;
}

TEST(sentinel_report, has_nothing_to_say_of_three_of_one_mind) { EXPECT_THAT(said_of({well, well, well}), IsEmpty()); }

TEST(sentinel_report, names_who_does_not_answer_and_why) {
  EXPECT_THAT(said_of({well, {.failure = "Connection refused"}, well}),
              ElementsAre("sentinel s2:26379: Connection refused"));
}

TEST(sentinel_report, names_who_does_not_know_the_primary) {
  EXPECT_THAT(said_of({well, well, {.failure = "it knows no primary 'mymaster'", .is_unknown = true}}),
              ElementsAre("sentinel s3:26379 knows no primary 'mymaster'"));
}

TEST(sentinel_report, names_who_names_another_than_most_P22) {
  EXPECT_THAT(said_of({with([](auto& v) { v.host = "10.0.0.9"; }), well, well}),
              ElementsAre("sentinel s1:26379 names 10.0.0.9:6379, most name 10.0.0.1:6379"));
}

TEST(sentinel_report, names_who_takes_the_primary_for_dead) {
  EXPECT_THAT(said_of({well, with([](auto& v) { v.is_down = true; }), well}),
              ElementsAre(HasSubstr("s2:26379 takes the primary 10.0.0.1:6379 for dead")));
}

// The majority of those in the URI says who is the primary: it must be one of all.
TEST(sentinel_report, counts_those_that_the_uri_does_not_name_P22) {
  const auto of_five = with([](auto& v) { v.others = 4; });
  EXPECT_THAT(said_of({of_five, of_five, of_five}),
              ElementsAre(HasSubstr("there are 5 sentinels, and the URI names 3")));
}

TEST(sentinel_report, is_content_with_a_uri_whose_majority_is_one_of_all) {
  EXPECT_THAT(said_of({well, well}), IsEmpty());
  const auto of_five = with([](auto& v) { v.others = 4; });
  EXPECT_THAT(said_of({of_five, of_five, of_five, of_five}), IsEmpty());
}

TEST(sentinel_report, says_that_two_cannot_fail_over) {
  const auto of_two = with([](auto& v) { v.others = 1; });
  EXPECT_THAT(said_of({of_two, of_two}), ElementsAre(HasSubstr("2 sentinels cannot outvote a dead one")));
}

TEST(sentinel_report, says_that_a_quorum_of_more_than_all_is_never_reached) {
  const auto strict = with([](auto& v) { v.quorum = 4; });
  EXPECT_THAT(said_of({strict, strict, strict}), ElementsAre(HasSubstr("4 sentinels must take the primary for dead")));
}

TEST(sentinel_report, of_nobody_who_answers_counts_nothing) {
  const sentinel_view silent{.failure = "it does not answer"};
  EXPECT_EQ(said_of({silent, silent, silent}).size(), 3u);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
