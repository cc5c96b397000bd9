// SPDX-License-Identifier: Apache-2.0
#include "client/waiting_thread.hpp"

namespace holdfast {
inline namespace v0 {
namespace detail {

void waiting_thread::on_news(engine::call& /*of*/) {
  if (!as_one_with_news_.is_linked()) with_news_->push_back(*this);
}

void waiting_thread::forget_news() {
  if (as_one_with_news_.is_linked()) with_news_->erase(with_news_->iterator_to(*this));
}

void waiting_thread::wake() {
  const bool is_watched = may_be_woken;
  is_woken_ = true;
  woken_.post();
  if (is_watched) through_.post();
}

void waiting_thread::wake_all(list& which) {
  while (!which.empty()) {
    auto& next = which.front();
    which.pop_front();
    next.wake();
  }
}

void waiting_thread::interrupt() noexcept {
  is_interrupted_ = true;
  woken_.post();
}

bool waiting_thread::is_woken_by(time_point until) {
  if (!woken_.wait_until(until) || !is_woken_.exchange(false)) return false;
  // The post may have been an interrupt's: then whoever wakes us has its own to make.
  while (may_be_woken && !through_.wait_until(never)) {
  }
  return true;
}

bool waiting_thread::sleep(std::unique_lock<std::mutex>& held, time_point until) {
  state_ = state::asleep;
  held.unlock();
  if (!is_woken_by(until)) {
    held.lock();
    if (state_ == state::asleep) {
      state_ = state::awake;
      return true;
    }
    held.unlock();
    while (!is_woken_by(never)) {
    }
  }
  if (state_ == state::done) return false;
  held.lock();
  state_ = state::awake;
  return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
