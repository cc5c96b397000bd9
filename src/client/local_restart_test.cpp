// SPDX-License-Identifier: Apache-2.0
// That whoever needs a local: server that has ended has one again, that one is started at a time, and that the end of a
// client waits neither for the pause before nor for the start. Of the command tests/cli/local_test.py sees the same.
#include "client/local_restart.hpp"

#include "local/other_server.hpp"
#include "local/scratch_directory.hpp"
#include "net/clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <holdfast/client.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using local::scratch_directory;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Condition>
bool comes_true(Condition condition) {
  const time_point give_up_at = net::boottime_now() + 30s;
  while (!condition()) {
    if (net::boottime_now() >= give_up_at) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

// What stands behind a client, as far as this needs it.
class restarting {
public:
  explicit restarting(const std::string& directory) : it_{std::make_shared<local_restart>(directory, reporter_)} {}
  ~restarting() {
    it_->close(net::boottime_now() + 20s);
    callbacks_->close(true);
  }
  restarting(const restarting&) = delete;
  restarting& operator=(const restarting&) = delete;

  local_restart& operator*() { return *it_; }
  std::vector<std::string> said() {
    const std::lock_guard alone{mutex_};
    return said_;
  }

private:
  std::mutex mutex_{};
  std::vector<std::string> said_{};
  const std::shared_ptr<callback_thread> callbacks_ = std::make_shared<callback_thread>();
  const std::shared_ptr<reporter> reporter_ = std::make_shared<reporter>(
      callbacks_, "local:",
      [this](const log_record& what) {
        const std::lock_guard alone{mutex_};
        said_.push_back(what.text);
      },
      nullptr);
  const std::shared_ptr<local_restart> it_;
};

bool runs(const scratch_directory& scratch) { return query_local(scratch.server()).running; }

// One that was started and has ended.
void stopped_server(const scratch_directory& scratch) {
  start_local(scratch.server());
  stop_local(scratch.server());
}

auto starts(const scratch_directory& scratch) {
  std::ifstream record{scratch.server() + "/starts"};
  return std::count(std::istreambuf_iterator<char>{record}, {}, '\n');
}

TEST(local_restart, starts_a_server_for_all_who_are_refused) {
  const scratch_directory scratch;
  stopped_server(scratch);
  restarting server{scratch.server()};
  EXPECT_TRUE(comes_true([&] {
    (*server).on_refused();
    return runs(scratch);
  }));
  EXPECT_TRUE(comes_true([&] { return !server.said().empty(); }));
  EXPECT_THAT(server.said(), ElementsAre("started the server of local: again"));
  EXPECT_EQ(starts(scratch), 2);
}

// Of a client that outlives more than one server.
TEST(local_restart, starts_the_next_one_too) {
  const scratch_directory scratch;
  stopped_server(scratch);
  restarting server{scratch.server()};
  for (int ended = 0; ended < 2; ++ended) {
    EXPECT_TRUE(comes_true([&] {
      (*server).on_refused();
      return runs(scratch);
    })) << ended;
    stop_local(scratch.server());
  }
}

// Once a second for days.
TEST(local_restart, says_once_what_it_fails_of_and_goes_on) {
  const scratch_directory scratch;
  stopped_server(scratch);
  const auto runs_of_it = scratch.path() + "/runs";
  const auto is_well = scratch.path() + "/well";
  // To the end: whoever starts it reads the environment.
  const local::other_server ends{scratch, "#!/bin/sh\necho run >>'" + runs_of_it + "'\n[ -e '" + is_well +
                                              "' ] && exec redis-server \"$@\"\necho \"$$: no\"\nexit 1\n"};
  restarting server{scratch.server()};
  EXPECT_TRUE(comes_true([&] {
    (*server).on_refused();
    std::error_code none_yet;
    return std::filesystem::file_size(runs_of_it, none_yet) >= 8 && !none_yet;
  }));
  std::ofstream{is_well};
  EXPECT_TRUE(comes_true([&] {
    (*server).on_refused();
    return server.said().size() > 1;
  }));
  EXPECT_THAT(server.said(), ElementsAre(HasSubstr("cannot start the server of local: again: "),
                                         "started the server of local: again"));
}

TEST(local_restart, makes_no_directory_anew) {
  const scratch_directory scratch;
  restarting server{scratch.server()};
  EXPECT_TRUE(comes_true([&] {
    (*server).on_refused();
    return !server.said().empty();
  }));
  EXPECT_THAT(server.said(), ElementsAre(HasSubstr("its directory was removed")));
  EXPECT_FALSE(std::filesystem::exists(scratch.server()));
}

bool sleeps_in_another_thread() {
  int sleeping = 0, all = 0;
  for (const auto& one : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream file{one.path() / "stat"};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    ++all;
    if (text.find(") S ") != text.npos) ++sleeping;
  }
  return all > 1 && sleeping == all - 1;
}

// A client that goes away in the pause does not wait for its end.
TEST(local_restart, ends_at_once_in_its_pause) {
  const scratch_directory scratch;
  const time_point began_at = net::boottime_now();
  for (int times = 0; times < 20; ++times) {
    restarting server{scratch.server()};
    (*server).on_refused();
    EXPECT_TRUE(comes_true(sleeps_in_another_thread));
  }
  EXPECT_LT(net::boottime_now() - began_at, 8s) << "half a second for each at least";
  EXPECT_FALSE(std::filesystem::exists(scratch.server()));
}

// The start has its own patience, 15 s. It goes on without the client.
TEST(local_restart, is_waited_for_no_longer_than_told) {
  const scratch_directory scratch;
  stopped_server(scratch);
  restarting server{scratch.server()};
  const auto pid_file = scratch.path() + "/pid";
  int pid = 0;
  {
    const local::other_server never_listens{scratch, "#!/bin/sh\necho $$ >'" + pid_file + "'\nexec sleep 60\n"};
    EXPECT_TRUE(comes_true([&] {
      (*server).on_refused();
      return (std::ifstream{pid_file} >> pid) && pid > 0;
    }));
  }
  const time_point began_at = net::boottime_now();
  (*server).close(began_at + 50ms);
  EXPECT_LT(net::boottime_now() - began_at, 8s);
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
}

client_options short_quarantine() {
  client_options options;
  options.max_ttl = 1s;
  return options;
}

TEST(local_restart, is_what_a_client_does_that_waits) {
  const scratch_directory scratch;
  client waiting{"local:" + scratch.server(), short_quarantine()};
  EXPECT_FALSE(waiting.inspect("x").held);  // Whoever never reached a server does not wait for one.
  stop_local(scratch.server());
  EXPECT_TRUE(waiting.acquire("x", {.ttl = 1s, .wait = 30s}).valid());
}

// Its lease is in the server's file. It asks when it is to be renewed.
TEST(local_restart, is_what_a_client_does_that_holds) {
  const scratch_directory scratch;
  client holding{"local:" + scratch.server()};
  const auto held = holding.acquire("x", {.ttl = 20s});
  stop_local(scratch.server());
  EXPECT_TRUE(comes_true([&] { return runs(scratch); }));
  EXPECT_EQ(holding.inspect("x").token, held.token());
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
