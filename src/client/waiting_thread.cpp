// SPDX-License-Identifier: Apache-2.0
#include "client/waiting_thread.hpp"

#include "net/clock.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

waiting_thread::waiting_thread(const calls& what, list& with_news, bool wakeable)
    : may_be_woken{wakeable}, what_{&what}, with_news_{&with_news} {
  sem_init(&woken_, 0, 0);
}

waiting_thread::~waiting_thread() { sem_destroy(&woken_); }

void waiting_thread::on_news(engine::call& /*of*/) {
  if (!std::exchange(has_news_, true)) with_news_->push_back(this);
}

void waiting_thread::forget_news() {
  if (std::exchange(has_news_, false)) std::erase(*with_news_, this);
}

void waiting_thread::wake() {
  is_woken_ = true;
  sem_post(&woken_);
}

bool waiting_thread::is_woken_by(time_point until) {
  // CLOCK_MONOTONIC does not count a suspend: who sleeps long looks at the clock again.
  const duration left = std::clamp<duration>(until - boottime_now(), duration{0}, std::chrono::hours{1});
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  const duration when = std::chrono::seconds{at.tv_sec} + std::chrono::nanoseconds{at.tv_nsec} + left;
  at.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(when).count();
  at.tv_nsec = (when % std::chrono::seconds{1}).count();
  return sem_clockwait(&woken_, CLOCK_MONOTONIC, &at) == 0 && is_woken_.exchange(false);
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
