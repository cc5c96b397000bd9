// SPDX-License-Identifier: Apache-2.0
// The command that runs under the lock: started in a process group of its own, signalled as a group, reaped.
//
// A group and not a process, because `sh -c` does not end its children. What leaves the group (setsid, daemons) is
// beyond our reach, but for the command itself, and docs/errors.md says so. If we are killed, the kernel sends the
// direct child TERM (PR_SET_PDEATHSIG; it fires when the thread that started it ends, so that belongs in the main
// thread), from its first instant on. The rest of its group is then for the watchdog (watchdog.hpp), which is there a
// little later.
#pragma once

#include <sys/types.h>
#include <termios.h>
#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

struct child_plan {
  std::vector<std::string> words;        // The command and its arguments; at least one.
  std::vector<std::string> environment;  // "NAME=value"
  sigset_t mask{};                       // The signal mask to start with.
  bool own_group = true;
  int signal_when_we_die = SIGTERM;
};

// What the start of a command needs of the process's descriptors, to be made before the lock is taken.
class start_descriptors {
public:
  // Throws std::system_error where there are none.
  explicit start_descriptors(bool with_terminal);
  ~start_descriptors();
  start_descriptors(const start_descriptors&) = delete;
  start_descriptors& operator=(const start_descriptors&) = delete;

private:
  friend class child;
  int terminal_ = -1;  // The controlling terminal, if there is one.
  std::array<int, 2> report_{-1, -1};
};

class child {
public:
  // Starts it, and returns when it runs. On failure nothing is left running and `failure()` is the errno. Takes what is
  // in `given`, which is empty afterwards.
  child(const child_plan& plan, start_descriptors& given);
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child();

  int failure() const noexcept { return failure_; }
  pid_t pid() const noexcept { return pid_; }
  int signal_when_we_die() const noexcept { return signal_when_we_die_; }

  // To the group, and to the command where it has left that; with own_group off to the process. Harmless when it is
  // gone. False: nobody of it may be signalled, because all of it runs as somebody else (sudo).
  bool signal(int number);

  // Collects what ended, as PID 1 also orphans. True as soon as the command itself has ended.
  bool reap();
  bool has_ended() const noexcept { return status_.has_value(); }

  // The command was suspended since the last call, and by the terminal that we gave it (Ctrl-Z). Not when it runs
  // without one: then whoever stopped it will wake it, and we go on renewing.
  bool take_suspended();

  // It is stopped, and all of its group with it: until a CONT nothing of it goes on. Not while somebody of it runs whom
  // we may not stop.
  bool stands() const;

  // The kernel stopped the command because it used a terminal that was not given to it. Until give_terminal() succeeds.
  bool wants_terminal() const noexcept { return wants_terminal_; }
  // It goes on without it, and may want it again.
  void deny_terminal() {
    wants_terminal_ = false;
    signal(SIGCONT);
  }

  // The command's status as a shell gives it: 0..255, or 128+N. Only after has_ended().
  int exit_status() const;

  // The signal that ended it; 0: it ended by itself, with whatever status. Only after has_ended().
  int ended_by() const;

  // Somebody of its group is still there. Only meaningful after has_ended(): before, it is the command itself.
  bool group_lives() const;

  // Hands the terminal's foreground to the command's group, if ours has it; true when the command has it. When others
  // share our group (a script's shell, a pager behind us) only to a command that waits for it: until then Ctrl-C is for
  // all of them, and whoever of them reads it meanwhile is stopped with our group.
  bool give_terminal();

  // Takes the foreground back for our group, if the command's group has it; true when it had.
  bool take_terminal();

  // The terminal is as it was when the command got it, if it has it now: who was killed has not put it back (no echo,
  // no lines), and a shell does that only for those that it has seen die itself.
  void mend_terminal();

  // It was given the foreground, ever: the shell above may have set it to our group once more, a moment later.
  bool had_terminal() const noexcept { return had_terminal_; }

private:
  void start(const child_plan& plan, start_descriptors& given);
  void stopped_by(int number);
  bool has_terminal() const;
  void remember_modes();

  pid_t pid_ = -1;
  bool own_group_ = true;
  int signal_when_we_die_ = SIGTERM;
  int failure_ = 0;
  std::optional<int> status_{};
  bool is_stopped_ = false;
  bool suspended_ = false;
  bool wants_terminal_ = false;
  bool had_terminal_ = false;
  int terminal_ = -1;               // The controlling terminal, ours to give or not.
  std::optional<termios> modes_{};  // Its, before the command had it.
};

}  // namespace holdfast::cli
