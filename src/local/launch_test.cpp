// SPDX-License-Identifier: Apache-2.0
// What a daemon inherits, and what its starter waits for. That it outlives us and hears no signal of ours,
// tests/cli/local_test.py sees.
#include "local/launch.hpp"

#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace holdfast::local {
namespace {

// What a daemon says that runs `script` and was launched in a process in which `prepare` was, and empty if it says
// nothing; nullopt where that is not permitted.
template <class Prepare>
std::optional<std::string> words_of_daemon(const std::string& directory, const std::string& script, Prepare prepare) {
  const auto log_file = directory + "/log";
  const daemon_plan plan{.words = {"/bin/sh", "-c", script}, .log_file = log_file, .locked_directory = directory};
  const auto is_launched = in_sandbox(prepare, [&] { return launch(plan) > 0; });
  if (!is_launched) return std::nullopt;
  EXPECT_TRUE(*is_launched);
  if (!*is_launched) return "";
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (last_line(log_file).empty() && std::chrono::steady_clock::now() < give_up_at) ::poll(nullptr, 0, 1);
  return last_line(log_file);
}

// As under a supervisor that closes all: what we open then gets the numbers of stdin, stdout and stderr. Of what the
// daemon has, 4 is its directory's lock.
TEST(launch, gives_the_daemon_its_log_whatever_of_ours_is_closed) {
  for (int closed = 0; closed < 8; ++closed) {
    const scratch_directory scratch;
    const auto close_them = [closed] {
      for (int fd = 0; fd < 3; ++fd)
        if ((closed >> fd & 1) != 0) ::close(fd);
      return true;
    };
    EXPECT_EQ(words_of_daemon(scratch.path(), "cd /proc/self/fd; echo has $(ls -d 0 1 2 4) >&2", close_them),
              "has 0 1 2 4")
        << "closed: bits " << closed;
  }
}

// A sandbox refuses it, or Linux is older than 5.9.
TEST(launch, gives_the_daemon_nothing_else_of_ours_without_close_range) {
  for (const int error_number : {EPERM, ENOSYS}) {
    const scratch_directory scratch;
    const auto words = words_of_daemon(
        scratch.path(), "cd /proc/self/fd; echo has $(ls -d 0 1 2 4 77 900 2>/dev/null) >&2",
        [=] { return ::dup2(0, 77) == 77 && ::dup2(0, 900) == 900 && refuse(SYS_close_range, error_number); });
    if (!words) GTEST_SKIP() << "no seccomp";
    EXPECT_EQ(words, "has 0 1 2 4");
  }
}

bool be_ended_first_by(const char* points) {
  std::ofstream file{"/proc/self/oom_score_adj"};
  file << points;
  file.close();
  return file.good();
}

bool be_nice(int by) { return ::setpriority(PRIO_PROCESS, 0, by) == 0; }

// The kernel would end the server of all in the place of who was first.
TEST(launch, gives_the_daemon_no_low_priority_of_ours) {
  const scratch_directory scratch;
  const auto seen =
      words_of_daemon(scratch.path(), "cat /proc/self/oom_score_adj >&2", [] { return be_ended_first_by("300"); });
  EXPECT_EQ(seen, "0");
  if (::geteuid() != 0) return;  // To be less nice takes a permission.
  const scratch_directory other;
  EXPECT_EQ(words_of_daemon(other.path(), "nice >&2", [] { return be_nice(5); }), "0");
}

// It would wait for the one processor that who was first is bound to.
TEST(launch, does_not_bind_the_daemon_to_a_processor_of_ours) {
  const auto bind = [] {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(::sched_getcpu(), &first);
    return ::sched_setaffinity(0, sizeof first, &first) == 0;
  };
  const scratch_directory scratch;
  const scratch_directory other;
  const auto all = words_of_daemon(scratch.path(), "nproc >&2", [] { return true; });
  EXPECT_EQ(words_of_daemon(other.path(), "nproc >&2", bind), all);
}

// What `look` says of a daemon that was launched where `prepare` was; nullopt where that is not permitted.
template <class Prepare, class Look>
std::optional<long> of_daemon(Prepare prepare, Look look) {
  const scratch_directory scratch;
  const auto words = words_of_daemon(scratch.path(), "echo $$ >&2; exec sleep 60", prepare);
  if (!words) return std::nullopt;
  const pid_t daemon = std::atoi(words->c_str());
  EXPECT_GT(daemon, 0) << *words;
  const long seen = look(daemon);
  if (daemon > 0) ::kill(daemon, SIGKILL);
  return seen;
}

constexpr int idle_disk = 3 << 13, last_at_disk = (2 << 13) + 7, first_at_disk = 2 << 13;

bool be_at_disk(int priority) { return ::syscall(SYS_ioprio_set, 1, 0, priority) == 0; }
long at_disk(pid_t daemon) { return ::syscall(SYS_ioprio_get, 1, daemon); }

// `nice -n19 ionice -c3 holdfast run` in a crontab: everybody's locks would wait for a disk that is never idle.
TEST(launch, gives_the_daemon_no_low_priority_of_ours_at_the_disk) {
  const auto usual = of_daemon([] { return true; }, at_disk);
  for (const int low : {idle_disk, last_at_disk}) {
    const auto seen = of_daemon([low] { return be_at_disk(low); }, at_disk);
    if (!seen) GTEST_SKIP() << "it may not be had";
    EXPECT_EQ(seen, usual) << low;
  }
}

bool be_scheduled(int how) {
  const sched_param none{};
  return ::sched_setscheduler(0, how, &none) == 0;
}

TEST(launch, gives_the_daemon_no_low_scheduling_of_ours) {
  for (const int low : {SCHED_BATCH, SCHED_IDLE}) {
    const auto be_low = [low] { return be_scheduled(low); };
    // To leave SCHED_IDLE takes a permission.
    if (in_sandbox(be_low, [] { return be_scheduled(SCHED_OTHER); }) != true) continue;
    EXPECT_EQ(of_daemon(be_low, [](pid_t daemon) -> long { return ::sched_getscheduler(daemon); }), SCHED_OTHER) << low;
  }
}

// It was given on purpose: to the unit that starts the server, say.
TEST(launch, leaves_the_daemon_a_high_priority_of_ours) {
  const scratch_directory scratch, other;
  const auto niceness = words_of_daemon(scratch.path(), "nice >&2", [] { return be_nice(-5); });
  const auto points =
      words_of_daemon(other.path(), "cat /proc/self/oom_score_adj >&2", [] { return be_ended_first_by("-300"); });
  if (!niceness && !points) GTEST_SKIP() << "it may not be had";
  EXPECT_EQ(niceness.value_or("-5"), "-5");
  EXPECT_EQ(points.value_or("-300"), "-300");
  EXPECT_EQ(of_daemon([] { return be_at_disk(first_at_disk); }, at_disk).value_or(first_at_disk), first_at_disk);
}

std::atomic<bool> is_to_fork{false};
pid_t other_child = -1;

// What another thread may do at the worst instant: a child that has all that is open by then, and never execs.
void fork_another() {
  if (!is_to_fork.exchange(false)) return;
  other_child = ::_Fork();
  if (other_child != 0) return;
  ::alarm(60);
  for (;;) ::pause();
}

TEST(launch, waits_for_no_child_that_another_thread_has_forked) {
  const scratch_directory scratch;
  const daemon_plan plan{.words = {"/bin/true"}, .log_file = scratch.path() + "/log"};
  ASSERT_EQ(::pthread_atfork(fork_another, nullptr, nullptr), 0);
  is_to_fork = true;
  EXPECT_GT(launch(plan), 0);
  ASSERT_GT(other_child, 0);
  EXPECT_EQ(::waitpid(other_child, nullptr, WNOHANG), 0) << "it was waited for";
  ::kill(other_child, SIGKILL);
  ::waitpid(other_child, nullptr, 0);
}

}  // namespace
}  // namespace holdfast::local
