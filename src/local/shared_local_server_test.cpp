// SPDX-License-Identifier: Apache-2.0
// The local server of a directory that is shared with a group: whose it is, and whose its files are.
#include "local/local_server_testing.hpp"
#include "local/scratch_directory.hpp"

#include <holdfast/local.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace holdfast::local {
namespace {

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

  static constexpr uid_t ann = 4711;
  static constexpr uid_t bob = 4712;
  static constexpr gid_t group = 4713;
  scratch_directory scratch_;
  const std::string directory_ = scratch_.server();
  const std::string files_ = directory_ + "/appendonlydir";
};

// Who may put a symbolic link there would make root write where it leads.
TEST_F(shared_local_server, is_its_owners_where_root_starts_it) {
  const auto started = start_local(directory_);
  EXPECT_EQ(owner_of("/proc/" + std::to_string(started.pid)), ann);
  EXPECT_EQ(owner_of(files_), ann);
  EXPECT_EQ(ask(started.socket, {"SET", "x", "1"}), "OK");
  EXPECT_EQ(start_local(directory_).pid, started.pid);
}

TEST_F(shared_local_server, goes_on_with_the_files_of_another_member) {
  leave_files_of_bob();
  const auto started = start_local(directory_);
  EXPECT_EQ(owner_of(files_), ann);
  EXPECT_EQ(ask(started.socket, {"SET", "x", "1"}), "OK");
  kill_and_wait(started.pid);
  EXPECT_EQ(ask(start_local(directory_).socket, {"GET", "x"}), "1");
}

// The directory may be ours, and a file in it another's, who rewrote it.
TEST_F(shared_local_server, goes_on_with_a_single_file_of_another_member) {
  kill_and_wait(start_local(directory_).pid);
  for (const auto& entry : std::filesystem::directory_iterator{files_}) {
    ASSERT_EQ(::lchown(entry.path().c_str(), bob, group), 0);
  }
  start_local(directory_);
  for (const auto& entry : std::filesystem::directory_iterator{files_}) EXPECT_EQ(owner_of(entry.path()), ann);
}

TEST_F(shared_local_server, has_its_files_back_where_somebody_was_ended_while_taking_them_over) {
  const auto started = start_local(directory_);
  EXPECT_EQ(ask(started.socket, {"SET", "x", "1"}), "OK");
  stop_local(directory_);
  std::filesystem::rename(files_, files_ + ".old");
  EXPECT_EQ(ask(start_local(directory_).socket, {"GET", "x"}), "1");
}

TEST_F(shared_local_server, follows_no_link_that_a_member_has_put_there) {
  kill_and_wait(start_local(directory_).pid);
  const auto elsewhere = scratch_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  const auto link = files_ + "/appendonly.aof.9.incr.aof";
  std::filesystem::create_symlink(elsewhere, link);
  ASSERT_EQ(::lchown(link.c_str(), ann, group), 0);  // Nothing of it is to be taken over.
  EXPECT_NE(refusal().find("appendonly.aof.9.incr.aof"), std::string::npos) << refusal();
  std::filesystem::remove_all(files_);
  std::filesystem::create_symlink(elsewhere, files_);
  EXPECT_NE(refusal().find("no plain file"), std::string::npos) << refusal();
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
}

}  // namespace
}  // namespace holdfast::local
