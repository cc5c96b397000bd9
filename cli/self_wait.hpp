// SPDX-License-Identifier: Apache-2.0
// Who waits for a lock that a process above us holds waits for ourselves. HOLDFAST_HOLDS says what they got, and the
// server whether they still have it: what outlives them has inherited the list.
#pragma once

#include "options.hpp"
#include "server.hpp"
#include "signals.hpp"

#include <holdfast/info.hpp>
#include <holdfast/names.hpp>

namespace holdfast::cli {

// Whether the lease of that token is among those that the server listed as held.
bool is_held_under(const lock_info& seen, fencing_token token);

// Whether a process above us holds it still. `seen` is what the server says of it now.
bool is_held_above(const server& at, const settings& s, const lock_info& seen);

// The same of what is to be taken, which may be asked of the server. A wait for what we have ourselves has no end, or
// ends with nothing; but of several at once one more may be had.
bool waits_for_itself(server& at, const settings& s, signal_inbox& inbox);

// Says so, and gives the status.
int refuse_self_deadlock(const settings& s);

}  // namespace holdfast::cli
