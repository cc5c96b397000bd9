// SPDX-License-Identifier: Apache-2.0
// Acquire, renew, downgrade and release without a thread that waits: what asio.hpp is built on, and anything like it
// for another event loop could be. Not for direct use: it may change with each version, whatever the soname says.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/info.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

class cancellable;
struct lease_record;

// Ends an operation early. Copyable; safe from any thread, also when the operation or its client are gone: then, and in
// a forked child, it does nothing.
class cancel_handle {
public:
  cancel_handle() noexcept = default;
  explicit cancel_handle(std::weak_ptr<cancellable> what) noexcept : what_{std::move(what)} {}
  HOLDFAST_EXPORT void cancel() const noexcept;

private:
  std::weak_ptr<cancellable> what_{};
};

// Which lock, and in which way. Made at the call, so that the façade may be gone when the operation begins; its client
// must be there until then.
struct acquire_target {
  client* locks;
  std::string name;
  lock_kind kind = lock_kind::exclusive;
  hold_mode mode = hold_mode::exclusive;
  int size = 0;  // Of a semaphore.

  static acquire_target of(semaphore& what) {
    return {&what.locks_, what.name_, lock_kind::semaphore, hold_mode::permits, what.size_};
  }
  static acquire_target of(shared_mutex& what, hold_mode mode) {
    return {&what.locks_, what.name_, lock_kind::shared, mode, 0};
  }
};

// A lease that somebody else has, and may give back meanwhile.
class lease_reference {
public:
  // Throws errc::empty_handle or errc::used_after_fork, as lease::release does.
  HOLDFAST_EXPORT explicit lease_reference(const lease& what);

  // Throws likewise.
  std::shared_ptr<client_state> owner() const;
  const std::shared_ptr<lease_record>& record() const noexcept { return record_; }

private:
  std::weak_ptr<client_state> owner_{};
  std::shared_ptr<lease_record> record_{};
};

// All receivers are called once on the client's callback thread, where they must not stay; or never, and destroyed,
// when there is no memory. That of an acquire is no function, so that who waits in a crowd needs no copy of one.
class acquire_receiver {
public:
  acquire_receiver() = default;
  acquire_receiver(const acquire_receiver&) = delete;
  acquire_receiver& operator=(const acquire_receiver&) = delete;
  // An empty lease exactly when the code is set.
  virtual void on_acquired(std::error_code code, lease got) = 0;

protected:
  ~acquire_receiver() = default;
};
using code_receiver = std::function<void(std::error_code)>;
using release_receiver = std::function<void(release_outcome)>;

// Each as the blocking call, without waiting. What is wrong before anything is sent is thrown (and `to` not called).
HOLDFAST_EXPORT cancel_handle start_acquire(const acquire_target& what, const acquire_options& options,
                                            std::shared_ptr<acquire_receiver> to);
HOLDFAST_EXPORT cancel_handle start_renew(const lease_reference& what, code_receiver to);
HOLDFAST_EXPORT void start_downgrade(const lease_reference& what, code_receiver to);
// From now on nothing renews it, also when this throws; then it is released in the background.
HOLDFAST_EXPORT void start_release(lease what, release_receiver to);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
