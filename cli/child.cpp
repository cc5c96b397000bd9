// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include "process_group.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const auto& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// In the child of vfork, so in our own memory while we stand still: system calls only, no allocation. A failure is
// told through `report`, which closes at exec. All signals that could run a handler are blocked.
[[noreturn]] void become(const child_plan& plan, char** words, char** environment, int terminal, pid_t parent,
                         int report) {
  if (plan.own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, plan.signal_when_we_die);
  if (::getppid() != parent) ::_exit(128 + plan.signal_when_we_die);  // It died before prctl could see it.
  if (terminal >= 0) ::tcsetpgrp(terminal, ::getpid());               // TTOU is still blocked.
  ::sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  ::execvpe(words[0], words, environment);
  const int failure = errno;
  [[maybe_unused]] const auto told = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

bool is_ours(int terminal) { return terminal >= 0 && ::tcgetpgrp(terminal) == ::getpgrp(); }

// Its foreground is ours, and nobody else's of our group: to give away at once.
bool is_ours_alone(int terminal) { return is_ours(terminal) && processes_of_group(::getpgrp()).size() == 1; }

}  // namespace

start_descriptors::start_descriptors(bool with_terminal) {
  if (::pipe2(report_.data(), O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe2"};
  if (with_terminal) terminal_ = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (with_terminal && terminal_ < 0 && (errno == EMFILE || errno == ENFILE)) {
    const int failure = errno;
    for (const int fd : report_) ::close(fd);
    throw std::system_error{failure, std::generic_category(), "/dev/tty"};
  }
}

start_descriptors::~start_descriptors() {
  for (const int fd : {terminal_, report_[0], report_[1]})
    if (fd >= 0) ::close(fd);
}

child::child(const child_plan& plan, start_descriptors& given)
    : own_group_{plan.own_group}, signal_when_we_die_{plan.signal_when_we_die} {
  terminal_ = std::exchange(given.terminal_, -1);
  start(plan, given);
}

child::~child() {
  take_terminal();
  if (terminal_ >= 0) ::close(terminal_);
}

// vfork and not fork: it copies no page tables, which is most of what starting a command costs, and it returns when the
// command runs or could not be run. The pipe is for run-times that make a fork of it (ThreadSanitizer's).
void child::start(const child_plan& plan, start_descriptors& given) {
  auto words = pointers(plan.words);
  auto environment = pointers(plan.environment);
  const pid_t parent = ::getpid();
  const auto report = std::exchange(given.report_, {-1, -1});
  had_terminal_ = is_ours_alone(terminal_);
  if (had_terminal_) remember_modes();
  pid_ = ::vfork();
  if (pid_ == 0) become(plan, words.data(), environment.data(), had_terminal_ ? terminal_ : -1, parent, report[1]);
  const int vfork_error = errno;
  ::close(report[1]);
  if (::read(report[0], &failure_, sizeof failure_) <= 0) failure_ = 0;
  ::close(report[0]);
  if (pid_ < 0) throw std::system_error{vfork_error, std::generic_category(), "vfork"};
  if (failure_ != 0) {
    ::waitpid(pid_, nullptr, 0);
    take_terminal();
  }
}

bool child::signal(int number) {
  if (failure_ != 0) return true;
  if (number == SIGCONT) is_stopped_ = suspended_ = false;
  if (!own_group_ && has_ended()) return true;
  if (own_group_ && !has_ended() && ::getpgid(pid_) != pid_) ::kill(pid_, number);  // It has gone to another one.
  return ::kill(own_group_ ? -pid_ : pid_, number) == 0 || errno != EPERM;
}

bool child::reap() {
  // As PID 1 everybody's orphans are ours; elsewhere there is only the one.
  const pid_t whom = ::getpid() == 1 ? -1 : pid_;
  int status = 0;
  while (true) {
    const pid_t got = ::waitpid(whom, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (got != pid_ || has_ended()) {  // An orphan may have its number now.
      // Its parent is gone, and we alone hear that the terminal has stopped it with the rest of the group.
      if (WIFSTOPPED(status) && own_group_ && ::getpgid(got) == pid_ && has_terminal()) suspended_ = true;
      continue;
    }
    if (WIFSTOPPED(status))
      stopped_by(WSTOPSIG(status));
    else if (WIFCONTINUED(status))
      is_stopped_ = false;
    else
      status_ = status;
  }
  return has_ended();
}

void child::stopped_by(int number) {
  is_stopped_ = true;
  if (has_terminal())
    suspended_ = true;
  else
    wants_terminal_ = terminal_ >= 0 && (number == SIGTTIN || number == SIGTTOU);
}

bool child::take_suspended() { return std::exchange(suspended_, false); }

bool child::stands() const {
  if (!has_ended() && !is_stopped_) return false;
  if (own_group_ && !is_group_stopped(pid_)) return false;
  return processes_that_cannot_be_stopped(pid_).empty();
}

int child::exit_status() const { return ended_by() != 0 ? 128 + ended_by() : WEXITSTATUS(status_.value_or(0)); }

int child::ended_by() const {
  const int status = status_.value_or(0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

bool child::group_lives() const {
  if (!own_group_ || (::kill(-pid_, 0) != 0 && errno == ESRCH)) return false;
  // The signal counts zombies, and in a container nobody may ever collect those.
  return !has_group_ended(pid_);
}

bool child::give_terminal() {
  if (!has_terminal()) {
    const bool may = wants_terminal_ ? is_ours(terminal_) : is_ours_alone(terminal_);
    if (!may) return false;
    remember_modes();
    if (::tcsetpgrp(terminal_, pid_) != 0) return false;
  }
  wants_terminal_ = false;
  had_terminal_ = true;
  return true;
}

void child::remember_modes() {
  termios now{};
  if (!modes_ && ::tcgetattr(terminal_, &now) == 0) modes_ = now;
}

void child::mend_terminal() {
  if (modes_ && has_terminal()) ::tcsetattr(terminal_, TCSANOW, &*modes_);  // TTOU is blocked.
}

bool child::take_terminal() { return has_terminal() && ::tcsetpgrp(terminal_, ::getpgrp()) == 0; }

// Asked each time: a shell takes it when we are stopped, and with `bg` it keeps it.
bool child::has_terminal() const { return terminal_ >= 0 && ::tcgetpgrp(terminal_) == pid_; }

}  // namespace holdfast::cli
