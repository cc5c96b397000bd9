// SPDX-License-Identifier: Apache-2.0
// "did you mean": the nearest word of a list. A misspelt option must name its neighbour, not print a manual.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// The word nearest to `typed`, or empty when none is near: at most two edits (a swap of neighbours is one), and
// fewer than half of the letters.
std::string nearest(std::string_view typed, const std::vector<std::string_view>& words);

}  // namespace holdfast::cli
