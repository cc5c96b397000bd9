// SPDX-License-Identifier: Apache-2.0
#include <holdfast/recursive_mutex.hpp>

#include "client/client_state.hpp"

#include <limits>
#include <system_error>
#include <utility>

namespace holdfast {
inline namespace v0 {

recursive_mutex::recursive_mutex(client& locks, std::string_view name, acquire_options options)
    : inner_{locks, name, std::move(options)} {}

recursive_mutex::~recursive_mutex() = default;

void recursive_mutex::lock() {
  if (count_if_ours()) return;
  inner_.lock();
  first(true);
}

bool recursive_mutex::try_lock() { return count_if_ours() || first(inner_.try_lock()); }

// Only we can have written our own id, so what another thread is doing to it meanwhile does not matter.
bool recursive_mutex::count_if_ours() {
  if (owner_.load(std::memory_order_relaxed) != std::this_thread::get_id()) return false;
  // A child's only thread has the id of the one that forked it.
  inner_.require_ours();
  if (depth_ == std::numeric_limits<unsigned>::max()) {
    throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again), "recursive_mutex"};
  }
  ++depth_;
  return true;
}

bool recursive_mutex::first(bool is_locked) {
  if (!is_locked) return false;
  owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  depth_ = 1;
  return true;
}

void recursive_mutex::unlock() noexcept {
  if (--depth_ > 0) return;
  owner_.store(std::thread::id{}, std::memory_order_relaxed);
  inner_.unlock();
}

}  // namespace v0
}  // namespace holdfast
