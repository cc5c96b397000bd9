// SPDX-License-Identifier: Apache-2.0
#include "supervise.hpp"

#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "loss_policy.hpp"
#include "loss_text.hpp"
#include "message.hpp"
#include "out_of_reach.hpp"
#include "process_group.hpp"
#include "standstill.hpp"
#include "terminal_wish.hpp"
#include "watchdog.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

// A group of which we are not the parent tells nobody when it ends; so it is asked, for as long as it matters, and less
// and less often, because that reads all of /proc.
constexpr milliseconds first_group_look{20};
constexpr milliseconds longest_group_look{250};

// Nor does anybody tell a job that runs in the background that the shell has brought it to the front (fg).
constexpr milliseconds front_look_interval{100};

constexpr milliseconds was_suspended{0};

// A command that is shorter pays for no watchdog; of a short lease a tenth.
constexpr milliseconds longest_without_watchdog{100};

// Further ahead than any lease; it is said again long before.
constexpr milliseconds never = std::chrono::hours{24} * 365;

class supervision {
public:
  supervision(const lease& held, lease_watch& watch, child& command, signal_inbox& inbox, const settings& s,
              const server& at)
      : held_{held},
        command_{command},
        inbox_{inbox},
        settings_{s},
        at_{at},
        watch_{watch},
        policy_{s.ttl, s.kill_after, s.when_lost},
        watchdog_{{command.pid(),
                   !s.foreground,
                   s.wait_group,
                   s.stop_signal,
                   {policy_.grace(), policy_.margin(), is_under_another()}}},
        began_at_{lease_watch::now()} {}

  ending run() {
    while (true) {
      const auto span = look();
      if (is_over_) break;
      if (command_.take_suspended()) follow();
      const auto pause = stand();
      if (pause == was_suspended) continue;
      if (command_.wants_terminal()) lend_terminal();
      watch_.wake_in(std::min({span, pause, longest_sleep()}));
      wait_for_news();
    }
    const bool was_stopped = has_stopped();
    return {.exit = was_stopped ? number(exit_code::lost) : command_.exit_status(),
            .was_stopped = was_stopped,
            .is_told = is_told_,
            .untold = untold_,
            .passed_on = passed_on_,
            .came_behind_it = came_behind_it_};
  }

private:
  // Its KILL, when its lock is over, reaches us and nobody of our command's group.
  bool is_under_another() const { return command_.signal_when_we_die() == SIGKILL; }

  bool has_stopped() const { return policy_.has_stopped() || watchdog_.has_acted(); }

  bool is_over() const {
    if (!command_.has_ended()) return false;
    if (has_stopped() || settings_.wait_group) return !command_.group_lives();
    return true;
  }

  milliseconds longest_sleep() {
    if (command_.has_ended()) return std::exchange(group_look_, std::min(2 * group_look_, longest_group_look));
    return command_.wants_terminal() ? front_look_interval : milliseconds::max();
  }

  // Does what the lease's state asks for, the command's signals before any words. Returns when to look again.
  milliseconds look() {
    command_.reap();
    is_over_ = is_over();
    if (watchdog_.has_acted()) tell(explain_watchdog(held_, settings_, command_));
    // In this order: whoever sees that nothing remains has to see why.
    const auto now = lease_watch::now();
    const auto remaining = held_.remaining();
    const auto reason = held_.lost_reason();
    // A command that has ended by itself, and leaves nobody behind, is not stopped any more.
    if (!has_stopped() && is_over_) return milliseconds::max();
    const auto step = policy_.look(now, remaining, reason);
    if (step.what != loss_policy::act::none) group_look_ = first_group_look;
    switch (step.what) {
      case loss_policy::act::none: return std::min(step.look_again_in, tell_watchdog(now, remaining));
      case loss_policy::act::stop: {
        watchdog_.set_stopping(now + step.look_again_in + policy_.margin());
        const bool is_heard = command_.signal(settings_.stop_signal);
        command_.signal(SIGCONT);  // A suspended command hears nothing else.
        tell_loss(now, remaining, reason,
                  consequence(is_heard, fmt::format("stopping pid {} ({}, then KILL in {})", command_.pid(),
                                                    signal_name(settings_.stop_signal), to_text(step.look_again_in))));
        break;
      }
      case loss_policy::act::kill: {
        const bool is_heard = command_.signal(SIGKILL);
        tell_loss(now, remaining, reason, consequence(is_heard, fmt::format("killing pid {}", command_.pid())));
        break;
      }
      case loss_policy::act::warn:
        tell_loss(now, remaining, reason, fmt::format("pid {} runs on without it (--on-lost warn)", command_.pid()));
        return tell_watchdog(now, remaining);
    }
    return step.look_again_in;
  }

