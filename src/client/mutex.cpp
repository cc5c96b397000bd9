// SPDX-License-Identifier: Apache-2.0
#include <holdfast/mutex.hpp>

#include "client/client_state.hpp"
#include "client/fork_guard.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace holdfast {
inline namespace v0 {

namespace {

// A condition variable does not count a suspend, behind which `until` is to be seen soon (H2).
template <class Condition>
bool wait_until(std::unique_lock<std::mutex>& held, std::condition_variable& news, time_point until,
                Condition condition) {
  for (;;) {
    const auto left = std::min<duration>(until - net::boottime_now(), std::chrono::seconds{5});
    if (news.wait_for(held, std::max(left, duration{0}), condition)) return true;
    if (net::boottime_now() >= until) return false;
  }
}

}  // namespace

mutex::mutex(client& locks, std::string_view name, acquire_options options)
    : locks_{locks}, freed_{}, name_{name}, options_{std::move(options)}, generation_{detail::process_generation()} {
  options_.permits = 1;
  options_.wait.reset();
  options_.cancel = {};
}

// By a number of our own: the client may be gone by now.
mutex::~mutex() {
  if (generation_ == detail::process_generation()) freed_.~condition_variable();
}

// Not the client's: a child may have put another one in its place, and who is inside is what the parent knew (P33).
void mutex::require_ours() const {
  if (generation_ != detail::process_generation()) throw error{errc::used_after_fork};
}

// The lease comes first, so that it can be handed on from thread to thread of this process; its holder's turn after it.
// Only when the lease was lost under a thread that still works is there a wait between the two, in which this one may
// be lost as well: who comes in has the lock.
bool mutex::enter(lease got, std::optional<std::chrono::nanoseconds> within) {
  const net::uncancelled until_done;
  std::unique_lock held{guard_};
  const auto is_free = [this] { return !is_taken_; };
  if (!within) {
    freed_.wait(held, is_free);
  } else if (!wait_until(held, freed_, net::boottime_now() + *within, is_free)) {
    return false;
  }
  if (!got.valid()) {
    freed_.notify_one();  // It was told in vain, and somebody behind it may have the lock.
    return false;
  }
  is_taken_ = true;
  held_ = std::move(got);
  return true;
}

void mutex::lock() {
  require_ours();
  while (!enter(locks_.acquire(name_, options_), std::nullopt)) {
  }
}

// In a forked child the guard may be locked by a thread that is not there (P33), so whose we are is asked first.
bool mutex::try_lock() {
  require_ours();
  {
    const std::lock_guard held{guard_};
    if (is_taken_) return false;
  }
  auto got = locks_.try_acquire(name_, options_);
  return got && enter(std::move(*got), duration{0});
}

bool mutex::lock_within(std::chrono::milliseconds wait) {
  require_ours();
  if (wait <= std::chrono::milliseconds{0}) return try_lock();
  const time_point until = net::boottime_now() + wait;
  acquire_options bounded = options_;
  for (auto left = wait; left > std::chrono::milliseconds{0};) {
    bounded.wait = left;
    auto got = locks_.acquire_in_time(name_, bounded);
    if (!got) return false;
    if (enter(std::move(*got), until - net::boottime_now())) return true;
    left = std::chrono::ceil<std::chrono::milliseconds>(until - net::boottime_now());
  }
  return false;
}

void mutex::unlock() noexcept {
  if (generation_ != detail::process_generation()) return;  // There is nothing to give back, and no way to say so.
  lease ending;
  {
    const std::lock_guard held{guard_};
    ending = std::move(held_);
    is_taken_ = false;
    // Under the guard: once that is free, another thread may lock, unlock and destroy us.
    freed_.notify_one();
  }
  try {
    ending.release();
  } catch (...) {
    // Empty.
  }
}

}  // namespace v0
}  // namespace holdfast
