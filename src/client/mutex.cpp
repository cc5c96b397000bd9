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

// Taken in this process; given back unless the lock follows.
class mutex::turn {
public:
  explicit turn(mutex& of) : of_{of} {}
  ~turn() {
    if (!is_kept_) of_.give_back();
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  void keep() { is_kept_ = true; }

private:
  mutex& of_;
  bool is_kept_ = false;
};

void mutex::give_back() noexcept {
  {
    const std::lock_guard held{guard_};
    is_taken_ = false;
  }
  freed_.notify_one();
}

void mutex::lock() {
  {
    std::unique_lock held{guard_};
    freed_.wait(held, [this] { return !is_taken_; });
    is_taken_ = true;
  }
  turn ours{*this};
  held_ = locks_.acquire(name_, options_);
  ours.keep();
}

bool mutex::try_lock() {
  {
    const std::lock_guard held{guard_};
    if (std::exchange(is_taken_, true)) return false;
  }
  turn ours{*this};
  auto got = locks_.try_acquire(name_, options_);
  if (!got) return false;
  held_ = std::move(*got);
  ours.keep();
  return true;
}

bool mutex::lock_within(std::chrono::milliseconds wait) {
  if (wait <= std::chrono::milliseconds{0}) return try_lock();
  const time_point until = net::boottime_now() + wait;
  {
    std::unique_lock held{guard_};
    if (!freed_.wait_for(held, wait, [this] { return !is_taken_; })) return false;
    is_taken_ = true;
  }
  turn ours{*this};
  acquire_options bounded = options_;
  bounded.wait =
      std::max(std::chrono::milliseconds{1}, std::chrono::ceil<std::chrono::milliseconds>(until - net::boottime_now()));
  std::error_code ec;
  auto got = locks_.acquire(name_, bounded, ec);
  if (ec == outcome::timed_out) return false;
  if (ec) throw error{ec};
  held_ = std::move(*got);
  ours.keep();
  return true;
}

void mutex::unlock() noexcept {
  try {
    lease ending = std::move(held_);
    ending.release();
  } catch (...) {
    // Empty, or a forked child's: there is nothing to give back, and no way to say so.
  }
  give_back();
}

}  // namespace v0
}  // namespace holdfast
