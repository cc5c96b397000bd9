// SPDX-License-Identifier: Apache-2.0
// What a daemon inherits. That it outlives us and hears no signal of ours, tests/cli/local_test.py sees.
#include "local/launch.hpp"

#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace holdfast::local {
namespace {

// Calls launch() in a process in which those of 0, 1 and 2 are closed whose bit is set; the daemon says on stderr which
// of the three it has, and of 4, its directory's lock.
std::string words_of_daemon(const std::string& directory, int closed) {
  const auto log_file = directory + "/log";
  const daemon_plan plan{.words = {"/bin/sh", "-c", "cd /proc/self/fd; echo has $(ls -d 0 1 2 4) >&2"},
                         .log_file = log_file,
                         .locked_directory = directory};
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 3; ++fd)
      if ((closed >> fd & 1) != 0) ::close(fd);
    try {
      launch(plan);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (last_line(log_file).empty() && std::chrono::steady_clock::now() < give_up_at) ::poll(nullptr, 0, 1);
  return last_line(log_file);
}

// As under a supervisor that closes all: what we open then gets the numbers of stdin, stdout and stderr.
TEST(launch, gives_the_daemon_its_log_whatever_of_ours_is_closed) {
  for (int closed = 0; closed < 8; ++closed) {
    const scratch_directory scratch;
    EXPECT_EQ(words_of_daemon(scratch.path(), closed), "has 0 1 2 4") << "closed: bits " << closed;
  }
}

}  // namespace
}  // namespace holdfast::local
