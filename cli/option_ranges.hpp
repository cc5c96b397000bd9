// SPDX-License-Identifier: Apache-2.0
// The ranges of options, before there is a client: to make one of local: may start a server, which is then left running
// for a command that is refused.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Throws what the library would (holdfast::error, invalid_name or invalid_option), in its words. What it checks itself
// before it starts a server, it checks alone.
void check_ranges(command which, const settings& s);

}  // namespace holdfast::cli
