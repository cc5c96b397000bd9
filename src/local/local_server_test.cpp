// SPDX-License-Identifier: Apache-2.0
// Starting, finding and stopping a real redis-server.
#include "local/directory.hpp"
#include "local/local_server_testing.hpp"
#include "local/other_server.hpp"
#include "local/probe.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"
#include "local/starts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

std::string refusal(const std::string& directory) {
  try {
    start_local(directory);
    return {};
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::local_server);
    return e.detail().why;
  }
}

std::size_t lines_in(const std::string& file) {
  std::ifstream text{file};
  std::size_t count = 0;
  for (std::string line; std::getline(text, line);) ++count;
  return count;
}

TEST(local_server, is_started_by_the_first_call_and_found_by_the_second) {
  scratch_directory scratch;
  const auto first = start_local(scratch.server());
  const auto second = start_local(scratch.server());
  EXPECT_TRUE(first.was_started);
  EXPECT_FALSE(second.was_started);
  EXPECT_TRUE(second.running);
  EXPECT_GT(first.pid, 0);
  EXPECT_EQ(first.pid, second.pid);
  EXPECT_EQ(ask(first.socket, {"PING"}), "PONG");
}

// Fifty cron jobs of one minute start together on a machine that has just booted.
TEST(local_server, is_started_once_by_twenty_processes_at_the_same_time) {
  scratch_directory scratch;
  std::array<int, 2> gate{}, results{};
  ASSERT_EQ(::pipe(gate.data()), 0);
  ASSERT_EQ(::pipe(results.data()), 0);
  constexpr int count = 20;
  for (int i = 0; i < count; ++i) {
    if (::fork() != 0) continue;
    ::close(gate[1]);
    char byte = 0;
    [[maybe_unused]] auto done = ::read(gate[0], &byte, 1);  // Until all stand ready and the gate closes.
    std::array<int, 2> mine{0, 0};
    try {
      const auto status = start_local(scratch.server());
      mine = {status.pid, status.was_started ? 1 : 0};
    } catch (...) {
    }
    done = ::write(results[1], mine.data(), sizeof mine);
    ::_exit(0);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  ::close(results[1]);
  std::set<int> pids;
  int started = 0;
  int answers = 0;
  std::array<int, 2> one{};
  while (::read(results[0], one.data(), sizeof one) == sizeof one) {
    pids.insert(one[0]);
    started += one[1];
    ++answers;
  }
  ::close(results[0]);
  while (::wait(nullptr) > 0) {
  }
  EXPECT_EQ(answers, count);
  EXPECT_EQ(started, 1);
  EXPECT_EQ(pids.size(), 1u);
  EXPECT_EQ(pids.count(0), 0u);
}

// It listens before it has written its first file, which a busy disk delays.
TEST(local_server, that_is_silent_while_it_starts_is_asked_again) {
  scratch_directory scratch;
  const auto path = query_local(scratch.server()).socket;
  std::filesystem::create_directory(scratch.server());
  std::filesystem::permissions(scratch.server(), std::filesystem::perms::owner_all);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  std::thread starting{[&] {
    const int unanswered = ::accept(listener, nullptr, nullptr);
    const int second = ::accept(listener, nullptr, nullptr);
    std::array<char, 64> asked{};
    EXPECT_GT(::read(second, asked.data(), asked.size()), 0);
    EXPECT_EQ(::write(second, "+PONG\r\n", 7), 7);
    ::close(second);
    ::close(unanswered);
  }};
  EXPECT_NO_THROW(EXPECT_TRUE(start_local(scratch.server()).running));
  ::shutdown(listener, SHUT_RDWR);  // Nobody is waited for any more.
  starting.join();
  ::close(listener);
}

// The append-only file is there so that a lock outlives its server's crash (everysec survives SIGKILL).
TEST(local_server, comes_back_with_its_keys_after_sigkill) {
  scratch_directory scratch;
  const auto first = start_local(scratch.server());
  ASSERT_EQ(ask(first.socket, {"SET", "hf:{nightly}", "v1|held", "PX", "60000"}), "OK");
  kill_and_wait(first.pid);
  ASSERT_TRUE(std::filesystem::exists(first.socket)) << "a crash leaves its socket behind";

  const auto second = start_local(scratch.server());

  EXPECT_TRUE(second.was_started);
  EXPECT_NE(second.pid, first.pid);
  EXPECT_EQ(ask(second.socket, {"GET", "hf:{nightly}"}), "v1|held");
}

TEST(local_server, tells_its_first_start_from_a_restart) {
  scratch_directory scratch;
  const auto first = start_local(scratch.server());
  EXPECT_EQ(lines_in(find(scratch.server()).starts_file()), 1u);
  EXPECT_TRUE(is_first_run(first.directory));
  kill_and_wait(first.pid);
  start_local(scratch.server());
  EXPECT_EQ(lines_in(find(scratch.server()).starts_file()), 2u);
  EXPECT_FALSE(is_first_run(first.directory));
  EXPECT_FALSE(is_first_run(scratch.path())) << "where nothing is known";
}

// H24: as somebody would who removes from /var/tmp what is older than a month.
TEST(local_server, whose_record_of_starts_was_removed_is_not_in_its_first_run) {
  for (const auto* kept : {"redis.log", "appendonlydir"}) {
    scratch_directory scratch;
    const auto first = start_local(scratch.server());
    kill_and_wait(first.pid);
    const std::filesystem::path in = first.directory;
    for (const auto* one : {"starts", "redis.log", "appendonlydir"}) {
      if (std::string{one} != kept) std::filesystem::remove_all(in / one);
    }
    start_local(scratch.server());
    EXPECT_FALSE(is_first_run(first.directory)) << kept;
  }
}

TEST(local_server, is_gone_when_stop_returns) {
  scratch_directory scratch;
  const auto started = start_local(scratch.server());
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0));
  const auto stopped = stop_local(scratch.server());
  pollfd ended{process, POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 0), 1);
  EXPECT_FALSE(stopped.running);
  EXPECT_TRUE(stopped.was_stopped);
  ::close(process);
}