  // Says until when the lease stands. Returns when to say it again: so often that one which is renewed is never near
  // the end that was said last. A machine without a process to spare is asked again then.
  milliseconds tell_watchdog(milliseconds now, milliseconds remaining) {
    if (!wants_watchdog() || has_stopped()) return milliseconds::max();
    const auto without = is_under_another() ? milliseconds{0} : longest_without_watchdog;
    const auto made_at = began_at_ + std::min(without, settings_.ttl / 10);
    if (now < made_at) return made_at - now;
    say_deadline(now, remaining);
    return settings_.ttl / 6;
  }

  // With --on-lost warn only for the sake of the lock above: it ends what outlives us, and nothing beside us.
  bool wants_watchdog() const { return settings_.when_lost != on_lost::warn || is_under_another(); }

  void say_deadline(milliseconds now, milliseconds remaining) {
    watchdog_.watch(now + (settings_.when_lost == on_lost::warn ? never : remaining));
  }

  std::string consequence(bool is_heard, const std::string& what) const {
    if (!is_heard) return out_of_reach(command_.pid());
    const auto others = settings_.foreground ? std::vector<std::string>{} : processes_out_of_reach(command_.pid());
    return others.empty() ? what : what + "; " + out_of_reach(others);
  }

  void tell_loss(milliseconds now, milliseconds remaining, std::error_code reason, const std::string& consequence) {
    const ending_lease how{remaining, reason, now + remaining - watch_.first_end(), at_.renewals->trouble()};
    auto what = explain_loss(named(held_), how, settings_, at_.locks.endpoint());
    what.text += "; " + consequence;
    tell(what);
  }

  void tell(const fault& loss) {
    if (std::exchange(is_told_, true)) return;  // The KILL after a TERM was announced with it.
    if (!try_say_error(loss)) untold_ = loss;
  }

  void wait_for_news() {
    std::array<pollfd, 3> news{pollfd{inbox_.descriptor(), POLLIN, 0}, pollfd{watch_.timer(), POLLIN, 0},
                               pollfd{watch_.lost(), POLLIN, 0}};
    ::poll(news.data(), news.size(), -1);
    watch_.drain();
    while (const auto signal = inbox_.take()) forward(*signal);
  }

  void forward(const received_signal& signal) {
    switch (signal.number) {
      case SIGCHLD: return;
      case SIGCONT:
        command_.give_terminal();
        wake_command();
        return;
      case SIGTSTP:
        if (!may_stand()) return;
        if (!has_it_already(signal)) command_.signal(SIGTSTP);
        standstill_.ask(lease_watch::now());
        return;
      default: break;
    }
    const bool has_it = has_it_already(signal);
    const bool is_for_its_end = asks_for_its_end(signal.number);
    // Its CHLD is handed out behind a TERM that came later. What came to both of us came while it ran.
    if (is_for_its_end && !has_it) command_.reap();
    const bool had_ended = command_.has_ended();
    const bool is_heard = has_it || command_.signal(signal.number);
    // With --quiet too: whoever sent it waits for an end that will not come.
    if (!is_heard && !std::exchange(is_out_of_reach_told_, true)) {
      try_say(fmt::format("{} not passed on: {}", signal_name(signal.number), out_of_reach(command_.pid())));
    }
    if (!is_for_its_end) return;
    if (had_ended)
      came_behind_it_ = signal;
    else
      passed_on_.push_back(signal.number);
    wake_command();
  }

  // First of all the lease: it may have ended while we were suspended.
  void wake_command() {
    look();
    watchdog_.set_stands(false);
    standstill_.cancel();
    command_.signal(SIGCONT);
  }

  // Those that somebody sends to see the end of it; a command that is stopped does not hear them. USR1 may be anything.
  static bool asks_for_its_end(int number) {
    return number == SIGTERM || number == SIGHUP || number == SIGINT || number == SIGQUIT;
  }

  // The terminal's signals go to a whole group, and with --foreground ours is the command's. But a hang-up is told to
  // the head of the session alone; who is not the head hears of it when that has ended, with all of the group.
  bool has_it_already(const received_signal& signal) const {
    const bool is_told_to_us_alone = signal.number == SIGHUP && ::getsid(0) == ::getpid();
    return settings_.foreground && signal.from_terminal && !is_told_to_us_alone;
  }

