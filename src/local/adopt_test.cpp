// SPDX-License-Identifier: Apache-2.0
// Taking files over while a member of the group exchanges one for a link. There is no instant to wait for, so each is
// tried: who takes over is stopped at each of its system calls in turn, and the exchange is made then.
#include "local/adopt.hpp"

#include "local/as_server_user.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <holdfast/error.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

namespace holdfast::local {
namespace {

namespace fs = std::filesystem;

constexpr uid_t ann = 4711;
constexpr uid_t bob = 4712;
constexpr gid_t group = 4713;
constexpr const char* secret = "only ann may read this\n";

std::string text_of(const fs::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

constexpr int not_permitted = 2;

enum class stop { was_made, was_not_reached, is_not_permitted };

// In a child of ours, which goes on when its parent has it.
void be_stopped() {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(not_permitted);
  ::raise(SIGSTOP);
}

// `work` in a child that stops itself; `at_stop` when that has come so often to an end of a system call since.
stop with_stop(int which, const std::function<void()>& work, const std::function<void()>& at_stop) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const error&) {  // What was exchanged may be refused.
    } catch (...) {           // Or the child would go on with the tests.
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), not_permitted);
    return stop::is_not_permitted;
  }
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  int stops = 0;
  long signal = 0;
  while (::ptrace(stops < which ? PTRACE_SYSCALL : PTRACE_CONT, child, nullptr, signal) == 0 &&
         ::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const bool is_ours = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = is_ours ? 0 : WSTOPSIG(status);  // One that it has earned ends it.
    if (is_ours && ++stops == which) at_stop();
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return stops >= which ? stop::was_made : stop::was_not_reached;
}

class adopt_files_while : public testing::Test {
protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of somebody else";
    ASSERT_EQ(::chmod(scratch_.path().c_str(), 0711), 0);
  }

  // `elsewhere` is in reach of who takes over; a member of the group may not look into it.
  void make_all() const {
    for (const auto& old : {directory_, elsewhere_}) fs::remove_all(old);
    make_directory(directory_, ann, 02770);
    make_directory(files_, bob, 02770);
    make_file(file_, bob, "of the server's\n", 0660);
    make_directory(elsewhere_, ann, 0700);
    make_file(elsewhere_ + "/secret", ann, secret, 0600);
  }

  static void make_directory(const std::string& path, uid_t user, mode_t mode) {
    fs::create_directory(path);
    ASSERT_EQ(::chown(path.c_str(), user, group), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }

  static void make_file(const std::string& path, uid_t user, const std::string& text, mode_t mode) {
    std::ofstream{path} << text;
    ASSERT_EQ(::chown(path.c_str(), user, group), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }

  void take_over(const std::function<void()>& at_first) const {
    const auto where = find(directory_);
    const as_server_user for_all_of_it{where};
    at_first();
    adopt_files(where);
    open_to_group(where);
  }

  // A member has put a link to `target` in the place of `path`.
  void exchange(const std::string& path, const std::string& target) const {
    std::error_code ec;
    fs::rename(path, directory_ + "/aside", ec);
    fs::create_symlink(target, path, ec);
  }

  // Nothing of what is elsewhere has come here, and there nothing has changed.
  void expect_all_well(int which) const {
    for (const auto& entry : fs::recursive_directory_iterator{directory_}) {
      if (entry.symlink_status().type() != fs::file_type::regular) continue;
      EXPECT_NE(text_of(entry.path()), secret) << entry.path() << " at stop " << which;
    }
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator{elsewhere_}) names.insert(entry.path().filename());
    EXPECT_EQ(names, std::set<std::string>{"secret"}) << "at stop " << which;
    EXPECT_EQ(mode_of(elsewhere_), 0700u) << "at stop " << which;
    EXPECT_EQ(mode_of(elsewhere_ + "/secret"), 0600u) << "at stop " << which;
  }

  static mode_t mode_of(const std::string& path) {
    struct stat seen {};
    EXPECT_EQ(::stat(path.c_str(), &seen), 0);
    return seen.st_mode & 07777u;
  }

  void exchange_at_each_instant(const std::string& path, const std::string& target) const {
    constexpr int few = 50, many = 5'000;
    for (int which = 1; which < many && !HasFailure(); which += 2) {  // One end of each system call.
      make_all();
      const auto came = with_stop(
          which, [this] { take_over(be_stopped); }, [&] { exchange(path, target); });
      if (came == stop::is_not_permitted) GTEST_SKIP() << "no ptrace(2)";
      if (came == stop::was_not_reached) {
        EXPECT_GT(which, few) << "it did not do its work";
        return;
      }
      expect_all_well(which);
    }
    EXPECT_TRUE(HasFailure()) << "it does not end";
  }

  scratch_directory scratch_;
  const std::string directory_ = scratch_.server();
  const std::string files_ = directory_ + "/appendonlydir";
  const std::string file_ = files_ + "/appendonly.aof.1.incr.aof";
  const std::string elsewhere_ = scratch_.path() + "/elsewhere";
};

TEST_F(adopt_files_while, nobody_exchanges_anything_makes_them_the_server_users) {
  make_all();
  take_over([] {});
  struct stat seen {};
  for (const auto& path : {files_, file_}) {
    ASSERT_EQ(::lstat(path.c_str(), &seen), 0);
    EXPECT_EQ(seen.st_uid, ann) << path;
    EXPECT_EQ(seen.st_gid, group) << path;
  }
  EXPECT_EQ(text_of(file_), "of the server's\n");
}

TEST_F(adopt_files_while, the_directory_is_exchanged_copies_nothing_from_elsewhere) {
  exchange_at_each_instant(files_, elsewhere_);
}

TEST_F(adopt_files_while, the_copy_is_exchanged_makes_nothing_elsewhere) {
  exchange_at_each_instant(files_ + ".new", elsewhere_);
}

TEST_F(adopt_files_while, the_former_directory_is_exchanged_removes_nothing_elsewhere) {
  exchange_at_each_instant(files_ + ".old", elsewhere_);
}

TEST_F(adopt_files_while, a_file_is_exchanged_copies_nothing_from_elsewhere) {
  exchange_at_each_instant(file_, elsewhere_ + "/secret");
}

}  // namespace
}  // namespace holdfast::local
