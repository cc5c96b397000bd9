// SPDX-License-Identifier: Apache-2.0
#include "client/async_call.hpp"

#include "client/async_of_quorum.hpp"
#include "client/client_state.hpp"
#include "client/fork_guard.hpp"
#include "client/part.hpp"
#include "engine/release.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"
#include "script/command.hpp"

#include <holdfast/start.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

namespace {

// A mutex of one byte where std::mutex takes forty: ten thousand calls may wait, each with its own, and hardly ever two
// threads want the same.
class byte_mutex {
public:
  void lock() noexcept {
    while (taken_.test_and_set(std::memory_order_acquire)) taken_.wait(true, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    taken_.clear(std::memory_order_release);
    taken_.notify_one();
  }

private:
  std::atomic_flag taken_{};
};

// Where a call is under way, which changes when another server serves its keys.
class placed_call : public async_call {
public:
  std::shared_ptr<node> at() const {
    const std::lock_guard held{placing_};
    return at_;
  }

  bool go_on(std::shared_ptr<async_call> self) noexcept override {
    const auto of = client();
    std::shared_ptr<node> next;
    try {
      next = of->node_for(about());
      next->stand_by();
    } catch (...) {
      has_no_driver_ = true;  // Without a thread nobody would drive it there.
      give_up(boottime_now());
      return false;
    }
    try {
      {
        const std::lock_guard held{placing_};
        at_ = next;
      }
      flow().go_on(next->commands()->channel(), next->commands()->ear(), boottime_now());
      next->commands()->take_up(std::move(self));  // It may be over, and be told, before we go on.
    } catch (...) {
      // No memory: nobody hears of it.
    }
    return true;
  }

  bool is_cancelled() const override { return is_cancelled_ || client()->is_ending(); }

protected:
  placed_call(const client_state& of, const script::lock_keys& about) : at_{of.node_for(about)} {}

  virtual std::shared_ptr<client_state> client() const = 0;
  virtual const script::lock_keys& about() const = 0;
  // The flow, which nobody drives, is over.
  virtual void give_up(time_point /*now*/) noexcept { flow().step(never); }
  bool has_no_driver() const { return has_no_driver_; }
  // Wherever it is, also on its way.
  void cancel_anywhere() {
    is_cancelled_ = true;
    at()->commands()->cancel(*this);
  }

private:
  std::shared_ptr<node> at_;
  // The single bytes side by side: apart, each costs eight of every call.
  mutable byte_mutex placing_{};
  std::atomic<bool> is_cancelled_{false};
  bool has_no_driver_ = false;
};

}  // namespace

// ---- acquire ----

namespace {

class async_acquire final : public placed_call, public cancellable {
public:
  async_acquire(const std::shared_ptr<client_state>& of, client_state::planned wanted, client_state::keeping how,
                std::shared_ptr<acquire_receiver> to)
      : placed_call{*of, wanted.what.keys},
        of_{of},
        generation_{of->generation()},
        how_{how},
        started_at_{boottime_now()},
        flow_{at()->commands()->channel(), at()->commands()->ear(), std::move(wanted.what), wanted.how, started_at_,
              net::system_random()},
        to_{std::move(to)} {
    flow_.set_slot(of_->slot_of(flow_.wanted().keys));
  }

  engine::call& flow() override { return flow_; }
  void cancel(time_point now) override { flow_.cancel(now); }

  void cancel() noexcept override {
    if (generation_ != process_generation()) return;
    const net::uncancelled until_done;
    try {
      cancel_anywhere();
    } catch (...) {
      // No memory: it goes on.
    }
  }
  // Before the start, behind which nothing may fail: who is thrown something has no operation.
  void prepare_to_listen_to(const std::stop_token& stop) {
    if (stop.stop_possible()) on_stop_ = std::make_unique<stop_listener>();
  }
  // After the start: a stop that was asked for already cancels here and now.
  void listen_to(const std::stop_token& stop) noexcept {
    if (on_stop_) on_stop_->emplace(stop, canceller{this});
  }

