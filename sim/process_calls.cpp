// SPDX-License-Identifier: Apache-2.0
// What a process asks for, and what becomes of it: as src/client/acquire.cpp and async_call.cpp.
#include "process.hpp"

#include "script/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast::sim {

namespace {

call_end end_of(errc code) {
  const std::error_code ec = code;
  if (ec == outcome::timed_out) return call_end::timed_out;
  if (code == errc::cancelled) return call_end::cancelled;
  return ec == outcome::unknown ? call_end::unknown : call_end::not_applied;
}

owner_id owner_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::array<unsigned char, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  }
  return owner_id{bytes};
}

}  // namespace

int process::acquire(customer& who, const wish& what) {
  call_record record;
  record.number = tell_.next_number();
  record.label = fmt::format("p{}.c{}", what_.number, record.number);
  record.process = what_.number;
  record.lock = what.lock;
  record.is_try = what.is_try;
  record.is_durable = what_.durable.replicas > 0;
  record.ttl = what.ttl;
  record.timeout = what_.timeout;
  record.started_at = events_->now();
  if (what.wait) record.gives_up_at = clock_.when(now() + *what.wait);
  tell_.on_call_started(record);
  const int number = record.number;
  waits_its_turn(what) ? wait_its_turn(who, what, std::move(record)) : ask(who, what, std::move(record), std::nullopt);
  drive();
  return number;
}

void process::ask(customer& who, const wish& what, call_record record, const std::optional<turn_told>& turn) {
  const lock& wanted = (*locks_)[static_cast<std::size_t>(what.lock)];
  open_call& made = calls_.emplace_back();
  made.record = std::move(record);
  made.who = &who;
  made.max_hold = what.max_hold;
  made.mode = what.mode;
  node& at_node = node_for(wanted.keys);
  made.at = &at_node;
  made.keys = wanted.keys;
  core::acquire_settings rules{what.ttl,  rho,           what.is_try,
                               what.wait, what_.timeout, at_node.caller.wire().was_ever_ready()};
  if (what.wait && tell_.is_planted(canary_switch::waits_half_as_long)) rules.wait = *what.wait / 2;
  rules.has_alternative = what_.has_alternative;
  rules.round_trip = at_node.caller.wire().round_trip();
  if (turn && what.wait && turn->heard != errc::server_silent) {
    rules.heard = turn->heard;
    rules.too_little = core::too_little_in_a_crowd;
  }
  if (turn) rules.silent_since = turn->silent_since;
  const time_point at = now();
  const time_point from = turn && !what.wait ? turn->from : at;
  engine::acquire::request request{wanted.keys, std::make_shared<const std::string>(made.record.label), what_.max_ttl,
                                   what.min_fence, what.part};
  if (turn) {
    made.turn = turn_wish_of(what);
    request.block_at_once = turn->others_wait ? what_.hand_overs.most : 0;
    request.part.permits = what_.hand_overs.most;
  }
  made.acquire =
      std::make_unique<engine::acquire>(at_node.caller.wire(), at_node.ear, std::move(request), rules, from, what_.rng);
  know_slot(made);
  if (made.turn && made.acquire->is_past_asking()) {
    end_turn(made, errc::timed_out);
    made.turn.reset();
  }
  at_node.unattended.start(*made.acquire, at);
}

void process::cancel(int call) {
  if (cancel_turn(call)) return;
  for (auto& c : calls_) {
    if (c.record.number != call || !c.acquire) continue;
    c.acquire->cancel(now());
    c.at->unattended.look_at(*c.acquire);
    if (tell_.is_planted(canary_switch::cancel_ends_the_connection)) {
      c.at->commands.channel->hang_up(now(), {errc::connection_lost, "somebody gave up", false, false});
    }
  }
  drive();
}

// ---- when it is over ----

bool process::conclude_ended() {
  std::vector<engine::call*> ended;
  for (const auto& at : nodes_) {
    const auto some = at->unattended.take_over();
    ended.insert(ended.end(), some.begin(), some.end());
  }
  for (engine::call* flow : ended) {
    const auto found =
        std::find_if(calls_.begin(), calls_.end(), [&](const open_call& c) { return &c.flow() == flow; });
    if (flow->is_moved()) {
      go_on(*found);
      continue;
    }
    std::list<open_call> one;
    one.splice(one.end(), calls_, found);
    conclude(one.front());
  }
  auto news = std::exchange(news_, {});
  for (auto& [who, tell] : news) {
    if (who && is_running()) tell(*who);
  }
  return !ended.empty() || !news.empty();
}

void process::conclude(open_call& call) {
  if (call.acquire) return conclude_acquire(call);
  if (call.asked) return call.lease ? conclude_downgrade(call) : void();
  finish_release(call.lease, call.release->end());
  news_.emplace_back(call.who, [outcome = call.release->end()](customer& c) { c.on_released(outcome); });
}

