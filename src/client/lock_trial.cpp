// SPDX-License-Identifier: Apache-2.0
// Everything that a lock needs, done once on a name of its own: the ACL is tried, not read.
#include "client/diagnose.hpp"
#include "client/server_report.hpp"
#include "engine/acquire.hpp"
#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "resp/info.hpp"
#include "script/keys.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using severity = finding::severity;
using namespace std::chrono_literals;

way_out way_out_of(const error& e) {
  const auto& words = e.detail().server_text;
  const auto has = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (e.code() == errc::no_password || e.code() == errc::wrong_password)
    return {"E02", "user and password are those of all of them"};
  if (e.code() == outcome::denied) return {"E04", way_out_of_denial};
  if (e.code().category() != error_category()) return {};
  switch (static_cast<errc>(e.code().value())) {
    case errc::not_replicated:
      return {"E24", "look into the replicas' logs; or a longer durability.timeout, or fewer durability.replicas"};
    case errc::out_of_memory: return {"E15", "raise maxmemory, or give locks a server of their own"};
    case errc::server_refused:
      if (has("CLUSTERDOWN")) return {"E25", "redis-cli --cluster check ANY says what is wrong"};
      if (has("NOREPLICAS")) return {"E15", "start its replicas; or CONFIG SET min-replicas-to-write 0"};
      return {"E15", has("MISCONF") ? "look into its log: is the disk full?" : "do what the server says"};
    case errc::server_busy: return {"E15", "redis-cli SCRIPT KILL"};
    case errc::server_loading: return {"E15", "wait for it"};
    case errc::wrong_server: return {"E15", "a cluster is redis+cluster://A,B,C, and one Redis is redis://"};
    case errc::wrong_kind: return {"E14", "delete that key, or another prefix"};
    case errc::clock_stepped: return {"E09", "run ntpd or chrony there, slewing and not stepping"};
    case errc::invalid_uri: return {"E17", "name each server once, under one address"};  // Of a quorum.
    case errc::no_quorum: return {"E10", "look why they do not vote: no lock is granted while a majority does not"};
    case errc::other_quorum:
      return {"E10", e.detail().why.empty() ? "the same servers and the same generation in every client's URI"
                                            : e.detail().why};
    default: return {};
  }
}

namespace {

void report(std::string_view what, const error& e, diagnosis& result) {
  auto [code, fix] = way_out_of(e);
  result.findings.push_back({severity::error, code, std::string{what} + ": " + e.what(), std::move(fix)});
}

std::optional<lease> trial_of(client_state& state, std::string_view probe, const acquire_options& what,
                              client_state::patience how) {
  return state.acquire(probe, what, how, {}, client_state::purpose::trial);
}

// Somebody who stands in line behind the holder, as another process would: not behind a thread of ours.
class next_in_line {
public:
  next_in_line(client_state& state, client_state::planned wanted, command_connection& at)
      : state_{state}, name_{std::move(wanted.name)}, call_{at.channel(), at.ear(),  std::move(wanted.what),
                                                            wanted.how,   began_at_, net::system_random()} {
    call_.set_slot(state.slot_of(call_.wanted().keys));
    thread_ = net::start_quietly([this] {
      try {
        state_.run(call_, stop_.get_token());
        is_over_ = true;
      } catch (...) {  // No memory: it is not over.
      }
    });
  }
  ~next_in_line() {
    stop_.request_stop();
    if (thread_.joinable()) thread_.join();
    try {
      if (is_over_ && !is_concluded_) (void)conclude();
    } catch (...) {  // No memory: the ttl ends what it has.
    }
  }
  next_in_line(const next_in_line&) = delete;
  next_in_line& operator=(const next_in_line&) = delete;

  bool is_over() const { return is_over_; }
  // Waits for it. What it got is given back. Throws why it got nothing.
  void have_its_turn() {
    thread_.join();
    if (!is_over_) return;
    auto how = conclude();
    if (how.got) return (void)how.got->release();
    error_detail detail;
    detail.subject = "'" + name_ + "'";
    detail.server_text = call_.server_text();
    state_.fail(how.code, std::move(detail));
  }
  // Was it told when its turn came?
  bool was_called() const { return call_.was_called(); }

private:
  client_state::concluded conclude() {
    is_concluded_ = true;
    return state_.conclude(call_, name_, {renewal::none, {}}, began_at_);
  }

