// SPDX-License-Identifier: Apache-2.0
// Taking the lock, as `run` and `hold` both do: try or wait, say who has it, and stop waiting when a signal comes.
#pragma once

#include "options.hpp"
#include "server.hpp"
#include "signals.hpp"

#include <holdfast/info.hpp>
#include <holdfast/lease.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

// To say who has the lock is a courtesy: neither a signal nor the lock itself waits longer for that.
inline constexpr std::chrono::milliseconds courtesy{300};

struct taking {
  std::optional<lease> held{};  // Empty: not taken, it has been said why, and `exit` is the status.
  int exit = 0;
};

// As open_server(). Meanwhile a signal that asks us to end does so at once, with 128+N: nothing was asked of the server
// yet.
server open_server(const settings& s, client_options options, signal_inbox& inbox);

// Throws holdfast::error for faults; busy, timed out, a signal and a lock of a process above us are answers.
taking take_lock(server& at, const settings& s, const std::string& owner, signal_inbox& inbox);

// The lock as HOLDFAST_HOLDS lists it.
std::string entry_of(const server& at, const settings& s);

// The release had no definite answer. `why` is lease::release's.
void warn_of_unknown_release(const settings& s, const error_detail& why);

// The label that others see: --owner, else user@host:pid PROGRAM; with --why, the reason in quotes behind it.
// Never the command's arguments, which may hold secrets.
std::string owner_label(const settings& s, std::string_view program);

// Could somebody take it now? Of a semaphore: one permit. Not while somebody stands in line: a try does not go before.
bool is_free(const lock_info& info);

// Of what is not free: "is held by deploy@web3:4711 backup for 3m12s", ready to show.
std::string holder_text(const lock_info& info, const settings& s);

}  // namespace holdfast::cli
