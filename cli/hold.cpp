// SPDX-License-Identifier: Apache-2.0
// holdfast hold: keeps a lock for a script that cannot be wrapped. Prints the token when the lock is ours; gives it
// back at the end of its input or at a signal.
#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "input_end.hpp"
#include "lease_watch.hpp"
#include "loss_policy.hpp"
#include "loss_text.hpp"
#include "message.hpp"
#include "server.hpp"
#include "signals.hpp"
#include "subcommands.hpp"
#include "take.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::cli {
namespace {

// How often a job in the background looks whether it has been brought to the front; nobody tells it.
constexpr int front_look_interval_ms = 250;

// What is typed at a terminal whose foreground is somebody else's is not for us: `hold NAME &`, and then a command.
bool is_input_for_others() {
  const pid_t front = ::tcgetpgrp(STDIN_FILENO);
  return front >= 0 && front != ::getpgrp();
}

void tell_loss(const lease& held, const ending_lease& how, const settings& s, const server& at) {
  auto what = explain_loss(named(held), how, s, at.locks.endpoint());
  what.fix = what.fix.empty() ? "stop what relied on it" : "stop what relied on it; " + what.fix;
  try_say_error(what);  // That we end is what tells whoever relies on it, and may not wait for a reader.
}

// Until the end of input (0), a signal (128+N) or the loss of the lease (79). The token is printed when its reader has
// room for it; the lock waits for none.
int keep(const lease& held, lease_watch& watch, signal_inbox& inbox, const settings& s, const server& at) {
  watch.watch(held);
  input_end input;
  const auto token = held.token().to_string() + "\n";
  std::string_view unprinted = token;
  // There is nothing to stop but ourselves: no grace, and the margin for our reader to notice.
  loss_policy policy{s.ttl, std::nullopt, on_lost::kill};
  while (true) {
    const auto now = lease_watch::now();
    // In this order: whoever sees that nothing remains has to see why.
    const auto remaining = held.remaining();
    const ending_lease how{remaining, held.lost_reason(), now + remaining - watch.first_end(), at.renewals->trouble()};
    const auto step = policy.look(now, how.remaining, how.reason);
    if (policy.has_stopped()) {
      tell_loss(held, how, s, at);
      return number(exit_code::lost);
    }
    watch.wake_in(step.look_again_in);
    const bool listens = input.is_reading() || !is_input_for_others();
    const int input_news = input.is_reading() ? input.descriptor() : STDIN_FILENO;
    std::array<pollfd, 5> news{pollfd{inbox.descriptor(), POLLIN, 0}, pollfd{watch.timer(), POLLIN, 0},
                               pollfd{watch.lost(), POLLIN, 0}, pollfd{listens ? input_news : -1, POLLIN, 0},
                               pollfd{unprinted.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0}};
    ::poll(news.data(), news.size(), listens ? -1 : front_look_interval_ms);
    watch.drain();
    if (news[4].revents != 0) try_print(unprinted);
    while (const auto signal = inbox.take()) {
      if (asks_to_end(signal->number)) return 128 + signal->number;
      if (signal->number == SIGTSTP) suspend_ourselves();
    }
    if (news[3].revents == 0) continue;
    if (!input.is_reading())
      input.read();
    else if (input.take() && !is_input_for_others())
      return number(exit_code::ok);
  }
}

// Whoever has read the token works on with a lock that is gone.
void warn_of_short_hold(std::chrono::milliseconds held_for, int exit, const settings& s) {
  constexpr std::chrono::milliseconds shortest{100};
  if (exit != number(exit_code::ok) || held_for >= shortest || s.quiet) return;
  say_warning(
      {.text = fmt::format("the input was at its end: '{}' was held for {}", visible_word(s.name), to_text(held_for)),
       .why = "hold keeps a lock until its input ends, and in the background, of cron and of systemd that is empty",
       .fix = fmt::format("mkfifo F; holdfast hold {} <F & exec 3>F; and later exec 3>&-. Or holdfast run",
                          taking_argument(s))});
}

// Of pipes that we have from our parent: with another hold's open here, by `exec 3>F` say, the input of that one would
// not end before we do. What can only be read may be a key yet to be read (--key <(...)).
void close_inherited_write_ends() {
  std::vector<int> all;
  std::error_code ignored;
  for (const auto& one : std::filesystem::directory_iterator{"/proc/self/fd", ignored})
    all.push_back(std::atoi(one.path().filename().c_str()));
  for (const int fd : all) {
    struct stat what {};
    const bool is_pipe = fd > STDERR_FILENO && ::fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode);
    if (is_pipe && (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) ::close(fd);
  }
}

// A FIFO that was opened for both (`exec 3<>F`): as long as we could write to it ourselves, its end would not come.
// That we are its writer still lets us open it without waiting for another.
void close_write_end_of_input() {
  struct stat what {};
  const bool is_pipe = ::fstat(STDIN_FILENO, &what) == 0 && S_ISFIFO(what.st_mode);
  if (!is_pipe || (::fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) != O_RDWR) return;
  // Without /proc it ends by a signal.
  const auto open_anew = [](int flags) {
    const int fd = ::open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return;
    ::dup2(fd, STDIN_FILENO);
    ::close(fd);
  };
  open_anew(0);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool is_at_end = ::poll(&input, 1, 0) == 1 && (input.revents & (POLLHUP | POLLIN)) == POLLHUP;
  if (!is_at_end) return;
  // Nobody else could write to it yet (`<>F`). One that is opened without a writer has no end before there was one.
  open_anew(O_NONBLOCK);
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) & ~O_NONBLOCK);
}

int hold_lock(const settings& s, client_options options, signal_inbox& inbox) {
  // Who loses the terminal between a look and a read gets EIO. Stopped, it would renew nothing.
  ::signal(SIGTTIN, SIG_IGN);
  const auto owner = owner_label(s, "hold");  // Refuses what is too long before a server is started.
  server at = open_server(s, std::move(options), inbox);
  lease_watch watch;  // Whoever has no descriptors must not take the lock.
  auto [held, exit] = take_lock(at, s, owner, inbox);
  if (!held) return exit;
  const auto began_at = lease_watch::now();
  try {
    exit = keep(*held, watch, inbox, s, at);
  } catch (...) {  // In the background there may be no time left for it.
    if (held->valid()) held->release();
    throw;
  }
  const auto held_for = lease_watch::now() - began_at;
  if (exit == number(exit_code::lost)) return exit;
  error_detail why;
  const auto released = held->release(why);
  inbox.let_next_end();  // The lock is not ours any more, so what follows may wait for its reader.
  warn_of_short_hold(held_for, exit, s);
  switch (released) {
    case release_outcome::released: return exit;
    case release_outcome::already_lost:
      say_error({.code = "E12",
                 .text = fmt::format("'{}' was not ours any more when it was released", visible_word(s.name))});
      return number(exit_code::lost);
    case release_outcome::unknown: break;
  }
  if (!s.quiet) warn_of_unknown_release(s, why);
  return exit;
}

}  // namespace

int hold_command(const settings& s) {
  auto options = options_of(s);  // Where signals still end us: its password may never come.
  close_inherited_write_ends();
  close_write_end_of_input();
  return with_signals([&](signal_inbox& inbox) { return hold_lock(s, std::move(options), inbox); });
}

}  // namespace holdfast::cli
