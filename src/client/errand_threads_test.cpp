// SPDX-License-Identifier: Apache-2.0
#include "client/errand_threads.hpp"

#include "net/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <latch>
#include <memory>
#include <new>
#include <thread>

namespace {

thread_local bool is_without_memory = false;

}  // namespace

// Not inline, or g++ sees a malloc that is ended by delete and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (is_without_memory) throw std::bad_alloc{};
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

TEST(errand_threads, one_that_waits_for_another_keeps_it_from_nothing) {
  const auto threads = std::make_shared<errand_threads>();
  std::latch all_are_here{20};
  std::atomic<int> done{0};
  for (int i = 0; i < 20; ++i) {
    threads->run([&] {
      all_are_here.arrive_and_wait();
      ++done;
    });
  }
  threads->close(true);
  EXPECT_EQ(done, 20);
}

std::size_t mappings() {
  std::ifstream all{"/proc/self/maps"};
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>{all}, {}, '\n'));
}

// A stack is given back when its thread is joined, and the next errand may come in hours.
TEST(errand_threads, give_their_stacks_back_without_another_errand) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "a sanitizer has mappings of its own for each thread";
#endif
  const auto threads = std::make_shared<errand_threads>();
  constexpr std::size_t many = 100;
  const auto before = mappings();
  std::latch all_are_here{many};
  for (std::size_t i = 0; i < many; ++i) threads->run([&] { all_are_here.arrive_and_wait(); });
  all_are_here.wait();
  // Each has two, its stack and what guards it. Some stay with the system for the next threads, and malloc makes some.
  const auto most = before + 3 * many / 2;
  const auto until = net::boottime_now() + std::chrono::seconds{10};
  while (mappings() > most && net::boottime_now() < until) std::this_thread::yield();
  EXPECT_LE(mappings(), most);
  threads->close(true);
}

TEST(errand_threads, may_be_closed_and_forgotten_by_an_errand) {
  auto threads = std::make_shared<errand_threads>();
  const std::weak_ptr<errand_threads> seen = threads;
  std::promise<void> closed;
  std::latch is_given{1};
  threads->run([&closed, &is_given, &threads] {
    is_given.wait();
    const auto mine = std::move(threads);
    mine->close(true);
    closed.set_value();
  });
  is_given.count_down();
  closed.get_future().wait();
  while (!seen.expired()) std::this_thread::yield();
}

TEST(errand_threads, closing_need_not_wait) {
  const auto threads = std::make_shared<errand_threads>();
  std::promise<void> go;
  std::promise<void> ended;
  threads->run([&] {
    go.get_future().wait();
    ended.set_value();
  });
  threads->close(false);
  go.set_value();
  ended.get_future().wait();
}

// What an errand holds has gone when close() says that all have ended: it may be the last handle of a client.
TEST(errand_threads, what_an_errand_holds_ends_with_it) {
  const auto threads = std::make_shared<errand_threads>();
  const auto held = std::make_shared<int>(1);
  for (int i = 0; i < 20; ++i) threads->run([held] {});
  threads->close(true);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(errand_threads, need_no_memory_to_end) {
  const auto threads = std::make_shared<errand_threads>();
  std::atomic<int> done{0};
  for (int i = 0; i < 20; ++i) {
    threads->run([&] {
      ++done;
      is_without_memory = true;  // For the rest of this thread.
    });
  }
  threads->close(true);
  EXPECT_EQ(done, 20);
}

TEST(errand_threads, take_no_signals_H49) {
  const auto threads = std::make_shared<errand_threads>();
  bool is_blocked = false;
  threads->run([&] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    is_blocked = sigismember(&now, SIGTERM) == 1;
  });
  threads->close(true);
  EXPECT_TRUE(is_blocked);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
