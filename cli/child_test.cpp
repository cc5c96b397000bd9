// SPDX-License-Identifier: Apache-2.0
// The command as a process: its group, its status, its failure to start. With real processes and no server.
#include "child.hpp"
#include "process_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace {

using namespace holdfast::cli;

child_plan plan_for(std::vector<std::string> words) {
  child_plan plan{.words = std::move(words), .environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "WITNESS=seen"}};
  sigemptyset(&plan.mask);
  return plan;
}

template <class Condition>
bool comes_true(Condition condition) {
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up_at) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

int status_of(child& command) {
  EXPECT_TRUE(comes_true([&] { return command.reap(); }));
  return command.exit_status();
}

TEST(child, passes_its_own_status_on) {
  start_descriptors given{true};
  child command{plan_for({"sh", "-c", "exit 7"}), given};
  EXPECT_EQ(command.failure(), 0);
  EXPECT_EQ(status_of(command), 7);
}

TEST(child, ended_by_a_signal_is_128_and_its_number) {
  start_descriptors given{true};
  child command{plan_for({"sh", "-c", "kill -9 $$"}), given};
  EXPECT_EQ(status_of(command), 137);
  EXPECT_EQ(command.ended_by(), SIGKILL);
}

TEST(child, that_exits_with_128_and_a_number_was_ended_by_none) {
  start_descriptors given{true};
  child command{plan_for({"sh", "-c", "exit 130"}), given};
  EXPECT_EQ(status_of(command), 130);
  EXPECT_EQ(command.ended_by(), 0);
}

TEST(child, gets_exactly_the_environment_it_was_given) {
  start_descriptors given{true};
  child command{plan_for({"sh", "-c", "test \"$WITNESS\" = seen && test -z \"$HOME\""}), given};
  EXPECT_EQ(status_of(command), 0);
}

TEST(child, that_does_not_exist_is_told_by_errno_and_leaves_nothing_running) {
  start_descriptors given{true};
  child command{plan_for({"/no/such/command"}), given};
  EXPECT_EQ(command.failure(), ENOENT);
}

TEST(child, that_may_not_be_executed_is_told_by_errno) {
  start_descriptors given{true};
  child command{plan_for({"/etc/passwd"}), given};
  EXPECT_EQ(command.failure(), EACCES);
}

TEST(child, has_a_group_of_its_own) {
  start_descriptors given{true};
  child command{plan_for({"sleep", "60"}), given};
  EXPECT_EQ(::getpgid(command.pid()), command.pid());
  command.signal(SIGKILL);
  EXPECT_EQ(status_of(command), 137);
}

TEST(child, without_own_group_stays_in_ours) {
  auto plan = plan_for({"sleep", "60"});
  plan.own_group = false;
  start_descriptors given{true};
  child command{plan, given};
  EXPECT_EQ(::getpgid(command.pid()), ::getpgrp());
  command.signal(SIGKILL);
  EXPECT_EQ(status_of(command), 137);
}

// consul#2022: killing only /bin/sh leaves its children alive.
TEST(child, signal_reaches_grandchildren) {
  start_descriptors given{true};
  child command{plan_for({"sh", "-c", "sleep 60 & sleep 60 & wait"}), given};
  ASSERT_TRUE(comes_true([&] { return processes_of_group(command.pid()).size() == 3; }));
  command.signal(SIGKILL);
  EXPECT_EQ(status_of(command), 137);
  EXPECT_TRUE(comes_true([&] { return !command.group_lives(); }));
}

// With no descriptor left it cannot be looked at; nor without /proc, or behind hidepid=.
TEST(process_group, has_not_ended_where_it_cannot_be_seen) {
  constexpr pid_t nobodys = 4'000'000;
  EXPECT_TRUE(has_group_ended(nobodys));
  EXPECT_FALSE(has_group_ended(::getpgrp()));
  const pid_t blind = ::fork();
  if (blind == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    ::_exit(has_group_ended(nobodys) ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(blind, &status, 0), blind);
  EXPECT_EQ(status, 0);
}

// Nobody else can be sure of its number; we are its parent.
TEST(child, that_has_gone_to_another_group_is_signalled) {
  start_descriptors given{true};
  child command{plan_for({"python3", "-c", "import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(60)"}),
                given};
  ASSERT_TRUE(comes_true([&] { return ::getpgid(command.pid()) == ::getpgrp(); }));
  EXPECT_TRUE(command.signal(SIGTERM));
  EXPECT_EQ(status_of(command), 128 + SIGTERM);
}

// In a group of its own, which `begin` makes what it is to be.
class forked {
public:
  template <class Begin>
  explicit forked(Begin begin) : pid_{::fork()} {
    if (pid_ == 0) {
      ::setpgid(0, 0);
      begin();
      ::_exit(1);
    }
    ::setpgid(pid_, pid_);
  }
  ~forked() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    EXPECT_TRUE(has_group_ended(pid_));
  }
  forked(const forked&) = delete;
  forked& operator=(const forked&) = delete;

  pid_t pid() const { return pid_; }

private:
  pid_t pid_;
};

// /proc has it for a zombie: its first thread is one, and keeps its number until the others have ended.
TEST(process_group, has_not_ended_while_a_thread_of_a_process_runs) {
  const forked process{[] {
    std::thread{[] { ::pause(); }}.detach();
    ::syscall(SYS_exit, 0);  // Of this thread, as pthread_exit(3), and no exception on the way.
  }};
  const pid_t pid = process.pid();
  ASSERT_TRUE(comes_true([&] {
    std::string stat;
    std::getline(std::ifstream{"/proc/" + std::to_string(pid) + "/stat"}, stat);
    return stat.find(") Z ") != std::string::npos;
  }));
  EXPECT_FALSE(has_group_ended(pid));
  EXPECT_FALSE(is_group_stopped(pid));
  EXPECT_EQ(processes_of_group(pid).size(), 1u);
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(comes_true([&] { return is_group_stopped(pid); }));
}

