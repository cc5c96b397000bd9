// SPDX-License-Identifier: Apache-2.0
// A thread that is woken, that is done, and whose time comes at the moment in which it is woken (P31).
#include "client/waiting_thread.hpp"

#include "net/clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using namespace std::chrono_literals;

TEST(waiting_thread, whose_time_is_over_goes_on_with_the_mutex) {
  std::mutex mutex;
  const waiting_thread::calls none;
  waiting_thread::news with_news;
  waiting_thread me{none, with_news, false};
  std::unique_lock held{mutex};
  EXPECT_TRUE(me.sleep(held, time_point{}));
  EXPECT_TRUE(held.owns_lock());
  EXPECT_FALSE(me.is_asleep());
}

// Also before it sleeps, and when it is woken for a call of its own besides.
TEST(waiting_thread, that_is_interrupted_goes_on_and_says_so_once) {
  std::mutex mutex;
  const waiting_thread::calls none;
  waiting_thread::news with_news;
  waiting_thread me{none, with_news, true};
  me.interrupt();
  std::unique_lock held{mutex};
  EXPECT_TRUE(me.sleep(held, never));
  EXPECT_TRUE(me.take_interrupt());
  EXPECT_FALSE(me.take_interrupt());
  std::thread other{[&] {
    for (std::unique_lock theirs{mutex}; !me.is_asleep(); theirs.lock()) {
      theirs.unlock();
      std::this_thread::yield();
    }
    const std::lock_guard theirs{mutex};
    me.be_called();
    me.interrupt();
    me.wake();
  }};
  EXPECT_TRUE(me.sleep(held, never));
  EXPECT_TRUE(me.is_interrupted());
  held.unlock();
  other.join();
}

// One side sleeps for a moment again and again, the other wakes whom it finds asleep, after it has let the mutex go:
// the sleeper must still be there then, and has the mutex behind it exactly when it is not done. A third one interrupts
// it meanwhile, whose post is none of who wakes it. The sanitizers look on.
TEST(waiting_thread, is_there_until_it_was_woken) {
  constexpr int rounds = 5000;
  std::mutex mutex;
  waiting_thread* sleeper = nullptr;  // Under mutex.
  std::mutex interrupting;            // As ~stop_callback waits for its callback.
  waiting_thread* interrupted = nullptr;
  std::atomic<bool> is_over{false};
  int were_done = 0;
  const waiting_thread::calls none;
  std::thread sleeping{[&] {
    for (int i = 0; i < rounds; ++i) {
      waiting_thread::news with_news;
      auto me = std::make_unique<waiting_thread>(none, with_news, true);
      {
        const std::lock_guard its{interrupting};
        interrupted = me.get();
      }
      std::unique_lock held{mutex};
      sleeper = me.get();
      const bool goes_on = me->sleep(held, net::boottime_now() + std::chrono::microseconds{i % 50});
      EXPECT_EQ(held.owns_lock(), goes_on);
      EXPECT_EQ(me->is_done(), !goes_on);
      were_done += !goes_on;
      if (goes_on) sleeper = nullptr;
      if (held.owns_lock()) held.unlock();
      const std::lock_guard its{interrupting};
      interrupted = nullptr;
    }
    is_over = true;
  }};
  std::thread stopping{[&] {
    while (!is_over) {
      const std::lock_guard its{interrupting};
      if (interrupted) interrupted->interrupt();
    }
  }};
  for (int i = 0; !is_over; ++i) {
    waiting_thread* found = nullptr;
    {
      const std::lock_guard held{mutex};
      if (sleeper && sleeper->is_asleep()) {
        found = sleeper;
        if (i % 2 == 0) {
          found->be_done();
          sleeper = nullptr;
        } else {
          found->be_called();
        }
      }
    }
    if (found) found->wake();
  }
  sleeping.join();
  stopping.join();
  RecordProperty("were_done", were_done);
}

}  // namespace

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
