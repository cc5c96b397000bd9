// SPDX-License-Identifier: Apache-2.0
#include "take.hpp"

#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "lease_watch.hpp"
#include "message.hpp"
#include "self_wait.hpp"

#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <stop_token>
#include <system_error>

namespace holdfast::cli {
namespace {

constexpr std::size_t label_size_max = 256;  // What the library accepts.
constexpr std::chrono::milliseconds silent_wait{400};
// So long the word that it is ours may take from the server to us.
constexpr std::chrono::milliseconds on_its_way{100};

// What the try for the lock has when the time of -w is over before it.
constexpr std::chrono::milliseconds last_try{50};

// Somebody has it, or may have it.
bool is_kept(const lock_info& info) { return info.held || info.quarantine.count() > 0; }

void say_what_replicas_owe(const settings& s) {
  try_say(fmt::format(
      "waiting: nobody else has '{}', and it is ours when {} replica{} confirmed it within {} (--replicas); "
      "whether so many are connected: holdfast doctor{} --replicas {}",
      visible_word(s.name), s.replicas, s.replicas == 1 ? " has" : "s have",
      to_text(s.replicas_timeout.value_or(durability{}.timeout)), server_argument(s), s.replicas));
}

// Those who stand ahead of us. Others may have our label: of several entries the last is taken for ours.
struct place {
  std::size_t ahead = 0;
  bool is_listed = false;
  bool is_behind_the_list = false;  // Which has the first of the line only: there are at least so many.
};

place place_of(const lock_info& info, const std::string& owner) {
  const auto ours = std::find_if(info.waiters.rbegin(), info.waiters.rend(),
                                 [&](const waiter_info& one) { return one.owner == owner; });
  const auto listed = info.waiters.size();
  if (ours == info.waiters.rend()) return {listed, false, info.waiting > static_cast<std::int64_t>(listed)};
  return {static_cast<std::size_t>(std::distance(ours, info.waiters.rend())) - 1, true, false};
}

// Whoever waits wants to know for whom, and for how many. A look at the server; if it fails, the wait goes on.
void say_who_is_ahead(server& at, const settings& s, const std::string& owner, const wait_canceller& our_wait) {
  std::error_code ec;
  const auto info = at.locks.inspect(s.name, courtesy, ec);
  if (!info) return;
  const auto where = place_of(*info, owner);
  const bool may_be_with_us = info->held && info->owner == owner && !where.is_listed && !where.is_behind_the_list;
  // Granted and given back again and again: nobody is in the way but the replicas.
  if (s.replicas > 0 && (may_be_with_us || (!is_kept(*info) && where.ahead == 0))) return say_what_replicas_owe(s);
  // It became ours while we looked; or it is somebody's who has our label, and we wait on.
  if (may_be_with_us && !our_wait.lasts_for(on_its_way)) return;
  auto alone = *info;
  alone.waiters.clear();  // "ahead" says it better than "waiting".
  alone.waiting = 0;
  const auto whom = is_kept(*info) || where.ahead > 0 ? holder_text(alone, s) : std::string{"is free"};
  try_say(fmt::format("waiting: '{}' {}; {}{} ahead of us in line", visible_word(s.name), whom,
                      where.is_behind_the_list ? "at least " : "",
                      where.ahead == 0 ? "nobody" : std::to_string(where.ahead)));
}

int busy_exit(const settings& s) {
  if (s.conflict_exit) return *s.conflict_exit;
  return s.quiet_busy ? number(exit_code::ok) : number(exit_code::busy);
}

// Somebody else has it. Who, costs a second look at the server; by then it may be free.
int answer_busy(server& at, const settings& s, std::string_view gave_up) {
  const bool is_quiet = s.quiet || s.quiet_busy;
  if (is_quiet && gave_up.empty()) return busy_exit(s);
  std::error_code ec;
  auto info = at.locks.inspect(s.name, courtesy, ec);
  // It has become one since its last answer: that is the outcome, which is thrown, and not that somebody holds it.
  if (ec == errc::not_a_primary) info = at.locks.inspect(s.name);
  if (is_quiet) return busy_exit(s);
  std::string text = "was held by somebody else when the server last said so";
  if (info) text = is_free(*info) ? "was held a moment ago and is free now" : holder_text(*info, s);
  say(fmt::format("'{}' {}{}", visible_word(s.name), text, gave_up));
  if (stderr_is_terminal())
    say(fmt::format("wait for it with -w 10m, skip quietly with --quiet-busy, look with: holdfast show {}",
                    lock_argument(s)));
  return busy_exit(s);
}

// -w is for all of it, also for the start of a local: server. When that has taken all of it, the lock may be free.
std::optional<std::chrono::milliseconds> left_of_wait(const settings& s, const server& at) {
  if (!s.wait) return std::nullopt;
  return std::max(*s.wait - (lease_watch::now() - at.began_at), std::min(*s.wait, last_try));
}

acquire_options options_from(const settings& s, const server& at, const std::string& owner, std::stop_token cancel) {
  acquire_options options;
  options.ttl = s.ttl;
  options.wait = left_of_wait(s, at);
  options.cancel = std::move(cancel);
  options.owner = owner;
  options.renew = s.renews ? renewal::automatic : renewal::none;
  options.max_hold = s.max_hold;
  options.min_fence = s.min_fence;
  return options;
}

// A signal ended the wait. If a request was under way, the server may still have granted it.
int answer_signal(const error& e, const settings& s, int signal_number) {
  if (e.code() == outcome::unknown) {  // Whether the signal ended it, or it had ended a moment before.
    const auto left = e.detail().may_remain.count() > 0 ? e.detail().may_remain : s.ttl;
    if (!s.quiet)
      say_warning(
          {.code = "E20",
           .text = fmt::format("stopped while a request for '{}' was unanswered", visible_word(s.name)),
           .why = fmt::format("if the server granted it, the lock is left taken for {} at most", to_text(left))});
  } else if (s.verbose) {
    say(fmt::format("stopped waiting for '{}'", visible_word(s.name)));
  }
  return 128 + signal_number;
}

// One try or one wait, for what the command line asks for.
std::optional<lease> take(client& locks, const settings& s, const acquire_options& options) {
  const auto one_of = [&](auto& taken) {
    return s.try_once ? taken.try_acquire(options) : std::optional{taken.acquire(options)};
  };
  if (s.mode == taking_mode::permit) {
    semaphore places{locks, s.name, s.limit};
    return one_of(places);
  }
  if (s.mode == taking_mode::exclusive)
    return s.try_once ? locks.try_acquire(s.name, options) : std::optional{locks.acquire(s.name, options)};
  shared_mutex both{locks, s.name};
  if (s.mode == taking_mode::writing) return one_of(both);
  return s.try_once ? both.try_acquire_shared(options) : std::optional{both.acquire_shared(options)};
}

// Whoever wants it alone gets it alone, whichever kind the name is used as.
std::optional<lease> take_alone_or_as_asked(client& locks, const settings& s, const acquire_options& options) {
  try {
    return take(locks, s, options);
  } catch (const error& e) {
    if (e.code() != errc::wrong_kind) throw;
    auto other = s;
    other.mode = s.mode == taking_mode::exclusive ? taking_mode::writing : taking_mode::exclusive;
    const bool is_alone = s.mode == taking_mode::exclusive || s.mode == taking_mode::writing;
    std::error_code ec;
    const auto info = is_alone ? locks.inspect(s.name, ec) : std::nullopt;
    const auto wanted = other.mode == taking_mode::writing ? lock_kind::shared : lock_kind::exclusive;
    if (!info || info->kind != wanted) throw;
    return take(locks, other, options);
  }
}

}  // namespace

std::string entry_of(const server& at, const settings& s) {
  return hold_entry(at.locks.endpoint(), at.prefix, at.how, s.name);
}

// A local: server may take seconds to start, or not to answer, and can be left as it is at any time.
server open_server(const settings& s, client_options options, signal_inbox& inbox) {
  return while_signals_end_us(inbox, [&] { return open_server(s, std::move(options)); });
}

taking take_lock(server& at, const settings& s, const std::string& owner, signal_inbox& inbox) {
  if (waits_for_itself(at, s, inbox)) {
    inbox.let_end();
    return {{}, refuse_self_deadlock(s)};
  }
  wait_canceller canceller{inbox, silent_wait, [&] {
                             if (!s.quiet && !s.quiet_busy && !s.try_once) say_who_is_ahead(at, s, owner, canceller);
                           }};
  const auto options = options_from(s, at, owner, canceller.token());
  std::optional<lease> held;
  try {
    held = take_alone_or_as_asked(at.locks, s, options);
  } catch (const error& e) {
    const int came = canceller.finish();
    inbox.let_end();
    if (came != 0) return {{}, answer_signal(e, s, came)};
    if (e.code() != errc::timed_out) throw;
    const auto after = s.wait ? to_text(*s.wait) : std::string{"a while"};
    return {{}, answer_busy(at, s, fmt::format("; gave up after {}", after))};
  }
  const int came = canceller.finish();
  if (came != 0) {
    error_detail why;
    const bool is_unknown = held && held->release(why) == release_outcome::unknown;
    inbox.let_end();
    if (is_unknown && !s.quiet) warn_of_unknown_release(s, why);
    return {{}, 128 + came};
  }
  if (!held) {
    inbox.let_end();
    return {{}, answer_busy(at, s, "")};
  }
  if (s.verbose) try_say(fmt::format("acquired '{}', token {}", visible_word(s.name), held->token().to_string()));
  return {std::move(held), 0};
}

void warn_of_unknown_release(const settings& s, const error_detail& why) {
  const auto what = why.server_text.empty()
                        ? fmt::format("no answer to the release of '{}'", visible_word(s.name))
                        : fmt::format("the release of '{}' was not confirmed by {}: {}", visible_word(s.name),
                                      visible(why.endpoint), visible(why.server_text));
  say_warning(
      {.code = "E20",
       .text = what,
       .why = fmt::format("if it was not done, the lock is left taken for {} at most", to_text(why.may_remain))});
}

std::string owner_label(const settings& s, std::string_view program) {
  std::string label = s.owner;
  if (label.empty()) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
    program.remove_prefix(program.find_last_of('/') == program.npos ? 0 : program.find_last_of('/') + 1);
    label = fmt::format("{}@{}:{} {}", user_name(), host.data(), ::getpid(), program);
    if (label.size() > label_size_max) label.resize(label_size_max);
  }
  constexpr std::size_t around_why = 3;  // A space and two quotes.
  if (!s.why.empty() && label.size() <= label_size_max && label.size() + around_why + s.why.size() > label_size_max)
    throw usage_error{fmt::format("--why: {} bytes are too many: with the owner '{}' the label may have {}",
                                  s.why.size(), visible(label), label_size_max),
                      "a shorter --why, or a shorter --owner"};
  if (!s.why.empty()) label += fmt::format(" \"{}\"", s.why);
  return label;
}