void process::conclude_acquire(open_call& call) {
  auto& record = call.record;
  record.may_have_copies = settle(*call.acquire);
  record.ended_at = events_->now();
  if (const auto* got = std::get_if<core::got_lease>(&call.acquire->end())) {
    record.end = call_end::acquired;
    const auto lease = hold_of(call, call.acquire->owner(), *got);
    tell_.on_call_ended(record);
    tell_.on_hold(lease->seen);
    news_.emplace_back(call.who, [lease](customer& c) { c.on_acquired(lease); });
    return end_turn(call, lease, *got);
  }
  const auto* failure = std::get_if<core::got_failure>(&call.acquire->end());
  errc code = failure ? failure->code : errc{};
  end_turn(call, code);
  if (code == errc::reply_lost && tell_.is_planted(canary_switch::calls_a_lost_reply_not_applied)) {
    code = errc::server_silent;
  }
  record.end = failure ? end_of(code) : call_end::busy;
  record.code = static_cast<int>(code);
  tell_.on_call_ended(record);
  news_.emplace_back(call.who, [how = record.end](customer& c) { c.on_not_acquired(how); });
  if (code == errc::other_size) resize(record.lock, (*locks_)[static_cast<std::size_t>(record.lock)].size);
}

lease_ptr process::hold_of(const open_call& call, const owner_id& owner, const core::got_lease& got) {
  const auto& record = call.record;
  const auto& wanted = call.acquire->wanted();
  time_point deadline = got.deadline;
  if (tell_.is_planted(canary_switch::validity_from_reply)) deadline = now() + core::usable(record.ttl, rho);
  auto lease = std::make_shared<kept_lease>(wanted.keys, owner, got.token, record.ttl, deadline);
  lease->was_in_line = call.acquire->was_in_line();
  const time_point last = call.max_hold ? got.granted_at + *call.max_hold : never;
  if (!tell_.is_planted(canary_switch::leases_have_no_last_instant)) lease->last = last;
  if (got.was_repeated) {
    lease->copies_until = call.acquire->last_not_after();
    lease->copies_until_local = now() + what_.timeout;
  }
  const instant ends = clock_.when(std::min(deadline, lease->last));
  const instant from = clock_.when(deadline - core::usable(record.ttl, rho));
  lease->seen = {tell_.next_number(),
                 record.number,
                 what_.number,
                 record.lock,
                 std::string{owner.hex()},
                 got.token.value(),
                 got.token.value(),
                 std::max(1, wanted.keys.is_counted ? wanted.part.permits : 1),
                 from,
                 ends,
                 events_->now(),
                 call.max_hold ? clock_.when(last) : end_of_time};
  lease->seen.ttl = record.ttl;
  note_mode(lease->seen, call.mode);
  leases_.push_back({lease, call.who});
  node& at = node_for(wanted.keys);
  lease->kept_at = &at;
  at.keeper.wire().learn_clock(at.caller.wire().clock());
  const bool renews_itself = tell_.is_planted(canary_switch::a_lease_by_hand_renews_itself);
  at.keeper.keep(lease, now(), deadline, renews_itself ? renewal::automatic : call.mode);
  return lease;
}

// What is still in line, or may yet lock or queue, is let go in the background, whatever the call's own end is.
bool process::settle(engine::acquire& flow) {
  bool has_copies = false;
  const time_point at = now();
  const auto& keys = flow.wanted().keys;
  node& home_of = node_for(keys);
  for (const auto& unsettled : flow.take_unsettled()) {
    has_copies = has_copies || unsettled.not_after != server_time{};
    if (!unsettled.was_told && home_of.caller.wire().is_ready())
      home_of.caller.wire().send_and_forget(at, script::leave(keys, unsettled.owner));
    const time_point by = unsettled.not_after == server_time{} ? time_point{} : at + what_.timeout;
    const bool does_not_look = tell_.is_planted(canary_switch::looks_for_a_copy_only_at_the_end);
    const bool is_naive = tell_.is_planted(canary_switch::believes_any_answer_to_a_clean_up);
    home_of.keeper.release_later(at, {keys,
                                      unsettled.owner,
                                      {},
                                      is_naive ? server_time{} : unsettled.not_after,
                                      by,
                                      std::max(at, by) + flow.ttl() + after_ttl,
                                      does_not_look ? core::route::stands : unsettled.went_by,
                                      unsettled.may_stand ? at + std::chrono::minutes{1} : time_point{}});
  }
  return has_copies;
}

// The canary: what was said is taken for a grant, without asking the server.
void process::believe_message(time_point at, std::string_view owner, server_time said_at) {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [](const open_call& c) {
    return c.acquire && !c.acquire->is_over() && c.acquire->wants_hints();
  });
  if (found == calls_.end()) return;
  const core::got_lease got{fencing_token{static_cast<std::uint64_t>(said_at.time_since_epoch().count())}, at,
                            at + core::usable(found->record.ttl, rho), false};
  const auto lease = hold_of(*found, owner_of_hex(owner), got);
  tell_.on_hold(lease->seen);
  news_.emplace_back(found->who, [lease](customer& c) { c.on_acquired(lease); });
  found->who = nullptr;
  found->acquire->cancel(at);
  found->acquire->take_unsettled();
}

}  // namespace holdfast::sim
