// SPDX-License-Identifier: Apache-2.0
#include <holdfast/mutex.hpp>

#include "net/clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {

mutex::mutex(client& locks, std::string_view name, acquire_options options)
    : locks_{locks}, name_{name}, options_{std::move(options)} {
  options_.wait.reset();
  options_.cancel = {};
}

mutex::~mutex() = default;

void mutex::lock() {
  std::unique_lock first{in_process_};
  held_ = locks_.acquire(name_, options_);
  first.release();  // Until unlock().
}

bool mutex::try_lock() {
  std::unique_lock first{in_process_, std::try_to_lock};
  if (!first) return false;
  auto got = locks_.try_acquire(name_, options_);
  if (!got) return false;
  held_ = std::move(*got);
  first.release();
  return true;
}

bool mutex::lock_within(std::chrono::milliseconds wait) {
  if (wait <= std::chrono::milliseconds{0}) return try_lock();
  const time_point until = net::boottime_now() + wait;
  std::unique_lock first{in_process_, wait};
  if (!first) return false;
  acquire_options bounded = options_;
  bounded.wait =
      std::max(std::chrono::milliseconds{1}, std::chrono::ceil<std::chrono::milliseconds>(until - net::boottime_now()));
  std::error_code ec;
  auto got = locks_.acquire(name_, bounded, ec);
  if (ec == outcome::timed_out) return false;
  if (ec) throw error{ec};
  held_ = std::move(*got);
  first.release();
  return true;
}

void mutex::unlock() noexcept {
  try {
    lease ending = std::move(held_);
    ending.release();
  } catch (...) {
    // Empty, or a forked child's: there is nothing to give back, and no way to say so.
  }
  in_process_.unlock();
}

}  // namespace v0
}  // namespace holdfast
