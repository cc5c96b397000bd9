// SPDX-License-Identifier: Apache-2.0
// A process by more than its number: numbers are given again, and a signal must never reach a stranger.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::local {

// In clock ticks since boot, as the kernel writes it; 0 if there is no such process.
std::uint64_t started_at(int pid);

// The letter that ps shows ('T': stopped), or 0.
char state_of(int pid);

// Differs between two runs of the kernel, which both count ticks and pids from the beginning.
std::string boot_id();

// The same of the kernel, for all its containers: empty where one has an id of its own (systemd-nspawn, LXC).
std::string kernel_boot_id();

// Holds on to one process, by a descriptor and not by its number: what it is asked and told later cannot mean another.
class process_handle {
public:
  explicit process_handle(int pid);

  // Only if it is the one that started then; else, there is none.
  process_handle(int pid, std::uint64_t started);

  ~process_handle();
  process_handle(process_handle&& other) noexcept : fd_{other.fd_} { other.fd_ = -1; }
  process_handle(const process_handle&) = delete;
  process_handle& operator=(const process_handle&) = delete;
  process_handle& operator=(process_handle&&) = delete;

  // A zombie has ended.
  bool ended_within(std::chrono::milliseconds time) const;
  bool running() const { return !ended_within(std::chrono::milliseconds{0}); }

  // False when it has ended.
  bool signal(int number) const;

private:
  int fd_;
};

}  // namespace holdfast::local
