// SPDX-License-Identifier: Apache-2.0
// Starts that go wrong, with the ports as the lever. That they go right, tests/cli/lab_test.py and
// tests/integration/lab_test.cpp see.
#include "local/lab.hpp"
#include "local/other_server.hpp"
#include "local/process.hpp"
#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"
#include "local/server_lock.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <holdfast/error.hpp>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string lab_in(const scratch_directory& scratch) { return scratch.path() + "/lab"; }

bool is_empty(const scratch_directory& scratch) { return std::filesystem::is_empty(scratch.path()); }

class listener {
public:
  explicit listener(int port) : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    const int on = 1;  // As who found it free has: a connection of another test's lab may have ended there just now.
    EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 4), 0);
  }
  ~listener() { ::close(fd_); }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

private:
  int fd_;
};

// Between the look for a free port and the server's bind(2), another program takes one.
TEST(lab_start, takes_other_ports_when_one_was_taken_meanwhile) {
  const scratch_directory scratch;
  const int taken = free_ports(1).front();
  const listener other{taken};
  int draws = 0;
  const auto started = start(lab_kind::quorum, {.count = 3, .directory = lab_in(scratch)}, [&](std::size_t count) {
    auto ports = free_ports(count);
    if (++draws == 1) ports.back() = taken;
    return ports;
  });
  EXPECT_GE(draws, 2);  // Others draw ports on this machine, too.
  ASSERT_EQ(started.nodes.size(), 3u);
  for (const auto& node : started.nodes) EXPECT_NE(node.address, "127.0.0.1:" + std::to_string(taken));
  EXPECT_EQ(stop_lab(lab_in(scratch)).nodes.size(), 3u);
  EXPECT_TRUE(is_empty(scratch));
}

TEST(lab_start, gives_up_when_ports_are_taken_again_and_again_and_leaves_nothing) {
  const scratch_directory scratch;
  const int taken = free_ports(1).front();
  const listener other{taken};
  int draws = 0;
  try {
    start(lab_kind::single, {.directory = lab_in(scratch)}, [&](std::size_t) {
      ++draws;
      return std::vector{taken};
    });
    FAIL() << "it started";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::local_server);
    EXPECT_THAT(e.detail().why, HasSubstr("five times"));
  }
  EXPECT_EQ(draws, 5);
  EXPECT_TRUE(is_empty(scratch));
}

TEST(lab_start, that_is_not_ready_in_time_says_what_is_missing_and_leaves_nothing) {
  const scratch_directory scratch;
  try {
    start(lab_kind::cluster, {.directory = lab_in(scratch), .ready_within = 1ms}, free_ports);
    FAIL() << "it started";
  } catch (const error& e) {
    EXPECT_EQ(e.detail().subject, lab_in(scratch));
    EXPECT_THAT(e.detail().server_text, HasSubstr("127.0.0.1:"));
  }
  EXPECT_TRUE(is_empty(scratch));
}

// Somebody is quicker in the directory that we have made.
TEST(lab_start, that_gets_no_lock_leaves_that_to_who_has_it) {
  const scratch_directory scratch;
  const auto starts = [&] {
    try {
      start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports);
      return true;
    } catch (const error&) {
      return false;
    }
  };
  EXPECT_TRUE(*in_sandbox([] { return refuse(SYS_flock, EWOULDBLOCK); }, [&] { return !starts(); }));
  EXPECT_FALSE(is_empty(scratch));
  EXPECT_FALSE(std::filesystem::is_empty(lab_in(scratch)));
}

TEST(lab_start, that_would_wait_for_more_than_a_year_is_refused) {
  const scratch_directory scratch;
  for (const auto span : {std::chrono::milliseconds::max(), std::chrono::milliseconds{24h * 366} + 1ms, -1ms}) {
    try {
      start(lab_kind::single, {.directory = lab_in(scratch), .ready_within = span}, free_ports);
      FAIL() << "it started";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_option) << span.count();
      EXPECT_THAT(e.detail().subject, HasSubstr("ready_within"));
    }
    EXPECT_TRUE(is_empty(scratch));
  }
}

TEST(lab_start, that_is_cancelled_leaves_nothing) {
  const scratch_directory scratch;
  std::stop_source cancel;
  cancel.request_stop();
  try {
    start(lab_kind::sentinel, {.directory = lab_in(scratch), .cancel = cancel.get_token()}, free_ports);
    FAIL() << "it started";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::cancelled);
  }
  EXPECT_TRUE(is_empty(scratch));
}

