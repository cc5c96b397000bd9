// SPDX-License-Identifier: Apache-2.0
// client_state's acquire: planned, run behind the other threads of this process, and concluded.
#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/quorum.hpp"
#include "client/uncancelled.hpp"
#include "net/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

acquire_result result_of(errc code) {
  const std::error_code ec = code;
  if (ec == outcome::timed_out) return acquire_result::timed_out;
  if (code == errc::cancelled || code == errc::cancelled_in_flight) return acquire_result::cancelled;
  return ec == outcome::unknown ? acquire_result::unknown : acquire_result::failed;
}

client_state::planned client_state::plan(std::string_view text, const acquire_options& what, patience how,
                                         const script::part& part) {
  require_ours();
  const lock_name name = name_of(text);
  check(what, options_);
  if (part.mode != 'p') check_no_permits(what);

  core::acquire_settings rules;
  rules.ttl = what.ttl;
  rules.drift = drift_;
  rules.only_once = how == patience::once || what.wait == milliseconds{0};
  if (what.wait && !rules.only_once) rules.wait = *what.wait;
  rules.timeout = options_.timeout;
  rules.has_alternative = has_alternative_;
  auto label = what.owner.empty() ? owner() : std::make_shared<const std::string>(what.owner);
  auto keys = is_counted(part) ? counted_keys_of(name) : keys_of(name);
  rules.had_contact = cluster_ ? cluster_->is_known() : node_->commands()->had_contact();
  return {name.text(), {std::move(keys), std::move(label), options_.max_ttl, what.min_fence, part}, rules};
}

lease client_state::acquire_or_throw(std::string_view name, const acquire_options& what, const script::part& part) {
  auto got = acquire(name, what, patience::as_told, part);
  if (got) return std::move(*got);
  error_detail detail;
  detail.subject = "'" + std::string{name} + "'";
  throw error{errc::timed_out, std::move(detail)};
}

// Whoever renews the lease and tells of its loss is there before the server grants it.
void client_state::stand_by(const script::lock_keys& keys) {
  node_for(keys)->keeper().stand_by();
  callbacks_->stand_by();
}

std::optional<lease> client_state::acquire(std::string_view text, const acquire_options& what, patience how,
                                           const script::part& part) {
  const uncancelled until_done;
  if (quorum_) return acquire_of_quorum(plan_on_quorum(text, what, how, part));
  const time_point started_at = boottime_now();
  auto intent = plan(text, what, how, part);
  if (line_.is_used() && !intent.what.keys.is_counted && !intent.how.only_once) {
    return acquire_in_turn(intent, what, started_at);
  }
  auto& [name, wanted, rules] = intent;
  stand_by(wanted.keys);
  const auto& at = node_for(wanted.keys)->commands();
  const int slot = slot_of(wanted.keys);
  engine::acquire call{at->channel(), at->ear(), std::move(wanted), rules, started_at, net::system_random()};
  call.set_slot(slot);
  run(call, what.cancel);
  auto end = conclude(call, name, {what.renew, what.max_hold}, started_at);
  if (end.code != errc{}) fail(end.code, call, name, started_at);
  return std::move(end.got);
}

namespace {

// Says how it ended to those who wait behind it, also if it ends by an exception.
class asking {
public:
  asking(local_line& line, std::string&& key) noexcept : line_{line}, key_{std::move(key)} {}
  ~asking() {
    if (!is_told_) line_.failed(key_, true);
  }
  asking(const asking&) = delete;
  asking& operator=(const asking&) = delete;

  void got(const std::shared_ptr<lease_record>& record, int block, time_point granted_at,
           const core::hand_over_wish& wish) {
    line_.got(record, block, granted_at, wish);
    is_told_ = true;
  }
  void failed(errc code, time_point silent_since) {
    const bool is_silence = code == errc::reply_lost || code == errc::server_silent;
    line_.failed(key_,
                 code != errc::timed_out && code != errc::quarantined && code != errc::not_replicated &&
                     code != errc::cancelled && code != errc::cancelled_in_flight,
                 is_silence ? silent_since : never);
    is_told_ = true;
  }

private:
  local_line& line_;
  const std::string key_;
  bool is_told_ = false;
};

int block_behind(const local_line::outcome& turn, const client_options& options, command_connection& at,
                 time_point now) {
  const core::hand_over_limits limits{options.hand_overs, options.hand_over_span};
  if (limits.most <= core::modest_block) return limits.most;
  const core::server_clock clock = at.server_clock();
  return clock.is_known() ? core::block_of(limits, turn.others_wait, turn.last, clock.at(now)) : core::modest_block;
}

}  // namespace

