// SPDX-License-Identifier: Apache-2.0
// Processes whose wall clock steps while they hold and wait (H6); the server's stays. Who reckons a lease, a wait or a
// request's end on that clock loses what it holds, waits for an hour, or asks without pause. Ours does not look at it;
// tools/tidy knows who may. And processes that the machine slept under: what has a bound has it on CLOCK_BOOTTIME (H2).
#include "integration/fixture.hpp"
#include "support/skewed_clock.hpp"

#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class stepping_client : public on_redis {
protected:
  void SetUp() override {
#ifdef HOLDFAST_SANITIZED
    GTEST_SKIP() << "a sanitizer's run-time must be the first library of a process";
#endif
  }
  child_process start(const std::vector<std::string>& words) {
    child_process::options how;
    how.environment = worker_environment();
    for (const auto& one : clock_.environment()) how.environment.push_back(one);
    std::vector<std::string> command{HOLDFAST_WORKER, uri()};
    command.insert(command.end(), words.begin(), words.end());
    return child_process{command, how};
  }
  static std::string ask(child_process& whom, const std::string& line) {
    whom.write_line(line);
    return whom.read_line().value_or("(nothing)");
  }
  std::int64_t in_line() { return server_("ZCARD", "hf:{x}:line").number; }

  // Each is farther than any lease or wait here is long.
  static constexpr std::chrono::hours steps_[] = {1h, -1h, 24h, -24h, 0h};
  skewed_clock clock_;
  scratch_directory scratch_;
};

TEST_F(stepping_client, renews_what_it_holds_and_no_more_often_H6) {
  auto holder = start({"hold", "x", "3000", scratch_ / "store"});
  ASSERT_TRUE(holder.read_line().value_or("").starts_with("acquired"));
  const auto before = server_.scripts_run();
  const auto began = boottime();
  for (const auto step : steps_) {
    clock_.set(step);
    const auto apart = std::chrono::seconds{std::stoll(ask(holder, "wall")) - std::time(nullptr)};
    EXPECT_LE(apart - step, 60s) << "or this tests nothing";
    EXPECT_GE(apart - step, -60s) << "or this tests nothing";
    const auto until = boottime() + 1s;
    while (boottime() < until) {
      ASSERT_EQ(ask(holder, "valid"), "1") << step.count();
      ASSERT_EQ(ask(holder, "lost"), "0") << step.count();
      ASSERT_GT(pttl("hf:{x}"), 0ms);
      ASSERT_LE(pttl("hf:{x}"), 3s);
    }
  }
  const auto renewals = server_.scripts_run() - before;
  EXPECT_GE(renewals, 2) << "it is renewed each second";
  EXPECT_LE(renewals, 3 + 2 * ((boottime() - began) / 1s));
  EXPECT_EQ(ask(holder, "release"), "0");
  EXPECT_FALSE(exists("hf:{x}"));
}

TEST_F(stepping_client, waits_for_its_turn_and_for_as_long_as_it_said_H6) {
  auto holder = start({"hold", "x", "30000", scratch_ / "store"});
  ASSERT_TRUE(holder.read_line().value_or("").starts_with("acquired"));
  auto waiter = start({"queue", "x", "30000"});
  auto patient = start({"queue", "x", "30000"});
  patient.write_line("go");
  ASSERT_TRUE(eventually([&] { return in_line() == 1; }, 20s));
  for (const auto step : steps_) {
    const auto began = boottime();
    waiter.write_line("go 1500");
    ASSERT_TRUE(eventually([&] { return in_line() == 2; }, 20s));
    clock_.set(step);
    const auto said = waiter.read_line().value_or("(nothing)");
    ASSERT_TRUE(said.starts_with("timed_out ")) << said;
    const auto took = std::chrono::nanoseconds{std::stoll(said.substr(10))} - began;
    EXPECT_GE(took, 1500ms) << step.count();
    EXPECT_LE(took, 1500ms + slack) << step.count();
    EXPECT_TRUE(eventually([&] { return in_line() == 1; })) << "the other one has not left";
  }
  clock_.set(1h);
  const auto began = boottime();
  EXPECT_EQ(ask(holder, "release"), "0");
  EXPECT_TRUE(patient.read_line().value_or("(nothing)").starts_with("acquired "));
  EXPECT_LE(boottime() - began, slack);
}

// At the first look (C4). The kernel's timers are not turned with the clock, so nobody is told here.
TEST_F(stepping_client, has_lost_what_it_held_at_the_first_look_behind_a_suspend_H2) {
  auto holder = start({"hold", "x", "20000", scratch_ / "store"});
  ASSERT_TRUE(holder.read_line().value_or("").starts_with("acquired"));
  ASSERT_EQ(ask(holder, "valid"), "1");
  clock_.suspend(21s);
  EXPECT_EQ(ask(holder, "valid"), "0");
  EXPECT_EQ(ask(holder, "release"), "1") << "it had been lost already";
}

// It sleeps for a few seconds at a time, and its end is in those.
TEST_F(stepping_client, gives_up_soon_behind_a_suspend_that_was_longer_than_its_wait_H2) {
  auto holder = make_client().acquire("x", {.ttl = 30s});
  auto waiter = start({"queue", "x", "30000"});
  waiter.write_line("go 60000");
  ASSERT_TRUE(eventually([&] { return in_line() == 1; }, 20s));
  std::this_thread::sleep_for(300ms);  // Until it knows: what is unanswered when it is suspended ends as unknown.
  const auto began = boottime();
  clock_.suspend(90s);
  EXPECT_TRUE(waiter.read_line().value_or("(nothing)").starts_with("timed_out "));
  EXPECT_LE(boottime() - began, 7s + slack);
}

}  // namespace
}  // namespace holdfast::test
