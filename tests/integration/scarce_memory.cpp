// SPDX-License-Identifier: Apache-2.0
#include "integration/scarce_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace holdfast::test {

thread_local int allocations_left = -1;
thread_local int allocations_made = 0;

namespace {
std::atomic<bool> is_kept_to_one{false};
thread_local bool is_that_one = false;
}  // namespace

void keep_memory_to_this_thread() {
  is_that_one = true;
  is_kept_to_one = true;
}

}  // namespace holdfast::test

// Not inline, or g++ sees a malloc that is ended by delete and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  using namespace holdfast::test;
  if (allocations_left == 0 || (is_kept_to_one && !is_that_one)) throw std::bad_alloc{};
  if (allocations_left > 0) --allocations_left;
  ++allocations_made;
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
// Of std::stable_partition, for one: a sanitizer's own would not be ended by our delete.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept try {
  return operator new(size);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }
