// SPDX-License-Identifier: Apache-2.0
// Assertions on our own invariants. They stay on in release builds of core and engine: a lock that goes on after a
// broken invariant is worse than one that stops. Never use them on bytes from the network or on a caller's input.
#pragma once

namespace holdfast::base {

// Prints the fact that did not hold and aborts.
[[noreturn]] void assertion_failed(const char* fact, const char* file, int line) noexcept;

}  // namespace holdfast::base

#define HOLDFAST_ASSERT(fact) \
  ((fact) ? static_cast<void>(0) : ::holdfast::base::assertion_failed(#fact, __FILE__, __LINE__))
