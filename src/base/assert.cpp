// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace holdfast::base {

void assertion_failed(const char* fact, const char* file, int line) noexcept {
  std::fprintf(stderr, "holdfast: broken invariant: %s (%s:%d)\n", fact, file, line);
  std::abort();
}

}  // namespace holdfast::base
