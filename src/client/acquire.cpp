// SPDX-License-Identifier: Apache-2.0
// client_state's acquire: planned, run, and concluded.
#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/quorum.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"

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
                                         const script::part& part, purpose why) {
  require_ours();
  const lock_name name = name_of(text);
  check(what, options_);
  if (part.mode != 'p') check_no_permits(what);
  if (why == purpose::work) *wants_locks_ = true;

  core::acquire_settings rules;
  rules.ttl = what.ttl;
  rules.drift = drift_;
  rules.only_once = how == patience::once || what.wait == milliseconds{0};
  if (what.wait && !rules.only_once) rules.wait = *what.wait;
  rules.timeout = options_.timeout;
  rules.has_alternative = has_alternative_;
  auto label = what.owner.empty() ? owner() : std::make_shared<const std::string>(what.owner);
  auto keys = is_counted(part) ? counted_keys_of(name) : keys_of(name);
  if (how == patience::what_is_left) rules.heard = errc::timed_out;
  const auto past = node_for(keys)->commands()->so_far();
  rules.had_contact = cluster_ ? cluster_->is_known() : past.had_contact;
  rules.round_trip = past.round_trip;
  return {
      name.text(), {std::move(keys), std::move(label), options_.max_ttl, what.min_fence, part}, rules, past.attempts};
}

lease client_state::acquire_or_throw(std::string_view name, const acquire_options& what, const script::part& part,
                                     patience how, purpose why) {
  auto got = acquire(name, what, how, part, why);
  if (got) return std::move(*got);
  error_detail detail;
  detail.subject = "'" + std::string{name} + "'";
  throw error{errc::timed_out, std::move(detail)};
}

void client_state::require_wanted(const std::string& name, const std::stop_token& cancel) {
  if (!cancel.stop_requested()) return;
  report_end(name, acquire_result::cancelled, boottime_now(), 0);
  error_detail detail;
  detail.subject = "'" + name + "'";
  throw error{errc::cancelled, std::move(detail)};
}

// Whoever renews the lease and tells of its loss is there before the server grants it.
void client_state::stand_by(const script::lock_keys& keys) {
  node_for(keys)->keeper().stand_by();
  callbacks_->stand_by();
}

std::optional<lease> client_state::acquire(std::string_view text, const acquire_options& what, patience how,
                                           const script::part& part, purpose why) {
  const net::uncancelled until_done;
  if (quorum_) return acquire_of_quorum(plan_on_quorum(text, what, how, part, why));
  const time_point started_at = boottime_now();
  auto intent = plan(text, what, how, part, why);
  if (line_.is_used() && !intent.what.keys.is_counted && !intent.how.only_once) {
    return acquire_in_turn(intent, what, started_at);
  }
  auto& [name, wanted, rules, attempts_before] = intent;
  stand_by(wanted.keys);
  const auto& at = node_for(wanted.keys)->commands();
  const int slot = slot_of(wanted.keys);
  engine::acquire call{at->channel(), at->ear(), std::move(wanted), rules, started_at, net::system_random()};
  call.set_slot(slot);
  run(call, what.cancel);
  auto end = conclude(call, name, {what.renew, what.max_hold}, started_at);
  if (end.code != errc{}) fail(end.code, call, name, {started_at, attempts_before});
  return std::move(end.got);
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
    auto record = std::make_shared<lease_record>(name, call.wanted().keys, call.owner(), got->token, call.ttl(),
                                                 got->granted_at, got->deadline);
    record->mode = how.mode;
    record->hold_at_most(how.max_hold, got->granted_at);
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
    end.code = refined(failure->code, *node_for(call.wanted().keys));
    result = result_of(end.code);
  } else {
    result = acquire_result::busy;
  }
  report_end(name, result, started_at, call.attempts());
  return end;
}

void client_state::fail(errc code, const engine::acquire& call, const std::string& name, const began& then) const {
  error_detail detail;
  detail.server_text = call.server_text();
  detail.attempts = call.attempts();
  explain(detail, code, std::get<core::got_failure>(call.end()).code, *node_for(call.wanted().keys),
          then.attempts_before);
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - then.at);
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
  // Who looks who has it wants to know of which.
  if (detail.subject.empty() && std::error_code{code} == outcome::unknown) detail.subject = "'" + name + "'";
  fail(code, std::move(detail));
}

void client_state::report_end(const std::string& name, acquire_result result, time_point started_at, int attempts) {
  const auto waited = duration_cast<std::chrono::microseconds>(boottime_now() - started_at);
  reporter_->tell([=](observer& o) { o.on_acquire(name, result, waited, attempts); });
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