TEST(local_server, keeps_held_locks_through_stop_and_start) {
  scratch_directory scratch;
  const auto first = start_local(scratch.server());
  ask(first.socket, {"SET", "hf:{nightly}", "v1|held", "PX", "60000"});
  stop_local(scratch.server());
  EXPECT_EQ(ask(start_local(scratch.server()).socket, {"GET", "hf:{nightly}"}), "v1|held");
}

TEST(local_server, stopping_what_does_not_run_is_no_error) {
  scratch_directory scratch;
  EXPECT_FALSE(stop_local(scratch.server()).was_stopped);
  start_local(scratch.server());
  stop_local(scratch.server());
  EXPECT_FALSE(stop_local(scratch.server()).was_stopped);
  kill_and_wait(start_local(scratch.server()).pid);
  EXPECT_FALSE(stop_local(scratch.server()).was_stopped) << "only its socket was there";
}

TEST(local_server, query_sees_it_and_starts_nothing) {
  scratch_directory scratch;
  EXPECT_FALSE(query_local(scratch.server()).running);
  const auto started = start_local(scratch.server());
  EXPECT_EQ(query_local(scratch.server()).pid, started.pid);
  kill_and_wait(started.pid);
  EXPECT_FALSE(query_local(scratch.server()).running);
}

TEST(local_server, socket_is_for_its_user_alone) {
  scratch_directory scratch;
  struct stat seen {};
  ASSERT_EQ(::stat(start_local(scratch.server()).socket.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777u, 0600u);
}

TEST(local_server, socket_of_a_shared_directory_is_for_its_group) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 02770);
  struct stat seen {};
  ASSERT_EQ(::stat(start_local(scratch.server()).socket.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777u, 0660u);
}

// Only one name may evict or lose a lock: that of its owner.
TEST(local_server, never_evicts_and_writes_its_append_only_file) {
  scratch_directory scratch;
  const auto socket = start_local(scratch.server()).socket;
  EXPECT_NE(ask(socket, {"INFO", "memory"}).find("maxmemory_policy:noeviction"), std::string::npos);
  EXPECT_NE(ask(socket, {"INFO", "persistence"}).find("aof_enabled:1"), std::string::npos);
}

