// SPDX-License-Identifier: Apache-2.0
// Whether we stop when somebody has already asked us to go on, or to end. In forked processes with an inbox of their
// own.
#include "signals.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace holdfast::cli;

// How a process first changes that has an inbox with `waiting` in it, is about to stop, and exits with 7 if it does
// not.
int change_of_one_with(int waiting) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const signal_inbox inbox;
    if (waiting != 0) ::kill(::getpid(), waiting);
    stop_unless_woken(::getpid());
    ::_exit(7);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  if (WIFSTOPPED(status)) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return status;
}

TEST(stop_unless_woken, stops) {
  for (const int number : {0, SIGCHLD, SIGWINCH, SIGUSR1})
    EXPECT_TRUE(WIFSTOPPED(change_of_one_with(number))) << number;
}

// The kernel would drop the CONT, and whoever sent it has no reason to send another.
TEST(stop_unless_woken, does_not_stop_when_a_cont_waits) {
  EXPECT_EQ(WEXITSTATUS(change_of_one_with(SIGCONT)), 7);
  EXPECT_FALSE(WIFSTOPPED(change_of_one_with(SIGCONT)));
}

TEST(stop_unless_woken, does_not_stop_when_one_waits_that_ends_us) {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM})
    EXPECT_FALSE(WIFSTOPPED(change_of_one_with(number))) << number;
}

}  // namespace