bool is_free(const lock_info& info) {
  if (info.quarantine.count() > 0) return false;  // Whoever has it may be forgotten.
  if (!info.waiters.empty()) return false;        // Somebody is in line to take it.
  return info.kind == lock_kind::semaphore ? info.permits_held < info.size : !info.held;
}

std::string holder_text(const lock_info& info, const settings& s) {
  if (!info.held && info.quarantine.count() > 0)
    return fmt::format("may be held by somebody whom the server has forgotten, for {} more ({})",
                       to_text(info.quarantine), way_out_of_quarantine(s));
  if (info.foreign)
    return info.endless ? std::string{"is held by something that is not holdfast, and never expires"}
                        : fmt::format("is held by something that is not holdfast, for {} more without a renewal",
                                      to_text(info.remaining));
  std::string text;
  if (!info.held)
    text = "is free, and it is somebody else's turn";
  else if (info.kind == lock_kind::semaphore)
    text = fmt::format("has {} of {} permits taken, the first by {} for {}", info.permits_held, info.size,
                       visible(info.owner), to_text(info.held_for));
  else
    text = fmt::format("is held by {} for {}", visible(info.owner), to_text(info.held_for));
  if (info.kind == lock_kind::shared && info.permits_held > 1)
    text += info.permits_held == 2 ? ", and by 1 other" : fmt::format(", and by {} others", info.permits_held - 1);
  if (info.waiting > 0) text += fmt::format(", {} waiting", info.waiting);
  if (info.breaking) text += fmt::format("; broken, it ends in {}", to_text(info.remaining));
  return text;
}

}  // namespace holdfast::cli
