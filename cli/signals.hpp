// SPDX-License-Identifier: Apache-2.0
// Signals as messages. They are blocked before the library starts its threads, so that none of those can be hit, and
// read from a descriptor: by a watching thread while the main thread waits for the lock, by the main loop afterwards.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::cli {

struct received_signal {
  int number = 0;
  bool from_terminal = false;  // The kernel sent it (Ctrl-C), so our whole process group has it already.

  // Ctrl-C or Ctrl-\.
  bool is_interrupt() const noexcept { return from_terminal && (number == SIGINT || number == SIGQUIT); }
};

// Blocks what we handle for as long as the process lives; make one, in the main thread, first of all. A signal that
// our parent had us ignore (nohup, a background job) stays ignored.
class signal_inbox {
public:
  signal_inbox();
  ~signal_inbox();
  signal_inbox(const signal_inbox&) = delete;
  signal_inbox& operator=(const signal_inbox&) = delete;

  // Readable when take() has something.
  int descriptor() const noexcept { return descriptor_; }

  std::optional<received_signal> take();

  // We have no lock any more, and nothing else to clean up: HUP, INT, QUIT and TERM end us again, whatever we wait for.
  void let_end() const;

  // The same of those that come from now on: what has come has had its effect, or was for a command that has ended.
  // Returns the last Ctrl-C or Ctrl-\ of it, or 0.
  int let_next_end();

  // Ctrl-C or Ctrl-\ ended the command, which had the terminal; at its end too: our group did not get the signal.
  void missed(int number, bool by_our_group);

  // The command has ended of this signal, or of none (0): what came of the terminal before and did not end it is no
  // reason to end by.
  void forget_all_but(int number) noexcept {
    if (interrupt_ != number) interrupt_ = 0;
  }

  // `status`, unless it is that of a Ctrl-C or Ctrl-\: then we end by that signal. The status is 128+N all the same,
  // but a shell ends its script or its loop only when its child has died of it.
  int end(int status) const;

  // The mask that our parent gave us, for the command to start with.
  const sigset_t& mask_of_parent() const noexcept { return mask_of_parent_; }

private:
  sigset_t mask_of_parent_{};
  int interrupt_ = 0;  // The last of the terminal's that asks us to end.
  bool is_missed_ = false;
  int descriptor_ = -1;
};

// "TERM".
std::string signal_name(int number);

// True for those that ask a process to end.
bool asks_to_end(int signal_number);

// What TSTP asks for: stops us until CONT. Does nothing when nobody could wake us.
void suspend_ourselves();

// Stops `whom`, which is us or (0) all of our group, until CONT. Not when one waits in the inbox that wakes or ends us:
// a CONT would be lost, because whoever makes a STOP has the kernel drop it.
void stop_unless_woken(pid_t whom);

// While it lives, a signal that asks us to end stops the wait for the lock instead, and Ctrl-Z suspends us. When it has
// lasted for `patience`, `notice` is called, once, on the watching thread.
class wait_canceller {
public:
  wait_canceller(signal_inbox& inbox, std::chrono::milliseconds patience, std::function<void()> notice);
  ~wait_canceller();
  wait_canceller(const wait_canceller&) = delete;
  wait_canceller& operator=(const wait_canceller&) = delete;

  std::stop_token token() const { return cancelled_.get_token(); }

  // The signal that came, or 0; for what is called by token().
  int came() const noexcept { return came_; }

  // For `notice`: is the wait still going on after so long?
  bool lasts_for(std::chrono::milliseconds pause) const;

  // Ends the watch; the inbox is the caller's again. Returns the signal that came, or 0.
  int finish();

private:
  void watch();

  signal_inbox& inbox_;
  std::stop_source cancelled_{};
  std::chrono::milliseconds patience_;
  std::function<void()> notice_;
  int came_ = 0;
  int done_ = -1;
  std::thread watcher_{};
};

// What `work` gives. Meanwhile a signal that asks us to end does so at once, with 128+N: for work that leaves nothing
// behind when it is broken off.
template <class Work>
auto while_signals_end_us(signal_inbox& inbox, Work work) {
  wait_canceller canceller{inbox, std::chrono::hours{24}, [] {}};
  const std::stop_callback leave{canceller.token(), [&] { std::_Exit(inbox.end(128 + canceller.came())); }};
  auto result = work();
  canceller.finish();  // What it has read by then still ends us.
  return result;
}

// The status of a command that handles signals, which `work` gives, as signal_inbox::end() has it. Make one, in the
// main thread, first of all. What is thrown is told where signals end us again: its reader may never come.
template <class Work>
int with_signals(Work work) {
  signal_inbox inbox;
  try {
    return inbox.end(work(inbox));
  } catch (...) {
    inbox.let_end();
    throw;
  }
}

}  // namespace holdfast::cli
