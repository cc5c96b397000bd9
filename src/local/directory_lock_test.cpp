// SPDX-License-Identifier: Apache-2.0
// The lock of who starts and stops.
#include "local/directory_lock.hpp"

#include "local/clock.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <holdfast/error.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

bool can_be_had(const std::string& file) {
  try {
    const directory_lock lock{file, 0600, boottime_now()};
    return true;
  } catch (const error&) {
    return false;
  }
}

TEST(directory_lock, is_one_s_at_a_time) {
  const scratch_directory scratch;
  const auto file = scratch.path() + "/lock";
  {
    const directory_lock lock{file, 0600, boottime_now() + 1s};
    EXPECT_FALSE(can_be_had(file));
  }
  EXPECT_TRUE(can_be_had(file));
}

TEST(directory_lock, that_another_has_says_how_that_one_is_found) {
  const scratch_directory scratch;
  const auto file = scratch.path() + "/lock";
  const directory_lock lock{file, 0600, boottime_now() + 1s};
  try {
    const directory_lock second{file, 0600, boottime_now()};
    FAIL() << "both have it";
  } catch (const error& e) {
    EXPECT_NE(e.detail().why.find("`lslocks | grep -F " + file + "`"), std::string::npos) << e.detail().why;
  }
}

// A child that another thread forks has all that is open, and may never exec.
TEST(directory_lock, that_was_let_go_is_not_kept_by_a_child) {
  const scratch_directory scratch;
  const auto file = scratch.path() + "/lock";
  auto lock = std::make_unique<directory_lock>(file, 0600, boottime_now() + 1s);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  lock.reset();
  EXPECT_TRUE(can_be_had(file));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace holdfast::local
