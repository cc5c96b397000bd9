// SPDX-License-Identifier: Apache-2.0
#include "signals.hpp"

#include "process_group.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace holdfast::cli {
namespace {

constexpr std::array read_by_us{SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

signal_inbox::signal_inbox() {
  // With SIGCHLD ignored, as some daemons leave it, the kernel would throw our command's exit status away.
  ::signal(SIGCHLD, SIG_DFL);
  // SIGCONT wakes us all the same; but we would not hear of it, and the command would be left stopped.
  ::signal(SIGCONT, SIG_DFL);
  sigset_t read;
  sigemptyset(&read);
  for (const int number : read_by_us)
    if (!is_ignored(number)) sigaddset(&read, number);
  sigset_t blocked = read;
  sigaddset(&blocked, SIGPIPE);  // A reader of our messages that went away must not end the lease's only keeper.
  sigaddset(&blocked, SIGXFSZ);  // Nor a log that is as large as it may be (ulimit -f).
  sigaddset(&blocked, SIGTTOU);  // Giving and taking the terminal is done from the background.
  sigaddset(&blocked, SIGTTIN);  // A neighbour of our group that reads it then stops all of us: we go on renewing.
  if (::pthread_sigmask(SIG_BLOCK, &blocked, &mask_of_parent_) != 0)
    throw std::system_error{errno, std::generic_category(), "pthread_sigmask"};
  descriptor_ = ::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw std::system_error{errno, std::generic_category(), "signalfd"};
}

// The mask stays: the library's threads may outlive us by a moment.
signal_inbox::~signal_inbox() { ::close(descriptor_); }

std::optional<received_signal> signal_inbox::take() {
  signalfd_siginfo info{};
  if (::read(descriptor_, &info, sizeof info) != sizeof info) return std::nullopt;
  const received_signal got{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
  if (got.is_interrupt()) interrupt_ = got.number;
  return got;
}

void signal_inbox::let_end() const {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&ending, number);
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
}

int signal_inbox::let_next_end() {
  int interrupt = 0;
  while (const auto signal = take()) {
    if (signal->is_interrupt()) interrupt = signal->number;
  }
  let_end();
  return interrupt;
}

void signal_inbox::missed(int number, bool by_our_group) {
  if (number != SIGINT && number != SIGQUIT) return;
  interrupt_ = number;
  is_missed_ = by_our_group;
}

int signal_inbox::end(int status) const {
  if (interrupt_ == 0 || status != 128 + interrupt_) return status;
  // At the head of a session there is no shell above us; ssh would make 255 of it.
  if (::getsid(0) == ::getpid() || is_ignored(interrupt_)) return status;
  ::prctl(PR_SET_DUMPABLE, 0);  // QUIT is not to leave a core: nothing is wrong with us.
  sigset_t it;
  sigemptyset(&it);
  sigaddset(&it, interrupt_);
  ::pthread_sigmask(SIG_UNBLOCK, &it, nullptr);
  ::kill(is_missed_ ? 0 : ::getpid(), interrupt_);
  return status;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? name : fmt::format("signal {}", number);
}

bool asks_to_end(int signal_number) {
  switch (signal_number) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGUSR1:
    case SIGUSR2: return true;
    default: return false;
  }
}

void suspend_ourselves() {
  if (can_be_woken()) stop_unless_woken(::getpid());
}

// A CONT that waits came behind the TSTP, which would have dropped it as well.
void stop_unless_woken(pid_t whom) {
  sigset_t waiting;
  sigemptyset(&waiting);
  ::sigpending(&waiting);
  for (const int number : {SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM})
    if (::sigismember(&waiting, number) == 1) return;
  ::kill(whom, SIGSTOP);
}

wait_canceller::wait_canceller(signal_inbox& inbox, std::chrono::milliseconds patience, std::function<void()> notice)
    : inbox_{inbox}, patience_{patience}, notice_{std::move(notice)}, done_{::eventfd(0, EFD_CLOEXEC)} {
  if (done_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
  watcher_ = std::thread{[this] { watch(); }};
}

wait_canceller::~wait_canceller() {
  finish();
  ::close(done_);
}

bool wait_canceller::lasts_for(std::chrono::milliseconds pause) const {
  pollfd over{done_, POLLIN, 0};
  return ::poll(&over, 1, static_cast<int>(pause.count())) == 0;
}

int wait_canceller::finish() {
  if (watcher_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(done_, &one, sizeof one);
    watcher_.join();
  }
  return came_;
}

void wait_canceller::watch() {
  std::array<pollfd, 2> watched{pollfd{inbox_.descriptor(), POLLIN, 0}, pollfd{done_, POLLIN, 0}};
  int timeout = static_cast<int>(patience_.count());
  while (true) {
    const int ready = ::poll(watched.data(), watched.size(), timeout);
    if (ready < 0 && errno != EINTR) return;
    if (ready == 0) {
      timeout = -1;
      notice_();
      continue;
    }
    while (const auto signal = inbox_.take()) {
      if (signal->number == SIGTSTP) suspend_ourselves();
      if (!asks_to_end(signal->number)) continue;
      came_ = signal->number;
      cancelled_.request_stop();
    }
    if (watched[1].revents != 0) return;
  }
}

}  // namespace holdfast::cli