// redis-server reads its directory's name from a file, where quotes and line breaks mean something.
TEST(lab_start, bears_a_directory_with_any_name) {
  const scratch_directory scratch;
  const auto directory = lab_in(scratch) + " a\"b\\c\nport 1 'd'";
  EXPECT_EQ(start(lab_kind::single, {.directory = directory}, free_ports).directory, directory);
  EXPECT_EQ(stop_lab(directory).nodes.size(), 1u);
  EXPECT_TRUE(is_empty(scratch));
}

// Whoever starts a lab may be killed between a server's first instruction and the record of its pid. Here the record
// that is left then is written by hand.
void forget_pids(const std::string& directory) {
  const lab_place place{directory};
  auto record = *load(place);
  for (auto& member : record.members) member.pid = 0;
  save(place, record);
}

TEST(lab_stop, ends_servers_that_its_record_does_not_have) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::sentinel, {.directory = lab_in(scratch)}, free_ports);
  forget_pids(lab_in(scratch));
  const auto ended = stop_lab(lab_in(scratch));
  ASSERT_EQ(ended.nodes.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ended.nodes[i].pid, started.nodes[i].pid);
    EXPECT_FALSE(process_handle{started.nodes[i].pid}.running());
  }
  EXPECT_TRUE(is_empty(scratch));
}

TEST(lab_stop, takes_only_who_works_in_a_directory_for_its_server) {
  const scratch_directory scratch;
  start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports);
  const lab_place place{lab_in(scratch)};
  const auto home = place.home_of(load(place)->members[0]);
  auto cleaner = server_lock::try_take(home);
  EXPECT_FALSE(cleaner);  // The server has it.
  EXPECT_THAT(servers_of(home), testing::ElementsAre(load(place)->members[0].pid));
  kill_lab_node(lab_in(scratch), load(place)->members[0].address());
  cleaner = server_lock::try_take(home);
  EXPECT_TRUE(cleaner);
  EXPECT_THAT(servers_of(home), testing::IsEmpty());
}

// A descriptor may be closed, and its process end, between the look at it and the reading of its locks.
TEST(lab_stop, looks_at_who_closes_the_directory_meanwhile) {
  const scratch_directory scratch;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (::chdir(scratch.path().c_str()) == 0) {
      std::array<int, 32> all{};  // Many, so that nearly every look meets one that is closed just then.
      for (int& one : all) one = ::open(".", O_RDONLY | O_DIRECTORY);
      for (const int one : all) ::close(one);
    }
    ::_exit(1);
  }
  int looks = 0;
  EXPECT_NO_THROW({
    for (; looks < 300 && servers_of(scratch.path()).empty(); ++looks) {
    }
  });
  EXPECT_EQ(looks, 300);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(lab_stop, of_a_lab_that_had_only_begun_to_write_its_record_finds_none) {
  const scratch_directory scratch;
  std::filesystem::create_directory(lab_in(scratch));
  ASSERT_EQ(::chmod(lab_in(scratch).c_str(), 0700), 0);
  save(lab_place{lab_in(scratch)}, {.boot = boot_id(), .members = {{.port = 1}}});
  std::filesystem::rename(lab_in(scratch) + "/lab", lab_in(scratch) + "/lab.new");
  EXPECT_TRUE(stop_lab(lab_in(scratch)).nodes.empty());
  EXPECT_EQ(start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports).nodes.size(), 1u);
  stop_lab(lab_in(scratch));
}

TEST(lab_stop, of_a_directory_that_cannot_be_read_says_so) {
  const scratch_directory scratch;
  ASSERT_TRUE(make_closed_directory(scratch.path(), lab_in(scratch), 0300));
  const auto is_told = [&] {
    try {
      stop_lab(lab_in(scratch));
      return false;
    } catch (const error& e) {
      return e.code() == errc::local_server && e.detail().server_text == "Permission denied";
    }
  };
  EXPECT_NE(in_sandbox(become_nobody, is_told), false);
}

// What nobody but root can remove: a directory with a file, closed to all others.
bool make_what_stays(const std::string& directory) {
  return ::mkdir(directory.c_str(), 0700) == 0 && std::ofstream{directory + "/x"}.good() &&
         ::chmod(directory.c_str(), 0500) == 0;
}

std::string refusal_to_stop(const std::string& directory) {
  try {
    stop_lab(directory);
    return {};
  } catch (const error& e) {
    return e.detail().subject + ": " + e.detail().why + " " + e.detail().server_text;
  }
}

