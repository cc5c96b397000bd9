// SPDX-License-Identifier: Apache-2.0
#include "net/clock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <set>

namespace holdfast::net {
namespace {

TEST(boottime, does_not_go_back) {
  auto last = boottime_now();
  for (int i = 0; i < 10'000; ++i) {
    const auto now = boottime_now();
    ASSERT_GE(now, last);
    last = now;
  }
}

// H2: the wall clock steps, and CLOCK_MONOTONIC stands still while the machine sleeps.
TEST(boottime, is_the_kernel_clock_of_that_name) {
  const auto before = boottime_now();
  timespec ts{};
  ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
  const auto between = time_point{std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec}};
  EXPECT_LE(before, between);
  EXPECT_LE(between, boottime_now());
}

// H77.
TEST(kernel_random, never_gives_the_same_twice) {
  std::set<std::array<unsigned char, 16>> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(system_random().bytes16());
  EXPECT_EQ(seen.size(), 10'000U);
}

// H77: a generator with state of its own goes on in the child where it stood in the parent.
TEST(kernel_random, differs_between_a_parent_and_its_forked_child) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  system_random().bytes16();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto mine = system_random().bytes16();
    _exit(write(ends[1], mine.data(), mine.size()) == 16 ? 0 : 1);
  }
  const auto ours = system_random().bytes16();
  close(ends[1]);
  std::array<unsigned char, 16> theirs{};
  EXPECT_EQ(read(ends[0], theirs.data(), theirs.size()), 16);
  close(ends[0]);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(ours, theirs);
}

}  // namespace
}  // namespace holdfast::net