std::optional<lease> client_state::acquire_in_turn(planned& what, const acquire_options& options,
                                                   time_point started_at) {
  auto& [name, wanted, rules] = what;
  const core::hand_over_wish wish{rules.ttl, wanted.min_fence, options.renew == renewal::automatic, options.max_hold,
                                  *wanted.label};
  const time_point until = rules.wait ? started_at + *rules.wait : never;
  std::string key = wanted.keys.holder;  // From the turn on nothing may fail before `ours` is there.
  auto turn = line_.enter(key, wish, until, options.cancel);
  if (turn.what == local_line::turn::given) {
    auto given = handle_of(turn.given);
    report_end(name, acquire_result::acquired, started_at, 0);
    return given;
  }
  if (turn.what != local_line::turn::ask) fail_behind_others(what, turn, started_at);

  asking ours{line_, std::move(key)};
  stand_by(wanted.keys);
  time_point now = boottime_now();
  if (rules.wait) {
    rules.wait = std::max(duration{1}, until - now);
  } else {
    // Our own patience began when we did, or when who asked before us heard the server last.
    now = std::min(now, std::max(started_at, turn.silent_since));
  }
  const auto& at = node_for(wanted.keys)->commands();
  const int block = block_behind(turn, options_, *at, now);
  wanted.block_at_once = turn.others_wait ? block : 0;
  wanted.part.permits = block;
  const int slot = slot_of(wanted.keys);
  engine::acquire call{at->channel(), at->ear(), std::move(wanted), rules, now, net::system_random()};
  call.set_slot(slot);
  call.write_news_to(*turn.news);
  run(call, options.cancel);
  auto end = conclude(call, name, {options.renew, options.max_hold}, started_at);
  if (end.code != errc{}) {
    ours.failed(end.code, call.silent_since());
    fail(end.code, call, name, started_at);
  }
  const auto& record = lease_handle::of(*end.got).record;
  // A copy that may still arrive is cleaned up by its owner id, whoever has the lease then.
  const bool has_copies = record->unsettled_until.not_after != server_time{};
  ours.got(record, has_copies ? 0 : call.reserved(),
           std::get<core::got_lease>(call.end()).deadline - core::usable(record->ttl, drift_), wish);
  return std::move(end.got);
}

// Behind a thread that reaches nobody, or hears nothing, it is not somebody else's hold that our time went to.
void client_state::fail_behind_others(const planned& what, const local_line::outcome& turn, time_point started_at) {
  const auto& at = node_for(what.what.keys)->commands();
  const auto trouble = at->trouble();
  const errc code = turn.what == local_line::turn::cancelled ? errc::cancelled
                    : trouble.second > 0                     ? trouble.first.code
                    : at->quarantine()                       ? errc::quarantined
                                                             : refined(turn.heard);
  report_end(what.name, result_of(code), started_at, 0);
  error_detail detail;
  detail.subject = "'" + what.name + "'";
  if (code == errc::quarantined) detail.why = why_nothing_is_granted(*node_for(what.what.keys));
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
  fail(code, std::move(detail));
}

// Without a handle nobody could give it back, and it would be renewed for ever.
lease client_state::handle_of(const std::shared_ptr<lease_record>& record) {
  try {
    return lease{std::make_unique<lease_handle>(shared_from_this(), record)};
  } catch (...) {
    drop(record);
    throw;
  }
}

