// SPDX-License-Identifier: Apache-2.0
// Acquire and release for Boost.Asio 1.81: callbacks, futures, coroutines and whatever else is a completion token.
// The one header that sees Boost, and so not part of holdfast.hpp; your build finds Boost's headers and, if they are
// asked for, its threads. The library itself does not know that this header exists.
//
//   auto lease = co_await holdfast::async_acquire(locks, "nightly", {.wait = 5s}, boost::asio::use_awaitable);
//
// No operation has a thread. Nothing of yours runs under a lock of ours, nor on a thread of ours: a completion is
// posted to the handler's associated executor, never called in place. A handler without one goes, as Asio has it, to
// the system executor, which is a thread pool: use bind_executor.
//
// What ends while operations are under way:
//   the client      its acquires complete with errc::cancelled or cancelled_in_flight; releases go on by themselves.
//   the io_context  (any execution context) their handlers are destroyed uncalled, as Asio does with its own, the
//                   acquires are cancelled, and a lease that was granted meanwhile is released in the background.
//   the process     nothing is called.
// After fork() the child's handlers of the parent's operations never run; what the child begins itself fails with
// errc::used_after_fork.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/start.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
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
struct async_options {
  std::chrono::milliseconds ttl = std::chrono::seconds{10};
  std::optional<std::chrono::milliseconds> wait{};
  std::string_view owner{};
  fencing_token min_fence{};
  renewal renew = renewal::automatic;
};
static_assert(std::is_trivially_copyable_v<async_options>);

namespace detail {

// An operation whose handler runs in some execution context.
class asio_operation {
public:
  asio_operation() = default;
  virtual ~asio_operation() = default;
  asio_operation(const asio_operation&) = delete;
  asio_operation& operator=(const asio_operation&) = delete;

  // The context goes away: destroys the handler.
  virtual void abandon() = 0;
};

// The operations of one execution context. Asio knows when a context goes away and tells its services; a completion
// that comes later from a thread of ours must not touch it any more. Shared, because operations outlive the context.
class asio_operations {
public:
  using place = std::list<std::weak_ptr<asio_operation>>::iterator;

  place add(std::weak_ptr<asio_operation> what) {
    const std::lock_guard held{mutex_};
    return all_.insert(all_.end(), std::move(what));
  }

  // Takes one out and runs `post`, during which the context stays. Nothing, if the context is gone, or going.
  template <class Post>
  void take_out(place where, const Post& post) {
    {
      const std::lock_guard held{mutex_};
      if (is_shut_) return;
      all_.erase(where);
      ++posting_;
    }
    const at_end leaving{*this};
    post();
  }

  void shut() {
    std::list<std::weak_ptr<asio_operation>> left;
    {
      std::unique_lock held{mutex_};
      is_shut_ = true;
      posted_.wait(held, [&] { return posting_ == 0; });
      left.swap(all_);
    }
    for (const auto& one : left) {
      if (const auto what = one.lock()) what->abandon();
    }
  }

  // So that a child that uses the context does not meet it locked by another thread.
  std::mutex& mutex() { return mutex_; }

private:
  struct at_end {
    asio_operations& of;
    ~at_end() {
      const std::lock_guard held{of.mutex_};
      if (--of.posting_ == 0) of.posted_.notify_all();
    }
  };

  std::mutex mutex_{};
  std::condition_variable posted_{};
  bool is_shut_ = false;
  std::size_t posting_ = 0;
  std::list<std::weak_ptr<asio_operation>> all_{};
};

class asio_service final : public boost::asio::execution_context::service {
public:
  using key_type = asio_service;
  inline static boost::asio::execution_context::id id{};

  explicit asio_service(boost::asio::execution_context& of) : service{of} {}
  const std::shared_ptr<asio_operations>& operations() const { return operations_; }

private:
  void shutdown() override { operations_->shut(); }
  void notify_fork(boost::asio::execution_context::fork_event event) override {
    auto& mutex = operations_->mutex();
    event == boost::asio::execution_context::fork_prepare ? mutex.lock() : mutex.unlock();
  }

  std::shared_ptr<asio_operations> operations_ = std::make_shared<asio_operations>();
};

// Null for an executor that does not tell its context: that one must outlive its operations.
template <class Executor>
std::shared_ptr<asio_operations> operations_of(const Executor& where) {
  if constexpr (boost::asio::can_query<const Executor&, boost::asio::execution::context_t>::value) {
    boost::asio::execution_context& context = boost::asio::query(where, boost::asio::execution::context);
    return boost::asio::use_service<asio_service>(context).operations();
  } else {
    return nullptr;
  }
}

template <class Handler>
class asio_handler final : public asio_operation {
public:
  using executor = boost::asio::associated_executor_t<Handler>;

  template <class From>
  explicit asio_handler(From&& handler)
      : handler_{std::in_place, std::forward<From>(handler)},
        work_{boost::asio::get_associated_executor(*handler_)},
        of_{operations_of(work_->get_executor())} {}

