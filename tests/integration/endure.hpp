// SPDX-License-Identifier: Apache-2.0
// The worker that lives through failovers: an acquire that fails is counted and tried again, and every hold leaves
// behind what a judge needs.
#pragma once

#include <holdfast/holdfast.hpp>

#include <string>
#include <vector>

namespace holdfast::test {

// The words are described in worker.cpp.
int endure(client& locks, const std::vector<std::string>& words);

}  // namespace holdfast::test
