// SPDX-License-Identifier: Apache-2.0
// What stands between an operation of holdfast/asio.hpp and its handler: the handler's executor, its cancellation slot,
// and the end of the context that it runs in. A file of its own because none of it is for you to call.
#pragma once

#include <holdfast/start.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

namespace holdfast {
inline namespace v0 {
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
  // Its operation ends by itself; but kept, it ends only with the entry. One or the other, so that who waits in a crowd
  // is no larger.
  class entry {
  public:
    explicit entry(std::weak_ptr<asio_operation> what) : what_{std::move(what)} {}
    void keep() {
      if (const auto* alone = std::get_if<0>(&what_)) what_ = alone->lock();
    }
    void abandon_kept() const {
      if (const auto* kept = std::get_if<1>(&what_); kept && *kept) (*kept)->abandon();
    }

  private:
    std::variant<std::weak_ptr<asio_operation>, std::shared_ptr<asio_operation>> what_;
  };

public:
  using place = std::list<entry>::iterator;

  // Nothing, if the context is gone, or going: then nobody else abandons it. No memory is asked for, or given back,
  // under the mutex: a thread of ours waits for it, with the losses of other leases behind it (C4, P32).
  std::optional<place> add(std::weak_ptr<asio_operation> what) {
    std::list<entry> one;
    one.emplace_back(std::move(what));
    const auto where = one.begin();
    const std::lock_guard held{mutex_};
    if (is_shut_) return std::nullopt;
    all_.splice(all_.end(), one);
    return where;
  }

  // One that never began, or whose handler was destroyed.
  void forget(place where) noexcept {
    std::list<entry> one;
    const std::lock_guard held{mutex_};
    if (!is_shut_) one.splice(one.end(), all_, where);
  }

  // Takes one out and runs `post`, during which the context stays. Nothing, if the context is gone, or going.
  template <class Post>
  void take_out(place where, const Post& post) {
    std::list<entry> one;
    {
      const std::lock_guard held{mutex_};
      if (is_shut_) return;
      one.splice(one.end(), all_, where);
      ++posting_;
    }
    const at_end leaving{*this};
    post();
  }

  // All handlers that are left end here. Kept before the first of them does, or one whose operation ends by itself
  // meanwhile would be destroyed by a thread of ours, and perhaps when the context is gone.
  void shut() {
    std::list<entry> left;
    {
      std::unique_lock held{mutex_};
      is_shut_ = true;
      left.swap(all_);
      for (auto& one : left) one.keep();
      posted_.wait(held, [&] { return posting_ == 0; });
    }
    for (const auto& one : left) one.abandon_kept();
  }

  // So that a child that uses the context does not meet it locked by another thread, or one posting that it has not.
  void before_fork() {
    std::unique_lock held{mutex_};
    posted_.wait(held, [&] { return posting_ == 0; });
    (void)held.release();
  }
  void after_fork() { mutex_.unlock(); }

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
  std::list<entry> all_{};
};

class asio_service final : public boost::asio::execution_context::service {
public:
  using key_type = asio_service;
  inline static boost::asio::execution_context::id id{};

  // Services end in the reverse order of their beginning, and strands must not end before ours: one that has ended
  // destroys what it is given, a handler say, and that on a thread of ours. (make_strand would do without the name of a
  // detail, but not without memory.)
  explicit asio_service(boost::asio::execution_context& of) : service{of} {
    boost::asio::use_service<boost::asio::detail::strand_executor_service>(of);
  }
  // Asio tells those services of the end that there were when it began: not one that was made for an operation that
  // some handler's destructor began.
  // NOLINTNEXTLINE(bugprone-exception-escape): of a handler's destructor, say; Asio would not survive it either.
  ~asio_service() override { operations_->shut(); }
  const std::shared_ptr<asio_operations>& operations() const { return operations_; }

private:
  void shutdown() override { operations_->shut(); }
  void notify_fork(boost::asio::execution_context::fork_event event) override {
    event == boost::asio::execution_context::fork_prepare ? operations_->before_fork() : operations_->after_fork();
  }

