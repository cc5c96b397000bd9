// SPDX-License-Identifier: Apache-2.0
#include "client/owner_label.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(default_owner_label, says_which_process) {
  EXPECT_THAT(default_owner_label(), HasSubstr(":" + std::to_string(getpid()) + " "));
}

TEST(asked_within, has_the_answer_of_who_answers) {
  EXPECT_EQ(asked_within(
                10s, [] { return std::string{"ann"}; }, "uid7"),
            "ann");
}

// A directory of users on a machine that is away: a lock is not to wait for it (H22).
TEST(asked_within, does_not_wait_for_who_does_not_H22) {
  auto never = std::make_shared<std::promise<void>>();
  EXPECT_EQ(asked_within(
                1ms,
                [until = never->get_future().share()] {
                  until.wait();
                  return std::string{"too late"};
                },
                "uid7"),
            "uid7");
  never->set_value();
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
