// SPDX-License-Identifier: Apache-2.0
// That a process which cannot be watched is not taken for one that has ended: a sandbox may refuse pidfd_open(2), and
// descriptors may have run out.
#include "local/other_server.hpp"
#include "local/process.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"
#include "local/server_lock.hpp"
#include "local/starts.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <holdfast/error.hpp>
#include <holdfast/lab.hpp>
#include <holdfast/local.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

template <class Work>
bool fails(Work work) {
  try {
    work();
    return false;
  } catch (const error& e) {
    return e.code() == errc::local_server && !e.detail().why.empty();
  }
}

// nullopt where there can be no sandbox.
template <class Work>
std::optional<bool> without_pidfd(Work work, int error_number = EMFILE) {
  return in_sandbox([=] { return refuse(SYS_pidfd_open, error_number); }, work);
}

template <class Work>
bool without_descriptors(Work work) {
  return in_sandbox(refuse_descriptors, work).value_or(false);
}

pid_t dead_child() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(unwatched, process_has_not_ended) {
  for (const int error_number : {EMFILE, EPERM, ENOSYS, ENOMEM}) {
    const int pid = ::getpid();
    const auto is_told = without_pidfd([pid] { return fails([pid] { process_handle{pid}; }); }, error_number);
    if (!is_told) GTEST_SKIP() << "no seccomp";
    EXPECT_TRUE(*is_told) << error_number;
  }
  EXPECT_FALSE(process_handle{dead_child()}.running());
}

TEST(unwatched, process_of_another_container_has_not_ended) {
  for (const int pid : {0, -1}) EXPECT_TRUE(fails([pid] { process_handle{pid}; })) << pid;
}

TEST(unwatched, process_without_a_descriptor_left_has_no_other_start_or_boot) {
  const int pid = ::getpid();
  const process_handle held{pid};
  EXPECT_TRUE(without_descriptors([pid] { return fails([pid] { started_at(pid); }); }));
  EXPECT_TRUE(without_descriptors([pid] { return fails([pid] { state_of(pid); }); }));
  EXPECT_TRUE(without_descriptors([] { return fails([] { boot_id(); }); }));
  EXPECT_TRUE(without_descriptors([] { return kernel_boot_id().empty(); })) << "unknown: its starts count in each";
  EXPECT_TRUE(without_descriptors([&] { return fails([&] { held.running(); }); })) << "poll(2) counts them, too";
}

// A wrong "it has ended" takes the start back, and the next client would take the server for a first one.
TEST(unwatched, server_is_not_started) {
  const scratch_directory scratch;
  const auto runs = scratch.path() + "/runs";
  const other_server server{scratch, "#!/bin/sh\necho run >>'" + runs + "'\nexec redis-server \"$@\"\n"};
  const auto is_told = without_pidfd([&] { return fails([&] { start_local(scratch.server()); }); });
  if (!is_told) GTEST_SKIP() << "no seccomp";
  EXPECT_TRUE(*is_told);
  EXPECT_FALSE(std::filesystem::exists(runs));
  EXPECT_TRUE(start_local(scratch.server()).was_started);
  EXPECT_TRUE(is_first_run(scratch.server()));
}

TEST(unwatched, server_that_is_to_be_stopped_is_said_to_run) {
  const scratch_directory scratch;
  const int pid = start_local(scratch.server()).pid;
  const auto is_told = without_pidfd([&] { return fails([&] { stop_local(scratch.server()); }); });
  if (!is_told) GTEST_SKIP() << "no seccomp";
  EXPECT_TRUE(*is_told);
  EXPECT_EQ(query_local(scratch.server()).pid, pid);
}

