// SPDX-License-Identifier: Apache-2.0
// holdfast wait: until it is free and nobody stands in line for it, without taking it. Whoever takes it next may be
// faster than who reads our answer.
#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "lease_watch.hpp"
#include "message.hpp"
#include "self_wait.hpp"
#include "server.hpp"
#include "signals.hpp"
#include "subcommands.hpp"
#include "take.hpp"

#include <holdfast/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

// A wait goes on while the machine sleeps (H2).
struct clock {
  using duration = milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<clock>;
  static constexpr bool is_steady = true;
  static time_point now() { return time_point{lease_watch::now()}; }
};

// Who only looks stands in no line, and nobody tells it. So it looks again when the lease can end by itself, and twice
// a second for the case that it is given back.
constexpr milliseconds look_again{500};

// What a look may take when the time of -w is over: it may have become free in the last moment.
constexpr milliseconds last_look{50};
// The first look makes connections, which may take seconds where answers do not.
constexpr milliseconds most_of_the_first{300};

// As of `run`, -w bounds all of it, also a server that is silent. Zero looks once and gives the server its own time.
bool is_bounded(const settings& s) { return s.wait && *s.wait > milliseconds{0}; }

server open_for(const settings& s) {
  if (!is_bounded(s)) return open_server(s);
  auto bounded = s;
  constexpr milliseconds least{10};
  bounded.server_timeout = std::min(s.server_timeout.value_or(client_options{}.timeout), std::max(*s.wait, least));
  return open_server(bounded);
}

// What was seen, and how long the slowest of the looks took that were answered.
struct sight {
  lock_info info;
  milliseconds slowest;
  std::optional<error> failure{};  // Of the looks since.
};

milliseconds until_next_look(const sight& seen, clock::time_point give_up_at) {
  const auto& info = seen.info;
  auto pause = look_again;
  if (!seen.failure && info.held && !info.endless) pause = std::min(pause, info.remaining + milliseconds{2});
  if (!seen.failure && info.quarantine.count() > 0) pause = std::min(pause, info.quarantine + milliseconds{2});
  if (give_up_at != clock::time_point::max()) {
    pause = std::min(pause, std::chrono::ceil<milliseconds>(give_up_at - clock::now()));
  }
  return std::max(pause, milliseconds{1});
}

milliseconds since(clock::time_point began_at) { return std::chrono::ceil<milliseconds>(clock::now() - began_at); }

bool is_silence(const std::error_code& ec) { return ec == errc::reply_lost || ec == errc::server_silent; }

// What a server that was reached once may be over with by the next look, as `run` beside us goes on.
bool passes(const std::error_code& ec) {
  return is_silence(ec) || ec == errc::server_busy || ec == errc::server_loading || ec == errc::connection_lost ||
         ec == errc::cannot_connect || ec == errc::cannot_resolve || ec == errc::no_primary;
}

// Later looks have what is left of the time, and no more words about what went wrong than its code. Where that was too
// little for an answer, what was `seen` before is what there is to say.
sight look_again_at(server& at, const settings& s, clock::time_point give_up_at, sight seen) {
  const auto began_at = clock::now();
  const auto failed = [&](const error& why) {
    if (!passes(why.code())) throw error{why};
    seen.failure = why;
    return std::move(seen);
  };
  if (!is_bounded(s)) {
    try {
      return {at.locks.inspect(s.name), seen.slowest};
    } catch (const error& e) {
      return failed(e);
    }
  }
  std::error_code ec;
  const auto left = std::chrono::ceil<milliseconds>(give_up_at - began_at);
  if (auto info = at.locks.inspect(s.name, std::max(last_look, left), ec))
    return {*std::move(info), std::max(seen.slowest, since(began_at))};
  const auto took = since(began_at);
  const bool had_little_time = left <= std::max(last_look, seen.slowest) && took >= left;
  if ((is_silence(ec) || ec == errc::no_quorum) && had_little_time) return seen;
  return failed(error{ec, {.endpoint = at.locks.endpoint(), .elapsed = took}});
}

int wait_until_free(const settings& s) {
  const auto give_up_at = s.wait ? clock::now() + *s.wait : clock::time_point::max();
  server at = open_for(s);
  const auto began_at = clock::now();
  sight seen{at.locks.inspect(s.name), {}};
  seen.slowest = std::min(since(began_at), most_of_the_first);
  while (true) {
    const auto& info = seen.info;
    if (!seen.failure && is_free(info)) {
      if (s.verbose) say(fmt::format("'{}' is free", visible_word(s.name)));
      return number(exit_code::ok);
    }
    if (s.try_once || clock::now() >= give_up_at) {
      if (seen.failure) throw *seen.failure;
      if (!s.quiet) say(fmt::format("'{}' {}", visible_word(s.name), holder_text(info, s)));
      return s.conflict_exit.value_or(number(exit_code::busy));
    }
    // Of a semaphore with more permits, another one may become free.
    const bool is_whole = info.kind != lock_kind::semaphore || info.size == 1;
    if (is_whole && is_held_above(at, s, info)) return refuse_self_deadlock(s);
    std::this_thread::sleep_for(until_next_look(seen, give_up_at));
    const bool was_seen = !seen.failure;
    seen = look_again_at(at, s, give_up_at, std::move(seen));
    if (was_seen && seen.failure && !s.quiet)
      try_say(fmt::format("nobody can say whether '{}' is free: {}; looking again", visible_word(s.name),
                          seen.failure->code().message()));
  }
}

}  // namespace

int wait_command(const settings& s) {
  if (::getpid() != 1) return wait_until_free(s);
  // Alone in its container: there nothing ends who does not handle it.
  signal_inbox inbox;
  return while_signals_end_us(inbox, [&] { return wait_until_free(s); });
}

}  // namespace holdfast::cli