  client_state& state_;
  const std::string name_;
  const time_point began_at_ = boottime_now();
  engine::acquire call_;
  std::stop_source stop_{};
  std::atomic<bool> is_over_ = false;
  bool is_concluded_ = false;
  std::thread thread_{};
};

void wait_until_it_stands(client_state& state, std::string_view probe, const next_in_line& who) {
  const auto keys = state.keys_of(state.name_of(probe));
  const time_point until = boottime_now() + 1s;
  while (!who.is_over() && boottime_now() < until) {
    const auto seen = script::parse_inspect(state.ask(keys, script::inspect(keys), engine::question::repeat::allowed));
    if (!seen || seen->waiting > 0) return;
  }
}

bool give_back(lease& held, diagnosis& result) {
  error_detail why;
  if (held.release(why) == release_outcome::released) return true;
  const auto said = why.server_text.empty() ? std::string{} : ": " + why.server_text;
  const error e{script::classify(why.server_text).code};
  auto [code, fix] = way_out_of(e);
  result.findings.push_back(
      {severity::error, code, "a lock that was just taken could not be released" + said, std::move(fix)});
  return false;
}

enum class turn { told, found, none };

turn hand_on(client_state& state, std::string_view probe, lease& held, const acquire_options& what, diagnosis& result) {
  auto wanted = state.plan(probe, what, client_state::patience::as_told, {}, client_state::purpose::trial);
  auto& at = *state.node_for(wanted.what.keys)->commands();
  next_in_line next{state, std::move(wanted), at};
  wait_until_it_stands(state, probe, next);
  if (!give_back(held, result)) return turn::none;
  next.have_its_turn();
  return next.was_called() ? turn::told : turn::found;
}

// More than once: on a busy machine it may stand before it is subscribed.
void try_the_line(client_state& state, std::string_view probe, lease held, const acquire_options& what,
                  diagnosis& result) {
  try {
    for (int i = 0; i < 3; ++i) {
      if (hand_on(state, probe, held, what, result) != turn::found) return;
      auto again = trial_of(state, probe, what, client_state::patience::once);
      if (!again) return;  // Another one tries it now.
      held = std::move(*again);
    }
    result.findings.push_back(
        {severity::warning, "E04", "who waits is not told of his turn: each hand-off takes up to half a second",
         "allow +subscribe, +publish and the channels &PREFIX*: `holdfast help acl` (docs/acl.md)"});
  } catch (const error& e) {
    report("waiting in line for a lock fails", e, result);
  }
}

void try_on(client_state& state, std::string_view probe, lease held, const acquire_options& what, diagnosis& result) {
  try {
    held.renew();
  } catch (const error& e) {
    report("renewing a lock fails", e, result);
  }
  // Of a quorum each server was tried by itself.
  if (state.of_quorum()) {
    (void)give_back(held, result);
  } else {
    try_the_line(state, probe, std::move(held), what, result);
  }
}

// In quarantine nothing is granted, so no lock tells what would become of it. But the server has something to say, and
// epoch.lua has just told it in which run it is: what it does not know then, it has not kept.
void judge_untried(client_state& state, std::string_view probe, diagnosis& result) {
  const auto whom = state.node_for(state.keys_of(state.name_of(probe)));
  const auto key = epoch_key_of(state, *whom);
  const auto replies = state.ask_all(whom, std::vector{request({"INFO"}), request({"GET", key})});
  const auto* info = replies[0].as_bulk();
  if (!info) return;
  const auto refusals = judge_refusals(*info);
  result.findings.insert(result.findings.end(), refusals.begin(), refusals.end());
  const bool is_said = std::any_of(result.findings.begin(), result.findings.end(),
                                   [](const finding& f) { return f.level == severity::error && f.code == "E15"; });
  if (is_said || replies[1].as_error()) return;
  const auto* kept = replies[1].as_bulk();
  if (kept && kept->find(resp::info_field(*info, "run_id")) != kept->npos) return;
  result.findings.push_back({severity::error, "E15", "it takes no writes: it has not kept key '" + key + "'",
                             "look at its memory (maxmemory), at its replicas (min-replicas-to-write) and into its log "
                             "(MISCONF)"});
}

}  // namespace

void try_a_lock(client_state& state, std::string_view probe, diagnosis& result) {
  acquire_options what;
  const auto& durable = state.options().durability;
  const auto least = durable.replicas > 0 ? 4 * durable.timeout : 0ms;
  what.ttl = std::max<std::chrono::milliseconds>(1s, least);
  // Who is far away is waited for longer with a longer ttl, up to that (patience_of).
  if (state.of_quorum()) {
    const auto trip = std::chrono::ceil<std::chrono::milliseconds>(result.round_trip_max);
    what.ttl = std::max(what.ttl, std::min<std::chrono::milliseconds>(25 * trip, 6s));
  }
  what.ttl = std::min(what.ttl, state.options().max_ttl);
  try {
    auto held = trial_of(state, probe, what, client_state::patience::once);
    what.wait = 3s;  // Another one has it, tries it, and is done soon; or died a moment ago.
    if (!held) held = trial_of(state, probe, what, client_state::patience::as_told);
    if (held) try_on(state, probe, std::move(*held), what, result);
  } catch (const error& e) {
    const auto is_said = [&](std::string_view code) {
      return std::any_of(result.findings.begin(), result.findings.end(),
                         [&](const finding& f) { return f.code == code; });
    };
    if (e.code() == errc::quarantined) {
      if (!is_said("E23"))
        result.findings.push_back(
            {severity::error, "E23", "no lock is granted yet: " + std::string{e.what()}, "wait until it is over"});
      if (state.of_quorum()) return;
      try {
        judge_untried(state, probe, result);
      } catch (const error&) {  // Whoever is away now was there for all that was asked before.
      }
      return;
    }
    if (e.code() == errc::not_replicated && is_said("E24")) return;
    if (e.code() == errc::timed_out) return;  // Many try it at once; they will tell.
    report("taking a lock fails", e, result);
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
