// SPDX-License-Identifier: Apache-2.0
// What one run of a script shows by itself, on one server as on each of a quorum's.
#pragma once

#include "facts.hpp"

#include <functional>
#include <optional>
#include <string>

namespace holdfast::sim {

using complaint = std::function<void(std::string)>;

bool is_break(script::id which);
// Whose hold this run of a break has ended, now or at its expiry; null: it is no break, or nothing has come of it.
const holder* broken_by(const script_run& run);
// The ticket of whoever it has put into the line, or found there.
std::optional<double> ticket_given(const script_run& run);
// C9: the owner's own scripts and a break by an operator who saw it end a lease, and only the owner's renew one.
void check_only_the_owner(const script_run& run, const complaint& complain);
// H29: what gives back, renews or looks is not refused because the memory is full.
void check_full_memory(const script_run& run, const complaint& complain);
// The invariant that such a reply breaks, whatever befalls anybody; null: none.
const char* failure_of_command(const resp::value& reply);
// Of a lock's own script: but where the server takes no writes, nothing in it may be refused.
const char* failure_of_lock_script(const resp::value& reply);

}  // namespace holdfast::sim
