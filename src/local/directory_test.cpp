// SPDX-License-Identifier: Apache-2.0
// Which directories the local: server accepts.
#include "local/directory.hpp"
#include "local/lab_directory.hpp"
#include "local/launch.hpp"
#include "local/private_mounts.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace holdfast::local {
namespace {

// The sentence with which `directory` is refused; empty if it is accepted.
std::string refusal(std::string_view directory) {
  try {
    find_or_make(directory);
    return {};
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::local_server);
    return e.detail().why;
  }
}

class environment_variable {
public:
  // Of nullopt: it is not set.
  environment_variable(const char* name, const std::optional<std::string>& value) : name_{name} {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~environment_variable() { set(old_); }
  environment_variable(const environment_variable&) = delete;
  environment_variable& operator=(const environment_variable&) = delete;

private:
  void set(const std::optional<std::string>& value) { value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_); }

  const char* name_;
  std::optional<std::string> old_{};
};

// A script that works in a directory which somebody removes.
TEST(local_directory, of_no_current_directory_is_refused_with_the_reason) {
  const scratch_directory scratch;
  const auto gone = scratch.path() + "/gone";
  const auto leave = [&] {
    return ::mkdir(gone.c_str(), 0700) == 0 && ::chdir(gone.c_str()) == 0 && ::rmdir(gone.c_str()) == 0;
  };
  EXPECT_EQ(in_sandbox(leave, [] { return refusal("x").find("the current directory") != std::string::npos; }), true);
}

TEST(local_directory, is_made_with_mode_0700_whatever_the_umask) {
  for (const mode_t umask : {0u, 0177u, 0777u}) {
    scratch_directory scratch;
    const mode_t old = ::umask(umask);
    EXPECT_NO_THROW(find_or_make(scratch.server()));
    ::umask(old);
    struct stat seen {};
    ASSERT_EQ(::stat(scratch.server().c_str(), &seen), 0);
    EXPECT_EQ(seen.st_mode & 07777u, 0700u) << std::oct << umask;
  }
}

// What its owner or the system has closed is closed on purpose.
TEST(local_directory, keeps_its_mode_where_it_is_there_already) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 0500);
  find_or_make(scratch.server());
  struct stat seen {};
  ASSERT_EQ(::stat(scratch.server().c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777u, 0500u);
}

TEST(local_directory, is_var_tmp_with_the_uid_when_nothing_is_named) {
  const environment_variable none{"HOLDFAST_LOCAL_DIR", std::nullopt};
  EXPECT_EQ(find("").directory, "/var/tmp/holdfast-" + std::to_string(::geteuid()));
}

TEST(local_directory, is_taken_from_the_environment_when_the_argument_is_empty) {
  scratch_directory scratch;
  const environment_variable named{"HOLDFAST_LOCAL_DIR", scratch.server()};
  EXPECT_EQ(find("").directory, scratch.server());
}

// Two jobs of one user that begin in two directories would both have the lock, and nobody would say so.
TEST(local_directory, that_is_relative_in_the_environment_is_refused) {
  for (const std::string relative : {"locks", "./locks", "../locks", "."}) {
    const environment_variable named{"HOLDFAST_LOCAL_DIR", relative};
    EXPECT_NE(refusal("").find("whole path"), std::string::npos) << relative;
  }
}

TEST(local_directory, that_is_empty_in_the_environment_is_refused) {
  const environment_variable named{"HOLDFAST_LOCAL_DIR", ""};
  EXPECT_NE(refusal("").find("set and empty"), std::string::npos);
}

TEST(local_directory, argument_goes_before_the_environment) {
  scratch_directory scratch;
  const environment_variable named{"HOLDFAST_LOCAL_DIR", scratch.path() + "/other"};
  EXPECT_EQ(find(scratch.server()).directory, scratch.server());
}

TEST(local_directory, looking_makes_nothing) {
  scratch_directory scratch;
  EXPECT_FALSE(find(scratch.server()).exists);
  EXPECT_FALSE(std::filesystem::exists(scratch.server()));
}

// A symlink can be turned after we looked; with a slash at its end the kernel would follow it before we look.
TEST(local_directory, symlink_is_refused_also_with_a_slash_at_its_end) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.path() + "/real");
  ::chmod((scratch.path() + "/real").c_str(), 0700);
  std::filesystem::create_symlink(scratch.path() + "/real", scratch.server());
  EXPECT_NE(refusal(scratch.server()).find("symbolic link"), std::string::npos);
  EXPECT_NE(refusal(scratch.server() + "/").find("symbolic link"), std::string::npos);
}

