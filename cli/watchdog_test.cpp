// SPDX-License-Identifier: Apache-2.0
// H54: the watchdog as a process, with real commands and no server. That its owner stands still is played by saying
// nothing; owners that die are forked for it.
#include "watchdog.hpp"

#include "child.hpp"
#include "lease_watch.hpp"
#include "process_group.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;
using ms = std::chrono::milliseconds;

ms now() { return lease_watch::now(); }

template <class Condition>
bool comes_true(Condition condition, ms patience = 20s) {
  const auto give_up_at = now() + patience;
  while (!condition()) {
    if (now() > give_up_at) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

// Long, so that a busy machine does not make a KILL of a TERM.
constexpr ms grace = 1500ms;

// A shell and two others, all of one group, and all of them up.
class command {
public:
  explicit command(const std::string& first = ":") {
    child_plan plan{.words = {"sh", "-c", first + "; sleep 60 & sleep 60 & wait"},
                    .environment = {"PATH=/usr/local/bin:/usr/bin:/bin"}};
    sigemptyset(&plan.mask);
    start_descriptors given{false};
    child_.emplace(plan, given);
    EXPECT_TRUE(comes_true([&] { return sleepers() == 2; }));
  }
  ~command() {
    child_->signal(SIGKILL);
    comes_true([&] { return child_->reap(); });
  }
  command(const command&) = delete;
  command& operator=(const command&) = delete;

  std::ptrdiff_t sleepers() const {
    const auto all = processes_of_group(child_->pid());
    return std::ranges::count_if(all, [](const auto& one) { return one.starts_with("sleep ("); });
  }

  watched_command watched() const { return {.pid = child_->pid(), .limits = {.grace = grace, .margin = 40ms}}; }

  // When it has ended, and its group too.
  int status() {
    EXPECT_TRUE(comes_true([&] { return child_->reap(); }));
    EXPECT_TRUE(comes_true([&] { return !child_->group_lives(); }));
    return child_->exit_status();
  }

  child& get() { return *child_; }

private:
  std::optional<child> child_{};
};

bool has_ended(pid_t pid) {
  siginfo_t how{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid != 0;
}

bool acts_within(const watchdog& dog, ms span) {
  return comes_true([&] { return dog.has_acted(); }, span);
}

TEST(watchdog, stops_the_whole_group_of_which_nobody_says_any_more_that_its_lease_stands) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + grace + 100ms));
  EXPECT_EQ(one.status(), 128 + SIGTERM);
  EXPECT_TRUE(dog.has_acted());
}

TEST(watchdog, kills_what_ignores_that) {
  command stubborn{"trap '' TERM"};
  watchdog dog{stubborn.watched()};
  ASSERT_TRUE(dog.watch(now() + 200ms));
  EXPECT_EQ(stubborn.status(), 128 + SIGKILL);
}

TEST(watchdog, ends_a_command_that_has_left_its_group) {
  child_plan plan{
      .words = {"python3", "-c", "import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(60)"},
      .environment = {"PATH=/usr/local/bin:/usr/bin:/bin"}};
  sigemptyset(&plan.mask);
  start_descriptors given{false};
  child left{plan, given};
  ASSERT_TRUE(comes_true([&] { return ::getpgid(left.pid()) == ::getpgrp(); }));
  watchdog dog{{.pid = left.pid(), .limits = {.grace = grace, .margin = 40ms}}};
  ASSERT_TRUE(dog.watch(now() + grace + 100ms));
  EXPECT_TRUE(comes_true([&] { return left.reap(); }));
  EXPECT_EQ(left.exit_status(), 128 + SIGTERM);
  EXPECT_TRUE(dog.has_acted());
}

TEST(watchdog, does_nothing_while_the_deadline_moves) {
  command one;
  watchdog dog{one.watched()};
  const auto until = now() + 1500ms;
  while (now() < until) {
    ASSERT_TRUE(dog.watch(now() + grace + 1s));
    ASSERT_FALSE(dog.has_acted());
    ::poll(nullptr, 0, 20);
  }
  EXPECT_EQ(one.sleepers(), 2);
}

TEST(watchdog, leaves_a_command_alone_that_stands_until_it_goes_on) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + 1h));
  dog.set_stands(true);
  ASSERT_TRUE(dog.watch(now()));
  EXPECT_FALSE(acts_within(dog, 200ms));
  dog.set_stands(false);
  EXPECT_TRUE(acts_within(dog, 500ms)) << "it was not woken";
}

