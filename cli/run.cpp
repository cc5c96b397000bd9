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
#include "not_started.hpp"
#include "process_group.hpp"
#include "self_wait.hpp"
#include "server.hpp"
#include "signals.hpp"
#include "subcommands.hpp"
#include "supervise.hpp"
#include "take.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> words_of(const settings& s) {
  if (s.shell_command) return {"/bin/sh", "-c", *s.shell_command};
  return s.words;
}

std::string_view mode_of(const settings& s) {
  if (s.mode == taking_mode::permit) return "permits";
  return s.mode == taking_mode::reading ? "shared" : "exclusive";
}

// What env(1) and timeout(1) answer too.
ending answer_not_started(const settings& s, const child& command, const std::string& program) {
  const auto why = why_not_started(s, program, command.failure());
  return {.exit = number(why.exit), .untold = why};
}

// What it will be if the release finds that the server ended it while the command ran, before that could be stopped for
// it. Said of the lease before, because it is empty then.
fault lost_meanwhile(const lease& held, std::error_code reason, const settings& s, const server& at, int status) {
  const ending_lease how{
      .remaining = held.remaining(), .reason = reason ? reason : errc::lease_gone, .moved_by = {}, .trouble = {}};
  auto what = explain_loss(named(held), how, s, at.locks.endpoint());
  if (!reason) {
    what.why = "it was deleted, evicted, broken or taken since its last renewal";
    what.fix = fmt::format("look who has it: holdfast show {}", lock_argument(s));
  }
  what.text += fmt::format("; the command had ended by itself, with {}", status);
  return what;
}

// Those of the command's group that go on without the lock.
std::optional<fault> leftovers_of(const child& command) {
  const auto left = processes_of_group(command.pid());
  if (left.empty()) return std::nullopt;
  return fault{.text = fmt::format("the command ended, but of its group {} still run{}: {}",
                                   left.size() == 4 ? "some" : std::to_string(left.size()), left.size() == 1 ? "s" : "",
                                   fmt::join(left, ", ")),
               .why = "without the lock from now on",
               .fix = "--wait-group holds the lock until all have ended"};
}

// The lock is not ours any more, so this may wait for its reader; until one of the signals that end us. Returns the
// Ctrl-C or Ctrl-\ that came while it was given back, or 0.
int say_belated(const ending& end, signal_inbox& inbox) {
  const int interrupt = inbox.let_next_end();
  if (end.untold) say_error(*end.untold);
  if (end.leftovers) say_warning(*end.leftovers);
  return interrupt;
}

// What came of --at-least when the command had ended.
struct keeping {
  bool was_ours = false;  // The server had it as ours then, so that a loss is a later one.
  int interrupt = 0;      // A Ctrl-C or Ctrl-\ that ended it.
};

// Of a lock that was ours when the command ended.
void warn_of_short_keeping(fault loss, const settings& s) {
  loss.text += ", before that; it was not kept for all of --at-least";
  if (!s.quiet) say_warning(loss);
}

// How it stood when it was given back.
struct giving_back {
  bool was_valid;
  std::error_code reason;
  std::string name;
  std::string token;
  fault loss;  // What to say if it is no more ours.
};

// Says what came of it. `end` is how the command ended; the result is our status.
int say_released(release_outcome outcome, const error_detail& why, const giving_back& was, const settings& s,
                 const ending& end, const keeping& kept) {
  switch (outcome) {
    case release_outcome::released:
      if (s.verbose) say(fmt::format("released '{}'", was.name));
      return end.exit;
    case release_outcome::unknown:
      if (!s.quiet) warn_of_unknown_release(s, why);
      return end.exit;
    case release_outcome::already_lost: break;
  }
  if (end.is_told) return end.exit;
  if (kept.was_ours) {
    warn_of_short_keeping(was.loss, s);
    return end.exit;
  }
  // By our clock it still stood and by the server it did not, or the server's word came as the command ended.
  const bool is_by_deadline = was.reason == errc::lease_expired || was.reason == errc::lease_held_too_long;
  if (was.was_valid || (was.reason && !is_by_deadline)) {
    say_error(was.loss);
    return s.when_lost == on_lost::warn ? end.exit : number(exit_code::lost);
  }
  // Otherwise its time was over, and most likely only after the command had ended.
  if (!s.quiet)
    say_warning(
        {.code = "E12",
         .text = fmt::format("'{}' (token {}) had ended before it was given back", was.name, was.token),
         .why = was.reason == errc::lease_held_too_long ? "--max-hold was over by then" : "its ttl was over by then"});
  return end.exit;
}