// Its record is the way to what is left.
TEST(lab_stop, that_cannot_remove_a_node_says_so_and_can_be_said_again) {
  const scratch_directory scratch;
  const lab_place place{lab_in(scratch)};
  ASSERT_TRUE(make_closed_directory(scratch.path(), place.directory, 0700));
  const auto starts = [&] {
    return start(lab_kind::quorum, {.count = 3, .directory = place.directory}, free_ports).nodes.size() == 3;
  };
  ASSERT_EQ(in_sandbox(become_nobody, starts), true);
  const auto record = load(place);
  const auto kept = place.home_of(record->members[0]) + "/kept";
  ASSERT_TRUE(make_what_stays(kept));
  const auto is_told = [&] {
    const auto said = refusal_to_stop(place.directory);
    return said.find(place.home_of(record->members[0])) == 0 && said.find("Permission denied") != std::string::npos;
  };
  EXPECT_EQ(in_sandbox(become_nobody, is_told), true);
  EXPECT_EQ(in_sandbox(become_nobody, is_told), true) << "and once more";
  EXPECT_TRUE(std::filesystem::exists(place.record_file()));
  EXPECT_TRUE(std::filesystem::exists(place.lock_file()));
  EXPECT_FALSE(std::filesystem::exists(place.home_of(record->members[1]))) << "what can be removed is";
  ::chmod(kept.c_str(), 0700);
  std::filesystem::remove_all(kept);
  EXPECT_EQ(in_sandbox(become_nobody, [&] { return refusal_to_stop(place.directory).empty(); }), true);
  EXPECT_TRUE(std::filesystem::is_empty(place.directory));
}

TEST(lab_start, that_fails_and_cannot_remove_a_node_says_that_it_is_left) {
  const scratch_directory scratch;
  const other_server leaving{scratch,
                             "#!/bin/sh\nhome=${1%/*}\nmkdir \"$home/kept\"\ntouch \"$home/kept/x\"\n"
                             "chmod 0500 \"$home/kept\"\nexit 1\n"};
  ASSERT_TRUE(make_closed_directory(scratch.path(), lab_in(scratch), 0700));
  const auto is_told = [&] {
    try {
      start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports);
      return false;
    } catch (const error& e) {
      return e.detail().why.find("something was left") != std::string::npos &&
             e.detail().why.find("`holdfast lab stop " + lab_in(scratch) + "`") != std::string::npos;
    }
  };
  EXPECT_EQ(in_sandbox(become_nobody, is_told), true);
  const lab_place place{lab_in(scratch)};
  const auto record = load(place);
  ASSERT_TRUE(record.has_value());
  ::chmod((place.home_of(record->members[0]) + "/kept").c_str(), 0700);  // For who removes all of it.
}

TEST(lab_restart, that_was_killed_before_it_wrote_the_pid_leaves_a_node_that_can_be_killed) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports);
  forget_pids(lab_in(scratch));
  const auto restart = [&] { restart_lab_node(lab_in(scratch), started.nodes[0].address, lab_data::dropped); };
  EXPECT_THROW(restart(), error);  // Beside the other it would be the second one.
  EXPECT_TRUE(process_handle{started.nodes[0].pid}.running());
  kill_lab_node(lab_in(scratch), started.nodes[0].address);
  EXPECT_FALSE(process_handle{started.nodes[0].pid}.running());
  restart();
  EXPECT_EQ(stop_lab(lab_in(scratch)).nodes.size(), 1u);
}

// Of a user, whom modes bind.
TEST(lab_start, goes_well_under_a_umask_that_takes_its_owners_rights) {
  for (const mode_t umask : {0177u, 0777u}) {
    const scratch_directory scratch;
    ASSERT_TRUE(make_closed_directory(scratch.path(), lab_in(scratch), 0700));
    const auto prepare = [=] { return become_nobody() && (::umask(umask), true); };
    for (const auto& directory : {lab_in(scratch) + "/named", std::string{}}) {
      const auto starts_and_ends = [&] {
        ::setenv("TMPDIR", lab_in(scratch).c_str(), 1);
        const auto started = start(lab_kind::single, {.directory = directory}, free_ports);
        struct stat seen {};
        return ::stat(started.directory.c_str(), &seen) == 0 && (seen.st_mode & 07777u) == 0700u &&
               stop_lab(started.directory).nodes.size() == 1;
      };
      EXPECT_EQ(in_sandbox(prepare, starts_and_ends), true) << std::oct << umask << " " << directory;
    }
    EXPECT_TRUE(std::filesystem::is_empty(lab_in(scratch)));
  }
}

