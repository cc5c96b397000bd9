// SPDX-License-Identifier: Apache-2.0
// Acquire and release without a thread that waits: what asio.hpp is built on, and anything like it for another event
// loop could be. Not for direct use: it may change with each version, whatever the soname says.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

class async_acquire;

// Ends a wait early. Copyable; safe from any thread, also when the acquire or its client are gone: then, and in a
// forked child, it does nothing.
class cancel_handle {
public:
  cancel_handle() noexcept = default;
  explicit cancel_handle(std::weak_ptr<async_acquire> what) noexcept : what_{std::move(what)} {}
  HOLDFAST_EXPORT void cancel() const noexcept;

private:
  std::weak_ptr<async_acquire> what_{};
};

// An empty lease exactly when the code is set. Both receivers are called once on the client's callback thread, where
// they must not stay; or never, and destroyed, when there is no memory.
using acquire_receiver = std::function<void(std::error_code, lease)>;
using release_receiver = std::function<void(release_outcome)>;

// As client::acquire with an error_code, without waiting. What is wrong before anything is sent is thrown (and
// `to` not called).
HOLDFAST_EXPORT cancel_handle start_acquire(client& locks, std::string_view name, const acquire_options& options,
                                            acquire_receiver to);

// Throws errc::empty_handle or errc::used_after_fork, as lease::release does.
HOLDFAST_EXPORT void require_releasable(const lease& what);
// As lease::release, without waiting; from now on nothing renews it. Throws as require_releasable.
HOLDFAST_EXPORT void start_release(lease what, release_receiver to);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