// What is still in line, or may yet lock or queue, is let go in the background, whatever the call's own end is.
void client_state::settle(engine::acquire& call) {
  const time_point now = boottime_now();
  const auto& keys = call.wanted().keys;
  const auto unsettled_ids = call.take_unsettled();
  if (unsettled_ids.empty()) return;
  // No request may take effect later than that.
  const auto ends_by = [&](const engine::unsettled& one) {
    return one.not_after == server_time{} ? time_point{} : now + options_.timeout;
  };
  // While the connection that carried the request stands, a release behind it ends any orphan at once. The keeper makes
  // sure.
  auto& commands = *node_for(keys)->commands();
  for (const auto& one : unsettled_ids) {
    if (!one.was_told) commands.send_and_forget(script::leave(keys, one.owner));
    if (ends_by(one) > now) commands.listen_until(ends_by(one));
  }
  const auto placed = moving();
  auto& keeper = node_for(keys)->keeper();
  for (const auto& one : unsettled_ids) {
    keeper.release_later({keys,
                          one.owner,
                          {},
                          one.not_after,
                          ends_by(one),
                          std::max(now, ends_by(one)) + call.ttl() + after_ttl,
                          one.went_by,
                          one.may_stand ? now + place_lasts : time_point{}});
  }
}

client_state::concluded client_state::conclude(engine::acquire& call, const std::string& name, const keeping& how,
                                               time_point started_at) {
  settle(call);
  concluded end;
  auto result = acquire_result::acquired;
  if (const auto* got = std::get_if<core::got_lease>(&call.end())) {
    const time_point granted_at = got->deadline - core::usable(call.ttl(), drift_);
    auto record = std::make_shared<lease_record>(name, call.wanted().keys, call.owner(), got->token, call.ttl(),
                                                 granted_at, got->deadline);
    record->mode = how.mode;
    record->hold_at_most(how.max_hold, granted_at);
    record->was_in_line = call.was_in_line();
    record->kind = kind_of(call.wanted().part);
    if (got->was_repeated) record->unsettled_until = {call.last_not_after(), boottime_now() + options_.timeout};
    end.got = handle_of(record);  // First: what fails behind it gives the lease back.
    const auto& at = cluster_ ? cluster_->node_of(call.by()) : node_;
    const auto clock = at->commands()->server_clock();
    const auto placed = moving();
    if (cluster_) record->kept_at = &at;
    at->keeper().keep(record, boottime_now(), got->deadline, how.mode, clock);
    // Its slot has moved since the answer: it goes the way of all that was there (decision 24).
    if (&at != &node_for(record->keys)) cluster_->move_soon();
  } else if (const auto* failure = std::get_if<core::got_failure>(&call.end())) {
    end.code = refined(failure->code);
    result = result_of(end.code);
  } else {
    result = acquire_result::busy;
  }
  report_end(name, result, started_at, call.attempts());
  return end;
}

void client_state::fail(errc code, const engine::acquire& call, const std::string& name, time_point started_at) const {
  error_detail detail;
  detail.server_text = call.server_text();
  detail.attempts = std::max(call.attempts(), node_for(call.wanted().keys)->commands()->trouble().second);
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
  if (std::error_code{code} == outcome::unknown) detail.may_remain = options_.timeout + may_remain(call.ttl(), {});
  if (std::error_code{code} == outcome::timed_out || code == errc::fence_too_far || code == errc::quarantined)
    detail.subject = "'" + name + "'";
  if (code == errc::quarantined) detail.why = why_nothing_is_granted(*node_for(call.wanted().keys));
  if (code == errc::not_replicated) {
    detail.subject = "'" + name + "'";
    detail.why = fmt::format("{} of {} replicas confirmed it within {} ms", call.replicas(),
                             options_.durability.replicas, options_.durability.timeout.count());
  }
  if (code == errc::invalid_option && call.was_too_far()) {
    const auto round_trip = std::chrono::ceil<milliseconds>(call.round_trip());
    detail.subject = fmt::format("ttl {} ms", call.ttl().count());
    detail.why = fmt::format("the server's answers take {} ms, so that each grant is over, or nearly, when it is here",
                             round_trip.count());
  }
  if (code == errc::wrong_kind) fail_wrong_kind(call.wanted().keys, call.found_kind());
  if (code == errc::other_size) {
    detail.subject = "'" + name + "'";
    detail.why = fmt::format("it has {} permit{} on the server, and you say {}", call.found_size(),
                             call.found_size() == 1 ? "" : "s", call.wanted().part.size);
  }
  fail(code, std::move(detail));
}

void client_state::report_end(const std::string& name, acquire_result result, time_point started_at, int attempts) {
  const auto waited = duration_cast<std::chrono::microseconds>(boottime_now() - started_at);
  reporter_->tell([=](observer& o) { o.on_acquire(name, result, waited, attempts); });
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