// systemd-tmpfiles goes into no directory that it cannot lock, and may be run when a lab is some days old.
TEST(lab_start, keeps_its_record_from_cleaners) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::quorum, {.count = 3, .directory = lab_in(scratch)}, free_ports);
  EXPECT_FALSE(server_lock::try_take(lab_in(scratch)));
  for (int i = 0; i < 2; ++i) kill_lab_node(lab_in(scratch), started.nodes[static_cast<std::size_t>(i)].address);
  EXPECT_FALSE(server_lock::try_take(lab_in(scratch)));
  kill_lab_node(lab_in(scratch), started.nodes[2].address);
  EXPECT_TRUE(server_lock::try_take(lab_in(scratch)));
  stop_lab(lab_in(scratch));
}

void boot_anew(const std::string& directory) {
  const lab_place place{directory};
  auto text = to_text(*load(place));
  text.replace(text.find(boot_id()), boot_id().size(), "00000000-0000-4000-8000-000000000000");
  std::ofstream{place.record_file()} << text;
}

// After a reboot the same pids and start times may be there again, of whatever.
TEST(lab_stop, of_another_boot_signals_nobody_by_a_pid) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports);
  kill_lab_node(lab_in(scratch), started.nodes[0].address);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    ::pause();
    ::_exit(0);
  }
  const lab_place place{lab_in(scratch)};
  auto record = *load(place);
  record.members[0].pid = stranger;
  record.members[0].started = started_at(stranger);
  save(place, record);
  boot_anew(lab_in(scratch));
  kill_lab_node(lab_in(scratch), started.nodes[0].address);
  EXPECT_THROW(pause_lab_node(lab_in(scratch), started.nodes[0].address), error);
  EXPECT_TRUE(stop_lab(lab_in(scratch)).nodes.empty());
  EXPECT_TRUE(process_handle{stranger}.running());
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

// A container may have a boot of its own, and share the directory with those outside.
TEST(lab_stop, of_another_boot_ends_who_lives_in_its_directories) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::quorum, {.count = 3, .directory = lab_in(scratch)}, free_ports);
  boot_anew(lab_in(scratch));
  EXPECT_EQ(stop_lab(lab_in(scratch)).nodes.size(), 3u);
  for (const auto& node : started.nodes) EXPECT_FALSE(process_handle{node.pid}.running());
  EXPECT_TRUE(is_empty(scratch));
}

TEST(lab_restart, of_another_boot_is_of_this_one_from_then_on) {
  const scratch_directory scratch;
  const auto directory = lab_in(scratch);
  const auto started = start(lab_kind::quorum, {.count = 3, .directory = directory}, free_ports);
  for (const auto& node : started.nodes) kill_lab_node(directory, node.address);
  boot_anew(directory);
  const process_handle server{restart_lab_node(directory, started.nodes[1].address, lab_data::dropped)};
  EXPECT_THROW(restart_lab_node(directory, started.nodes[1].address, lab_data::dropped), error);
  pause_lab_node(directory, started.nodes[1].address);
  EXPECT_EQ(stop_lab(directory).nodes.size(), 1u);
  EXPECT_FALSE(server.running());
  EXPECT_TRUE(is_empty(scratch));
}

// Its log goes on in the same file.
TEST(lab_restart, that_fails_says_nothing_that_a_former_server_said) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::single, {.directory = lab_in(scratch)}, free_ports);
  kill_lab_node(lab_in(scratch), started.nodes[0].address);
  const lab_place place{lab_in(scratch)};
  std::ofstream{place.log_of(load(place)->members[0]), std::ios::app} << "Address already in use\n";
  for (const std::string words : {"", "its last word"}) {
    const other_server failing{scratch, "#!/bin/sh\nprintf '" + words + "'\nexit 1\n"};
    try {
      restart_lab_node(lab_in(scratch), started.nodes[0].address, lab_data::dropped);
      FAIL() << "it started";
    } catch (const error& e) {
      EXPECT_EQ(e.detail().server_text, words);
      EXPECT_EQ(e.detail().why.find("wrote nothing") != std::string::npos, words.empty()) << e.detail().why;
    }
  }
  stop_lab(lab_in(scratch));
}

TEST(lab_restart, takes_no_keys_from_a_server_that_lives) {
  const scratch_directory scratch;
  const auto started = start(lab_kind::single, {.directory = lab_in(scratch), .persistent = true}, free_ports);
  const lab_place place{lab_in(scratch)};
  const auto files = place.home_of(load(place)->members[0]) + "/appendonlydir";
  forget_pids(lab_in(scratch));
  EXPECT_TRUE(std::filesystem::exists(files));
  EXPECT_THROW(restart_lab_node(lab_in(scratch), started.nodes[0].address, lab_data::dropped), error);
  EXPECT_TRUE(std::filesystem::exists(files));
  EXPECT_EQ(stop_lab(lab_in(scratch)).nodes.size(), 1u);
}

}  // namespace
}  // namespace holdfast::local
