// SPDX-License-Identifier: Apache-2.0
// Acquire, renew, downgrade and release for Boost.Asio 1.81: callbacks, futures, coroutines and whatever else is a
// completion token. The one header that sees Boost, and so not part of holdfast.hpp; your build finds Boost's headers
// and, if they are asked for, its threads. The library itself does not know that this header exists.
//
//   auto lease = co_await holdfast::async_acquire(locks, "nightly", {.wait = 5s}, boost::asio::use_awaitable);
//
// No operation has a thread, but for those of a quorum (redis+quorum://): an acquire, release or downgrade there has
// one of the library's while it is under way. Where no thread can be made, an acquire or downgrade completes with
// std::errc::resource_unavailable_try_again, and a release with release_outcome::unknown, done in the background.
//
// Nothing of yours runs under a lock of ours, nor on a thread of ours: a completion is posted to the handler's
// associated executor, never called in place. One of our threads moves it there, and asks its associated allocator for
// nothing: that may be for your own threads alone. A handler without an executor goes, as Asio has it, to the system
// executor, which is a thread pool: use bind_executor. (Once one has completed there, or an any_completion_handler
// anywhere, a child that is forked must end by _exit or exec: in its exit Asio would wait for the pool's threads, which
// it has not.)
//
// Codes are those of the blocking calls (and std::errc::not_enough_memory, of an operation that could not be concluded:
// docs/errors.md), and compare with holdfast::errc and holdfast::outcome. They are Boost's type
// and not std::error_code because Asio's tokens know no other: with that, use_awaitable and use_future throw
// boost::system::system_error; a std::error_code they would hand over beside the lease. The detail of holdfast::error
// is lost on the way.
//
// What ends while operations are under way:
//   the client      its acquires complete with errc::cancelled or cancelled_in_flight; releases and downgrades go on by
//                   themselves, and renewals with the lease.
//   the io_context  (any execution context) their handlers are destroyed uncalled, as Asio does with its own, on the
//                   thread that ends it; the acquires are cancelled, and a lease that was granted meanwhile is released
//                   in the background. An any_completion_handler hides its context: that one must not end first.
//   the process     nothing is called.
// After fork() handlers of the parent's operations do not run in the child, but for those that were in the context's
// queue by then: Asio runs these in both processes. There the code may be none and the lease not empty; it is not
// valid(), and release() throws errc::used_after_fork. run() of a context with operations under way does not return in
// the child: destroy the context there. What the child begins itself fails with errc::used_after_fork.
//
// Left to the blocking interface: acquire_all and lease_set, which hold several waits and their losses together on the
// caller's stack; semaphore::resize, which must not meet other calls on its object; inspect, list, break_lock and
// diagnose, which are for people and their tools, not for the way of a request. Each is as safe as any call beside
// operations that are under way; where a thread must not stop for a round trip, post it to a thread_pool.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/asio_operation.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/start.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace holdfast {
inline namespace v0 {

// acquire_options without `cancel` (that is the handler's slot), for braces in a co_await expression: g++ 12 copies an
// aggregate made there byte for byte and then destroys both, so nothing in here may have a destructor. Fields and
// defaults are those of acquire_options; `owner` is copied by the call.
//
// Every async_acquire below also takes acquire_options that have a name of their own, by which a stop_token can cancel;
// only with a name, for the same reason.
struct async_options {
  std::chrono::milliseconds ttl = std::chrono::seconds{10};
  std::optional<std::chrono::milliseconds> wait{};
  std::string_view owner{};
  fencing_token min_fence{};
  renewal renew = renewal::automatic;
  int permits = 1;
  std::optional<std::chrono::milliseconds> max_hold{};
};
static_assert(std::is_trivially_copyable_v<async_options>);

namespace detail {

template <class Options>
concept named_options = std::same_as<std::remove_const_t<Options>, acquire_options>;

using acquire_signature = void(boost::system::error_code, lease);
using code_signature = void(boost::system::error_code);
using release_signature = void(release_outcome);

inline acquire_options options_of(const async_options& from) {
  return {.ttl = from.ttl,
          .wait = from.wait,
          .owner = std::string{from.owner},
          .min_fence = from.min_fence,
          .renew = from.renew,
          .permits = from.permits,
          .max_hold = from.max_hold};
}
inline acquire_options options_of(const acquire_options& from) { return from; }

// A std::error_code of no error, wrapped, would not compare equal to Boost's own.
inline boost::system::error_code boost_code(const std::error_code& ec) {
  return ec ? boost::system::error_code{ec} : boost::system::error_code{};
}

template <class Handler>
class asio_acquire_handler final : public asio_handler<Handler, acquire_receiver> {
public:
  using asio_handler<Handler, acquire_receiver>::asio_handler;
  void on_acquired(std::error_code ec, lease got) override { this->complete(boost_code(ec), std::move(got)); }
};

struct asio_acquire {
  template <class Handler>
  void operator()(Handler&& handler, const acquire_target& wanted, const acquire_options& options) const {
    using made = asio_acquire_handler<std::decay_t<Handler>>;
    const auto what = made::template make_cancellable<made>(std::forward<Handler>(handler));
    if (what->is_abandoned()) return;  // Perhaps with the client.
    try {
      what->cancel_by(start_acquire(wanted, options, what));
    } catch (const std::system_error& e) {
      what->complete(boost_code(e.code()), lease{});
    }
  }
};

struct asio_renew {
  template <class Handler>
  void operator()(Handler&& handler, const lease_reference& held) const {
    const auto what = asio_handler<std::decay_t<Handler>>::make_cancellable(std::forward<Handler>(handler));
    try {
      what->cancel_by(start_renew(held, [what](std::error_code ec) { what->complete(boost_code(ec)); }));
    } catch (const std::system_error& e) {
      what->complete(boost_code(e.code()));
    }
  }
};

struct asio_downgrade {
  template <class Handler>
  void operator()(Handler&& handler, const lease_reference& held) const {
    const auto what = asio_handler<std::decay_t<Handler>>::make(std::forward<Handler>(handler));
    try {
      start_downgrade(held, [what](std::error_code ec) { what->complete(boost_code(ec)); });
    } catch (const std::system_error& e) {
      what->complete(boost_code(e.code()));
    }
  }
};

struct asio_release {
  template <class Handler>
  void operator()(Handler&& handler, lease held) const {
    const auto what = asio_handler<std::decay_t<Handler>>::make(std::forward<Handler>(handler));
    try {
      start_release(std::move(held), [what](release_outcome outcome) { what->complete(outcome); });
    } catch (const std::system_error&) {
      // After a fork between the call and its start; or there was no thread to be had, and it is released all the same.
      what->complete(release_outcome::unknown);
    }
  }
};

// Asio moves out of a token that it is not told to be an lvalue, and its binders (bind_executor) out of what they bind
// in any case. A handler that has a name is the caller's, so an operation is given one of its own.
template <class Signature, class Token, class Begin, class... Args>
auto initiate(Begin begin, Token&& token, Args&&... args) {
  using own_token = std::decay_t<Token>;
  // Not in braces: an explicit constructor of as_tuple, append and their like, which adapts whatever it is given, would
  // take a token that is not const in place of a copy.
  own_token own = std::forward<Token>(token);
  return boost::asio::async_initiate<own_token, Signature>(std::move(begin), own, std::forward<Args>(args)...);
}

template <class Token>
auto initiate_acquire(acquire_target wanted, acquire_options options, Token&& token) {
  return initiate<acquire_signature>(asio_acquire{}, std::forward<Token>(token), std::move(wanted), std::move(options));
}

}  // namespace detail

// The lock, after waiting for it in line: client::acquire without a thread that waits. Completes with
// void(boost::system::error_code, lease); the lease is empty exactly when the code is set: timed_out when somebody else
// held it to the end of acquire_options::wait (zero: at once), and so on. What the blocking call would throw before
// anything is sent, a bad name, say, completes likewise and is not thrown.
//
// Cancellation, by the handler's slot (terminal, partial or total) or by acquire_options::cancel, ends the wait and
// never the hold: errc::cancelled, or cancelled_in_flight if a request was unanswered. The place in line is given up,
// and what the request may have left behind is released in the background, within its own deadline plus the ttl.
// When the grant is on its way to the handler already, the handler gets it.
//
// Safe from any thread; a slot needs the usual care of Asio's. `locks` must be there until the operation was started:
// with a lazy token (use_awaitable, deferred) that is when it is awaited. Many may be under way: each waits for its
// turn by itself, in the order in which they were started, and costs about 1 KiB; every 5 s one look is made for
// every 256 that wait for the same lock. Of a quorum each has a thread, and stands in line in the order in which these
// come to it.
template <boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire(client& locks, std::string name, const async_options& options, Token&& token) {
  return detail::initiate_acquire({&locks, std::move(name)}, detail::options_of(options), std::forward<Token>(token));
}
template <detail::named_options Options, boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire(client& locks, std::string name, Options& options, Token&& token) {
  return detail::initiate_acquire({&locks, std::move(name)}, detail::options_of(options), std::forward<Token>(token));
}

// So many permits of a semaphore as options.permits says: semaphore::acquire, otherwise as above. Name and size are
// those at the call: `from` may be gone when the operation begins, its client may not.
template <boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire(semaphore& from, const async_options& options, Token&& token) {
  return detail::initiate_acquire(detail::acquire_target::of(from), detail::options_of(options),
                                  std::forward<Token>(token));
}
template <detail::named_options Options, boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire(semaphore& from, Options& options, Token&& token) {
  return detail::initiate_acquire(detail::acquire_target::of(from), detail::options_of(options),
                                  std::forward<Token>(token));
}

// A shared lock, for writing and for reading: shared_mutex::acquire and acquire_shared, otherwise as above. Both stand
// in the one line of that lock.
template <boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire(shared_mutex& of, const async_options& options, Token&& token) {
  return detail::initiate_acquire(detail::acquire_target::of(of, hold_mode::exclusive), detail::options_of(options),
                                  std::forward<Token>(token));
}
template <detail::named_options Options, boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire(shared_mutex& of, Options& options, Token&& token) {
  return detail::initiate_acquire(detail::acquire_target::of(of, hold_mode::exclusive), detail::options_of(options),
                                  std::forward<Token>(token));
}
template <boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire_shared(shared_mutex& of, const async_options& options, Token&& token) {
  return detail::initiate_acquire(detail::acquire_target::of(of, hold_mode::shared), detail::options_of(options),
                                  std::forward<Token>(token));
}
template <detail::named_options Options, boost::asio::completion_token_for<detail::acquire_signature> Token>
auto async_acquire_shared(shared_mutex& of, Options& options, Token&& token) {
  return detail::initiate_acquire(detail::acquire_target::of(of, hold_mode::shared), detail::options_of(options),
                                  std::forward<Token>(token));
}

// Renews it now: lease::renew without a thread that waits. Completes with void(boost::system::error_code), at the
// latest after client_options::timeout or when the lease is lost. No error: the server has confirmed it, and the
// deadline counts from this request. A lease_* code: it is lost. Everything else changes nothing.
//
// Cancellation, by the handler's slot, ends the wait for the answer and not the lease: errc::cancelled, or
// cancelled_in_flight if the request was sent; its answer may still move the deadline, which never goes back.
//
// `held` may be moved meanwhile, and it may be released or destroyed: then the renewal ends with errc::empty_handle,
// and none is sent any more (C6). Throws errc::empty_handle for an empty lease and errc::used_after_fork in a forked
// child, at once and whatever the token. Safe from any thread.
template <boost::asio::completion_token_for<detail::code_signature> Token>
auto async_renew(const lease& held, Token&& token) {
  return detail::initiate<detail::code_signature>(detail::asio_renew{}, std::forward<Token>(token),
                                                  detail::lease_reference{held});
}

// Makes a writer a reader in one step: shared_mutex::downgrade without a thread that waits. Completes with
// void(boost::system::error_code), at the latest after client_options::timeout: no error, and the lease reads, with the
// token that it had; a lease_* code when it does not stand any more; errc::wrong_kind for the lease of
// another kind of lock; errc::no_quorum when no server of a quorum has done it, and it writes as before; after
// errc::reply_lost, of a quorum also when too few of its servers answer, it may write or read: treat it as a reader,
// and release it. Cancellation has no effect: the request is on its way. `held` may be moved meanwhile; release it when
// the downgrade has ended. Throws as async_renew does. Safe from any thread.
template <boost::asio::completion_token_for<detail::code_signature> Token>
auto async_downgrade(const lease& held, Token&& token) {
  return detail::initiate<detail::code_signature>(detail::asio_downgrade{}, std::forward<Token>(token),
                                                  detail::lease_reference{held});
}

// Gives the lock back, of whichever kind: lease::release without a thread that waits. Completes with
// void(release_outcome), at the latest after client_options::timeout or when the ttl is over. From its start on nothing
// renews the lease (C6). Cancellation has no effect: the release is on its way. Throws errc::empty_handle for an empty
// lease and errc::used_after_fork in a forked child, at once and whatever the token. Safe from any thread.
template <boost::asio::completion_token_for<detail::release_signature> Token>
auto async_release(lease held, Token&& token) {
  (void)detail::lease_reference{held};  // Throws.
  return detail::initiate<detail::release_signature>(detail::asio_release{}, std::forward<Token>(token),
                                                     std::move(held));
}

}  // namespace v0
}  // namespace holdfast
