// SPDX-License-Identifier: Apache-2.0
// A mutex that its holder may lock again: for code that locks what its caller has locked already. As in std it belongs
// to a thread, which a lease does not. What holds for mutex.hpp holds here too; the guard of client.hpp is still the
// API.
#pragma once

#include <holdfast/mutex.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace holdfast {
inline namespace v0 {

// Lockable and TimedLockable. The count is kept in this process: the server knows of one lease, so locking again costs
// no round trip, changes no token, and neither shortens nor lengthens the lease (H62): there is one ttl, that of the
// options here. Threads of one object exclude each other; two objects of one name exclude each other, also in one
// thread, which then waits for itself. `locks` must outlive it.
class HOLDFAST_EXPORT recursive_mutex {
public:
  // As mutex::mutex.
  recursive_mutex(client& locks, std::string_view name, acquire_options options = {});
  ~recursive_mutex();  // Must not be locked; if it is, the lease is dropped.
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;

  // The first lock() of a thread waits without bound and throws as mutex::lock() does; the following ones only count.
  // That the lease was lost meanwhile is not noticed by them: ask valid().
  void lock();

  // False when another thread or process holds it. A fault is thrown.
  bool try_lock();

  // As mutex's.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return count_if_ours() || first(inner_.try_lock_for(wait));
  }

  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
    return count_if_ours() || first(inner_.try_lock_until(deadline));
  }

  // Once for each lock; the last one releases, as mutex::unlock(). Never throws. By another thread than the holder it
  // is undefined, as in std.
  void unlock() noexcept;

  // Only for the thread that holds it: the same from the first lock() to the last unlock().
  fencing_token token() const noexcept { return inner_.held_.token(); }
  // Only for the thread that holds it: is the lease still ours? (lease::valid)
  bool valid() const noexcept { return inner_.held_.valid(); }

private:
  bool count_if_ours();
  bool first(bool is_locked);

  mutex inner_;
  std::atomic<std::thread::id> owner_{};
  unsigned depth_ = 0;  // The owner's.
};

}  // namespace v0
}  // namespace holdfast
