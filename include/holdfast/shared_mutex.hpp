// SPDX-License-Identifier: Apache-2.0
// Readers together, writers alone, in the order of the line.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/longest_wait.hpp>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace holdfast {
inline namespace v0 {

namespace detail {
struct acquire_target;
}

// First come, first served: a waiting writer is not overtaken by readers that come later, and readers that stand next
// to each other in line enter together. Each reader has a lease of its own: a crashed reader's place ends with its own
// ttl, whatever the others renew.
//
// A writer may become a reader (downgrade). A reader cannot become a writer: two readers that both want to would wait
// for each other for ever. Release, acquire for writing, and look again at what you read.
//
// A name that is used as a lock or as a semaphore is errc::wrong_kind. naming::holdfast only. `locks` must outlive it.
// Tokens increase over readers and writers alike; the guard of docs/fencing.md is for what writers write.
//
// On a quorum readers and writers need a majority each; the tokens of readers that hold it together say nothing. A try
// that is made while a writer waits is busy, for a second even if the writer has given up.
//
// Two faces: the guards acquire and acquire_shared, which give leases and are safe from any thread; and the std façade
// (SharedTimedLockable, for std::unique_lock and std::shared_lock), which cannot carry the token or the loss. As in std
// a thread that holds it by the façade must not lock it again, and unlocks what it locked itself. If it does: unlock()
// and unlock_shared() on another thread do nothing, and the lock stays taken; a second lock() waits for its own thread,
// and so does a second lock_shared() behind a waiting writer; without one it takes the place of the first, and the
// first unlock_shared() ends both.
class HOLDFAST_EXPORT shared_mutex {
public:
  // Of `options` the façade uses ttl, owner, min_fence, renew and max_hold.
  shared_mutex(client& locks, std::string_view name, acquire_options options = {});
  ~shared_mutex();  // Must not be locked, as in std; if it is, the leases are dropped.
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  // For writing, as client::try_acquire and client::acquire.
  [[nodiscard]] std::optional<lease> try_acquire(const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> try_acquire(const acquire_options& options, std::error_code& ec);
  [[nodiscard]] lease acquire(const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> acquire(const acquire_options& options, std::error_code& ec);

  // For reading.
  [[nodiscard]] std::optional<lease> try_acquire_shared(const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> try_acquire_shared(const acquire_options& options, std::error_code& ec);
  [[nodiscard]] lease acquire_shared(const acquire_options& options = {});
  [[nodiscard]] std::optional<lease> acquire_shared(const acquire_options& options, std::error_code& ec);

  // Makes a writer a reader in one step: no writer comes in between, and readers that are first in line enter. The
  // lease stays the same, with its token. On a reader's lease it does nothing. It is the lease that counts, whatever
  // name and client this object is for. Of a quorum it is done when a majority has done it; errc::no_quorum when none
  // has, and it writes as before. Waits for the answer; throws the reason, a lease_* code, when the lease does not
  // stand any more, errc::empty_handle for an empty one, errc::wrong_kind for the lease of another kind of lock, and
  // other holdfast::errors; after errc::reply_lost, of a quorum also when too few of its servers answer, it may write
  // or read: treat it as a reader, and release it or call this again.
  void downgrade(lease& held);
  void downgrade(lease& held, std::error_code& ec);

  // ---- the façade; throws holdfast::error (a std::system_error) on a fault ----

  void lock();
  bool try_lock();
  // As mutex::unlock(); unlock_shared() likewise.
  void unlock() noexcept;
  void lock_shared();
  bool try_lock_shared();
  void unlock_shared() noexcept;
  // The calling thread, which holds it by lock(), goes on as if by lock_shared().
  void unlock_and_lock_shared();

  // Any duration and clock; what is longer than 366 days, time_point::max() say, is 366 days.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_within(detail::wait_for(wait), false);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
    return lock_within(detail::wait_until(deadline), false);
  }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_within(detail::wait_for(wait), true);
  }
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& deadline) {
    return lock_within(detail::wait_until(deadline), true);
  }

private:
  friend struct detail::acquire_target;

  void require_ours() const;
  bool lock_within(std::chrono::milliseconds wait, bool shared);
  void keep(lease held);
  void give_back() noexcept;

  client& locks_;
  std::string name_;
  acquire_options options_;
  std::mutex guard_{};
  std::map<std::thread::id, lease> held_{};  // By the façade.
  unsigned long generation_;                 // Of the process that made it.
};

}  // namespace v0
}  // namespace holdfast
