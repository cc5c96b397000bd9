// SPDX-License-Identifier: Apache-2.0
// What you hold: a time-bound hold on a lock, that renews itself and tells you before it can end.
#pragma once

#include <holdfast/names.hpp>
#include <holdfast/observer.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

namespace holdfast {
inline namespace v0 {

namespace detail {
class lease_handle;
}

// A lease belongs to its handle, not to a thread: move it where you like. Distinct leases are independent; on one
// lease every const member is safe from any thread, also from its own callbacks; moving, releasing and destroying
// need the usual one-writer care. It keeps what it needs of its client alive.
//
// Deadlines are local (docs/lease_time.md): counted on CLOCK_BOOTTIME from the instant before the request was sent,
// ttl - (1 % + 2 ms). A renewal moves the deadline from its own send instant; nothing moves it after loss.
class HOLDFAST_EXPORT lease {
public:
  // An empty handle: valid() is false, release() throws errc::empty_handle.
  lease() noexcept;
  lease(lease&&) noexcept;
  lease& operator=(lease&&) noexcept;  // What was held before is dropped, as by the destructor.
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;

  // Hands a lease that was not released to the background to release. Never waits and never throws. In a forked
  // child it does nothing: the lease is the parent's.
  ~lease();

  // True for a handle that came from an acquire and was neither moved from nor released. Says nothing about
  // whether the lease still stands: that is valid().
  explicit operator bool() const noexcept;

  // The lock's name as it was given. Throws errc::empty_handle on an empty handle.
  const std::string& name() const;

  // The fencing token of this grant. Give it to what you write to (docs/fencing.md). Zero on an empty handle.
  fencing_token token() const noexcept;

  // May I still act? A local read that depends on no thread of ours; false from the deadline on, also as the first
  // statement after a suspend, and for ever after loss or release. True is a promise only under C1's conditions.
  bool valid() const noexcept;

  // How long valid() can stay true if no renewal succeeds any more. Zero when it is false. The keeper ends the lease,
  // and tells lost(), max(5 ms, ttl/20) before: plan with so much less.
  std::chrono::milliseconds remaining() const noexcept;

  // Returns if valid(); throws error with the reason (a lease_* code, or empty_handle) if not.
  void check() const;

  // Stop is requested once, when the lease is lost: at the latest max(5 ms, ttl/20) before the deadline, or at once
  // when the server says that it is gone, taken or broken. Not begun after release() or the destructor, but when it is
  // lost in that very moment: then a callback may begin as they return, and one that has begun may still be running. So
  // end your std::stop_callback, which waits for it, before what it uses. It runs on the client's callback thread (or
  // on yours, if it is lost already); it may call anything here, also destroy the lease. If it throws, std::terminate
  // is called: so says the standard.
  std::stop_token lost() const noexcept;

  // As lost(), but earlier: at deadline - ttl/6, when renewals have been failing, nobody has called renew()
  // (renewal::none), or max_hold is nearly over. May come without a loss after it.
  std::stop_token at_risk() const noexcept;

  // Why it was lost, a lease_* code; no error while it is not.
  std::error_code lost_reason() const noexcept;

  // Renews it now, whatever acquire_options::renew says, and waits for the answer, at most client_options::timeout or
  // until the lease is lost. Returns when the server has confirmed it: the deadline counts from this request then, as
  // far as acquire_options::max_hold lets it, and the ttl is the one that it was acquired with. Renewing by yourself
  // ties the hold to your work's progress (renewal::none and a renew() after each step); with automatic renewal it is
  // the question whether the lease still stands, put to the server.
  //
  // Throws the reason, a lease_* code, when the lease is lost; errc::empty_handle on an empty handle and
  // errc::used_after_fork in a forked child. Everything else, errc::reply_lost (the server may have renewed it or not),
  // errc::not_replicated, unreachable or denied, changes nothing: the lease ends at its deadline, or is renewed later
  // if it renews itself.
  void renew() const;
  void renew(std::error_code& ec) const;

  // Gives the lock back and waits for the answer, at most client_options::timeout or until the ttl is over.
  // After it returned, whatever it said, this process never renews the lease again (C6), and the handle is empty.
  // Throws errc::empty_handle for an empty handle and errc::used_after_fork in a forked child; nothing else,
  // std::bad_alloc aside.
  release_outcome release();

  // The same, and what was in the way of a definite answer: of release_outcome::unknown `why` has the endpoint, the
  // server's words if it said anything, and for how long at most, from the return on, the lock is left taken: more
  // than remaining() was, because a renewal that we heard nothing of may have taken effect. Of a quorum it has no
  // words.
  release_outcome release(error_detail& why);

  // Implementation detail.
  explicit lease(std::unique_ptr<detail::lease_handle>) noexcept;

private:
  friend class shared_mutex;
  friend class detail::lease_handle;

  std::unique_ptr<detail::lease_handle> handle_;
};

}  // namespace v0
}  // namespace holdfast
