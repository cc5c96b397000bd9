// SPDX-License-Identifier: Apache-2.0
// For threads that serve everybody, and must not stand still because one caller does with a mutex of its own (P32).
#pragma once

#include <chrono>
#include <mutex>
#include <thread>

namespace holdfast {
inline namespace v0 {
namespace detail {

// False where somebody keeps it for longer than anybody who is not stopped does.
inline bool lock_soon(std::unique_lock<std::mutex>& what) {
  for (int tries = 0; tries < 20; ++tries) {
    if (what.try_lock()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
