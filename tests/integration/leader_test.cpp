// SPDX-License-Identifier: Apache-2.0
// Who leads is a stranger's thread: whatever becomes of it in the middle of a call, the leases and the calls of the
// others go on (P32).
#include "integration/fixture.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <holdfast/asio.hpp>

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <thread>

namespace {

// Which allocation of this thread from now on stands still; below zero: none. An allocation is where a test can stop a
// thread under a mutex of ours.
thread_local int allocations_until_it_stands_still = -1;

}  // namespace

// Not inline, or g++ sees a malloc that is ended by delete and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_until_it_stands_still >= 0 && allocations_until_it_stands_still-- == 0) {
    timespec left{1, 200'000'000};
    while (::nanosleep(&left, &left) != 0) {
    }
  }
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }

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

// Wherever it stands still: at one allocation of its call after the other, most of them under the mutex that callers
// share. Somebody must drive the connection for calls that no thread waits for, and gets none of them done meanwhile.
TEST_F(leader, that_stands_still_with_their_mutex_keeps_no_lease_from_being_renewed_P32) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the allocator is a sanitizer's, and two thousand calls take all of its time";
#endif
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto kept = locks.acquire("kept", {.ttl = 900ms});
  std::atomic<bool> goes_on{true};
  std::atomic<int> ended{0};
  boost::asio::thread_pool pool{1};
  const std::function<void()> again = [&] {
    async_acquire(locks, "x", {.wait = 0ms}, boost::asio::bind_executor(pool, [&](auto, const lease&) {
                    ++ended;
                    if (goes_on) again();
                  }));
  };
  for (int i = 0; i < 2000; ++i) again();

  int stops = 0;
  for (bool stood_still = true; stood_still && stops < 10; ++stops) {
    std::jthread caller{[&] {
      allocations_until_it_stands_still = stops;
      std::error_code ec;
      (void)locks.try_acquire("x", {}, ec);
      stood_still = allocations_until_it_stands_still < 0;
      allocations_until_it_stands_still = -1;
    }};
    caller.join();
    ASSERT_TRUE(kept.valid()) << "at the allocation " << stops;
  }
  EXPECT_GT(stops, 5);
  EXPECT_GT(ended, 2000) << "nobody drove them";
  goes_on = false;
  pool.join();
  in_the_way.release();
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