// As in "kill -CONT -PGID", which its owner, standing itself, knows nothing of.
TEST(watchdog, has_the_group_stand_that_goes_on_beyond_the_end_while_its_owner_says_that_it_stands) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + 1h));
  ASSERT_TRUE(dog.watch(now()));
  dog.set_stands(true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes_true([&] { return is_group_stopped(one.get().pid()); }, 5s));
    ::kill(-one.get().pid(), SIGCONT);
  }
  EXPECT_FALSE(dog.has_acted());
}

// It is a zombie until its owner goes on, and the lock was not lost while it ran.
TEST(watchdog, leaves_a_command_alone_that_has_ended_by_itself) {
  command one;
  ::kill(one.get().pid(), SIGKILL);
  ASSERT_TRUE(comes_true([&] { return has_ended(one.get().pid()); }));
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now()));
  EXPECT_FALSE(acts_within(dog, 200ms));
}

TEST(watchdog, kills_before_the_end_that_its_owner_said_last_and_says_no_stop) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + 1h));
  dog.set_stopping(now() + 100ms);
  EXPECT_EQ(one.status(), 128 + SIGKILL);
}

// Its first process has died of that stop, the others have not.
TEST(watchdog, kills_those_who_outlive_the_command_that_its_owner_has_begun_to_stop) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + 1h));
  dog.set_stopping(now() + 500ms);
  ::kill(one.get().pid(), SIGKILL);
  EXPECT_TRUE(comes_true([&] { return one.sleepers() == 0; }));
  EXPECT_TRUE(dog.has_acted());
}

TEST(watchdog, of_a_command_without_a_group_ends_only_that) {
  command one;
  auto alone = one.watched();
  alone.has_group = false;
  watchdog dog{alone};
  ASSERT_TRUE(dog.watch(now()));
  EXPECT_TRUE(comes_true([&] { return one.get().reap(); }));
  EXPECT_EQ(one.sleepers(), 2);
}

TEST(watchdog, whose_owner_is_gone_ends_the_group) {
  command one;
  const pid_t owner = ::fork();
  if (owner == 0) {
    watchdog dog{one.watched()};
    ::_exit(dog.watch(now() + 1min) ? 0 : 1);
  }
  int failed = -1;
  ASSERT_EQ(::waitpid(owner, &failed, 0), owner);
  ASSERT_EQ(failed, 0);
  EXPECT_EQ(one.status(), 128 + SIGTERM);
}

// Whoever reads the command's output, or is connected to us, must see our end.
TEST(watchdog, has_none_of_our_descriptors) {
  command one;
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + 1h));
  ::close(ends[1]);
  pollfd reader{ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&reader, 1, 5000), 1);
  ::close(ends[0]);
}

TEST(watchdog, is_gone_with_the_object) {
  {
    command one;
    watchdog dog{one.watched()};
    ASSERT_TRUE(dog.watch(now() + 1h));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// 0: there is none. One that has ended is there until it is collected.
pid_t watchdog_process() {
  std::ifstream children{"/proc/thread-self/children"};
  for (pid_t pid = 0; children >> pid;) {
    std::string its;
    std::getline(std::ifstream{"/proc/" + std::to_string(pid) + "/comm"}, its);
    if (its == "holdfast watch") return pid;
  }
  return 0;
}

TEST(watchdog, that_was_killed_alone_has_a_successor_with_the_next_word) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now() + 1h));
  ASSERT_TRUE(comes_true([] { return watchdog_process() != 0; }));
  const pid_t first = watchdog_process();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(comes_true([&] { return has_ended(first); }));
  ASSERT_TRUE(dog.watch(now() + 1h));
  dog.set_stopping(now() + 100ms);
  EXPECT_EQ(one.status(), 128 + SIGKILL);
}

// That of one which has done its work is not forgotten: the command was lost.
TEST(watchdog, that_has_acted_has_none) {
  command one;
  watchdog dog{one.watched()};
  ASSERT_TRUE(dog.watch(now()));
  EXPECT_EQ(one.status(), 128 + SIGKILL);
  ASSERT_TRUE(comes_true([] { return has_ended(watchdog_process()); }));
  EXPECT_TRUE(dog.watch(now() + 1h));
  EXPECT_TRUE(dog.has_acted());
}

TEST(watchdog, that_cannot_be_made_is_none) {
  const pid_t poor = ::fork();
  if (poor == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    watchdog dog{{.pid = ::getpid(), .limits = {.grace = 0ms, .margin = 0ms}}};
    dog.set_stopping(0ms);
    ::_exit(dog.watch(0ms) || dog.has_acted() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(poor, &status, 0), poor);
  EXPECT_EQ(status, 0);
}

}  // namespace
