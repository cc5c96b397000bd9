// SPDX-License-Identifier: Apache-2.0
// holdfast run: acquire, start the command, watch both, release. The order matters: the signals are ours before a
// thread exists, the lock is ours before the command exists, and the command is gone before the lock is given back.
#include "child.hpp"
#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "lease_watch.hpp"
#include "loss_text.hpp"
#include "message.hpp"
#include "server.hpp"
#include "signals.hpp"
#include "subcommands.hpp"
#include "supervise.hpp"
#include "take.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace holdfast::cli {
namespace {

std::vector<std::string> words_of(const settings& s) {
  if (s.shell_command) return {"/bin/sh", "-c", *s.shell_command};
  return s.words;
}

std::string_view mode_of(const settings& s) {
  if (s.mode == taking_mode::permit) return "permit";
  return s.mode == taking_mode::reading ? "shared" : "exclusive";
}

// What env(1) and timeout(1) answer too.
ending answer_not_started(const child& command, const std::string& program) {
  return {
      .exit = number(command.failure() == ENOENT ? exit_code::not_found : exit_code::not_executable),
      .untold = fault{.text = fmt::format("cannot run '{}': {}", visible(program), std::strerror(command.failure()))}};
}

// What it will be if the release finds that the server ended it while the command ran, before that could be stopped for
// it. Said of the lease before, because it is empty then.
fault lost_meanwhile(const lease& held, std::error_code reason, const settings& s, const server& at, int status) {
  const ending_lease how{
      .remaining = held.remaining(), .reason = reason ? reason : errc::lease_gone, .held_for = {}, .trouble = {}};
  auto what = explain_loss(held, how, s, at.locks.endpoint());
  if (!reason) what.why = "it was deleted, evicted, broken or taken since its last renewal";
  what.text += fmt::format("; the command had ended by itself, with {}", status);
  return what;
}

// The lock is not ours any more, so this may wait for its reader; until one of the signals that end us.
void say_belated(const ending& end, signal_inbox& inbox) {
  while (inbox.take()) {  // Meant for the command, which has ended.
  }
  inbox.let_end();
  if (end.untold) say_error(*end.untold);
  if (end.leftovers) say_warning(*end.leftovers);
}

// Gives the lock back, and then says what there is to say. `end` is how the command ended; the result is our status.
int release(lease& held, const settings& s, const server& at, const ending& end, signal_inbox& inbox) {
  const bool was_valid = held.valid();
  const auto reason = held.lost_reason();
  const auto name = visible(held.name());
  const auto token = held.token().to_string();
  const auto loss = lost_meanwhile(held, reason, s, at, end.exit);
  error_detail why;
  const auto released = held.release(why);
  say_belated(end, inbox);
  switch (released) {
    case release_outcome::released:
      if (s.verbose) say(fmt::format("released '{}'", name));
      return end.exit;
    case release_outcome::unknown:
      if (!s.quiet) warn_of_unknown_release(s, why);
      return end.exit;
    case release_outcome::already_lost: break;
  }
  if (end.is_told) return end.exit;
  // By our clock it still stood and by the server it did not, or the server's word came as the command ended.
  const bool is_by_deadline = reason == errc::lease_expired || reason == errc::lease_held_too_long;
  if (was_valid || (reason && !is_by_deadline)) {
    say_error(loss);
    return s.when_lost == on_lost::warn ? end.exit : number(exit_code::lost);
  }
  // Otherwise its time was over, and most likely only after the command had ended.
  if (!s.quiet)
    say_warning(
        {.code = "E12",
         .text = fmt::format("'{}' (token {}) had ended before it was given back", name, token),
         .why = reason == errc::lease_held_too_long ? "--max-hold was over by then" : "its ttl was over by then"});
  return end.exit;
}

// We were stopped between the grant and here, say.
ending lost_before_start(const lease& held, const settings& s, const server& at) {
  const auto reason = held.lost_reason();
  auto what =
      explain_loss(held, {held.remaining(), reason ? reason : errc::lease_expired, {}, {}}, s, at.locks.endpoint());
  what.text += "; the command was not started";
  return {.exit = number(exit_code::lost), .is_told = true, .untold = what};
}

// An exception must not give the lock back while the command runs.
struct kill_if_left {
  child& command;
  ~kill_if_left() {
    if (command.failure() == 0 && !command.reap()) command.signal(SIGKILL);
  }
};

int run_under_lock(const settings& s, client_options options, signal_inbox& inbox) {
  server at = open_server(s, std::move(options), inbox);
  const auto entry = entry_of(at, s);

  const auto words = words_of(s);
  const auto owner = owner_label(s, words.front());
  auto [held, exit] = take_lock(at, s, owner, inbox);
  if (!held) return exit;

  child_plan plan{
      .words = words,
      .environment = environment_under({s.name, held->token(), owner, s.ttl, entry, mode_of(s)}, s.keep_password),
      .mask = inbox.mask_of_parent(),
      .own_group = !s.foreground};
  // Under another holdfast, being killed means that the outer lock is over; our command may ignore TERM.
  if (!variable("HOLDFAST_HOLDS").empty()) plan.signal_when_we_die = SIGKILL;
  lease_watch watch{*held};
  if (!held->valid()) return release(*held, s, at, lost_before_start(*held, s, at), inbox);
  child command{plan};
  const kill_if_left not_without_the_lock{command};
  if (command.failure() != 0) return release(*held, s, at, answer_not_started(command, words.front()), inbox);

  const auto end = supervise(*held, watch, command, inbox, s, at);
  const bool has_terminal = command.take_terminal();
  if (command.had_terminal()) inbox.missed(end.exit - 128, has_terminal);
  if (!end.was_stopped) return release(*held, s, at, end, inbox);
  // Stopped in time, the lease may still stand: give it back if the server listens again, for the next one's sake.
  if (held->valid()) held->release();
  say_belated(end, inbox);
  return end.exit;
}

}  // namespace

int run_command(const settings& s) {
  auto options = options_of(s);  // Where signals still end us: its password may never come.
  signal_inbox inbox;
  return inbox.end(run_under_lock(s, std::move(options), inbox));
}

}  // namespace holdfast::cli