  std::shared_ptr<client_state> conclude() noexcept override {
    auto of = std::exchange(of_, nullptr);
    try {
      auto end = of->conclude(flow_, of->name_of(flow_.wanted().keys), how_, started_at_);
      // wait = 0: somebody held it for the whole of no time.
      if (!end.got) why_ = end.code == errc{} ? errc::timed_out : end.code;
      if (end.got) got_ = std::move(*end.got);
    } catch (...) {
      has_no_memory_ = true;
    }
    return of;
  }
  void tell() noexcept override {
    try {
      std::exchange(to_, nullptr)->on_acquired(code(), std::move(got_));
    } catch (...) {
      // As on_acquire's, say: an exception of the receiver is dropped.
    }
  }

private:
  std::shared_ptr<client_state> client() const override { return of_; }
  const script::lock_keys& about() const override { return flow_.wanted().keys; }
  void give_up(time_point now) noexcept override { flow_.cancel(now); }
  std::error_code code() const {
    if (has_no_memory_) return std::make_error_code(std::errc::not_enough_memory);
    if (has_no_driver() && why_ == errc::cancelled_in_flight) return errc::reply_lost;
    if (has_no_driver() && why_ == errc::cancelled) {
      return std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    return why_ == errc{} ? std::error_code{} : make_error_code(why_);
  }

  struct canceller {
    async_acquire* what;
    void operator()() const noexcept { what->cancel(); }
  };
  using stop_listener = std::optional<std::stop_callback<canceller>>;

  std::shared_ptr<client_state> of_;  // Until it is concluded.
  const unsigned long generation_;
  const client_state::keeping how_;
  const time_point started_at_;
  engine::acquire flow_;
  std::shared_ptr<acquire_receiver> to_;
  errc why_{};  // And no std::error_code, which takes four times the room.
  bool has_no_memory_ = false;
  lease got_{};
  // The last: its end waits for a canceller under way. Apart: few have one.
  std::unique_ptr<stop_listener> on_stop_{};
};

script::part part_of(const acquire_target& what, const acquire_options& options) {
  switch (what.mode) {
    case hold_mode::permits: return permits_of(what.name, options, what.size);
    case hold_mode::shared: return reading;
    case hold_mode::exclusive: break;
  }
  return what.kind == lock_kind::shared ? writing : script::part{};
}

}  // namespace

void cancel_handle::cancel() const noexcept {
  const net::uncancelled until_done;
  if (const auto what = what_.lock()) what->cancel();
}

cancel_handle start_acquire(const acquire_target& what, const acquire_options& options,
                            std::shared_ptr<acquire_receiver> to) {
  const net::uncancelled until_done;
  client_state& of = client_state::of(*what.locks);
  const auto part = part_of(what, options);
  if (auto* quorum = of.of_quorum()) {
    return start_acquire_of(*quorum, of.shared_from_this(), what, options, part, std::move(to));
  }
  auto wanted = of.plan(what.name, options, client_state::patience::as_told, part);
  of.require_wanted(what.name, options.cancel);
  const auto call = std::make_shared<async_acquire>(
      of.shared_from_this(), std::move(wanted), client_state::keeping{options.renew, options.max_hold}, std::move(to));
  call->prepare_to_listen_to(options.cancel);
  // Behind the start the options may be gone: a coroutine's, which has gone on.
  const std::stop_token stop = options.cancel;
  of.start(call->at(), call);
  call->listen_to(stop);
  return cancel_handle{call};
}

// ---- release ----

namespace {

class async_release final : public placed_call {
public:
  async_release(std::unique_ptr<lease_handle> what, time_point deadline, release_receiver to)
      : placed_call{*what->owner, what->record->keys},
        what_{std::move(what)},
        flow_{at()->commands()->channel(),
              what_->record->keys,
              what_->record->owner,
              what_->record->grant,
              deadline,
              what_->owner->give_up_at(deadline)},
        to_{std::move(to)} {
    flow_.set_slot(what_->owner->slot_of(what_->record->keys));
  }

  engine::call& flow() override { return flow_; }
  std::shared_ptr<client_state> conclude() noexcept override {
    outcome_ = flow_.end();
    const auto what = std::move(what_);
    auto of = what->owner;
    try {
      what->owner->conclude(*what->record, outcome_);
    } catch (...) {
      // No memory: the ttl ends it.
    }
    return of;
  }
  void tell() noexcept override {
    try {
      std::exchange(to_, nullptr)(outcome_);
    } catch (...) {
      // As above.
    }
  }

private:
  std::shared_ptr<client_state> client() const override { return what_->owner; }
  const script::lock_keys& about() const override { return what_->record->keys; }

