// SPDX-License-Identifier: Apache-2.0
// Those of a command that we cannot stop, in words: another user's, by sudo, say.
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

namespace holdfast::cli {

// All of the command is.
std::string out_of_reach(pid_t command);

// Some of its processes are, "sleep (4711)": the rest of a script that calls sudo.
std::string out_of_reach(const std::vector<std::string>& processes);

}  // namespace holdfast::cli
