// SPDX-License-Identifier: Apache-2.0
// This program's memory, of which a test takes away what it wants.
#pragma once

namespace holdfast::test {

// How many more allocations of this thread succeed; below zero: all.
extern thread_local int allocations_left;
extern thread_local int allocations_made;

// From now on and for good, no allocation of another thread succeeds.
void keep_memory_to_this_thread();

}  // namespace holdfast::test
