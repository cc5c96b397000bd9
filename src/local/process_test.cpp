// SPDX-License-Identifier: Apache-2.0
// That a process is known by more than its number.
#include "local/process.hpp"

#include "local/private_mounts.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <regex.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

class sleeper {
public:
  sleeper() : pid_{::fork()} {
    if (pid_ == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  ~sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;

  int pid() const { return pid_; }

private:
  int pid_;
};

TEST(process, with_its_own_start_time_is_signalled) {
  const sleeper child;
  const process_handle process{child.pid(), started_at(child.pid())};
  EXPECT_TRUE(process.running());
  EXPECT_TRUE(process.signal(SIGKILL));
  EXPECT_TRUE(process.ended_within(10s));
  EXPECT_FALSE(process.running());
  EXPECT_FALSE(process.signal(SIGKILL)) << "it is a zombie until its parent asks for it";
}

// The danger of a pid in a file: by the time that somebody reads it, it may be another's.
TEST(process, with_another_start_time_is_left_alone) {
  const sleeper child;
  for (const std::uint64_t other : {started_at(child.pid()) - 1, started_at(child.pid()) + 1, std::uint64_t{0}}) {
    const process_handle process{child.pid(), other};
    EXPECT_FALSE(process.running());
    EXPECT_FALSE(process.signal(SIGKILL));
  }
  EXPECT_FALSE(process_handle{child.pid()}.ended_within(50ms));
}

TEST(process, that_is_none_has_ended) {
  EXPECT_FALSE(process_handle::none().running());
  EXPECT_FALSE(process_handle::none().signal(SIGKILL));
  for (const int pid : {0, -1}) EXPECT_EQ(started_at(pid), 0u);
}

TEST(process, moved_on_is_still_held) {
  const sleeper child;
  process_handle first{child.pid(), started_at(child.pid())};
  const process_handle second{std::move(first)};
  EXPECT_TRUE(second.running());
}

TEST(process, state_tells_whether_it_is_stopped) {
  const sleeper child;
  ::kill(child.pid(), SIGSTOP);
  ::waitpid(child.pid(), nullptr, WUNTRACED);
  EXPECT_EQ(state_of(child.pid()), 'T');
  EXPECT_EQ(state_of(0), '\0');
}

TEST(process, boot_has_a_name) {
  EXPECT_EQ(boot_id().size(), 36u);
  EXPECT_EQ(kernel_boot_id(), boot_id());
}

// Two containers of one kernel would take it for two boots.
TEST(process, boot_of_a_container_is_not_taken_for_the_kernels) {
  const scratch_directory scratch;
  const auto own = scratch.path() + "/boot_id";
  std::ofstream{own} << "00000000-0000-4000-8000-000000000000\n";
  const auto is_told_apart = with_private_mounts([&] {
    return cover("/proc/sys/kernel/random/boot_id", own.c_str()) && boot_id().starts_with("00000000-") &&
           kernel_boot_id().empty();
  });
  if (!is_told_apart) GTEST_SKIP() << "only root can mount";
  EXPECT_TRUE(*is_told_apart);
}

TEST(process, is_named_to_pkill_by_its_path_and_no_other_is) {
  EXPECT_EQ(pattern_for_pkill("/var/tmp/redis.sock"), "'unixsocket[: ]/var/tmp/redis\\.sock'");
  EXPECT_EQ(pattern_for_pkill("/it's [a] (b) c+ d* e? f|g ^h$ {i} \\j"),
            "'unixsocket[: ]/it'\\''s \\[a] \\(b\\) c\\+ d\\* e\\? f\\|g \\^h\\$ \\{i} \\\\j'");
}

bool is_matched_by_pkill(std::string pattern, const char* command_line) {
  pattern = pattern.substr(1, pattern.size() - 2);  // The shell takes the quotes.
  regex_t compiled{};
  EXPECT_EQ(::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0);
  const bool is_matched = ::regexec(&compiled, command_line, 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return is_matched;
}

// The words of a message are pasted, and root's would end any server.
TEST(process, of_another_directory_is_not_ended_with_one_whose_path_is_the_end_of_its) {
  const auto pattern = pattern_for_pkill("/locks/redis.sock");
  EXPECT_TRUE(is_matched_by_pkill(pattern, "/usr/bin/redis-server unixsocket:/locks/redis.sock"));
  EXPECT_TRUE(is_matched_by_pkill(pattern, "redis-server --port 0 --unixsocket /locks/redis.sock --dir /locks"));
  EXPECT_FALSE(is_matched_by_pkill(pattern, "/usr/bin/redis-server unixsocket:/srv/locks/redis.sock"));
  EXPECT_FALSE(is_matched_by_pkill(pattern, "redis-server --unixsocket /srv/locks/redis.sock"));
}

}  // namespace
}  // namespace holdfast::local