  template <class From>
  static std::shared_ptr<asio_handler> make(From&& handler) {
    auto made = std::make_shared<asio_handler>(std::forward<From>(handler));
    if (made->of_) made->place_ = made->of_->add(made);
    return made;
  }

  void cancel_by(cancel_handle by) { cancel_ = std::move(by); }
  void cancel() const noexcept { cancel_.cancel(); }

  // Once. The handler is called with these, later, in its executor.
  template <class... Result>
  void complete(Result... result) {
    const auto post = [&] {
      const auto work = std::exchange(work_, std::nullopt);
      Handler handler = *std::exchange(handler_, std::nullopt);
      boost::asio::post(work->get_executor(), boost::asio::append(std::move(handler), std::move(result)...));
    };
    of_ ? of_->take_out(place_, post) : post();
  }

  void abandon() override {
    cancel();
    handler_.reset();
    work_.reset();
  }

private:
  std::optional<Handler> handler_;
  std::optional<boost::asio::executor_work_guard<executor>> work_;
  std::shared_ptr<asio_operations> of_;
  asio_operations::place place_{};
  cancel_handle cancel_{};
};

struct asio_acquire {
  template <class Handler>
  void operator()(Handler&& handler, client* locks, const std::string& name, const acquire_options& options) const {
    using operation = asio_handler<std::decay_t<Handler>>;
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    const auto what = operation::make(std::forward<Handler>(handler));
    if (slot.is_connected()) {
      slot.assign([where = std::weak_ptr{what}](boost::asio::cancellation_type type) {
        const auto still_there = where.lock();
        if (still_there && type != boost::asio::cancellation_type::none) still_there->cancel();
      });
    }
    try {
      what->cancel_by(start_acquire(*locks, name, options, [what](std::error_code ec, lease got) {
        what->complete(boost::system::error_code{ec}, std::move(got));
      }));
    } catch (const std::system_error& e) {
      what->complete(boost::system::error_code{e.code()}, lease{});
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
      what->complete(release_outcome::unknown);  // Only after a fork between the call and its start.
    }
  }
};

}  // namespace detail

// The lock, after waiting for it in line: client::acquire without a thread that waits. Completes with
// void(boost::system::error_code, lease); the lease is empty exactly when the code is set.
//
// The code is what the blocking overload would set: timed_out when somebody else held it to the end of
// acquire_options::wait (zero: at once), and so on; it compares with holdfast::errc and holdfast::outcome. It is
// Boost's type and not std::error_code because Asio's tokens know no other: with that, use_awaitable and use_future
// throw boost::system::system_error; a std::error_code they would hand over beside the lease. The detail of
// holdfast::error is lost on the way.
//
// Cancellation, by the handler's slot (terminal, partial or total) or by acquire_options::cancel, ends the wait and
// never the hold: errc::cancelled, or cancelled_in_flight if a request was unanswered. The place in line is given up,
// and what the request may have left behind is released in the background, within its own deadline plus the ttl.
// When the grant is on its way to the handler already, the handler gets it.
//
// Safe from any thread; a slot needs the usual care of Asio's. `locks` must be there until the operation was started:
// with a lazy token (use_awaitable, deferred) that is when it is awaited. Many may be under way: each waits for its
// turn by itself, in the order in which they were started, and costs about 1.5 KiB; every 5 s one look is made for all
// that wait for the same lock.
template <boost::asio::completion_token_for<void(boost::system::error_code, lease)> Token>
auto async_acquire(client& locks, std::string name, const async_options& options, Token&& token) {
  return boost::asio::async_initiate<Token, void(boost::system::error_code, lease)>(
      detail::asio_acquire{}, token, &locks, std::move(name),
      acquire_options{.ttl = options.ttl,
                      .wait = options.wait,
                      .owner = std::string{options.owner},
                      .min_fence = options.min_fence,
                      .renew = options.renew});
}

// The same with acquire_options that have a name of their own; only with that, because of g++ 12 (see async_options).
template <std::same_as<acquire_options> Options,
          boost::asio::completion_token_for<void(boost::system::error_code, lease)> Token>
auto async_acquire(client& locks, std::string name, const Options& options, Token&& token) {
  return boost::asio::async_initiate<Token, void(boost::system::error_code, lease)>(
      detail::asio_acquire{}, token, &locks, std::move(name), acquire_options{options});
}
template <std::same_as<acquire_options> Options, class Token>
auto async_acquire(client&, std::string, Options&&, Token&&) = delete;

// Gives the lock back: lease::release without a thread that waits. Completes with void(release_outcome), at the latest
// after client_options::timeout or when the ttl is over. From its start on nothing renews the lease (C6).
// Cancellation has no effect: the release is on its way. Throws errc::empty_handle for an empty lease and
// errc::used_after_fork in a forked child, at once and whatever the token.
template <boost::asio::completion_token_for<void(release_outcome)> Token>
auto async_release(lease held, Token&& token) {
  detail::require_releasable(held);
  return boost::asio::async_initiate<Token, void(release_outcome)>(detail::asio_release{}, token, std::move(held));
}

}  // namespace v0
}  // namespace holdfast
