// SPDX-License-Identifier: Apache-2.0
#include "supervise.hpp"

#include "duration.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "lease_watch.hpp"
#include "loss_policy.hpp"
#include "message.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// A group of which we are not the parent tells nobody when it ends; so it is asked, for as long as it matters.
constexpr milliseconds group_look_interval{20};

class supervision {
public:
  supervision(const lease& held, child& command, signal_inbox& inbox, const settings& s, const std::string& endpoint)
      : held_{held},
        command_{command},
        inbox_{inbox},
        settings_{s},
        endpoint_{endpoint},
        watch_{held},
        policy_{s.ttl, s.kill_after, s.when_lost},
        began_at_{lease_watch::now()} {}

  ending run() {
    while (true) {
      command_.reap();
      const auto span = look();
      if (is_over()) break;
      if (command_.take_suspended()) suspend();
      watch_.wake_in(command_.has_ended() ? std::min(span, group_look_interval) : span);
      wait_for_news();
    }
    if (untold_) say_error(*untold_);
    if (policy_.has_stopped()) return {number(exit_code::lost), true};
    warn_of_leftovers();
    return {command_.exit_status(), false};
  }

private:
  bool is_over() const {
    if (!command_.has_ended()) return false;
    if (policy_.has_stopped() || settings_.wait_group) return !command_.group_lives();
    return true;
  }

  // Does what the lease's state asks for, the command's signals before any words. Returns when to look again.
  milliseconds look() {
    const auto remaining = held_.remaining();
    const auto reason = held_.lost_reason();
    // A command that has ended by itself, and leaves nobody behind, is not stopped any more.
    if (!policy_.has_stopped() && is_over()) return milliseconds::max();
    const auto step = policy_.look(lease_watch::now(), remaining, reason);
    switch (step.what) {
      case loss_policy::act::none: break;
      case loss_policy::act::stop:
        command_.signal(settings_.stop_signal);
        command_.signal(SIGCONT);  // A suspended command hears nothing else.
        tell_loss(remaining, reason,
                  fmt::format("stopping pid {} ({}, then KILL in {})", command_.pid(),
                              signal_name(settings_.stop_signal), to_text(step.look_again_in)));
        break;
      case loss_policy::act::kill:
        command_.signal(SIGKILL);
        tell_loss(remaining, reason, fmt::format("killing pid {}", command_.pid()));
        break;
      case loss_policy::act::warn:
        tell_loss(remaining, reason, fmt::format("pid {} runs on without it (--on-lost warn)", command_.pid()));
    }
    return step.look_again_in;
  }

  static std::string signal_name(int number) {
    const char* name = ::sigabbrev_np(number);
    return name ? name : fmt::format("signal {}", number);
  }

  void tell_loss(milliseconds remaining, std::error_code reason, const std::string& consequence) {
    if (is_told_) return;  // The KILL after a TERM was announced with it.
    is_told_ = true;
    fault what{.code = "E12", .exit = exit_code::lost};
    std::string how;
    if (is_at_max_hold(remaining, reason)) {
      how = fmt::format("it was held for {}, as long as --max-hold allows", to_text(*settings_.max_hold));
    } else if (!reason || reason == errc::lease_expired) {
      // The deadline is counted from the last good renewal, less 1 % and 2 ms (docs/lease_time.md).
      const auto silent = settings_.ttl - settings_.ttl / 100 - 2ms - remaining;
      how = settings_.renews
                ? fmt::format("no renewal confirmed for {} of a {} lease", to_text(silent), to_text(settings_.ttl))
                : fmt::format("its {} are nearly over (--no-renew)", to_text(settings_.ttl));
      if (settings_.renews)
        what.why = fmt::format("{} stopped answering, or this machine was asleep", visible(endpoint_));
    } else if (reason == errc::lease_taken) {
      how = "somebody else holds it now";
    } else if (reason == errc::lease_broken) {
      how = "somebody broke it on purpose";
      what.fix = fmt::format("who and why: holdfast show {}", shell_quoted(visible(held_.name())));
    } else {
      how = "the server has no such lease any more";
      what.why = "it was deleted, evicted or flushed, or the server lost its data";
    }
    what.text =
        fmt::format("lost '{}' (token {}): {}; {}", visible(held_.name()), held_.token().to_string(), how, consequence);
    if (!try_say_error(what)) untold_ = what;
  }

  // The lease says why it ended only when it has; its command is stopped before that. What is left would be more than
  // it is if the last renewals had failed.
  bool is_at_max_hold(milliseconds remaining, std::error_code reason) const {
    if (reason || !settings_.max_hold) return reason == errc::lease_held_too_long;
    constexpr milliseconds between_grant_and_start{250};
    return lease_watch::now() - began_at_ + remaining + between_grant_and_start >= *settings_.max_hold;
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
        // First of all the lease: it may have ended while we were suspended.
        look();
        command_.give_terminal();
        command_.signal(SIGCONT);
        return;
      case SIGTSTP:
        command_.signal(SIGTSTP);
        suspend();
        return;
      default: break;
    }
    // In one group with us (--foreground) it has had the terminal's signal already.
    if (settings_.foreground && signal.from_terminal) return;
    command_.signal(signal.number);
    if (signal.number == SIGTERM || signal.number == SIGHUP) command_.signal(SIGCONT);
  }

  // The command was suspended; so are we, or the shell would wait for ever. Nothing renews meanwhile: at the next
  // SIGCONT the lease is looked at before the command goes on.
  void suspend() {
    if (command_.has_ended() || ::getpid() == 1) return;
    if (!settings_.quiet)
      try_say(fmt::format("suspended; '{}' is not renewed and ends in {}", visible(held_.name()),
                          to_text(held_.remaining())));
    command_.take_terminal();
    ::kill(::getpid(), SIGSTOP);
  }

  void warn_of_leftovers() {
    if (settings_.quiet || !command_.group_lives()) return;
    const auto left = processes_of_group(command_.pid());
    if (left.empty()) return;
    say_warning({.text = fmt::format("the command ended, but of its group {} still run{}: {}",
                                     left.size() == 4 ? "some" : std::to_string(left.size()),
                                     left.size() == 1 ? "s" : "", fmt::join(left, ", ")),
                 .why = "without the lock from now on",
                 .fix = "--wait-group holds the lock until all have ended"});
  }

  const lease& held_;
  child& command_;
  signal_inbox& inbox_;
  const settings& settings_;
  const std::string& endpoint_;
  lease_watch watch_;
  loss_policy policy_;
  const milliseconds began_at_;
  std::optional<fault> untold_{};
  bool is_told_ = false;
};

}  // namespace

ending supervise(const lease& held, child& command, signal_inbox& inbox, const settings& s,
                 const std::string& endpoint) {
  return supervision{held, command, inbox, s, endpoint}.run();
}

}  // namespace holdfast::cli
