// SPDX-License-Identifier: Apache-2.0
// The simulator's output: what was reached, and how a failure came about.
#pragma once

#include "jobs.hpp"

#include <cstdint>

namespace holdfast::sim {

void print_statistics(const statistics& what, double seconds);
// Plays the seed again, makes it as small as it gets, and tells its story.
void print_failure(std::uint64_t seed, const limits& within, const canary* planted);

}  // namespace holdfast::sim
