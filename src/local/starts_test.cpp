// SPDX-License-Identifier: Apache-2.0
// Which starts count, and that a first one is told from a restart.
#include "local/starts.hpp"

#include "local/other_server.hpp"
#include "local/private_mounts.hpp"
#include "local/process.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace holdfast::local {
namespace {

bool starts(const scratch_directory& scratch) {
  try {
    return start_local(scratch.server()).was_started;
  } catch (const error&) {
    return false;
  }
}

bool is_first_start(const scratch_directory& scratch) { return starts(scratch) && is_first_run(scratch.server()); }

// The first command on a new machine fails for want of redis-server; what is installed then is a first server.
TEST(local_starts, one_without_an_installed_server_does_not_count) {
  const scratch_directory scratch;
  const auto is_refused =
      with_private_mounts([&] { return cover("/usr/bin/redis-server", "/dev/null") && !starts(scratch); });
  if (!is_refused) GTEST_SKIP() << "only root can hide redis-server";
  EXPECT_TRUE(*is_refused);
  EXPECT_TRUE(is_first_start(scratch));
}

TEST(local_starts, one_that_could_not_be_run_does_not_count) {
  const scratch_directory scratch;
  {
    const other_server none{scratch, "#!/no/such/interpreter\n"};
    EXPECT_FALSE(starts(scratch));
    EXPECT_FALSE(starts(scratch));
  }
  EXPECT_TRUE(is_first_start(scratch));
}

// Whoever starts the daemon is killed before it says so: the server may be there, and grant.
TEST(local_starts, one_of_which_nobody_knows_whether_it_was_run_counts) {
  const scratch_directory scratch;
  EXPECT_TRUE(*in_sandbox([] { return end_with(SYS_setsid); }, [&] { return !starts(scratch); }));
  EXPECT_TRUE(starts(scratch));
  EXPECT_FALSE(is_first_run(scratch.server()));
}

// A wrong option, a missing library: it has granted nothing.
TEST(local_starts, one_that_ended_before_it_listened_does_not_count) {
  const scratch_directory scratch;
  {
    const other_server ends{scratch, "#!/bin/sh\necho no\nexit 1\n"};
    EXPECT_FALSE(starts(scratch));
  }
  EXPECT_TRUE(is_first_start(scratch));
}

// Between its end and its start somebody may have been granted a lock, whatever we saw of it.
TEST(local_starts, one_that_listened_before_it_ended_counts) {
  const scratch_directory scratch;
  {
    const other_server ends{scratch, "#!/bin/sh\nrm \"$4\"\nexit 1\n"};
    EXPECT_FALSE(starts(scratch));
  }
  EXPECT_TRUE(starts(scratch));
  EXPECT_FALSE(is_first_run(scratch.server()));
}

TEST(local_starts, one_that_failed_takes_back_no_other) {
  const scratch_directory scratch;
  EXPECT_TRUE(starts(scratch));
  stop_local(scratch.server());
  {
    const other_server none{scratch, "#!/no/such/interpreter\n"};
    EXPECT_FALSE(starts(scratch));
  }
  EXPECT_TRUE(starts(scratch));
  EXPECT_FALSE(is_first_run(scratch.server()));
}

std::string directory_to_lock{};
int lock_of_cleaner = -1;
pid_t who_forks_first = -1;

void lock_before_fork() {
  if (directory_to_lock.empty()) return;
  lock_of_cleaner = ::open(directory_to_lock.c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(::flock(lock_of_cleaner, LOCK_EX | LOCK_NB), 0);
  directory_to_lock.clear();
  who_forks_first = ::getpid();
}

// From here on it is the child's, until that ends.
void leave_lock_to_child() {
  if (lock_of_cleaner >= 0 && ::getpid() == who_forks_first) ::close(std::exchange(lock_of_cleaner, -1));
}

// systemd-tmpfiles has the lock in the moment in which a server would take it: that one is not run, and what it would
// have had in the place of its socket lies there when another is started. It tells nothing of the server before.
TEST(local_starts, one_that_a_cleaner_was_in_the_way_of_takes_back_no_other) {
  const scratch_directory scratch;
  EXPECT_TRUE(starts(scratch));
  stop_local(scratch.server());
  ASSERT_EQ(::pthread_atfork(lock_before_fork, leave_lock_to_child, nullptr), 0);
  directory_to_lock = scratch.server();
  EXPECT_TRUE(starts(scratch));
  EXPECT_TRUE(directory_to_lock.empty());
  EXPECT_FALSE(is_first_run(scratch.server()));
}

// /var/tmp is cleaned of what was not touched for a month: the record may go while a server runs and grants.
TEST(local_starts, one_without_a_record_is_no_first_one_where_anything_of_a_server_is_left) {
  for (const auto* left : {"redis.sock", "redis.log", "appendonlydir"}) {
    const scratch_directory scratch;
    find_or_make(scratch.server());
    const auto path = scratch.server() + "/" + left;
    if (left == std::string{"appendonlydir"})
      std::filesystem::create_directory(path);
    else
      std::ofstream{path} << "";
    EXPECT_TRUE(starts(scratch)) << left;
    EXPECT_FALSE(is_first_run(scratch.server())) << left;
  }
}

// Its socket is all that is left, and goes with it.
TEST(local_starts, stop_leaves_a_record_where_all_was_deleted) {
  const scratch_directory scratch;
  EXPECT_TRUE(starts(scratch));
  for (const auto* deleted : {"starts", "redis.log", "appendonlydir"})
    std::filesystem::remove_all(scratch.server() + "/" + deleted);
  stop_local(scratch.server());
  EXPECT_TRUE(starts(scratch));
  EXPECT_FALSE(is_first_run(scratch.server()));
}

TEST(local_starts, stop_where_nothing_was_started_leaves_the_first_start_to_come) {
  const scratch_directory scratch;
  find_or_make(scratch.server());
  stop_local(scratch.server());
  EXPECT_TRUE(is_first_start(scratch));
}

std::string record(const scratch_directory& scratch) {
  std::ostringstream text;
  text << std::ifstream{scratch.server() + "/starts"}.rdbuf();
  return text.str();
}

// As if the machine had been booted since.
void boot_anew(const scratch_directory& scratch) {
  auto text = record(scratch);
  const auto boot = kernel_boot_id();
  for (auto at = text.find(boot); at != text.npos; at = text.find(boot, at))
    text.replace(at, boot.size(), "00000000-0000-4000-8000-000000000000");
  std::ofstream{scratch.server() + "/starts"} << text;
}

// Whoever held a lock before the machine was booted has ended with it.
TEST(local_starts, one_in_a_new_boot_is_a_first_one_and_the_next_is_not) {
  const scratch_directory scratch;
  for (int boot = 0; boot < 2; ++boot) {
    EXPECT_TRUE(is_first_start(scratch)) << boot;
    stop_local(scratch.server());
    EXPECT_TRUE(starts(scratch)) << boot;
    EXPECT_FALSE(is_first_run(scratch.server())) << boot;
    stop_local(scratch.server());
    boot_anew(scratch);
  }
}

TEST(local_starts, one_of_which_nobody_knows_the_boot_counts_in_each) {
  for (const auto* line : {"started by process 17\n", "started before this record was lost\n", "0000", "\n"}) {
    const scratch_directory scratch;
    find_or_make(scratch.server());
    std::ofstream{scratch.server() + "/starts"} << line << "\n";
    EXPECT_TRUE(starts(scratch)) << line;
    EXPECT_FALSE(is_first_run(scratch.server())) << line;
  }
}

// A container of systemd-nspawn or LXC has a boot id of its own, and shares the directory with holders outside.
TEST(local_starts, one_in_a_container_with_a_boot_of_its_own_counts_outside_and_those_outside_count_there) {
  const scratch_directory scratch;
  const auto own = scratch.path() + "/boot_id";
  std::ofstream{own} << "11111111-0000-4000-8000-000000000000\n";
  const auto in_container = [&](auto work) {
    return with_private_mounts([&] { return cover("/proc/sys/kernel/random/boot_id", own.c_str()) && work(); });
  };
  const auto was_first = in_container([&] { return is_first_start(scratch); });
  if (!was_first) GTEST_SKIP() << "only root can mount";
  EXPECT_TRUE(*was_first);
  stop_local(scratch.server());
  EXPECT_TRUE(starts(scratch));
  EXPECT_FALSE(is_first_run(scratch.server()));
  stop_local(scratch.server());
  boot_anew(scratch);
  EXPECT_TRUE(*in_container([&] { return starts(scratch) && !is_first_run(scratch.server()); }));
}

}  // namespace
}  // namespace holdfast::local
