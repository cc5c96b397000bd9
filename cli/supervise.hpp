// SPDX-License-Identifier: Apache-2.0
// The command's life under the lock: from its start to the end of its last process, whatever ends first.
#pragma once

#include "child.hpp"
#include "lease_watch.hpp"
#include "message.hpp"
#include "options.hpp"
#include "server.hpp"
#include "signals.hpp"

#include <holdfast/lease.hpp>

#include <optional>
#include <vector>

namespace holdfast::cli {

struct ending {
  int exit = 0;              // The command's status, or exit_code::lost.
  bool was_stopped = false;  // The lock was lost, and the command stopped for it.
  bool is_told = false;      // The lock was lost, and an error has said so, or is `untold`.

  // What is to be said when the lock has been given back, because it may have to wait for its reader.
  std::optional<fault> untold{};
  std::optional<fault> leftovers{};  // A warning; they are looked for just before that.

  std::vector<int> passed_on{};  // Each HUP, INT, QUIT and TERM that came while the command ran.
  // The last of those that came when it had ended: before we had seen that, or with --wait-group while others lived.
  std::optional<received_signal> came_behind_it{};
};

// Returns when the command has ended (and with --wait-group or after a loss its group too). `watch`: of that lease,
// made before the command was started, since that may fail. `at` is for messages.
ending supervise(const lease& held, lease_watch& watch, child& command, signal_inbox& inbox, const settings& s,
                 const server& at);

}  // namespace holdfast::cli