  std::shared_ptr<asio_operations> operations_ = std::make_shared<asio_operations>();
};

inline std::shared_ptr<asio_operations> operations_in(boost::asio::execution_context& context) {
  return boost::asio::use_service<asio_service>(context).operations();
}

// Those that are told by way of the system executor (post_to). They end in exit(3), before its context does, and
// perhaps before their client. To be among that context's would make it, and its threads, which a forked child that
// exits cannot end; they are there when one is told, and not while it waits.
inline std::shared_ptr<asio_operations> operations_until_exit() {
  static const auto& all = *new auto{std::make_shared<asio_operations>()};  // Not to be gone for who begins later.
  struct end {
    ~end() { all->shut(); }
  };
  static const end at_exit;
  return all;
}

// Can it promise never to call in place? That of an any_completion_handler cannot.
template <class Executor>
inline constexpr bool can_promise_never =
    !boost::asio::execution::is_executor<Executor>::value ||
    boost::asio::can_require<Executor, boost::asio::execution::blocking_t::never_t>::value;

// Null for an executor that does not tell its context, or has one that is not Asio's own: that one must outlive its
// operations. So must the one behind an any_completion_executor.
template <class Executor>
std::shared_ptr<asio_operations> operations_of(const Executor& where) {
  if constexpr (requires { operations_in(boost::asio::query(where, boost::asio::execution::context)); }) {
    return operations_in(boost::asio::query(where, boost::asio::execution::context));
  } else if constexpr (requires { operations_in(where.context()); }) {  // Of the Networking TS: io_context::strand.
    return operations_in(where.context());
  } else if constexpr (!can_promise_never<Executor>) {
    return operations_until_exit();
  } else {
    return nullptr;
  }
}

// Calls `told` later in the executor that is associated with it, `where`, and never in place. One that cannot promise
// that is given it by a thread of the system executor's: from one of ours, or from the one that begins the operation,
// the handler might run in place.
template <class Executor, class Told>
void post_to(const Executor& where, Told told) {
  if constexpr (can_promise_never<Executor>) {
    boost::asio::post(where, std::move(told));
  } else {
    boost::asio::post(boost::asio::system_executor{}, std::move(told));
  }
}

// Keeps run() from returning. Asio's executor_work_guard takes a strand of any_io_executor for one of the Networking
// TS, and does not compile (Boost 1.81).
template <class Executor, bool IsOfNetworkingTs = !boost::asio::execution::is_executor<Executor>::value>
class asio_work {
public:
  explicit asio_work(const Executor& where) : tracked_{track(where)} {}
  auto get_executor() const {
    return boost::asio::prefer(tracked_, boost::asio::execution::outstanding_work.untracked);
  }

private:
  static auto track(const Executor& where) {
    return boost::asio::prefer(where, boost::asio::execution::outstanding_work.tracked);
  }
  decltype(track(std::declval<const Executor&>())) tracked_;
};
template <class Executor>
class asio_work<Executor, true> : public boost::asio::executor_work_guard<Executor> {
  using boost::asio::executor_work_guard<Executor>::executor_work_guard;
};

// `Receiver`: what else it is, for those who tell it of the end.
struct no_receiver {};
template <class Handler, class Receiver = no_receiver>
class asio_handler : public asio_operation, public Receiver {
public:
  using executor = boost::asio::associated_executor_t<Handler>;

  template <class From>
  explicit asio_handler(From&& handler)
      : handler_{std::in_place, std::forward<From>(handler)},
        work_{boost::asio::get_associated_executor(*handler_)},
        of_{operations_of(work_->get_executor())} {}
  ~asio_handler() override {
    if (of_) of_->forget(place_);
  }
  asio_handler(const asio_handler&) = delete;
  asio_handler& operator=(const asio_handler&) = delete;

  // Abandoned already, if the context goes away.
  template <class Made = asio_handler, class From>
  static std::shared_ptr<Made> make(From&& handler) {
    auto made = std::make_shared<Made>(std::forward<From>(handler));
    auto of = std::exchange(made->of_, nullptr);
    if (!of) return made;
    if (const auto place = of->add(made)) {
      made->place_ = *place;
    } else {
      made->abandon();
    }
    made->of_ = std::move(of);  // Also of an abandoned one, which is not to be completed.
    return made;
  }

  // As make(); the handler's cancellation slot, if it has one, cancels the operation.
  template <class Made = asio_handler, class From>
  static std::shared_ptr<Made> make_cancellable(From&& handler) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    auto made = make<Made>(std::forward<From>(handler));
    // With an abandoned handler its slot may be gone.
    if (!made->is_abandoned() && slot.is_connected()) {
      slot.assign([where = std::weak_ptr{made}](boost::asio::cancellation_type type) {
        const auto still_there = where.lock();
        if (still_there && type != boost::asio::cancellation_type::none) still_there->cancel();
      });
    }
    return made;
  }

  // For who has just made it: later its end may come from any thread.
  bool is_abandoned() const noexcept { return !handler_; }
  void cancel_by(cancel_handle by) { cancel_ = std::move(by); }
  void cancel() const noexcept { cancel_.cancel(); }

  // Once. The handler is called with these, later, in its executor. The entry in the queue there is made on a thread of
  // ours, and so not of the memory of its associated allocator, which may be for its own threads alone.
  template <class... Result>
  void complete(Result... result) {
    const auto post = [&] {
      const auto work = std::exchange(work_, std::nullopt);
      Handler handler = *std::exchange(handler_, std::nullopt);
      auto told = boost::asio::append(std::move(handler), std::move(result)...);
      post_to(work->get_executor(), boost::asio::bind_allocator(std::allocator<void>{}, std::move(told)));
    };
    const auto of = std::exchange(of_, nullptr);
    of ? of->take_out(place_, post) : post();
  }

  void abandon() override {
    cancel();
    handler_.reset();
    work_.reset();
  }

private:
  std::optional<Handler> handler_;
  std::optional<asio_work<executor>> work_;
  std::shared_ptr<asio_operations> of_;  // Null: it is not among them.
  asio_operations::place place_{};
  cancel_handle cancel_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
