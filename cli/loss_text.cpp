// SPDX-License-Identifier: Apache-2.0
#include "loss_text.hpp"

#include "duration.hpp"
#include "escape.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>

#include <string_view>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How far behind the request for it a lease ends that is not renewed: 1 % and 2 ms earlier (docs/lease_time.md).
milliseconds unrenewed(const settings& s) { return s.ttl - s.ttl / 100 - 2ms; }

// The lease says why it ended only when it has, and it is given up before that. Its end has been moved as far as that
// may be, or the last renewals have failed.
bool is_at_max_hold(const ending_lease& how, const settings& s) {
  if (how.reason || !s.max_hold) return how.reason == errc::lease_held_too_long;
  constexpr milliseconds between_two_looks_at_the_clock{100};
  return unrenewed(s) + how.moved_by + between_two_looks_at_the_clock >= *s.max_hold;
}

// Somebody said so, and be it the kernel. Who was silent has said nothing.
bool is_answer(std::error_code trouble) {
  return trouble && trouble != outcome::unknown && trouble != errc::server_silent;
}

std::string silence(const ending_lease& how, const settings& s) {
  if (!s.renews) return fmt::format("its {} are nearly over (--no-renew)", to_text(s.ttl));
  const auto silent = unrenewed(s) - how.remaining;  // As of the request, of the last good renewal.
  return fmt::format("no renewal confirmed for {} of a {} lease", to_text(silent), to_text(s.ttl));
}

// Who has a command to stop does so before the end.
std::string reached_max_hold(const ending_lease& how, const settings& s) {
  const auto span = to_text(*s.max_hold);
  return how.reason ? fmt::format("it was held for {}, as long as --max-hold allows", span)
                    : fmt::format("its {} are nearly over (--max-hold)", span);
}

// Behind a failover, or the move of a slot, a renewal counts only two seconds later (docs/topologies.md). It is due at
// a third of the ttl, and at 7 s `run` need not have begun to end by then.
bool may_end_by_a_move(std::string_view endpoint, const settings& s) {
  const bool may_move = endpoint.find("+sentinel://") != endpoint.npos || endpoint.find("+cluster://") != endpoint.npos;
  return may_move && s.ttl < std::chrono::seconds{7};
}

}  // namespace

std::string named(const lease& held) {
  return fmt::format("'{}' (token {})", visible_word(held.name()), held.token().to_string());
}

fault explain_loss(const std::string& name, const ending_lease& how, const settings& s, const std::string& endpoint) {
  fault what{.code = "E12", .exit = exit_code::lost};
  std::string cause;
  if (is_at_max_hold(how, s)) {
    cause = reached_max_hold(how, s);
    what.fix = "a longer --max-hold, if it may take so long";
  } else if (!how.reason || how.reason == errc::lease_expired) {
    cause = silence(how, s);
    if (s.renews && is_answer(how.trouble)) {
      what.why = fmt::format("renewals at {} failed: {}", visible(endpoint), how.trouble.message());
      what.fix = "holdfast doctor" + server_argument(s);
    } else if (s.renews) {
      what.why = fmt::format("{} stopped answering, {}or this machine was asleep, or this process suspended",
                             visible(endpoint),
                             may_end_by_a_move(endpoint, s) ? "or what was renewed did not count yet behind a "
                                                              "failover or the move of a slot, "
                                                            : "");
      what.fix = "whether it answers: holdfast doctor" + server_argument(s);
      if (may_end_by_a_move(endpoint, s))
        what.fix += "; a --ttl of 7s or more outlasts a move, a smaller --max-ttl shortens it";
    } else {
      what.fix = "leave --no-renew out, or a longer --ttl";
    }
  } else if (how.reason == errc::lease_taken) {
    cause = "somebody else holds it now";
    what.fix = fmt::format("who: holdfast show {}", lock_argument(s));
  } else if (how.reason == errc::lease_broken) {
    cause = "somebody broke it on purpose";
    what.fix = fmt::format("who and why: holdfast show {}", lock_argument(s));
  } else {
    cause = "the server has no such lease any more";
    what.why = endpoint.find("+quorum://") != endpoint.npos
                   ? "its list of servers was replaced (holdfast run says by which), or it was deleted or flushed"
                   : "it was deleted, evicted or flushed, or the server lost its data";
    what.fix = "holdfast doctor" + server_argument(s);
  }
  what.text = fmt::format("lost {}: {}", name, cause);
  return what;
}

fault explain_watchdog(const lease& held, const settings& s, const child& command) {
  return {
      .code = "E12",
      .text = fmt::format("lost {}: holdfast itself stood still for too long of a {} lease; its watchdog {} pid {}",
                          named(held), to_text(s.ttl), command.has_ended() ? "has ended" : "is ending", command.pid()),
      .why = "this process was stopped (SIGSTOP, a debugger), or got no time to run",
      .fix = "a longer --ttl rides out a longer pause",
      .exit = exit_code::lost};
}

}  // namespace holdfast::cli
