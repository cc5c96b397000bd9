// SPDX-License-Identifier: Apache-2.0
// Several locks held as one: client::acquire_all gives it.
#pragma once

#include <holdfast/lease.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace holdfast {
inline namespace v0 {

namespace detail {
class lease_set_handle;
}

// All of it holds or none of it does: one deadline, the earliest of its locks'; one renewal, which sends for all of
// them in one write and moves the deadline when the last of them was renewed; and one loss, when the server refuses any
// of them. On a Redis Cluster and of a quorum each is kept by itself, and what they share is the loss. Each lock has a
// fencing token of its own. It has no renew(): with renewal::none it ends with its ttl. Otherwise as holdfast::lease,
// also in what threads may do with it.
class HOLDFAST_EXPORT lease_set {
public:
  // An empty handle: valid() is false, release() throws errc::empty_handle.
  lease_set() noexcept;
  lease_set(lease_set&&) noexcept;
  lease_set& operator=(lease_set&&) noexcept;  // What was held before is dropped, as by the destructor.
  lease_set(const lease_set&) = delete;
  lease_set& operator=(const lease_set&) = delete;

  // Hands what was not released to the background to release. Never waits and never throws; nothing in a forked child.
  ~lease_set();

  // True for a handle that came from acquire_all and was neither moved from nor released.
  explicit operator bool() const noexcept;

  // The locks' names in the order in which they were given. Throws errc::empty_handle on an empty handle.
  const std::vector<std::string>& names() const;

  // The fencing token of the lock `name`. Throws errc::empty_handle on an empty handle, and errc::invalid_option when
  // the set has no such lock.
  fencing_token token(std::string_view name) const;

  // May I still act on all of it? See lease::valid.
  bool valid() const noexcept;

  // How long valid() can stay true if no renewal succeeds any more. Zero when it is false. The keeper ends the lease,
  // and tells lost(), max(5 ms, ttl/20) before: plan with so much less.
  std::chrono::milliseconds remaining() const noexcept;

  // Returns if valid(); throws error with the reason (a lease_* code, or empty_handle) and the name of the lock that
  // was lost, if not.
  void check() const;

  // As of a lease: lost() is requested once, with the first of them that is lost. The others are released with the set;
  // until then they are renewed no more (of a quorum once more at most), and end with their ttl.
  std::stop_token lost() const noexcept;
  std::stop_token at_risk() const noexcept;

  // Why it was lost, a lease_* code; no error while it is not.
  std::error_code lost_reason() const noexcept;

  // Gives all of it back, in one write (on a cluster to all nodes at once; of a quorum one after the other), and waits
  // for the answers, at most client_options::timeout or until the ttl is over. `released` when each was; else `unknown`
  // when one is; else `already_lost`. Throws as lease::release does.
  release_outcome release();

  // Implementation detail.
  explicit lease_set(std::unique_ptr<detail::lease_set_handle>) noexcept;

private:
  std::unique_ptr<detail::lease_set_handle> handle_;
};

}  // namespace v0
}  // namespace holdfast
