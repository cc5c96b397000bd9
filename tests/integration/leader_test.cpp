// SPDX-License-Identifier: Apache-2.0
// Who leads is a stranger's thread: whatever becomes of it in the middle of a call, the leases and the calls of the
// others go on (P32).
#include "integration/fixture.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <thread>

namespace holdfast::test {
namespace {

using leader = on_redis;

constexpr timespec stands_still{1, 800'000'000};

// As a debugger, a throttled cgroup or SCHED_IDLE would: it gets no time, wherever it is.
void stop_here(int /*signal*/) {
  timespec left = stands_still;
  while (::nanosleep(&left, &left) != 0) {
  }
}

TEST_F(leader, that_stands_still_keeps_no_lease_from_being_renewed_P32) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "a sanitizer's run-time runs handlers when it likes, and may stop the other threads meanwhile";
#endif
  struct sigaction stopping = {};
  stopping.sa_handler = stop_here;
  struct sigaction before = {};
  ASSERT_EQ(::sigaction(SIGUSR1, &stopping, &before), 0);

  auto locks = make_client();
  auto other = make_client();
  auto kept = locks.acquire("kept", {.ttl = 900ms});
  auto in_the_way = other.acquire("x");
  std::jthread waiting{[&] {
    std::error_code ec;
    (void)locks.acquire("x", {.wait = 3s}, ec);
  }};
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  ::pthread_kill(waiting.native_handle(), SIGUSR1);
  for (const auto until = boottime() + 1500ms; boottime() < until; let_pass(20ms)) {
    ASSERT_TRUE(kept.valid());
    ASSERT_TRUE(exists("hf:{kept}"));
  }
  in_the_way.release();
  waiting.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(leader, that_is_cancelled_ends_its_call_first_P32) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto kept = locks.acquire("kept", {.ttl = 900ms});
  std::atomic<bool> has_returned{false};
  std::jthread waiting{[&] {
    std::error_code ec;
    (void)locks.acquire("x", {.wait = 1s}, ec);
    has_returned = ec == errc::timed_out;
    ::pthread_testcancel();
  }};
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  ::pthread_cancel(waiting.native_handle());
  for (int i = 0; i < 20; ++i) {
    std::error_code ec;
    auto one = locks.acquire("y", {.wait = 500ms}, ec);
    ASSERT_TRUE(one) << ec.message() << ": nobody reads any more";
    one->release();
    ASSERT_TRUE(kept.valid());
    let_pass(20ms);
  }
  waiting.join();
  EXPECT_TRUE(has_returned);
  in_the_way.release();
}

}  // namespace
}  // namespace holdfast::test