// There its pid is 0, and only the directory's lock says when it has ended.
TEST(unwatched, server_is_stopped_from_another_pid_namespace) {
  const scratch_directory scratch;
  start_local(scratch.server());
  const auto is_stopped = in_sandbox([] { return ::unshare(CLONE_NEWPID) == 0; },
                                     [&] {
                                       return in_sandbox([] { return true; },
                                                         [&] {
                                                           return !stop_local(scratch.server()).running &&
                                                                  server_lock::try_take(scratch.server()).has_value();
                                                         })
                                           .value();
                                     });
  if (!is_stopped) GTEST_SKIP() << "only root can make one";
  EXPECT_TRUE(*is_stopped);
}

TEST(unwatched, lab_is_neither_ended_nor_removed) {
  const scratch_directory scratch;
  const auto directory = scratch.path() + "/lab";
  const auto started = start_lab(lab_kind::single, {.directory = directory});
  const process_handle server{started.nodes[0].pid};
  const auto& address = started.nodes[0].address;
  const auto is_told = without_pidfd([&] { return fails([&] { stop_lab(directory); }); });
  if (!is_told) {
    stop_lab(directory);
    GTEST_SKIP() << "no seccomp";
  }
  EXPECT_TRUE(*is_told);
  EXPECT_TRUE(*without_pidfd([&] { return fails([&] { kill_lab_node(directory, address); }); }));
  EXPECT_TRUE(*without_pidfd([&] { return fails([&] { restart_lab_node(directory, address, lab_data::dropped); }); }));
  EXPECT_TRUE(server.running());
  EXPECT_EQ(stop_lab(directory).nodes.size(), 1u);
  EXPECT_FALSE(server.running());
}

TEST(unwatched, lab_is_not_started) {
  const scratch_directory scratch;
  const auto runs = scratch.path() + "/runs";
  const other_server server{scratch, "#!/bin/sh\necho run >>'" + runs + "'\n"};
  const auto directory = scratch.path() + "/lab";
  const auto is_told =
      without_pidfd([&] { return fails([&] { start_lab(lab_kind::single, {.directory = directory}); }); });
  if (!is_told) GTEST_SKIP() << "no seccomp";
  EXPECT_TRUE(*is_told);
  EXPECT_FALSE(std::filesystem::exists(runs));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

// What went wrong is the first thing to know; what it left is the second.
TEST(unwatched, lab_that_cannot_be_ended_says_why_it_was_to_be) {
  const scratch_directory scratch;
  const other_server server{scratch, "#!/bin/sh\nexec sleep 60\n"};
  const auto directory = scratch.path() + "/lab";
  const auto is_told = in_sandbox([] { return refuse(SYS_pidfd_send_signal, EPERM); },
                                  [&] {
                                    try {
                                      start_lab(lab_kind::single, {.directory = directory, .ready_within = 50ms});
                                      return false;
                                    } catch (const error& e) {
                                      return e.detail().why.find("not ready in time") != std::string::npos &&
                                             e.detail().why.find("holdfast lab stop") != std::string::npos;
                                    }
                                  });
  if (!is_told) GTEST_SKIP() << "no seccomp";
  EXPECT_TRUE(*is_told);
  EXPECT_EQ(stop_lab(directory).nodes.size(), 1u);
}

// A program's interval timer interrupts every wait.
TEST(unwatched, process_is_waited_for_through_signals) {
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(go[1]);
    char none = 0;
    (void)!::read(go[0], &none, 1);  // Until the other end is closed.
    ::poll(nullptr, 0, 300);
    ::_exit(0);
  }
  ::close(go[0]);
  struct sigaction counts {};
  counts.sa_handler = [](int) {};
  counts.sa_flags = SA_RESTART;
  struct sigaction before {};
  ::sigaction(SIGALRM, &counts, &before);
  const itimerval often{{0, 1000}, {0, 1000}}, never_again{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const process_handle process{child};
  EXPECT_FALSE(process.ended_within(10ms));
  ::close(go[1]);
  EXPECT_TRUE(process.ended_within(20s));
  ::setitimer(ITIMER_REAL, &never_again, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace holdfast::local
