// SPDX-License-Identifier: Apache-2.0
// A program whose timer interrupts its calling thread a thousand times a second, in a handler without SA_RESTART: every
// system call in which we sleep ends with EINTR, again and again (H49).
#include "integration/fixture.hpp"
#include "support/fault_proxy.hpp"

#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace holdfast::test {
namespace {

// So many must have come, or there was no fault: of a thousand a second a busy machine makes fewer, and a sanitizer
// holds them back.
constexpr int at_least(int alarms) { return scaled(2000) == 2000 ? alarms : alarms / 10; }

std::atomic<int> alarms{0};
void count_alarm(int /*number*/) { ++alarms; }

// This thread takes them and no other: what the test and the fixture start before is meant to be well.
class alarms_of_this_thread : public on_redis {
protected:
  alarms_of_this_thread() { set_blocked(SIG_BLOCK); }

  class storm {
  public:
    storm() {
      struct sigaction how {};
      how.sa_handler = count_alarm;
      ::sigaction(SIGALRM, &how, nullptr);
      alarms = 0;
      set_blocked(SIG_UNBLOCK);
      every({0, 1000});
    }
    ~storm() {
      every({0, 0});
      ::signal(SIGALRM, SIG_IGN);  // Also one that is on its way.
      set_blocked(SIG_BLOCK);
    }
    storm(const storm&) = delete;
    storm& operator=(const storm&) = delete;

  private:
    static void every(timeval span) {
      const itimerval timer{span, span};
      ::setitimer(ITIMER_REAL, &timer, nullptr);
    }
  };

private:
  static void set_blocked(int how) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGALRM);
    ::pthread_sigmask(how, &one, nullptr);
  }
};

// Each answer takes two of them, so that none comes while we are awake.
TEST_F(alarms_of_this_thread, a_thousand_a_second_disturb_no_acquire_and_no_release_H49) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  (void)locks.inspect("x");
  proxy.set(direction::to_client, {.delay = 2ms});
  std::chrono::nanoseconds slowest{0};
  {
    const storm blows;
    for (int i = 0; i < 200; ++i) {
      const auto began = boottime();
      std::error_code ec;
      auto held = locks.acquire("x", {}, ec);
      ASSERT_TRUE(held) << ec.message();
      EXPECT_EQ(held->release(), release_outcome::released);
      slowest = std::max(slowest, boottime() - began);
    }
  }
  EXPECT_LT(slowest, slack);
  EXPECT_GE(alarms, at_least(100));
  EXPECT_LE(proxy.connections(), 3) << "a busy machine gives one up at times, an alarm taken for silence all";
}

// A wait that takes one for its end is too short, and one that begins anew with each has none.
TEST_F(alarms_of_this_thread, a_thousand_a_second_make_no_wait_shorter_or_longer_H49) {
  auto theirs = make_client();
  const auto held = theirs.acquire("x");
  auto locks = make_client();
  (void)locks.inspect("x");
  const storm blows;
  const auto began = boottime();
  const auto code = code_of([&] { (void)locks.acquire("x", {.wait = 500ms}); });
  const auto took = boottime() - began;
  EXPECT_EQ(code, errc::timed_out);
  EXPECT_GE(took, 500ms);
  EXPECT_LT(took, 500ms + slack);
  EXPECT_GE(alarms, at_least(50));
}

// Of two threads one leads, and reads for both; the other one sleeps until it is called.
TEST_F(alarms_of_this_thread, a_thousand_a_second_keep_no_waiter_from_its_turn_H49) {
  auto theirs = make_client();
  auto x = theirs.acquire("x");
  auto y = theirs.acquire("y");
  auto locks = make_client();
  std::atomic<pthread_t> other{0};
  std::atomic<std::chrono::nanoseconds> released_at{0ns};
  std::jthread releases{[&] {
    EXPECT_TRUE(eventually([&] { return other != 0 && exists("hf:{x}:line") && exists("hf:{y}:line"); }));
    for (int i = 0; i < 300; ++i) {
      ::pthread_kill(other, SIGALRM);
      let_pass(1ms);
    }
    released_at = boottime();
    EXPECT_EQ(x.release(), release_outcome::released);
    EXPECT_EQ(y.release(), release_outcome::released);
  }};
  const auto wait_for = [&](const char* name) {
    auto got = locks.acquire(name, {.wait = 20s});
    EXPECT_LT(boottime() - released_at.load(), slack);
    EXPECT_TRUE(got.valid());
    EXPECT_EQ(got.release(), release_outcome::released);
  };
  const storm blows;
  std::jthread second{[&] {
    other = ::pthread_self();
    wait_for("y");
  }};
  wait_for("x");
  second.join();
  EXPECT_GE(alarms, at_least(100));
}

}  // namespace
}  // namespace holdfast::test
