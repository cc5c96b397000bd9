// SPDX-License-Identifier: Apache-2.0
// holdfast quorum replace: from one list of servers to another while locks are in use. Only the new URI goes to stdout,
// so that `export HOLDFAST_URI=$(holdfast quorum replace --with NEW)` works.
#include "duration.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "server.hpp"
#include "signals.hpp"
#include "subcommands.hpp"

#include <holdfast/quorum.hpp>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stop_token>
#include <string_view>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr const char* example = "holdfast quorum replace --uri redis+quorum://A,B,C --with redis+quorum://A,B,D";

std::string shown(const replace_progress& what) {
  using step = replace_progress::step;
  switch (what.what) {
    case step::away:
      return fmt::format("{} does not answer and is left out: {}", visible(what.server), visible(what.why));
    case step::closed: return fmt::format("{} is closed for the old list", visible(what.server));
    case step::waits: return fmt::format("waiting {}: so long may leases of the old list live", to_text(what.time));
    case step::opened: return fmt::format("{} is open for the new list", visible(what.server));
    case step::goes_on: return "an earlier replace had waited already; going on with what was not open";
  }
  return {};
}

// A replacement can be left as it is at any time, and the same command goes on. So a signal ends us at once: a server
// that is silent may be asked for seconds, and replace_options::cancel is for the wait alone.
quorum_replacement replace_unless_interrupted(std::string_view from, client_options client, const settings& s,
                                              signal_inbox& inbox) {
  std::atomic<bool> has_begun = false;
  wait_canceller canceller{inbox, std::chrono::hours{24}, [] {}};
  const std::stop_callback leave{canceller.token(), [&] {
                                   if (has_begun && !s.quiet)
                                     try_say(
                                         "interrupted: the old list is closed, or a part of it, and the new one is "
                                         "not open; the same command goes on");
                                   std::_Exit(inbox.end(128 + canceller.came()));
                                 }};
  return replace_quorum(from, *s.with,
                        {.client = std::move(client), .reopen = s.reopen, .tell = [&](const replace_progress& what) {
                           has_begun = has_begun || what.what != replace_progress::step::away;
                           if (!s.quiet) say(shown(what));
                         }});
}

int replace_command(const settings& s) {
  if (!s.with) throw usage_error{"quorum replace needs the new list of servers", example};
  const auto from = named_server(s);
  if (!from) throw usage_error{"quorum replace needs the old list of servers", example};
  auto options = options_of(s);  // Where signals still end us: its password may never come.
  return with_signals([&](signal_inbox& inbox) {
    const auto done = replace_unless_interrupted(*from, std::move(options), s, inbox);
    inbox.let_end();
    const bool is_printed = print_done(s.json ? json_of(done) : done.uri + "\n");
    if (!s.quiet) {
      for (const auto& one : done.away)
        say(fmt::format("{} was left out; the same command opens it when it is back", visible(one)));
      say("now give that URI, with its generation, to all clients; those with the old one are refused");
    }
    // A script goes on with what was printed.
    return number(is_printed ? exit_code::ok : exit_code::defect);
  });
}

}  // namespace

int quorum_command(const settings& s) {
  if (s.words.empty() || s.words.front() != "replace") {
    throw usage_error{
        s.words.empty() ? "quorum needs to know what" : fmt::format("quorum has no '{}'", visible_word(s.words[0])),
        example};
  }
  if (s.words.size() > 1)
    throw usage_error{fmt::format("'{}' is one word too many for quorum replace", visible_word(s.words[1])), example};
  return replace_command(s);
}

}  // namespace holdfast::cli
