// SPDX-License-Identifier: Apache-2.0
// In a directory that is shared with a group: that what one member makes, or had there before, is the next one's too,
// at whatever instant the first was ended.
#include "local/adopt.hpp"
#include "local/clock.hpp"
#include "local/directory.hpp"
#include "local/directory_lock.hpp"
#include "local/launch.hpp"
#include "local/shared_local_server_testing.hpp"

#include <holdfast/local.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

class rights_in_shared_directory : public shared_local_server {
protected:
  bool has_nameless_files() const {
    const int file = ::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
  }
  void end_server() const { kill_and_wait(query_local(directory_).pid); }
  void give_directory_to(uid_t user, gid_t its_group, mode_t mode) const {
    ASSERT_EQ(::chown(directory_.c_str(), user, its_group), 0);
    ASSERT_EQ(::chmod(directory_.c_str(), mode), 0);
  }
};

// A mode is given against a umask, in a step of its own. Whoever was killed before that left a name that no other
// member could open, until that one came again.
TEST_F(rights_in_shared_directory, are_there_though_a_member_was_killed_before_it_gave_them) {
  if (!has_nameless_files()) GTEST_SKIP() << "no O_TMPFILE";
  const std::vector<std::pair<std::string, std::function<void()>>> makers{
      {"lock",
       [&] {
         const directory_lock lock{directory_ + "/lock", 0660, boottime_now() + 1s};
       }},
      {"redis.log", [&] { launch({.words = {"/bin/true"}, .log_file = directory_ + "/redis.log", .shared = true}); }},
      {"appendonlydir", [&] { open_to_group(find(directory_)); }}};
  for (const auto& [name, make] : makers) {
    const auto is_done =
        in_sandbox([] { return become(bob, 077) && end_with(SYS_fchmod); }, [&make = make] { return make(), true; });
    if (!is_done) GTEST_SKIP() << "no seccomp(2)";
    EXPECT_FALSE(*is_done) << name;
    EXPECT_EQ(started_by(cid, 022), true) << name;
    end_server();
    for (const auto& entry : std::filesystem::directory_iterator{directory_}) std::filesystem::remove_all(entry);
  }
}

// `chgrp team DIR; chmod 2770 DIR`, or `chgrp -R`: what is in it has its owner's own group, or modes for nobody else.
TEST_F(rights_in_shared_directory, are_given_by_its_owners_next_start_where_it_was_the_owners_own) {
  for (const auto& [is_by_root, is_all_of_it] : {std::pair{false, false}, {true, false}, {false, true}}) {
    for (const auto& entry : std::filesystem::directory_iterator{directory_}) std::filesystem::remove_all(entry);
    give_directory_to(ann, ann, 0700);
    ASSERT_EQ(started_by(ann, 077), true);
    EXPECT_EQ(ask(directory_ + "/redis.sock", {"SET", "x", "1"}), "OK");
    EXPECT_EQ(in_sandbox([] { return become(ann, 077); }, [&] { return stop_local(directory_).was_stopped; }), true);
    give_directory_to(ann, group, 02770);
    for (const auto& entry : std::filesystem::recursive_directory_iterator{directory_}) {
      if (is_all_of_it) {
        ASSERT_EQ(::lchown(entry.path().c_str(), ann, group), 0);
      }
    }
    EXPECT_EQ(is_by_root ? start_local(directory_).was_started : started_by(ann, 077), true);
    end_server();
    ASSERT_EQ(started_by(cid, 077), true) << is_by_root << is_all_of_it;
    EXPECT_EQ(ask(directory_ + "/redis.sock", {"GET", "x"}), "1");
    end_server();
  }
}

}  // namespace
}  // namespace holdfast::local