TEST(process_group, has_not_ended_while_somebody_with_a_line_break_in_its_name_lives) {
  const forked process{[] {
    ::prctl(PR_SET_NAME, "a\nb");
    for (;;) ::pause();
  }};
  const pid_t pid = process.pid();
  ASSERT_TRUE(comes_true([&] {
    const auto found = processes_of_group(pid);
    return found.size() == 1 && found[0].starts_with("a");
  }));
  EXPECT_FALSE(has_group_ended(pid));
}

// What `look` gives as another user, who may not signal root's. False too where there is none.
template <class Look>
bool as_another_user(Look look) {
  const pid_t other = ::fork();
  if (other == 0) ::_exit(::setuid(65'534) == 0 && look() ? 0 : 1);
  int status = -1;
  return ::waitpid(other, &status, 0) == other && status == 0;
}

// As of a script that calls sudo. Who may not be stopped does not stand for that (H54).
TEST(process_group, names_who_is_out_of_reach) {
  if (::geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root has somebody whom others may not signal";
  const forked ours{[] {
    if (::setuid(65'534) != 0) ::_exit(1);
    for (;;) ::raise(SIGSTOP);
  }};
  const pid_t group = ours.pid();
  ASSERT_TRUE(comes_true([&] { return is_group_stopped(group); }));
  const pid_t roots = ::fork();
  if (roots == 0) {
    ::setpgid(0, group);
    for (;;) ::pause();
  }
  ::setpgid(roots, group);
  EXPECT_TRUE(processes_out_of_reach(group).empty());
  EXPECT_TRUE(processes_that_cannot_be_stopped(group).empty());
  EXPECT_FALSE(is_group_stopped(group));
  const auto is_roots = [&](const std::vector<std::string>& found) {
    return found.size() == 1 && found[0].ends_with("(" + std::to_string(roots) + ")");
  };
  EXPECT_TRUE(as_another_user([&] { return is_roots(processes_out_of_reach(group)); }));
  EXPECT_TRUE(as_another_user([&] { return is_roots(processes_that_cannot_be_stopped(group)); }));
  EXPECT_TRUE(as_another_user([&] { return !is_group_stopped(group); }));
  ::kill(roots, SIGSTOP);  // As the terminal's Ctrl-Z, which is everybody's of the group.
  EXPECT_TRUE(comes_true([&] { return is_group_stopped(group); }));
  EXPECT_TRUE(as_another_user([&] { return processes_that_cannot_be_stopped(group).empty(); }));
  ::kill(roots, SIGKILL);
  ::waitpid(roots, nullptr, 0);
}

// The command of a run in a run has a group of its own, and may be another user's.
TEST(process_group, has_whom_a_command_has_made_stopped_too) {
  if (::geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root has somebody whom others may not signal";
  const forked command{[] {
    const forked inner{[] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }};
    for (;;) ::pause();
  }};
  EXPECT_TRUE(as_another_user(
      [&] { return comes_true([&] { return processes_that_cannot_be_stopped(command.pid()).size() == 2; }); }));
}

void write_number(const char* file, int number) { std::ofstream{file} << number << std::flush; }

pid_t fork_idler() {
  const pid_t pid = ::fork();
  while (pid == 0) ::pause();
  return pid;
}

// As process 1 of a namespace where one process has a large number, and the next ones get small ones: that is how it is
// wherever numbers have begun anew. Exits with 1 if the group was ever said to have ended, and with 77 if it cannot be.
[[noreturn]] void look_at_a_group_that_hands_itself_on() {
  constexpr const char* last = "/proc/sys/kernel/ns_last_pid";
  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) ::_exit(77);
  ::signal(SIGCHLD, SIG_IGN);                  // Nobody is left as a zombie.
  for (int i = 0; i < 100; ++i) fork_idler();  // Read between the list and whoever is behind them.
  write_number(last, 32'000);
  const pid_t late = fork_idler();
  write_number(last, 300);
  const pid_t group = ::fork();
  if (group == 0) {
    ::setpgid(0, 0);
    for (;;)
      if (::fork() > 0) ::_exit(0);
  }
  ::setpgid(group, group);
  if (late < 32'000 || group > 1000) ::_exit(77);
  for (int i = 0; i < 100; ++i)
    if (has_group_ended(group)) ::_exit(1);
  ::_exit(0);  // All others end with us.
}

// Each member lives for a fraction of the time that it takes to read the list (H54).
TEST(process_group, that_hands_itself_on_has_not_ended) {
  const pid_t outside = ::fork();
  if (outside == 0) {
    const bool is_apart =
        ::unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) == 0;
    const pid_t first = is_apart ? ::fork() : -1;
    if (first == 0) look_at_a_group_that_hands_itself_on();
    int status = -1;
    ::_exit(first > 0 && ::waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 77);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(outside, &status, 0), outside);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "NOT TESTED: no namespace of processes can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(child, group_lives_while_a_grandchild_does) {
  start_descriptors given{true};
  child command{plan_for({"sh", "-c", "sleep 60 & exit 0"}), given};
  EXPECT_EQ(status_of(command), 0);
  EXPECT_TRUE(command.group_lives());
  EXPECT_TRUE(comes_true([&] {  // Until its exec the grandchild is called sh.
    const auto left = processes_of_group(command.pid());
    return left.size() == 1 && left.front().starts_with("sleep (");
  }));
  command.signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return !command.group_lives(); }));
}

}  // namespace
