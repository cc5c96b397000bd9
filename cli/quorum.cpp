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

#include <holdfast/error.hpp>
#include <holdfast/quorum.hpp>

#include <fmt/format.h>

#include <chrono>

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

int replace_command(const settings& s) {
  if (!s.with) throw usage_error{"quorum replace needs the new list of servers", example};
  const auto from = named_server(s);
  if (!from) throw usage_error{"quorum replace needs the old list of servers", example};
  signal_inbox inbox;
  wait_canceller canceller{inbox, std::chrono::hours{1}, [] {}};
  replace_options options{.client = options_of(s), .cancel = canceller.token()};
  if (!s.quiet) options.tell = [](const replace_progress& what) { say(shown(what)); };
  try {
    const auto done = replace_quorum(*from, *s.with, options);
    print(s.json ? json_of(done) : done.uri + "\n");
    if (!s.quiet) {
      for (const auto& one : done.away)
        say(fmt::format("{} was left out; clients open it when it is back", visible(one)));
      say("now give that URI, with its generation, to all clients; those with the old one are refused");
    }
    return number(exit_code::ok);
  } catch (const error& e) {
    if (e.code() != errc::cancelled) throw;
    say("interrupted: the old list is closed and the new one is not open; the same command goes on");
    return 128 + canceller.finish();
  }
}

}  // namespace

int quorum_command(const settings& s) {
  if (s.words.empty() || s.words.front() != "replace") {
    throw usage_error{
        s.words.empty() ? "quorum needs to know what" : fmt::format("quorum has no '{}'", visible(s.words[0])),
        example};
  }
  if (s.words.size() > 1)
    throw usage_error{fmt::format("'{}' is one word too many for quorum replace", visible(s.words[1])), example};
  return replace_command(s);
}

}  // namespace holdfast::cli
