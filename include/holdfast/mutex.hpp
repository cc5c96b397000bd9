// SPDX-License-Identifier: Apache-2.0
// A std-shaped façade, for when you have a template to satisfy: std::unique_lock, std::scoped_lock, std::lock_guard.
//
// It cannot carry the token, nor tell you that the lease was lost, and unlock() cannot report that it was lost
// already. The guard of client.hpp can; prefer it.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/longest_wait.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {
inline namespace v0 {

// Lockable and TimedLockable. Threads of one mutex object exclude each other too, even after its lease was lost under
// one of them, and hand the lock on to each other (client_options::hand_overs). Who waits for such a thread to unlock,
// and loses its own lease meanwhile, asks for the lock again: whoever comes out of lock() has it then. Not recursive: a
// second lock() by the holder waits for itself. `locks` must outlive it. Unlocking what is not locked is undefined, as
// in std.
//
// Two of them at once: std::lock and std::scoped_lock cannot deadlock, but they wait for one, only try the other, and
// give the first back; and in whose line somebody stands is not free for a try. Where many want both, hardly anybody
// gets them. client::acquire_all waits for each, in one order for all.
class HOLDFAST_EXPORT mutex {
public:
  // Only ttl, owner, min_fence, renew and max_hold of `options` are used.
  mutex(client& locks, std::string_view name, acquire_options options = {});
  ~mutex();  // Must not be locked, as in std; if it is, the lease is dropped.
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Waits without bound; throws holdfast::error (a std::system_error, as std::mutex::lock may) on a fault.
  void lock();

  // False when it is held elsewhere. A fault is thrown, never answered with false.
  bool try_lock();

  // Any duration and clock; what is longer than 366 days, time_point::max() say, is 366 days.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_within(detail::wait_for(wait));
  }

  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
    return lock_within(detail::wait_until(deadline));
  }

  // Waits for the server as lease::release() does, client_options::timeout at most. Never throws, and does not say how
  // it ended. A lease that was lost meanwhile is simply gone: see the top of this file.
  void unlock() noexcept;

private:
  friend class recursive_mutex;
  void require_ours() const;
  bool lock_within(std::chrono::milliseconds wait);
  // False when the turn of another thread of ours is not over within that (no value: however long), or when `got` was
  // lost before it was.
  bool enter(lease got, std::optional<std::chrono::nanoseconds> within);

  client& locks_;
  // One thread of this process is inside at a time, also when its lease was lost, and unlock() gives back the lease of
  // its own lock().
  // Not a std::timed_mutex: g++ 12's ThreadSanitizer does not see pthread_mutex_clocklock, and would cry wolf at you.
  std::mutex guard_{};
  // Not ended in a forked child, where it would wait for threads that are not there.
  union {
    std::condition_variable freed_;
  };
  bool is_taken_ = false;
  std::string name_;
  acquire_options options_;
  lease held_;
  unsigned long generation_;  // Of the process that made it.
};

}  // namespace v0
}  // namespace holdfast
