// SPDX-License-Identifier: Apache-2.0
#include "net/clock.hpp"

#include "net/timer_fd.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <set>

namespace holdfast::net {
namespace {

enum : int { no, yes, not_allowed };

int exit_code_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : no;
}

// In a process of a machine that slept for a quarter of an hour since it was started: a time namespace, in which
// CLOCK_BOOTTIME is so far ahead of CLOCK_MONOTONIC. On a machine that never slept the two are one.
template <class Question>
int where_the_machine_slept(const Question& is_so) {
  const pid_t outer = fork();
  if (outer > 0) return exit_code_of(outer);
  // Whose children live there. As root, or as one in a namespace of its own.
  if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) _exit(not_allowed);
  std::ofstream offsets{"/proc/self/timens_offsets"};
  offsets << "boottime 900 0" << std::endl;
  if (!offsets) _exit(not_allowed);
  const pid_t inner = fork();
  if (inner > 0) _exit(exit_code_of(inner));
  _exit(is_so() ? yes : no);
}

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

TEST(boottime, counts_while_the_machine_sleeps_H2) {
  const int answer = where_the_machine_slept([] {
    timespec ts{};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return boottime_now() - time_point{std::chrono::seconds{ts.tv_sec}} > std::chrono::minutes{14};
  });
  if (answer == not_allowed) GTEST_SKIP() << "this kernel, or who runs this, has no time namespaces";
  EXPECT_EQ(answer, yes);
}

TEST(boottime, is_the_clock_of_the_timer_H2) {
  const int answer = where_the_machine_slept([] {
    timer_fd timer;
    timer.set(boottime_now() + std::chrono::milliseconds{10});
    pollfd is_due{timer.get(), POLLIN, 0};
    return poll(&is_due, 1, 10'000) == 1;
  });
  if (answer == not_allowed) GTEST_SKIP() << "this kernel, or who runs this, has no time namespaces";
  EXPECT_EQ(answer, yes);
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
