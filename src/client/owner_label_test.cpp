// SPDX-License-Identifier: Apache-2.0
#include "client/owner_label.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

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
  const auto answer = std::make_shared<std::promise<std::string>>();
  std::promise<void> end;
  std::thread service{[answer, until = end.get_future()] {
    until.wait_for(5s);  // Were it waited for, it would be heard.
    answer->set_value("too late");
  }};
  EXPECT_EQ(asked_within(
                1ms, [of = answer->get_future().share()] { return of.get(); }, "uid7"),
            "uid7");
  end.set_value();
  service.join();
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