// Gives the lock back, and then says what there is to say. The status is that of the command, unless a Ctrl-C came
// behind its end: whoever types it means the script or the loop that we are in.
int release(lease& held, const settings& s, const server& at, const ending& end, signal_inbox& inbox,
            const keeping& kept = {}) {
  const auto reason = held.lost_reason();
  const giving_back was{held.valid(), reason, visible_word(held.name()), held.token().to_string(),
                        lost_meanwhile(held, reason, s, at, end.exit)};
  error_detail why;
  const auto outcome = held.release(why);
  const int came = say_belated(end, inbox);
  const int interrupt = came != 0 ? came : kept.interrupt;
  const int exit = say_released(outcome, why, was, s, end, kept);
  return interrupt != 0 && exit != number(exit_code::lost) ? 128 + interrupt : exit;
}

// We were stopped between the grant and here, say.
ending lost_before_start(const lease& held, const settings& s, const server& at) {
  const auto reason = held.lost_reason();
  auto what = explain_loss(named(held), {held.remaining(), reason ? reason : errc::lease_expired, {}, {}}, s,
                           at.locks.endpoint());
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

struct makings {
  const child_plan& plan;
  lease_watch& watch;
  start_descriptors& descriptors;
};

// Of a quorum of which one says nothing, another's that holds a minority may be shown in our place.
bool may_be_ours(const lock_info& seen, fencing_token token) {
  return std::any_of(seen.nodes.begin(), seen.nodes.end(),
                     [&](const auto& one) { return !one.trouble.empty() || one.token == token; });
}

// What the server says of it now; nullopt: nothing. A renewal that is yet to come would not say whether the lock went
// while the command ran, and with --no-renew none may be asked for.
std::optional<bool> is_ours(server& at, const lease& held, const settings& s) {
  std::error_code ec;
  const auto seen = at.locks.inspect(s.name, courtesy, ec);
  if (!seen) return std::nullopt;
  if (!seen->held) return false;  // Of a quorum: not even with all that say nothing.
  if (is_held_under(*seen, held.token())) return true;
  return may_be_ours(*seen, held.token()) ? std::nullopt : std::optional{false};
}

// 0: it is none.
int interrupt_of(const received_signal& signal) { return signal.is_interrupt() ? signal.number : 0; }

// The command has ended: keeps the lock for the rest of --at-least. A signal or the loss of the lease ends that.
keeping keep_at_least(const lease& held, lease_watch& watch, milliseconds until, const settings& s, server& at,
                      child& command, signal_inbox& inbox) {
  const auto left = [&] { return until - lease_watch::now(); };
  if (left() <= milliseconds{0} || !held.valid()) return {};
  const auto seen = is_ours(at, held, s);
  if (seen == false) return {};  // The release finds it, too, and says so.
  const bool was_ours = seen.has_value();
  if (s.verbose || (stderr_is_terminal() && !s.quiet))
    try_say(fmt::format("the command has ended; '{}' is kept for {} more (--at-least)", visible_word(held.name()),
                        to_text(left())));
  while (held.valid() && left() > milliseconds{0}) {
    watch.wake_in(std::min(left(), held.remaining()));
    std::array<pollfd, 3> news{pollfd{inbox.descriptor(), POLLIN, 0}, pollfd{watch.timer(), POLLIN, 0},
                               pollfd{watch.lost(), POLLIN, 0}};
    ::poll(news.data(), news.size(), -1);
    watch.drain();
    while (const auto signal = inbox.take()) {
      if (asks_to_end(signal->number)) return {was_ours, interrupt_of(*signal)};
      if (signal->number == SIGTSTP) suspend_ourselves();
      if (signal->number == SIGCHLD) command.reap();  // What it has left behind, if we are PID 1.
    }
  }
  return {was_ours, 0};
}

// Somebody asked for the end of the command, and with it of us: a service that is stopped, Ctrl-C. Nothing of
// --at-least is kept then. Many end well on TERM, with a status of their own; HUP may have been a word on the way,
// "read your configuration".
bool was_to_end(const ending& end, const child& command) {
  const int by = command.ended_by();
  if (command.had_terminal() && (by == SIGINT || by == SIGQUIT)) return true;
  return std::any_of(end.passed_on.begin(), end.passed_on.end(),
                     [&](int one) { return one != SIGHUP || end.exit == 128 + one; });
}

// What of the terminal's we may end by: what ended the command, or came when it had ended.
int interrupt_to_end_by(const ending& end, const child& command) {
  const int came = end.came_behind_it ? interrupt_of(*end.came_behind_it) : 0;
  return came != 0 ? came : command.ended_by();
}

// What came since the grant: the terminal has told it to our group, of which the command is not yet one. 0: nothing
// that asks for our end.
int asked_to_end(signal_inbox& inbox) {
  while (const auto signal = inbox.take()) {
    if (signal->number == SIGTSTP) suspend_ourselves();
    if (asks_to_end(signal->number)) return signal->number;
  }
  return 0;
}

// From the grant to the release.
int run_with(lease& held, const makings& made, const settings& s, server& at, signal_inbox& inbox) {
  const auto keep_until = lease_watch::now() + s.at_least.value_or(milliseconds{0});
  made.watch.watch(held);
  if (const int signal = asked_to_end(inbox); signal != 0) return release(held, s, at, {.exit = 128 + signal}, inbox);
  if (!held.valid()) return release(held, s, at, lost_before_start(held, s, at), inbox);
  child command{made.plan, made.descriptors};
  const kill_if_left not_without_the_lock{command};
  if (command.failure() != 0)
    return release(held, s, at, answer_not_started(s, command, made.plan.words.front()), inbox);

  auto end = supervise(held, made.watch, command, inbox, s, at);
  if (end.was_stopped || command.ended_by() != 0) command.mend_terminal();
  const bool has_terminal = command.take_terminal();
  inbox.forget_all_but(interrupt_to_end_by(end, command));
  if (command.had_terminal()) inbox.missed(command.ended_by(), has_terminal);
  if (!end.was_stopped) {
    // Asked now: of a group that has ended, the number may be another's when --at-least is over.
    const bool leaves_somebody = !s.quiet && command.group_lives();
    keeping kept;
    if (end.came_behind_it)
      kept.interrupt = interrupt_of(*end.came_behind_it);
    else if (!was_to_end(end, command))
      kept = keep_at_least(held, made.watch, keep_until, s, at, command, inbox);
    if (leaves_somebody) end.leftovers = leftovers_of(command);
    return release(held, s, at, end, inbox, kept);
  }
  // Stopped in time, the lease may still stand: give it back if the server listens again, for the next one's sake.
  if (held.valid()) held.release();
  say_belated(end, inbox);
  return end.exit;
}

int run_under_lock(const settings& s, client_options options, signal_inbox& inbox) {
  child_plan plan{.words = words_of(s), .environment = {}, .mask = inbox.mask_of_parent(), .own_group = !s.foreground};
  const auto owner = owner_label(s, plan.words.front());  // Refuses what is too long before a server is started.
  server at = open_server(s, std::move(options), inbox);
  const auto entry = entry_of(at, s);

  // Under another holdfast, being killed means that the outer lock is over; our command may ignore TERM.
  if (!variable("HOLDFAST_HOLDS").empty()) plan.signal_when_we_die = SIGKILL;
  // Whoever has no descriptors for the command must not take the lock.
  lease_watch watch;
  start_descriptors descriptors{plan.own_group};
  auto [held, exit] = take_lock(at, s, owner, inbox);
  if (!held) return exit;
  try {
    plan.environment = environment_under({s.name, held->token(), owner, s.ttl, entry, mode_of(s)}, s.keep_password);
    return run_with(*held, {plan, watch, descriptors}, s, at, inbox);
  } catch (...) {  // The command is gone. In the background there may be no time left for it.
    if (held->valid()) held->release();
    throw;
  }
}

}  // namespace

int run_command(const settings& s) {
  auto options = options_of(s);  // Where signals still end us: its password may never come.
  return with_signals([&](signal_inbox& inbox) { return run_under_lock(s, std::move(options), inbox); });
}

}  // namespace holdfast::cli
