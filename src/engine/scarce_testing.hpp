// SPDX-License-Identifier: Apache-2.0
// Memory that runs out for one thread.
#pragma once

#include <limits>

namespace holdfast::engine::scarce_testing {

constexpr int all = std::numeric_limits<int>::max();
// How many more allocations of a thread succeed.
extern thread_local int allocations_left;

}  // namespace holdfast::engine::scarce_testing
