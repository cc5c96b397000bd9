// SPDX-License-Identifier: Apache-2.0
// holdfast hold: keeps a lock for a script that cannot be wrapped. Prints the token when the lock is ours; gives it
// back at the end of its input or at a signal.
#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "lease_watch.hpp"
#include "loss_policy.hpp"
#include "message.hpp"
#include "server.hpp"
#include "signals.hpp"
#include "subcommands.hpp"
#include "take.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

namespace holdfast::cli {
namespace {

// True at the end of the input. What is written to us is dropped.
bool is_at_end_of_input() {
  std::array<char, 4096> dropped{};
  const auto n = ::read(STDIN_FILENO, dropped.data(), dropped.size());
  return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

std::string why_lost(const lease& held) {
  const auto reason = held.lost_reason();
  if (reason == errc::lease_taken) return "somebody else holds it now";
  if (reason == errc::lease_broken) return "somebody broke it on purpose";
  if (reason == errc::lease_gone) return "the server has no such lease any more";
  if (reason == errc::lease_held_too_long) return "it was held for as long as --max-hold allows";
  return "no renewal was confirmed in time";
}

// Until the end of input (0), a signal (128+N) or the loss of the lease (79).
int keep(const lease& held, signal_inbox& inbox, const settings& s) {
  lease_watch watch{held};
  // There is nothing to stop but ourselves: no grace, and the margin for our reader to notice.
  loss_policy policy{s.ttl, std::nullopt, on_lost::kill};
  while (true) {
    const auto step = policy.look(lease_watch::now(), held.remaining(), held.lost_reason());
    if (policy.has_stopped()) return number(exit_code::lost);
    watch.wake_in(step.look_again_in);
    std::array<pollfd, 4> news{pollfd{inbox.descriptor(), POLLIN, 0}, pollfd{watch.timer(), POLLIN, 0},
                               pollfd{watch.lost(), POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    ::poll(news.data(), news.size(), -1);
    watch.drain();
    while (const auto signal = inbox.take()) {
      if (asks_to_end(signal->number)) return 128 + signal->number;
      if (signal->number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
    }
    if (news[3].revents != 0 && is_at_end_of_input()) return number(exit_code::ok);
  }
}

}  // namespace

int hold_command(const settings& s) {
  signal_inbox inbox;
  server at = open_server(s);
  auto [held, exit] = take_lock(at, s, owner_label(s, "hold"), inbox);
  if (!held) return exit;
  print(held->token().to_string() + "\n");
  exit = keep(*held, inbox, s);
  const auto left = held->remaining();
  if (exit == number(exit_code::lost)) {
    say_error(
        {.code = "E12",
         .text = fmt::format("lost '{}' (token {}): {}", visible(s.name), held->token().to_string(), why_lost(*held)),
         .fix = "stop what relied on it"});
    return exit;
  }
  switch (held->release()) {
    case release_outcome::released: return exit;
    case release_outcome::already_lost:
      say_error(
          {.code = "E12", .text = fmt::format("'{}' was not ours any more when it was released", visible(s.name))});
      return number(exit_code::lost);
    case release_outcome::unknown: break;
  }
  if (!s.quiet)
    say_warning({.code = "E20",
                 .text = fmt::format("no answer to the release of '{}'", visible(s.name)),
                 .why = fmt::format("if it did not arrive, the lock is left taken for {} at most", to_text(left))});
  return exit;
}

}  // namespace holdfast::cli