  // Not while it has to end, and not when nobody could wake us: the terminal would be dead.
  bool may_stand() const { return !has_stopped() && can_be_woken(); }

  // The command was suspended at its terminal. If we may not follow, it goes on.
  void follow() {
    if (may_stand())
      standstill_.ask(lease_watch::now());
    else
      command_.signal(SIGCONT);
  }

  // Brings the command to a standstill, if that is asked for, and then us. Returns when to look again.
  milliseconds stand() {
    if (!standstill_.is_asked_for()) return milliseconds::max();
    if (has_stopped()) {
      standstill_.cancel();
      command_.signal(SIGCONT);
      return milliseconds::max();
    }
    const auto step = standstill_.look(lease_watch::now(), command_.stands());
    switch (step.what) {
      case standstill::act::none: break;
      case standstill::act::stop_command: command_.signal(SIGSTOP); break;
      case standstill::act::let_run:
        command_.signal(SIGCONT);
        give_up_standing();
        break;
      case standstill::act::stop_us: suspend(); return was_suspended;
    }
    return step.look_again_in;
  }

  // With --quiet too: whoever wants us to stand waits for that. A Ctrl-Z that is not obeyed harms nobody; who runs on
  // behind a lease that nobody renews does.
  void give_up_standing() {
    const auto all = processes_that_cannot_be_stopped(command_.pid());
    if (all.empty()) return;
    standstill_.cancel();
    try_say("not suspended: " + out_of_reach(all));
  }

  // The command stands; so do we, or the shell would wait for ever. Nothing renews meanwhile: at the next SIGCONT the
  // lease is looked at before the command goes on.
  void suspend() {
    command_.signal(SIGSTOP);  // Also whoever was born while we looked.
    if (!settings_.quiet)
      try_say(fmt::format("suspended; '{}' is not renewed and ends in {}", visible_word(held_.name()),
                          to_text(held_.remaining())));
    // A Ctrl-Z that the command got in our stead was for all of our group: a script's shell has to stand too, or the
    // shell above it sees nothing of it.
    const bool had_terminal = command_.take_terminal();
    if (wants_watchdog()) say_deadline(lease_watch::now(), held_.remaining());
    watchdog_.set_stands(true);  // Until we go on and have looked at the lease.
    stop_unless_woken(had_terminal ? 0 : ::getpid());
  }

  // The command stands still until it has the terminal; we go on renewing. What was stopped stays so until it is told.
  // With --quiet too: the lock is kept until somebody does something.
  void lend_terminal() {
    if (command_.has_ended()) return;
    if (command_.give_terminal()) {
      command_.signal(SIGCONT);
      return;
    }
    const auto step = terminal_wish_.look(lease_watch::now(), is_left_behind);
    if (step.what == terminal_wish::act::hint)
      say_command("waits for the terminal: bring it to the foreground (fg), or give it another input (</dev/null)");
    if (step.what != terminal_wish::act::deny) return;
    const bool is_heard = command_.signal(step.signal);
    if (terminal_wish_.is_news(is_heard))
      say_command(is_heard ? "wants the terminal, and nobody is there to give it one: hung up"
                           : "wants the terminal, which nobody can give it; " + out_of_reach(command_.pid()));
    if (is_heard) command_.deny_terminal();
  }

  void say_command(const std::string& what) const {
    try_say(fmt::format("the command under '{}' {}", visible_word(held_.name()), what));
  }

  const lease& held_;
  child& command_;
  signal_inbox& inbox_;
  const settings& settings_;
  const server& at_;
  lease_watch& watch_;
  loss_policy policy_;
  watchdog watchdog_;
  standstill standstill_{locks_above()};
  terminal_wish terminal_wish_{settings_.stop_signal};
  const milliseconds began_at_;
  milliseconds group_look_ = first_group_look;
  std::optional<fault> untold_{};
  std::vector<int> passed_on_{};
  std::optional<received_signal> came_behind_it_{};
  bool is_over_ = false;
  bool is_told_ = false;
  bool is_out_of_reach_told_ = false;
};

}  // namespace

ending supervise(const lease& held, lease_watch& watch, child& command, signal_inbox& inbox, const settings& s,
                 const server& at) {
  return supervision{held, watch, command, inbox, s, at}.run();
}

}  // namespace holdfast::cli
