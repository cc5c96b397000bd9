// SPDX-License-Identifier: Apache-2.0
// A second process of ours, which ends the command when we cannot (docs/decisions/0032-a-watchdog.md): we were killed,
// and only the command itself has the kernel's TERM, not its children; or we stand still (SIGSTOP, a debugger) beyond
// our lease.
//
// It has a page of memory in common with us, and the read end of a pipe whose end of file tells it that we are gone.
// What it does is watchdog_policy's word.
#pragma once

#include "watchdog_policy.hpp"

#include <sys/types.h>

#include <chrono>
#include <csignal>

namespace holdfast::cli {

struct watchdog_page;

struct watched_command {
  pid_t pid = -1;
  bool has_group = true;         // It leads a group, all of which is to end.
  bool waits_for_group = false;  // Its own end is not the end of it.
  int stop_signal = SIGTERM;
  watchdog_policy::limits limits{};
};

// In one thread, the one that reaps children. Times are milliseconds of CLOCK_BOOTTIME.
class watchdog {
public:
  using milliseconds = std::chrono::milliseconds;

  explicit watchdog(const watched_command& what) noexcept : what_{what} {}
  // Its process is gone when this returns: it can signal nobody else who has the command's number by then, and is left
  // to nobody who might not collect it (process 1 of many containers).
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  // The lease ends then, by what is known now. The first call makes the process, and so does one that finds it ended,
  // killed by somebody, without having acted. False: this machine has none for it, no memory or no descriptors, and the
  // next call tries again.
  bool watch(milliseconds deadline) noexcept;

  // From now on we end the command ourselves, as under a lease that ends then. To be said before its first signal. This
  // and the next do nothing when there is no watchdog.
  void set_stopping(milliseconds deadline) noexcept;

  // The command stands, and so do we and all of our group, now or in a moment; false: the deadline is said anew, and it
  // goes on. To be said before its CONT.
  void set_stands(bool they_do) noexcept;

  // It has sent the command a signal, or is about to.
  bool has_acted() const noexcept;

private:
  bool is_there() const noexcept { return page_ != nullptr; }
  bool has_ended() noexcept;
  void drop() noexcept;
  bool make(watchdog_page& page, int life, int command) noexcept;
  void wake() const noexcept;

  watched_command what_;
  watchdog_page* page_ = nullptr;
  int life_ = -1;  // The pipe's write end, which is nobody else's.
  pid_t pid_ = -1;
};

}  // namespace holdfast::cli
