// SPDX-License-Identifier: Apache-2.0
#include <holdfast/shared_mutex.hpp>

#include "client/client_state.hpp"
#include "client/fork_guard.hpp"
#include "client/part.hpp"
#include "client/with_code.hpp"
#include "net/clock.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"

#include <utility>

namespace holdfast {
inline namespace v0 {

using detail::client_state;
using detail::reading;
using detail::with_code;
using detail::writing;

shared_mutex::shared_mutex(client& locks, std::string_view name, acquire_options options)
    : locks_{locks}, name_{name}, options_{std::move(options)}, generation_{detail::process_generation()} {
  options_.permits = 1;
  options_.wait.reset();
  options_.cancel = {};
}

shared_mutex::~shared_mutex() = default;

// ---- leases ----

std::optional<lease> shared_mutex::try_acquire(const acquire_options& options) {
  return locks_.state_->acquire(name_, options, client_state::patience::once, writing);
}

std::optional<lease> shared_mutex::try_acquire(const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&] { return try_acquire(options); });
}

lease shared_mutex::acquire(const acquire_options& options) {
  return locks_.state_->acquire_or_throw(name_, options, writing);
}

std::optional<lease> shared_mutex::acquire(const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<lease> { return acquire(options); });
}

std::optional<lease> shared_mutex::try_acquire_shared(const acquire_options& options) {
  return locks_.state_->acquire(name_, options, client_state::patience::once, reading);
}

std::optional<lease> shared_mutex::try_acquire_shared(const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&] { return try_acquire_shared(options); });
}

lease shared_mutex::acquire_shared(const acquire_options& options) {
  return locks_.state_->acquire_or_throw(name_, options, reading);
}

std::optional<lease> shared_mutex::acquire_shared(const acquire_options& options, std::error_code& ec) {
  return with_code(ec, [&]() -> std::optional<lease> { return acquire_shared(options); });
}

void shared_mutex::downgrade(lease& held) {
  if (!held) throw error{errc::empty_handle};
  // The lease's own client, which may be another one than ours: of another server, or of the process that forked us.
  auto& state = *held.handle_->owner;
  state.require_ours();
  auto& record = *held.handle_->record;
  if (state.is_of_quorum()) return state.downgrade_on_majority(record);
  const time_point give_up_at = net::boottime_now() + state.options().timeout;
  const auto reply = state.ask(record.keys, state.plan_downgrade(record), engine::question::repeat::allowed);
  if (!state.conclude_downgrade(record, reply)) state.fail_as_gone(record, give_up_at);
}

void shared_mutex::downgrade(lease& held, std::error_code& ec) {
  with_code(ec, [&] { downgrade(held); });
}

// ---- the façade ----

// As mutex's.
void shared_mutex::require_ours() const {
  if (generation_ != detail::process_generation()) throw error{errc::used_after_fork};
}

void shared_mutex::keep(lease held) {
  const std::lock_guard alone{guard_};
  held_.insert_or_assign(std::this_thread::get_id(), std::move(held));
}

void shared_mutex::give_back() noexcept {
  // A forked child's: there is nothing to give back, and no way to say so. Asked before the guard, which a thread that
  // is not there may have locked (P33).
  if (generation_ != detail::process_generation()) return;
  try {
    lease ending;
    {
      const std::lock_guard alone{guard_};
      const auto found = held_.find(std::this_thread::get_id());
      if (found == held_.end()) return;
      ending = std::move(found->second);
      held_.erase(found);
    }
    ending.release();
  } catch (...) {
    // Empty.
  }
}

void shared_mutex::lock() {
  require_ours();
  keep(acquire(options_));
}

void shared_mutex::lock_shared() {
  require_ours();
  keep(acquire_shared(options_));
}

void shared_mutex::unlock() noexcept { give_back(); }
void shared_mutex::unlock_shared() noexcept { give_back(); }

bool shared_mutex::try_lock() {
  require_ours();
  auto got = try_acquire(options_);
  if (got) keep(std::move(*got));
  return got.has_value();
}

bool shared_mutex::try_lock_shared() {
  require_ours();
  auto got = try_acquire_shared(options_);
  if (got) keep(std::move(*got));
  return got.has_value();
}

bool shared_mutex::lock_within(std::chrono::milliseconds wait, bool shared) {
  require_ours();
  if (wait <= std::chrono::milliseconds{0}) return shared ? try_lock_shared() : try_lock();
  acquire_options bounded = options_;
  bounded.wait = wait;
  try {
    keep(shared ? acquire_shared(bounded) : acquire(bounded));
    return true;
  } catch (const error& e) {
    if (e.code() != errc::timed_out) throw;
    return false;
  }
}

void shared_mutex::unlock_and_lock_shared() {
  require_ours();
  lease* ours = nullptr;
  {
    const std::lock_guard alone{guard_};
    const auto found = held_.find(std::this_thread::get_id());
    if (found == held_.end()) throw error{errc::empty_handle};
    ours = &found->second;  // Only this thread takes it away, and a map's elements stay where they are.
  }
  downgrade(*ours);
}

}  // namespace v0
}  // namespace holdfast
