// SPDX-License-Identifier: Apache-2.0
// A process by more than its number: numbers are given again, and a signal must never reach a stranger. What cannot be
// seen, for want of a descriptor or of a permission, is never taken for an end: all of this throws error with
// errc::local_server then.
#pragma once

#include "local/descriptor.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::local {

// A short file of /proc; nullopt with errno if it cannot be read, as when its process has just ended. Does not throw
// for that.
std::optional<std::string> text_of_proc(const std::string& path);

// In clock ticks since boot, as the kernel writes it; 0 if /proc shows no such process.
std::uint64_t started_at(int pid);

// The letter that ps shows ('T': stopped), or 0.
char state_of(int pid);

// Is that its current directory? False also if it may not be known.
bool works_in(int pid, const std::string& directory);

// What pkill -f takes for a redis-server that was told to listen at `socket`, and for no other, in quotes for a shell.
std::string pattern_for_pkill(const std::string& socket);

// Differs between two runs of the kernel, which both count ticks and pids from the beginning.
std::string boot_id();

// The same of the kernel, for all its containers: empty where one has an id of its own (systemd-nspawn, LXC), or it
// cannot be read. Never throws.
std::string kernel_boot_id();

// Before a process is started: one that could not be watched is better not there.
void check_that_processes_can_be_watched();

// Holds on to one process, by a descriptor and not by its number: what it is asked and told later cannot mean another.
class process_handle {
public:
  // None, if it has ended. 0 is the number of one in another container, and of none that can be watched.
  explicit process_handle(int pid);

  // Only if it is the one that started then; else, it has ended. 0: it had when it was asked for its start.
  process_handle(int pid, std::uint64_t started);

  // As good as ended.
  static process_handle none() { return {}; }

  // A zombie has ended.
  bool ended_within(std::chrono::milliseconds time) const;
  bool running() const { return !ended_within(std::chrono::milliseconds{0}); }

  // False when it has ended.
  bool signal(int number) const;

private:
  process_handle() = default;

  descriptor process_;
};

}  // namespace holdfast::local
