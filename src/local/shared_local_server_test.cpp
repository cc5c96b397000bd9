// SPDX-License-Identifier: Apache-2.0
// The local server of a directory that is shared with a group: whose it is, and whose its files are.
#include "local/launch.hpp"
#include "local/shared_local_server_testing.hpp"
#include "local/starts.hpp"

#include <holdfast/local.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace holdfast::local {
namespace {

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

// Any member can put there what others would open and never come back from.
TEST_F(shared_local_server, waits_at_nothing_that_a_member_has_put_there) {
  for (const std::string name : {"starts", "redis.log", "lock"}) {
    const auto path = directory_ + "/" + name;
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0660), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0660), 0);
    const auto is_told = in_sandbox([] { return ::alarm(20) == 0; },
                                    [&] {
                                      const bool is_first = is_first_run(directory_);
                                      return !(is_first && name == "starts") && last_line(path).empty() &&
                                             refusal().find("no plain file") != std::string::npos;
                                    });
    EXPECT_EQ(is_told, true) << name;
    std::filesystem::remove(path);
  }
}

// The owner's file by a second name: its mode would be changed for all.
TEST_F(shared_local_server, changes_no_file_that_has_a_name_elsewhere) {
  const auto elsewhere = scratch_.path() + "/elsewhere";
  std::ofstream{elsewhere} << "secret";
  ASSERT_EQ(::chown(elsewhere.c_str(), ann, ann), 0);
  ASSERT_EQ(::chmod(elsewhere.c_str(), 0600), 0);
  for (const auto* name : {"redis.log", "lock"}) {
    const auto path = directory_ + "/" + name;
    std::filesystem::remove(path);
    std::filesystem::create_hard_link(elsewhere, path);
    EXPECT_NE(refusal().find("no plain file"), std::string::npos) << name;
    struct stat seen {};
    ASSERT_EQ(::stat(elsewhere.c_str(), &seen), 0);
    EXPECT_EQ(seen.st_mode & 0777u, 0600u) << name;
    EXPECT_EQ(seen.st_size, 6) << name;
    std::filesystem::remove(path);
  }
}

// Started by whoever comes first, and after that one's server has ended by whoever comes then.
TEST_F(shared_local_server, is_started_by_one_member_after_the_other_whatever_their_umask) {
  for (const mode_t umask : {022u, 077u}) {
    for (const uid_t member : {bob, cid, ann, bob}) {
      EXPECT_EQ(started_by(member, umask), true) << member << " " << umask;
      const auto running = query_local(directory_);
      ASSERT_TRUE(running.running);
      EXPECT_EQ(owner_of("/proc/" + std::to_string(running.pid)), member);
      EXPECT_EQ(ask(running.socket, {"INCR", "x"}), "") << "an integer";
      kill_and_wait(running.pid);
      EXPECT_EQ(names_of_files(), "appendonlydir");
    }
  }
  EXPECT_EQ(ask(start_local(directory_).socket, {"GET", "x"}), "8");
}

// Its starter was ended between keeping the place of the socket and the server's own, by a version that left the mode
// of that to its umask.
TEST_F(shared_local_server, is_started_where_a_starter_has_left_the_place_of_the_socket_to_itself) {
  const auto path = directory_ + "/redis.sock";
  std::ofstream{path}.close();
  ASSERT_EQ(::chown(path.c_str(), bob, group), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto is_started = started_by(cid, 022);
  if (!is_started) GTEST_SKIP() << "nobody else can be become here";
  EXPECT_TRUE(*is_started);
  stop_local(directory_);
  std::ofstream{path}.close();
  ASSERT_EQ(::chown(path.c_str(), bob, group), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(start_local(directory_).was_started);
}

// As an older version left it: with a mode by which only its owner can empty it.
TEST_F(shared_local_server, is_started_where_a_member_left_a_directory_that_only_that_one_can_change) {
  for (const uid_t member : {bob, cid, ann, bob}) {
    EXPECT_EQ(started_by(member, 022), true) << member;
    const auto running = query_local(directory_);
    ask(running.socket, {"INCR", "x"});
    kill_and_wait(running.pid);
    ASSERT_EQ(::chmod(files_.c_str(), 02750), 0);
  }
  EXPECT_EQ(ask(start_local(directory_).socket, {"GET", "x"}), "4");
}

// Where taking over was broken off, something is left that the next one cannot remove.
TEST_F(shared_local_server, is_started_beside_what_a_member_has_left) {
  EXPECT_EQ(started_by(bob, 022), true);
  kill_and_wait(query_local(directory_).pid);
  for (const auto* left : {".new", ".old"}) {
    std::filesystem::create_directory(files_ + left);
    std::ofstream{files_ + left + "/appendonly.aof.1.incr.aof"} << "";
    ASSERT_EQ(::chmod((files_ + left).c_str(), 0700), 0);
    ASSERT_EQ(::chown((files_ + left).c_str(), bob, group), 0);
  }
  EXPECT_EQ(started_by(cid, 022), true);
  kill_and_wait(query_local(directory_).pid);
  EXPECT_EQ(started_by(bob, 022), true);  // Who can remove it.
  EXPECT_EQ(names_of_files(), "appendonlydir");
}

// Whatever else is kept there, and has such a word in its name.
TEST_F(shared_local_server, removes_nothing_but_what_it_has_discarded) {
  const auto elsewhere = scratch_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  std::ofstream{elsewhere + "/kept"} << "";
  const auto make = [&](const std::string& name) {
    std::filesystem::create_directory(directory_ + "/" + name);
    std::ofstream{directory_ + "/" + name + "/file"} << "";
    ::chown((directory_ + "/" + name).c_str(), ann, group);
  };
  const std::set<std::string> others{"notes.gone.1",
                                     "appendonlydir.gone.1",
                                     "appendonlydir.old.gone.",
                                     "appendonlydir.old.gone.1x",
                                     "appendonlydir.old.gone.1.gone.2",
                                     "my.appendonlydir.old.gone.1",
                                     "appendonly.aof.gone.1",
                                     "appendonly.aof.old.gone.1"};
  const std::set<std::string> discarded{"appendonlydir.old.gone.0", "appendonlydir.new.gone.12",
                                        "appendonly.aof.new.gone.3"};
  for (const auto& name : others) make(name);
  for (const auto& name : discarded) make(name);
  const auto link = directory_ + "/appendonlydir.old.gone.7";
  std::filesystem::create_directory_symlink(elsewhere, link);
  start_local(directory_);
  for (const auto& name : others) EXPECT_TRUE(std::filesystem::exists(directory_ + "/" + name + "/file")) << name;
  for (const auto& name : discarded) EXPECT_FALSE(std::filesystem::exists(directory_ + "/" + name)) << name;
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::exists(elsewhere + "/kept"));
}

TEST_F(shared_local_server, of_a_sticky_directory_is_refused) {
  ASSERT_EQ(::chmod(directory_.c_str(), 03770), 0);
  EXPECT_NE(refusal().find("Its mode is 3770; it must be 2770"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace holdfast::local
