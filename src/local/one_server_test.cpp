// SPDX-License-Identifier: Apache-2.0
// That a directory has one server at a time, whatever becomes of who started it and of its socket.
#include "local/directory.hpp"
#include "local/launch.hpp"
#include "local/other_server.hpp"
#include "local/scratch_directory.hpp"
#include "local/server_lock.hpp"
#include "local/starts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds within = 20s) {
  const auto give_up_at = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= give_up_at) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

std::size_t lines_in(const std::string& file) {
  std::ifstream text{file};
  std::size_t count = 0;
  for (std::string line; std::getline(text, line);) ++count;
  return count;
}

// A redis-server that writes a line whenever it is run, and is what it seems `behind` a word of the shell.
class told_server {
public:
  explicit told_server(const scratch_directory& scratch, const std::string& behind = ":")
      : runs_{scratch.path() + "/runs"},
        program_{scratch, "#!/bin/sh\necho run >>'" + runs_ + "'\n" + behind + "\nexec redis-server \"$@\"\n"} {}

  std::size_t runs() const { return lines_in(runs_); }

private:
  std::string runs_;
  other_server program_;
};

// And one that takes its time from when it may go.
class slow_server : public told_server {
public:
  explicit slow_server(const scratch_directory& scratch)
      : told_server{scratch, "until [ -e '" + go_of(scratch) + "' ]; do sleep 0.02; done; sleep 1"},
        go_{go_of(scratch)} {}

  void go() const { std::ofstream{go_}; }

private:
  static std::string go_of(const scratch_directory& scratch) { return scratch.path() + "/go"; }
  std::string go_;
};

// One that starts the server of this directory and is ended when that is run and does not listen yet.
void start_and_be_killed(const scratch_directory& scratch, const slow_server& server) {
  const pid_t starter = ::fork();
  if (starter == 0) {
    start_local(scratch.server());
    ::_exit(0);
  }
  EXPECT_TRUE(comes_true([&] { return server.runs() == 1; }));
  ::kill(starter, SIGKILL);
  int status = 0;
  ::waitpid(starter, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  server.go();
}

// Two that write one file would both grant.
TEST(one_server, is_waited_for_when_its_starter_was_killed) {
  const scratch_directory scratch;
  const slow_server server{scratch};
  start_and_be_killed(scratch, server);
  const auto second = start_local(scratch.server());
  EXPECT_TRUE(second.running);
  EXPECT_FALSE(second.was_started);
  EXPECT_EQ(server.runs(), 1u);
  EXPECT_TRUE(is_first_run(scratch.server())) << "and no start was recorded but its own";
}

TEST(one_server, is_waited_for_by_stop_too) {
  const scratch_directory scratch;
  const slow_server server{scratch};
  start_and_be_killed(scratch, server);
  const auto stopped = stop_local(scratch.server());
  EXPECT_FALSE(stopped.running);
  EXPECT_TRUE(stopped.was_stopped);
  EXPECT_TRUE(server_lock::try_take(scratch.server()).has_value());
}

bool is_locked(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_free = fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return !is_free;
}

TEST(one_server, is_not_joined_by_another_when_its_socket_is_gone) {
  const scratch_directory scratch;
  const told_server server{scratch};
  const auto where = find_or_make(scratch.server());
  const int pid = start_local(scratch.server()).pid;
  std::filesystem::rename(where.socket(), where.socket() + ".aside");
  local_status second;
  std::thread starting{[&] { EXPECT_NO_THROW(second = start_local(scratch.server())); }};
  EXPECT_TRUE(comes_true([&] { return is_locked(where.lock_file()); }));
  EXPECT_FALSE(comes_true([&] { return server.runs() == 2; }, 500ms));
  EXPECT_THROW(query_local(scratch.server()), error) << "it runs, and keeps locks";
  std::filesystem::rename(where.socket() + ".aside", where.socket());
  starting.join();
  EXPECT_FALSE(second.was_started);
  EXPECT_EQ(second.pid, pid);
}

// The lock is taken by the server itself: whoever looked before it, and starts another one, is too late.
TEST(one_server, is_run_only_with_its_directory_locked) {
  const scratch_directory scratch;
  const told_server server{scratch};
  const auto where = find_or_make(scratch.server());
  {
    const auto lock = server_lock::try_take(where.directory);
    ASSERT_TRUE(lock.has_value());
    EXPECT_THROW(launch(find_server(), where), directory_taken);
  }
  EXPECT_EQ(server.runs(), 0u);
  EXPECT_TRUE(start_local(scratch.server()).was_started);
  EXPECT_FALSE(server_lock::try_take(where.directory).has_value());
  EXPECT_THROW(launch(find_server(), where), directory_taken);
  EXPECT_EQ(server.runs(), 1u);
}

// systemd-tmpfiles locks what it looks through.
TEST(one_server, is_started_when_a_cleaner_is_done) {
  const scratch_directory scratch;
  const told_server server{scratch};
  const auto where = find_or_make(scratch.server());
  auto cleaner = server_lock::try_take(where.directory);
  std::thread starting{[&] { EXPECT_NO_THROW(EXPECT_TRUE(start_local(scratch.server()).was_started)); }};
  EXPECT_TRUE(comes_true([&] { return is_locked(where.lock_file()); }));
  EXPECT_FALSE(comes_true([&] { return server.runs() == 1; }, 200ms));
  cleaner.reset();
  starting.join();
  EXPECT_TRUE(is_first_run(scratch.server()));
}

// A child that another thread forks has all that is open, and may never exec.
TEST(one_server, lock_is_not_kept_by_a_child_of_who_looked) {
  const scratch_directory scratch;
  auto lock = server_lock::try_take(scratch.path());
  ASSERT_TRUE(lock.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  lock.reset();
  EXPECT_TRUE(server_lock::try_take(scratch.path()).has_value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace holdfast::local
