// SPDX-License-Identifier: Apache-2.0
// For tests of a directory that is shared with a group: its members, and what they leave there. Shared by the test
// files of this room.
#pragma once

#include "local/local_server_testing.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace holdfast::local {

// Of ann's; bob and cid are members too.
class shared_local_server : public testing::Test {
protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of somebody else";
    std::filesystem::create_directory(directory_);
    ::chmod(scratch_.path().c_str(), 0711);
    ASSERT_EQ(::chown(directory_.c_str(), ann, group), 0);
    ASSERT_EQ(::chmod(directory_.c_str(), 02770), 0);
  }
  // As a server of bob's, who has gone, leaves it.
  void leave_files_of_bob() {
    kill_and_wait(start_local(directory_).pid);
    for (const auto& entry : std::filesystem::recursive_directory_iterator{files_}) {
      ASSERT_EQ(::lchown(entry.path().c_str(), bob, group), 0);
    }
    ASSERT_EQ(::lchown(files_.c_str(), bob, group), 0);
  }
  static uid_t owner_of(const std::string& path) {
    struct stat seen {};
    EXPECT_EQ(::lstat(path.c_str(), &seen), 0) << path;
    return seen.st_uid;
  }
  std::string refusal() const {
    try {
      start_local(directory_);
    } catch (const error& e) {
      return e.what();
    }
    return "it was started";
  }

  // In a child only: it stays. A user whose own group is another one.
  static bool become(uid_t member, mode_t umask) {
    ::umask(umask);
    return ::setgroups(1, &group) == 0 && ::setgid(member) == 0 && ::setuid(member) == 0;
  }
  std::optional<bool> started_by(uid_t member, mode_t umask) const {
    return in_sandbox([=] { return become(member, umask); }, [&] { return start_local(directory_).was_started; });
  }
  std::string names_of_files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{directory_})
      if (entry.path().string().starts_with(files_)) names.insert(entry.path().filename());
    return fmt::format("{}", fmt::join(names, " "));
  }

  static constexpr uid_t ann = 4711;
  static constexpr uid_t bob = 4712;
  static constexpr uid_t cid = 4714;
  static constexpr gid_t group = 4713;
  scratch_directory scratch_;
  const std::string directory_ = scratch_.server();
  const std::string files_ = directory_ + "/appendonlydir";
};

}  // namespace holdfast::local