  std::unique_ptr<lease_handle> what_;  // Until it is concluded.
  engine::release flow_;
  release_receiver to_;
  release_outcome outcome_ = release_outcome::unknown;
};

}  // namespace

lease_reference::lease_reference(const lease& what) {
  if (!what) throw error{errc::empty_handle};
  const auto& handle = lease_handle::of(what);
  handle.owner->require_ours();
  owner_ = handle.owner;
  record_ = handle.record;
}

// Whoever keeps the lease keeps its client.
std::shared_ptr<client_state> lease_reference::owner() const {
  auto of = owner_.lock();
  if (!of) throw error{errc::empty_handle};
  of->require_ours();
  return of;
}

void start_release(lease what, release_receiver to) {
  const net::uncancelled until_done;
  (void)lease_reference{what}.owner();
  const auto of = lease_handle::of(what).owner;
  const auto record = lease_handle::of(what).record;
  // What may fail, while the lease is still one that its end releases in the background.
  if (!of->of_quorum()) of->node_for(record->keys)->stand_by();
  auto handle = lease_handle::taken_from(what);
  if (auto* quorum = of->of_quorum()) return start_release_of(*quorum, std::move(handle), std::move(to));
  if (const auto deadline = of->let_go(*record)) {
    try {
      const auto call = std::make_shared<async_release>(std::move(handle), *deadline, std::move(to));
      return of->start(call->at(), call);
    } catch (...) {
      of->conclude(*record, release_outcome::unknown);
      throw;
    }
  }
  of->conclude(*record, release_outcome::already_lost);
  of->callbacks().post([to = std::move(to)] { to(release_outcome::already_lost); });
}

// ---- downgrade ----

namespace {

// Of a lease of which the server has nothing: told when its keeper knows why.
class told_of_loss final : public engine::renewal_wish {
public:
  told_of_loss(callback_thread& callbacks, std::function<void()> tell)
      : callbacks_{callbacks.shared_from_this()}, tell_{std::move(tell)} {}

  void on_end(errc /*how*/) noexcept override { callbacks_->post(tell_); }

private:
  const std::shared_ptr<callback_thread> callbacks_;
  callback_thread::made_ahead tell_;
};

class async_downgrade final : public placed_call {
public:
  async_downgrade(const std::shared_ptr<client_state>& of, std::shared_ptr<lease_record> what, code_receiver to)
      : placed_call{*of, what->keys},
        of_{of},
        what_{std::move(what)},
        give_up_at_{boottime_now() + of->options().timeout},
        flow_{at()->commands()->channel(), of->plan_downgrade(*what_), engine::question::repeat::allowed, give_up_at_},
        to_{std::make_shared<const code_receiver>(std::move(to))} {
    flow_.set_slot(of_->slot_of(what_->keys));
  }

  engine::call& flow() override { return flow_; }

  std::shared_ptr<client_state> conclude() noexcept override {
    auto of = std::exchange(of_, nullptr);
    try {
      if (!of->conclude_downgrade(*what_, of->reply_of(flow_, what_->keys))) {
        const auto tell = [what = what_, to = to_] { (*to)(what->why_gone()); };
        of->have_keeper_ask(*what_, give_up_at_, std::make_shared<told_of_loss>(of->callbacks(), tell));
        is_told_by_keeper_ = true;
      }
    } catch (const error& e) {
      code_ = e.code();
    } catch (...) {
      code_ = std::make_error_code(std::errc::not_enough_memory);
    }
    return of;
  }
  void tell() noexcept override {
    const auto to = std::exchange(to_, nullptr);
    if (is_told_by_keeper_) return;
    try {
      (*to)(code_);
    } catch (...) {
      // As above.
    }
  }

private:
  std::shared_ptr<client_state> client() const override { return of_; }
  const script::lock_keys& about() const override { return what_->keys; }

  std::shared_ptr<client_state> of_;  // Until it is concluded.
  const std::shared_ptr<lease_record> what_;
  const time_point give_up_at_;
  engine::question flow_;
  std::shared_ptr<const code_receiver> to_;
  std::error_code code_{};
  bool is_told_by_keeper_ = false;
};

}  // namespace

void start_downgrade(const lease_reference& what, code_receiver to) {
  const net::uncancelled until_done;
  const auto of = what.owner();
  if (auto* quorum = of->of_quorum()) return start_downgrade_of(*quorum, of, what.record(), std::move(to));
  const auto call = std::make_shared<async_downgrade>(of, what.record(), std::move(to));
  of->start(call->at(), call);
}

// ---- all ----

void conclude_all(std::vector<std::shared_ptr<async_call>> ended, callback_thread& callbacks) noexcept {
  std::erase_if(ended,
                [](const std::shared_ptr<async_call>& call) { return call->flow().is_moved() && call->go_on(call); });
  const auto kept = callbacks.weak_from_this().lock();
  std::shared_ptr<client_state> of;  // The same for all.
  for (const auto& call : ended) of = call->conclude();
  // With the last of it we have nothing of the client any more: as soon as somebody is told, its end may be waited for,
  // and whoever finds another owner does not wait.
  // In portions, so that a lost() need not wait for ten thousand that were cancelled together (C4).
  constexpr std::ptrdiff_t portion = 100;
  try {
    for (auto from = ended.begin(); from != ended.end();) {
      const auto to = from + std::min(portion, ended.end() - from);
      auto its = to == ended.end() ? std::move(of) : of;
      callbacks.post([some = std::vector(std::make_move_iterator(from), std::make_move_iterator(to)),
                      of = std::move(its)]() mutable {
        of.reset();
        for (const auto& call : some) call->tell();
      });
      from = to;
    }
  } catch (...) {
    // No memory to tell anybody anything.
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
