// SPDX-License-Identifier: Apache-2.0
#include "watchdog.hpp"

#include "lease_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <limits>
#include <new>

namespace holdfast::cli {

// Written by us, but for has_acted; read by the watchdog.
struct watchdog_page {
  std::atomic<std::int64_t> deadline{0};
  std::atomic<bool> stands{false};
  std::atomic<bool> is_stopping{false};
  std::atomic<bool> has_acted{false};
};

namespace {

using std::chrono::milliseconds;

static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "two processes share them");

// From here to the end of the watchdog: what runs in the forked child of a process with threads. System calls only.

void close_between(int first, int last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  for (int fd = first; fd <= last && static_cast<rlim_t>(fd) < files.rlim_cur; ++fd) ::close(fd);
}

// Not kept open: connections to servers, a terminal, the pipe that somebody reads the command's output from.
void close_all_but(int one, int other) {
  const auto [low, high] = std::minmax(one, other);
  close_between(0, low - 1);
  close_between(std::max(low, -1) + 1, high - 1);
  close_between(high + 1, std::numeric_limits<int>::max());
}

bool is_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0;
}

class watching {
public:
  watching(watchdog_page& page, int life, int command, const watched_command& what)
      : page_{page},
        life_{life},
        command_{command},
        whom_{what.has_group ? -what.pid : what.pid},
        stop_signal_{what.stop_signal},
        policy_{what.limits} {}

  // Until nothing is left to do.
  void run() {
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
    while (timer_ >= 0) {
      if (!owner_lives_ && ::kill(whom_, 0) != 0 && errno == ESRCH && !has_left_its_group()) return;
      const auto now = lease_watch::now();
      const auto step = policy_.look(now, see());
      if (!act(step.what) || step.look_again_in == milliseconds::max()) return;
      sleep_until(now + step.look_again_in);
    }
  }

private:
  watchdog_policy::sight see() const {
    watchdog_policy::sight seen{.owner_lives = owner_lives_, .has_ended = is_readable(command_)};
    seen.stands = page_.stands;
    seen.is_stopping = page_.is_stopping;  // Before the deadline, which is said first.
    seen.deadline = milliseconds{page_.deadline};
    return seen;
  }

  // False: nobody there may be signalled.
  bool act(watchdog_policy::act what) {
    if (what == watchdog_policy::act::none) return true;
    if (what == watchdog_policy::act::stand) return stand();
    page_.has_acted = true;
    const bool is_heard = signal(what == watchdog_policy::act::stop ? stop_signal_ : SIGKILL);
    if (is_heard)
      signal(SIGCONT);  // A suspended command hears nothing else.
    else
      page_.has_acted = false;
    return is_heard;
  }

  // Its owner says that it goes on before it has it go on. If that was in between, our STOP may have come last.
  bool stand() {
    signal(SIGSTOP);
    if (!page_.stands) signal(SIGCONT);
    return true;
  }

  // The command itself, which lives: its number is its own.
  bool has_left_its_group() const {
    return whom_ < 0 && command_ >= 0 && !is_readable(command_) && ::getpgid(-whom_) != -whom_;
  }

  bool signal(int number) {
    const bool is_heard = ::kill(whom_, number) == 0;
    if (!has_left_its_group()) return is_heard;
    return ::syscall(SYS_pidfd_send_signal, command_, number, nullptr, 0) == 0 || is_heard;
  }

  void sleep_until(milliseconds when) {
    itimerspec at{};
    at.it_value.tv_sec = when.count() / 1000;
    at.it_value.tv_nsec = when.count() % 1000 * 1'000'000;
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
    std::array<pollfd, 2> news{pollfd{timer_, POLLIN, 0}, pollfd{owner_lives_ ? life_ : -1, POLLIN, 0}};
    ::poll(news.data(), news.size(), -1);
    if (news[1].revents == 0) return;
    std::array<char, 64> dropped;
    ssize_t got = 0;
    while ((got = ::read(life_, dropped.data(), dropped.size())) > 0) {
    }
    owner_lives_ = got != 0;
  }

  watchdog_page& page_;
  int life_;
  int command_;  // Readable when it has ended; -1: cannot be asked.
  pid_t whom_;
  int stop_signal_;
  watchdog_policy policy_;
  bool owner_lives_ = true;
  int timer_ = -1;
};

[[noreturn]] void become_watchdog(watchdog_page& page, int life, int command, const watched_command& what) noexcept {
  ::setsid();  // Not stopped with us, and not hung up. Refused where set_stands() was first, which will do.
  ::prctl(PR_SET_NAME, "holdfast watch");
  close_all_but(life, command);
  watching{page, life, command, what}.run();
  ::_exit(0);
}

}  // namespace

watchdog::~watchdog() {
  if (!is_there()) return;
  if (!has_ended()) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  drop();
}

// Not zero: it has ended, and as process 1 we may have collected it with the orphans. Its number is anybody's then.
bool watchdog::has_ended() noexcept {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ < 0;
}

void watchdog::drop() noexcept {
  ::close(life_);
  ::munmap(page_, sizeof *page_);
  life_ = -1;
  page_ = nullptr;
}

bool watchdog::watch(milliseconds deadline) noexcept {
  if (is_there() && has_ended() && !has_acted()) drop();  // In this order: until its end it may act.
  if (is_there()) {
    page_->deadline = deadline.count();
    return true;
  }
  std::array<int, 2> life{-1, -1};
  if (::pipe2(life.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  void* const shared =
      ::mmap(nullptr, sizeof(watchdog_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  // Before Linux 5.3 there is none, and a command that ended by itself while we were stopped is a lost one.
  const int command = what_.waits_for_group ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, what_.pid, 0));
  if (shared != MAP_FAILED) {
    auto* const page = new (shared) watchdog_page;
    page->deadline = deadline.count();
    if (make(*page, life[0], command))
      page_ = page;
    else
      ::munmap(shared, sizeof *page);
  }
  if (command >= 0) ::close(command);
  ::close(life[0]);
  if (is_there())
    life_ = life[1];
  else
    ::close(life[1]);
  return is_there();
}

// With all signals blocked: in the child they stay so.
bool watchdog::make(watchdog_page& page, int life, int command) noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  pid_ = ::fork();
  if (pid_ == 0) become_watchdog(page, life, command, what_);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid_ > 0;
}

void watchdog::set_stopping(milliseconds deadline) noexcept {
  if (!is_there()) return;
  page_->deadline = deadline.count();
  page_->is_stopping = true;
  wake();  // It may be earlier than what it sleeps for.
}

void watchdog::set_stands(bool they_do) noexcept {
  if (!is_there()) return;
  // Made just now, it may not have come to its setsid(2), and would be stopped with our group.
  if (they_do && pid_ > 0) ::setpgid(pid_, pid_);
  page_->stands = they_do;
  wake();
}

bool watchdog::has_acted() const noexcept { return is_there() && page_->has_acted; }

void watchdog::wake() const noexcept { [[maybe_unused]] const auto written = ::write(life_, "", 1); }

}  // namespace holdfast::cli
