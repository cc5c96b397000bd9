// SPDX-License-Identifier: Apache-2.0
#include "client/fork_guard.hpp"

#include <pthread.h>

#include <atomic>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {
std::atomic<unsigned long> generation{1};
}

unsigned long process_generation() noexcept {
  static const int watching = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  (void)watching;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
