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

// None of its processes runs, as far as they can be seen, and could be stopped.
bool is_group_stopped(pid_t group);

// Somebody could wake us if we stopped: a parent of our group that is not of it, in our session (a shell with job
// control). Nobody could as PID 1 of a container, or under `ssh -t HOST`; there the kernel ignores TSTP, too.
bool can_be_woken();

// Nobody could, and the head of our session is not of our group: what started us has ended, and nobody of us had the
// terminal or will have it. Where it is one of us, whoever of us has lent the terminal gives it back to us.
bool is_left_behind();

}  // namespace holdfast::cli
