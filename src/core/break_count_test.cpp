// SPDX-License-Identifier: Apache-2.0
#include "core/break_count.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace holdfast::core {
namespace {

using end = break_count::end;

constexpr errc broken{};
constexpr errc gone = errc::not_held;

// Of three servers.
end broken_as(std::initializer_list<errc> each) {
  break_count count{3};
  for (const errc one : each) count.add(one == errc{} ? std::error_code{} : std::error_code{one});
  return count.so_far();
}

TEST(break_count, a_majority_that_broke_it_is_enough_whatever_the_others_say_C5) {
  EXPECT_EQ(broken_as({broken, broken, errc::no_permission}), end::broken);
  EXPECT_EQ(broken_as({errc::reply_lost, broken, broken}), end::broken);
  EXPECT_EQ(broken_as({broken, broken, gone}), end::broken);
  EXPECT_EQ(broken_as({broken, broken}), end::broken);
}

TEST(break_count, who_has_nothing_of_it_left_has_nothing_to_break) {
  EXPECT_EQ(broken_as({broken, gone}), end::broken);
  EXPECT_EQ(broken_as({broken}), end::broken) << "a minority's vote";
}

TEST(break_count, what_a_minority_broke_and_another_did_not_is_not_known_C5) {
  EXPECT_EQ(broken_as({broken, errc::no_permission, errc::no_permission}), end::not_known);
  EXPECT_EQ(broken_as({errc::cannot_connect, broken}), end::not_known);
  EXPECT_EQ(broken_as({broken, gone, errc::cannot_connect}), end::not_known);
}

TEST(break_count, an_answer_that_is_lost_is_not_known_C5) {
  EXPECT_EQ(broken_as({errc::reply_lost, gone, gone}), end::not_known);
  EXPECT_EQ(broken_as({errc::reply_lost, errc::no_permission}), end::not_known);
}

TEST(break_count, who_did_not_say_whether_they_have_it_may_have_what_is_left_C5) {
  const auto of_five = [](std::size_t broken_on, std::size_t silent) {
    break_count count{5};
    for (std::size_t i = 0; i < broken_on; ++i) count.add({});
    count.add_silent(silent);
    return count.so_far();
  };
  EXPECT_EQ(of_five(1, 2), end::not_known);
  EXPECT_EQ(of_five(2, 1), end::not_known);
  EXPECT_EQ(of_five(3, 2), end::broken);
  EXPECT_EQ(of_five(1, 1), end::broken) << "two have no lock together";
  EXPECT_EQ(of_five(0, 2), end::not_broken);
}

// What is seen while it is being won gets the token of the others, which the break does not know.
TEST(break_count, a_vote_under_another_token_may_be_what_is_left_C5) {
  EXPECT_EQ(broken_as({broken, errc::changed_hands}), end::not_known);
  EXPECT_EQ(broken_as({broken, errc::changed_hands, errc::changed_hands}), end::not_known);
  EXPECT_EQ(broken_as({broken, gone, errc::changed_hands}), end::not_known);
  EXPECT_EQ(broken_as({broken, broken, errc::changed_hands}), end::broken);
  EXPECT_EQ(broken_as({errc::changed_hands, gone}), end::not_broken);
}

// Of its holder's votes one was lost before, and he asks for it again while the others are enough.
TEST(break_count, a_vote_that_was_lost_before_counts_with_those_that_may_be_left_C5) {
  const auto of = [](std::size_t servers) {
    break_count count{servers};
    count.add({});
    count.add(gone);
    count.add(errc::changed_hands);
    return count.so_far();
  };
  EXPECT_EQ(of(5), end::not_known);
  EXPECT_EQ(of(7), end::broken) << "three have no lock together";
}

TEST(break_count, what_all_refuse_is_not_broken) {
  EXPECT_EQ(broken_as({errc::no_permission, errc::cannot_connect}), end::not_broken);
  EXPECT_EQ(broken_as({gone, errc::changed_hands, errc::no_permission}), end::not_broken);
  EXPECT_EQ(broken_as({gone, gone}), end::not_broken);
}

}  // namespace
}  // namespace holdfast::core
