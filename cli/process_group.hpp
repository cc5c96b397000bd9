// SPDX-License-Identifier: Apache-2.0
// Who is in a process group, and what they do. All of this is read from /proc.
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

namespace holdfast::cli {

// Names and pids of the processes of a group, "sleep (4711)"; at most four.
std::vector<std::string> processes_of_group(pid_t group);

// Of those that we may not signal: another user's, as by sudo.
std::vector<std::string> processes_out_of_reach(pid_t group);

// It has no process but zombies without threads, and all could be seen: who cannot be seen has not ended.
bool has_group_ended(pid_t group);

// None of its processes runs, as far as they can be seen.
bool is_group_stopped(pid_t group);

// Names and pids of those of a command that run on when it is stopped, since we may not signal them: of its group, and
// of those that its processes have made in our session, as a run in a run does. At most four.
std::vector<std::string> processes_that_cannot_be_stopped(pid_t command);

// Somebody could wake us if we stopped: a parent of our group that is not of it, in our session (a shell with job
// control). Nobody could as PID 1 of a container, or under `ssh -t HOST`; there the kernel ignores TSTP, too.
bool can_be_woken();

// What started us has ended, and nobody of us will have the terminal: neither our group nor one above it (of parents,
// in our session) is that of the session's head. A run may be above us, which could be woken, and is left behind
// itself. Where the head is of our group, whoever of us has lent the terminal gives it back to us.
bool is_left_behind();

}  // namespace holdfast::cli
