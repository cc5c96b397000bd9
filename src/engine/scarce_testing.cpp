// SPDX-License-Identifier: Apache-2.0
#include "engine/scarce_testing.hpp"

#include <cstdlib>
#include <new>

namespace holdfast::engine::scarce_testing {

thread_local int allocations_left = all;

}  // namespace holdfast::engine::scarce_testing

using holdfast::engine::scarce_testing::all;
using holdfast::engine::scarce_testing::allocations_left;

// Not inline, or g++ sees a malloc that is ended by delete and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left != all && allocations_left-- <= 0) throw std::bad_alloc{};
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
// Or ASan's own would be used for it, and what that gives is not free()'s.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }
