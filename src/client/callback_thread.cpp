// SPDX-License-Identifier: Apache-2.0
#include "client/callback_thread.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"

#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

// Under the mutex.
void callback_thread::start() {
  if (is_closed_ || is_started_) return;
  // The thread keeps its own queue alive: the last handle may go away inside a callback.
  thread_ = net::start_quietly([self = shared_from_this()] { self->run(); });
  is_started_ = true;
}

void callback_thread::stand_by() {
  if (is_started_) return;
  const std::lock_guard held{mutex_};
  start();
}

void callback_thread::post(std::function<void()> what) noexcept {
  try {
    made_ahead one{std::move(what)};
    add(one.entry_);
  } catch (...) {
    // No memory: it is not run. No thread: it is run when the next post finds one. valid() never depends on it.
  }
}

void callback_thread::post_or_end(std::function<void()> what) noexcept {
  made_ahead one{std::move(what)};
  add(one.entry_);
}

void callback_thread::post(made_ahead& what) noexcept {
  try {
    add(what.entry_);
  } catch (...) {
    // No thread: as above.
  }
}

void callback_thread::add(queue& what) {
  {
    const std::lock_guard held{mutex_};
    if (is_closed_) return;
    queue_.splice(queue_.end(), what);
    start();
  }
  news_.notify_one();
}

void callback_thread::close(bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{mutex_};
    is_closed_ = true;
    ending = std::move(thread_);
  }
  news_.notify_one();
  net::let_end(std::move(ending), wait);
}

void callback_thread::note_time(time_point from) {
  const time_point now = net::boottime_now();
  if (now - from <= longest || !tell_slow_ || now - told_at_ < std::chrono::seconds{1}) return;
  told_at_ = now;
  tell_slow_(now - from);
}

void callback_thread::run() {
  std::unique_lock held{mutex_};
  for (;;) {
    news_.wait(held, [&] { return is_closed_ || !queue_.empty(); });
    if (queue_.empty()) return;
    queue next;
    next.splice(next.end(), queue_, queue_.begin());
    held.unlock();
    const time_point from = net::boottime_now();
    try {
      next.front()();
    } catch (...) {
      // holdfast/observer.hpp promises that these are caught and dropped.
    }
    try {
      note_time(from);
    } catch (...) {
      // The log sink's, too.
    }
    next.clear();  // What it holds ends outside the lock, too.
    held.lock();
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
