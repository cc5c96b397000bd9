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
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// As itself: each is given an identity of its own.
constexpr auto another = "another";
const sentinel_view well{.host = "10.0.0.1", .port = "6379", .others = 2, .quorum = 2, .identity = another};

sentinel_view with(void (*change)(sentinel_view&)) {
  auto out = well;
  change(out);
  return out;
}

std::vector<std::string> said_of(const std::vector<sentinel_view>& views,
                                 finding::severity level = finding::severity::warning) {
  std::vector<seen_by_sentinel> all;
  for (const auto& one : views) {
    const auto who = "s" + std::to_string(all.size() + 1);
    all.push_back({who + ":26379", one});
    if (one.identity == another) all.back().view.identity = who;
  }
  std::vector<std::string> said;
  for (const auto& one : judge_sentinels("mymaster", all)) {
    EXPECT_EQ(one.level, level) << one.what;
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

TEST(sentinel_report, advises_nobody_to_start_what_runs) {
  const auto fix = [](errc why) {
    const auto said = judge_sentinels("mymaster", {{"s1:26379", {.failure = "what it said", .code = why}}});
    return said.empty() ? std::string{} : said[0].fix;
  };
  EXPECT_THAT(fix(errc::no_permission), HasSubstr("+sentinel|master"));
  EXPECT_THAT(fix(errc::wrong_password), HasSubstr("HOLDFAST_SENTINEL_PASSWORD"));
  EXPECT_THAT(fix(errc::no_password), HasSubstr("HOLDFAST_SENTINEL_PASSWORD"));
  EXPECT_THAT(fix(errc::wrong_server), HasSubstr("is that a sentinel"));
  EXPECT_THAT(fix(errc::tls_failed), HasSubstr("TLS"));
  EXPECT_THAT(fix(errc::server_refused), HasSubstr("do what it says"));
  EXPECT_THAT(fix(errc::cannot_connect), HasSubstr("start it"));
}

TEST(sentinel_report, names_who_does_not_know_the_primary) {
  EXPECT_THAT(said_of({well, well, {.failure = "it knows no primary 'mymaster'", .is_unknown = true}}),
              ElementsAre("sentinel s3:26379 knows no primary 'mymaster'"));
}

TEST(sentinel_report, names_who_names_another_than_most_P22) {
  EXPECT_THAT(said_of({with([](auto& v) { v.host = "10.0.0.9"; }), well, well}),
              ElementsAre("sentinel s1:26379 names 10.0.0.9:6379, most name 10.0.0.1:6379"));
}

TEST(sentinel_report, takes_those_that_say_nothing_for_no_majority_P22) {
  const sentinel_view silent{.failure = "it does not answer"};
  EXPECT_THAT(said_of({silent, silent, well}), ElementsAre(HasSubstr("s1:26379: it does"), HasSubstr("s2:26379: it")));
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

// Those that they count may have died long ago, and nobody can name them.
TEST(sentinel_report, says_how_sentinels_that_are_gone_are_forgotten) {
  auto of_five = well;
  of_five.others = 4;
  const auto said = judge_sentinels("mymaster", {{"s1:26379", of_five}});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0].fix,
              AllOf(HasSubstr("name all of them"), HasSubstr("gone for good: SENTINEL RESET mymaster on each")));
}

TEST(sentinel_report, goes_by_the_sentinel_that_knows_of_most_P22) {
  const auto of_five = with([](auto& v) { v.others = 4; });
  EXPECT_THAT(said_of({of_five, well, well}), ElementsAre(HasSubstr("there are 5 sentinels")));
  const auto strict = with([](auto& v) { v.quorum = 4; });
  EXPECT_THAT(said_of({strict, well, well}), ElementsAre(HasSubstr("4 sentinels must take the primary for dead")));
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

TEST(sentinel_report, finds_one_sentinel_under_two_names_P22) {
  const auto s1 = with([](auto& v) { v.identity = "s1"; });
  EXPECT_THAT(said_of({s1, well, s1}, finding::severity::error),
              ElementsAre("s1:26379 and s3:26379 are one sentinel, and have one voice"));
  EXPECT_THAT(said_of({s1, s1, s1}, finding::severity::error),
              ElementsAre(HasSubstr("s1:26379 and s2:26379"), HasSubstr("s1:26379 and s3:26379")));
}

// What it names is then no majority's, so that nobody names another than most.
TEST(sentinel_report, gives_one_under_two_names_no_majority_P22) {
  const auto s1 = with([](auto& v) { v.identity = "s1"; });
  const auto elsewhere = with([](auto& v) { v.host = "10.0.0.9"; });
  EXPECT_THAT(said_of({s1, s1, elsewhere}, finding::severity::error), ElementsAre(HasSubstr("are one sentinel")));
}

TEST(sentinel_report, names_who_does_not_say_which_one_it_is) {
  const auto unsaid = with([](auto& v) { v.identity = ""; });
  EXPECT_THAT(
      said_of({well, unsaid, unsaid}),
      ElementsAre(
          "these do not say which sentinel they are: s2:26379, s3:26379; one under two names would count twice"));
  EXPECT_THAT(said_of({well, well, {.failure = "it does not answer"}}), ElementsAre(HasSubstr("does not answer")));
  const auto alone = with([](auto& v) {
    v.identity = "";
    v.others = 0;
    v.quorum = 1;
  });
  EXPECT_THAT(said_of({alone}), ElementsAre(HasSubstr("1 sentinel cannot outvote"))) << "it is nobody's twin";
}

TEST(sentinel_report, of_nobody_who_answers_counts_nothing) {
  const sentinel_view silent{.failure = "it does not answer"};
  EXPECT_EQ(said_of({silent, silent, silent}).size(), 3u);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