// It is for all who come: `ulimit -f` of who was first would end it in some hours.
TEST(local_server, is_not_limited_as_its_first_caller_is) {
  scratch_directory scratch;
  const auto seen = in_sandbox(
      [] {
        rlimit size{};
        if (::getrlimit(RLIMIT_FSIZE, &size) != 0) return false;
        size.rlim_cur = 512 * 1024;
        // As `ulimit` sets it, which is for root only to lift, where root has its rights.
        const bool may_be_lifted = ::geteuid() == 0 && ::prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1;
        if (may_be_lifted) size.rlim_max = size.rlim_cur;
        return ::setrlimit(RLIMIT_FSIZE, &size) == 0;
      },
      [&] { return start_local(scratch.server()).was_started; });
  ASSERT_EQ(seen, std::optional{true});
  std::ifstream limits{"/proc/" + std::to_string(query_local(scratch.server()).pid) + "/limits"};
  std::string line;
  while (std::getline(limits, line) && !line.starts_with("Max file size")) {
  }
  EXPECT_EQ(line.find("unlimited"), line.find_first_not_of(' ', std::strlen("Max file size")))
      << "not the first: " << line;
}

// A daemon that kept a descriptor of its starter would keep that one's pipe, lock or socket open for ever: a shell
// that reads our output would never see its end.
TEST(local_server, inherits_no_descriptor) {
  scratch_directory scratch;
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);  // Without O_CLOEXEC, as a program of the world does it.
  start_local(scratch.server());
  ::close(pipe_ends[1]);
  pollfd end{pipe_ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 1000), 1) << "somebody still holds the other end";
  ::close(pipe_ends[0]);
}

// systemd-tmpfiles asks for this before it deletes old files.
bool is_locked(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_free = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return !is_free;
}

TEST(local_server, keeps_its_directory_locked_against_cleaners_as_long_as_it_lives) {
  scratch_directory scratch;
  start_local(scratch.server());
  EXPECT_TRUE(is_locked(scratch.server()));
  stop_local(scratch.server());
  EXPECT_FALSE(is_locked(scratch.server()));
}

TEST(local_server, has_a_session_of_its_own) {
  scratch_directory scratch;
  const int pid = start_local(scratch.server()).pid;
  EXPECT_NE(::getsid(pid), ::getsid(0));
  EXPECT_NE(::getpgid(pid), ::getpgrp());
}

TEST(local_server, foreign_listener_on_its_socket_is_an_error) {
  scratch_directory scratch;
  const auto where = find_or_make(scratch.server());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, where.socket().c_str(), sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  const pid_t impostor = ::fork();
  if (impostor == 0) {
    // It hears the question out: whoever closes on unread bytes makes the asker see a reset, and no words.
    const int client = ::accept(listener, nullptr, nullptr);
    std::array<char, 64> question{};
    [[maybe_unused]] const auto heard = ::read(client, question.data(), question.size());
    [[maybe_unused]] const auto sent = ::write(client, "HTTP/1.1 400 Bad Request\r\n", 26);
    ::_exit(0);
  }
  EXPECT_NE(refusal(scratch.server()).find("not the local server"), std::string::npos);
  ::close(listener);
  ::waitpid(impostor, nullptr, 0);
}

TEST(local_server, that_its_directory_hides_is_not_taken_for_another_program) {
  scratch_directory scratch;
  ASSERT_TRUE(make_closed_directory(scratch.path(), scratch.server(), 0));
  const auto is_told = [&] { return refusal(scratch.server()).find("mode of its directory") != std::string::npos; };
  EXPECT_NE(in_sandbox(become_nobody, is_told), false);
}

TEST(local_server, that_cannot_start_says_the_last_line_of_its_log) {
  scratch_directory scratch;
  const auto where = find_or_make(scratch.server());
  std::ofstream{where.directory + "/appendonlydir"} << "in the way";
  try {
    start_local(scratch.server());
    FAIL() << "it started";
  } catch (const error& e) {
    EXPECT_EQ(e.detail().subject, where.log_file());
    EXPECT_FALSE(e.detail().server_text.empty());
  }
}

// Whoever reads that looks for a fault that was mended long ago.
TEST(local_server, that_cannot_start_says_nothing_that_a_former_one_said) {
  scratch_directory scratch;
  const auto where = find_or_make(scratch.server());
  for (const std::string words : {"", "its last word"}) {
    std::ofstream{where.log_file()} << "of a former one\n";
    const other_server failing{scratch, "#!/bin/sh\nprintf '" + words + "'\nexit 1\n"};
    try {
      start_local(scratch.server());
      FAIL() << "it started";
    } catch (const error& e) {
      EXPECT_EQ(e.detail().server_text, words);
      EXPECT_EQ(e.detail().why.find("wrote nothing") != std::string::npos, words.empty()) << e.detail().why;
    }
  }
}

}  // namespace
}  // namespace holdfast::local