TEST(local_directory, file_is_refused) {
  scratch_directory scratch;
  std::ofstream{scratch.server()} << "x";
  EXPECT_NE(refusal(scratch.server()).find("not a directory"), std::string::npos);
}

TEST(local_directory, open_to_others_is_refused_with_the_mode) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 0755);
  EXPECT_NE(refusal(scratch.server()).find("0755"), std::string::npos);
}

// Where a server is looked for that is to be stopped, a new directory has none.
TEST(local_directory, that_is_wrong_is_to_be_a_new_one_only_where_it_would_be_made) {
  const scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 0755);
  const auto is_proposed = [&](const auto& work) {
    try {
      work(scratch.server());
    } catch (const error& e) {
      return e.detail().why.find("is made") != std::string::npos;
    }
    ADD_FAILURE() << "it is accepted";
    return false;
  };
  EXPECT_TRUE(is_proposed(find_or_make));
  EXPECT_FALSE(is_proposed(find));
  ::chmod(scratch.server().c_str(), 0777);
  EXPECT_TRUE(is_proposed(make_lab_place));
  EXPECT_FALSE(is_proposed(find_lab_place));
}

// Somebody who makes /var/tmp/holdfast-UID first must not become the keeper of our locks.
TEST(local_directory, of_another_user_is_refused_even_to_root) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a directory of somebody else";
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 0700);
  ASSERT_EQ(::chown(scratch.server().c_str(), 4711, 4711), 0);
  EXPECT_NE(refusal(scratch.server()).find("belongs to user 4711"), std::string::npos);
}

TEST(local_directory, shared_with_a_group_must_be_named_by_the_argument) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 02770);
  EXPECT_TRUE(find(scratch.server()).shared);
  const environment_variable named{"HOLDFAST_LOCAL_DIR", scratch.server()};
  EXPECT_NE(refusal("").find("2770"), std::string::npos);
}

// Without setgid each member's files would be in that member's own group.
TEST(local_directory, shared_without_setgid_is_refused) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.server());
  ::chmod(scratch.server().c_str(), 0770);
  EXPECT_NE(refusal(scratch.server()).find("must be 2770"), std::string::npos);
}

TEST(local_directory, too_long_for_a_socket_is_refused_with_the_limit) {
  scratch_directory scratch;
  EXPECT_NE(refusal(scratch.path() + "/" + std::string(100, 'x')).find("107"), std::string::npos);
}

TEST(local_directory, missing_parent_is_told_apart) {
  scratch_directory scratch;
  EXPECT_NE(refusal(scratch.path() + "/no/where").find("cannot be made"), std::string::npos);
}

// Its locks would be seen by nobody else, and nobody would say so.
TEST(local_directory, of_a_service_with_a_tmp_of_its_own_is_known) {
  const std::string machine =
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "23 22 254:1 / /var rw,relatime shared:2 - ext4 /dev/vdb rw\n";
  const std::string service =
      machine +
      "99 22 254:0 /tmp/systemd-private-0a1b-cron.service-x/tmp /tmp rw - ext4 /dev/vda rw\n"
      "98 23 254:1 /tmp/systemd-private-0a1b-cron.service-x/tmp /var/tmp rw - ext4 /dev/vdb rw\n";
  EXPECT_TRUE(is_private_to_a_unit(service, "/var/tmp/holdfast-1000"));
  EXPECT_FALSE(is_private_to_a_unit(service, "/var/tmpfiles/holdfast-1000"));
  EXPECT_FALSE(is_private_to_a_unit(service, "/srv/locks"));
  EXPECT_FALSE(is_private_to_a_unit(machine, "/var/tmp/holdfast-1000"));
  EXPECT_FALSE(is_private_to_a_unit("", "/var/tmp/holdfast-1000")) << "no /proc: it cannot be told";
}

