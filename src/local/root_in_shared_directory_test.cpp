// SPDX-License-Identifier: Apache-2.0
// What root does in a directory that is shared with a group, it does as the user of its server.
#include "local/shared_local_server_testing.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace holdfast::local {
namespace {

using root_in_shared_directory = shared_local_server;

// Moved to the name of one that is opened, it would be copied, or given a mode, for all.
TEST_F(root_in_shared_directory, opens_no_file_that_only_another_member_may_read) {
  kill_and_wait(start_local(directory_).pid);
  for (const std::string name : {"lock", "starts", "redis.log", "appendonlydir/appendonly.aof.9.incr.aof"}) {
    const auto path = directory_ + "/" + name;
    std::filesystem::remove(path);
    std::ofstream{path} << "cid's alone";
    ASSERT_EQ(::chown(path.c_str(), cid, group), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    EXPECT_NE(refusal().find("Permission denied"), std::string::npos) << name << ": " << refusal();
    EXPECT_EQ(owner_of(path), cid) << name;
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600}) << name;
    std::filesystem::remove(path);
  }
}

TEST_F(root_in_shared_directory, acts_in_no_group_of_its_own) {
  const auto path = directory_ + "/starts";
  std::ofstream{path} << "of root's group\n";
  ASSERT_EQ(::chown(path.c_str(), cid, 0), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const gid_t of_root = 0;
  EXPECT_EQ(in_sandbox([&] { return ::setgroups(1, &of_root) == 0; },
                       [&] { return refusal().find("Permission denied") != std::string::npos; }),
            true);
}

TEST_F(root_in_shared_directory, makes_its_owners_files_and_is_root_again) {
  const auto groups = [] {
    std::vector<gid_t> all(64);
    all.resize(static_cast<std::size_t>(::getgroups(64, all.data())));
    return all;
  };
  const auto before = groups();
  ASSERT_EQ(::prctl(PR_SET_PDEATHSIG, SIGUSR2), 0);
  start_local(directory_);
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory_}) {
    EXPECT_EQ(owner_of(entry.path()), ann) << entry.path();
  }
  stop_local(directory_);
  ASSERT_EQ(::mkdir((files_ + "/x").c_str(), 0700), 0);
  EXPECT_NE(refusal(), "it was started");
  EXPECT_EQ(::setfsuid(~0u), 0);
  EXPECT_EQ(::setfsgid(~0u), 0);
  EXPECT_EQ(groups(), before);
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 1);
  int told_of_parent = 0;
  EXPECT_EQ(::prctl(PR_GET_PDEATHSIG, &told_of_parent), 0);
  EXPECT_EQ(told_of_parent, SIGUSR2);
  ::prctl(PR_SET_PDEATHSIG, 0);
}

// A container without the capabilities.
TEST_F(root_in_shared_directory, starts_and_finds_nothing_where_it_may_be_nobody_else_and_says_so) {
  const auto may_not = [] { return refuse(SYS_setgroups, EPERM); };
  const auto is_told = in_sandbox(may_not, [&] {
    return refusal().find("may not act as") != std::string::npos && ::setfsuid(~0u) == 0 && ::setfsgid(~0u) == 0;
  });
  if (!is_told) GTEST_SKIP() << "no seccomp";
  EXPECT_TRUE(*is_told);
  start_local(directory_);
  EXPECT_EQ(in_sandbox(may_not, [&] { return refusal().find("may not act as") != std::string::npos; }), true);
}

// SHUTDOWN is for who listens there, and a link may lead to root's own server.
TEST_F(root_in_shared_directory, stops_no_other_server_to_which_a_member_has_put_a_link) {
  const scratch_directory of_root;
  const auto other = start_local(of_root.server());
  std::filesystem::create_symlink(other.socket, directory_ + "/redis.sock");
  EXPECT_THROW(stop_local(directory_), error);
  EXPECT_EQ(query_local(of_root.server()).pid, other.pid);
}

// Who finds a server there takes its locks for the group's.
TEST_F(root_in_shared_directory, finds_no_other_server_to_which_a_member_has_put_a_link) {
  const scratch_directory of_root;
  const auto other = start_local(of_root.server());
  std::filesystem::create_symlink(other.socket, directory_ + "/redis.sock");
  EXPECT_NE(refusal(), "it was started");
  EXPECT_THROW(query_local(directory_), error);
}

TEST_F(root_in_shared_directory, gives_its_server_no_low_priority_of_its_own) {
  const auto be_ended_first = [] {
    std::ofstream file{"/proc/self/oom_score_adj"};
    file << "300" << std::flush;
    return file.good();
  };
  const auto is_lifted = in_sandbox(be_ended_first, [&] {
    int points = -1;
    std::ifstream{"/proc/" + std::to_string(start_local(directory_).pid) + "/oom_score_adj"} >> points;
    return points == 0;
  });
  if (!is_lifted) GTEST_SKIP() << "it may not be changed";
  EXPECT_TRUE(*is_lifted);
}

}  // namespace
}  // namespace holdfast::local
