// SPDX-License-Identifier: Apache-2.0
// Starts redis-server as a daemon that outlives us and holds nothing of ours. Apart from local_server.cpp because
// everything between fork and exec must be async-signal-safe.
#pragma once

#include "local/directory.hpp"

#include <string>
#include <string_view>

namespace holdfast::local {

// The program in `search_path` (as PATH), else in the usual places that cron's PATH lacks; empty if not installed.
std::string find_program(std::string_view name, std::string_view search_path);

// Returns the daemon's pid once it is running redis-server, which may still end at once for reasons of its own:
// they are in the log. Throws error with errc::local_server if it cannot be run.
int launch(const place& where);

}  // namespace holdfast::local