TEST(local_directory, of_a_service_with_a_tmp_in_memory_of_its_own_is_known) {
  const std::string machine =
      "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n"
      "24 22 0:30 / /var/tmp rw shared:3 - tmpfs tmpfs rw\n"
      "25 22 254:0 /var-tmp /srv/tmp rw - ext4 /dev/vda rw\n";
  const std::string bound = machine + "98 24 0:55 /var-tmp /var/tmp rw - tmpfs tmpfs rw,size=10%\n";
  const std::string shared_with_tmp = machine +
                                      "97 22 0:55 / /run/systemd/unit-private-tmp rw - tmpfs tmpfs rw\n"
                                      "98 22 0:55 /tmp /tmp rw - tmpfs tmpfs rw\n";
  EXPECT_TRUE(is_private_to_a_unit(bound, "/var/tmp/holdfast-1000"));
  EXPECT_TRUE(is_private_to_a_unit(shared_with_tmp, "/tmp/holdfast-1000"));
  EXPECT_FALSE(is_private_to_a_unit(shared_with_tmp, "/var/tmp/holdfast-1000"));
  EXPECT_FALSE(is_private_to_a_unit(machine, "/var/tmp/holdfast-1000")) << "a tmpfs of the machine's";
  EXPECT_FALSE(is_private_to_a_unit(machine, "/srv/tmp/holdfast-1000"));
}

bool mount_memory(const char* path) { return ::mount("tmpfs", path, "tmpfs", 0, nullptr) == 0; }

bool is_refused_as_a_units() { return refusal("").find("PrivateTmp") != std::string::npos; }

// As systemd does it from version 257 on.
TEST(local_directory, of_a_service_with_a_disconnected_tmp_is_refused) {
  const environment_variable none{"HOLDFAST_LOCAL_DIR", std::nullopt};
  const std::string made = "/run/systemd/unit-private-tmp";
  const auto is_told = with_private_mounts([&] {
    std::error_code ec;
    return mount_memory("/run") && std::filesystem::create_directories(made, ec) && mount_memory(made.c_str()) &&
           std::filesystem::create_directory(made + "/var-tmp", ec) && cover("/var/tmp", (made + "/var-tmp").c_str()) &&
           is_refused_as_a_units();
  });
  if (!is_told) GTEST_SKIP() << "only root can mount";
  EXPECT_TRUE(*is_told);
}

// Where /var/tmp is a link, what is mounted is what it leads to.
TEST(local_directory, of_a_service_with_a_tmp_of_its_own_is_refused_behind_a_link) {
  const environment_variable none{"HOLDFAST_LOCAL_DIR", std::nullopt};
  const std::string made = "/tmp/systemd-private-0a1b-x.service-2c3d/tmp";
  const auto is_told = with_private_mounts([&] {
    std::error_code ec;
    if (!mount_memory("/var") || !mount_memory("/tmp")) return false;
    std::filesystem::create_symlink("/tmp", "/var/tmp", ec);
    return !ec && std::filesystem::create_directories(made, ec) && cover("/tmp", made.c_str()) &&
           is_refused_as_a_units();
  });
  if (!is_told) GTEST_SKIP() << "only root can mount";
  EXPECT_TRUE(*is_told);
}

TEST(local_directory, network_file_systems_are_known_by_their_magic) {
  for (const unsigned long magic : {0x6969ul, 0x517Bul, 0xFF534D42ul, 0xFE534D42ul, 0x01021997ul, 0x00C36400ul}) {
    EXPECT_TRUE(is_network_file_system(magic, "")) << std::hex << magic;
  }
  for (const unsigned long local_disk : {0xEF53ul, 0x01021994ul, 0x9123683Eul, 0x58465342ul, 0x794C7630ul}) {
    EXPECT_FALSE(is_network_file_system(local_disk, "")) << std::hex << local_disk;
  }
}

TEST(local_directory, fuse_is_a_network_unless_its_type_is_known_to_be_a_disk) {
  EXPECT_TRUE(is_network_file_system(0x65735546, "fuse.sshfs"));
  EXPECT_TRUE(is_network_file_system(0x65735546, ""));
  EXPECT_FALSE(is_network_file_system(0x65735546, "fuse.fuse-overlayfs"));
}

// cron's PATH may lack /usr/sbin; an entry that is not absolute would run what lies in the current directory.
TEST(local_program, is_looked_for_beyond_path_and_never_in_relative_entries) {
  scratch_directory scratch;
  EXPECT_FALSE(find_program("redis-server", "").empty());
  EXPECT_TRUE(find_program("no-such-program-of-ours", "/usr/bin").empty());
  std::ofstream{scratch.path() + "/no-such-program-of-ours"} << "#!/bin/sh\n";
  ::chmod((scratch.path() + "/no-such-program-of-ours").c_str(), 0755);
  EXPECT_EQ(find_program("no-such-program-of-ours", "/usr/bin:" + scratch.path()),
            scratch.path() + "/no-such-program-of-ours");
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  EXPECT_TRUE(find_program("no-such-program-of-ours", ":.").empty());
  std::filesystem::current_path(here);
}

}  // namespace
}  // namespace holdfast::local
