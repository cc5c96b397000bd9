// SPDX-License-Identifier: Apache-2.0
// Threads of a process that want the same exclusive lock, and hand it on to each other: as src/client/local_line.cpp,
// and what acquire_in_turn.cpp and release.cpp there do with it. A thread that is told something runs a little later.
#include "process.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

// A thread that waits for the others of its process.
struct process::turn_waiter final : core::hand_over_queue::waiter {
  call_record record{};
  sim::wish what{};
  customer* who = nullptr;
  time_point joined_at{};
  time_point until = never;
  lease_ptr given{};
  bool is_cancelled = false;
  bool is_over = false;
  int timer = 0;  // The last one that it has set.
};

bool process::waits_its_turn(const wish& what) const {
  const bool is_exclusive = (*locks_)[static_cast<std::size_t>(what.lock)].kind == lock_kind::exclusive;
  return what_.hand_overs.most > 0 && is_exclusive && !what.is_try;
}

core::hand_over_wish process::turn_wish_of(const wish& what) {
  core::hand_over_wish made{.ttl = what.ttl, .min_fence = what.min_fence};
  if (what.max_hold) made.max_hold = std::chrono::floor<std::chrono::milliseconds>(*what.max_hold);
  return made;
}

void process::wait_its_turn(customer& who, const sim::wish& what, call_record record) {
  const auto me = std::make_shared<turn_waiter>();
  me->wish = turn_wish_of(what);
  me->record = std::move(record);
  me->what = what;
  me->who = &who;
  me->joined_at = now();
  if (what.wait) me->until = now() + *what.wait;
  turn_waiters_.push_back(me);
  turns_[(*locks_)[static_cast<std::size_t>(what.lock)].keys.holder].join(me);
  look_around(me);
}

void process::tell(const core::hand_over_queue::waiter_ptr& who) {
  if (!who) return;
  events_->after(what_.rng.span(std::chrono::microseconds{1}, std::chrono::microseconds{300}),
                 [this, me = std::static_pointer_cast<turn_waiter>(who)] {
                   when_running([this, me] {
                     look_around(me);
                     drive();
                   });
                 });
}

void process::look_around(const turn_waiter_ptr& me) {
  if (me->is_over) return;
  if (me->given) return take_turn(me);
  const time_point at = now();
  if (me->is_cancelled) return give_up_turn(me, call_end::cancelled);
  if (at >= me->until) return give_up_turn(me, call_end::timed_out);
  auto& queue = turns_[(*locks_)[static_cast<std::size_t>(me->what.lock)].keys.holder];
  if (queue.may_ask(*me, at)) {
    me->is_over = true;
    turn_waiters_.remove(me);
    const errc heard = queue.heard_by(*me);
    const bool others_wait = queue.go_and_ask(me);
    auto rest = me->what;
    if (rest.wait) rest.wait = std::max(duration{1}, me->until - at);
    const time_point from = std::min(at, std::max(me->joined_at, me->silent_since));
    return ask(*me->who, rest, std::move(me->record), turn_told{others_wait, heard, from, me->silent_since});
  }
  const instant again = clock_.when(queue.wake_at(*me, at, me->until));
  if (again == end_of_time) return;
  events_->at(again + what_.rng.span(duration{0}, std::chrono::microseconds{200}), [this, me, timer = ++me->timer] {
    if (timer != me->timer) return;
    when_running([this, me] {
      look_around(me);
      drive();
    });
  });
}

// It was handed the lease.
void process::take_turn(const turn_waiter_ptr& me) {
  me->is_over = true;
  turn_waiters_.remove(me);
  me->record.end = call_end::acquired;
  me->record.ended_at = events_->now();
  tell_.on_call_ended(me->record);
  news_.emplace_back(me->who, [lease = me->given](customer& c) { c.on_acquired(lease); });
}

void process::give_up_turn(const turn_waiter_ptr& me, call_end how) {
  me->is_over = true;
  turn_waiters_.remove(me);
  auto& queue = turns_[(*locks_)[static_cast<std::size_t>(me->what.lock)].keys.holder];
  queue.leave(me);
  tell_first(queue);
  me->record.end = how;
  me->record.ended_at = events_->now();
  tell_.on_call_ended(me->record);
  news_.emplace_back(me->who, [how](customer& c) { c.on_not_acquired(how); });
}

bool process::cancel_turn(int call) {
  for (const auto& one : turn_waiters_) {
    if (one->record.number != call) continue;
    one->is_cancelled = true;
    tell(one);
    return true;
  }
  return false;
}

// ---- who asked for the others, has its answer ----

void process::end_turn(const open_call& call, const lease_ptr& got, const core::got_lease& grant) {
  if (!call.turn) return;
  auto& queue = turns_[got->keys.holder];
  const bool has_copies = got->copies_until != server_time{};
  int block = has_copies ? 0 : call.acquire->reserved();
  if (tell_.is_planted(canary_switch::hands_on_what_is_not_reserved)) block = what_.hand_overs.most;
  queue.got({got->owner, got->token}, block, grant.granted_at, *call.turn, what_.hand_overs);
  tell_first(queue);
}

void process::end_turn(const open_call& call, errc failure) {
  if (!call.turn) return;
  auto& queue = turns_[call.keys.holder];
  const bool is_for_all = queue.failed({failure, call.acquire->silent_since()}, now(), what_.timeout);
  tell_first(queue);
  if (!is_for_all) return;
  for (const auto& one : queue.waiting()) tell(one);
}

// ---- a lease is given back ----

void process::end_turn(const kept_lease& given_back) {
  const auto at = turns_.find(given_back.keys.holder);
  if (at != turns_.end() && at->second.ended({given_back.owner, given_back.token})) tell_first(at->second);
}

bool process::hand_on(const lease_ptr& lease) {
  const auto found = turns_.find(lease->keys.holder);
  if (found == turns_.end()) return false;
  auto& queue = found->second;
  const time_point at = now();
  const duration left = lease->deadline.left(at);
  if (left <= duration{0}) return false;
  const auto token = queue.next_token({lease->owner, lease->token}, at, at + left);
  if (!token) return false;
  const auto more = queue.wants_more(at, at + left);
  if (!lease->kept_at->keeper.let_go(*lease)) return false;

  const time_point deadline = at + left;
  lease->deadline.end();
  end(lease, hold_end::handed_on);
  const auto to = std::static_pointer_cast<turn_waiter>(queue.hand_on(*token));
  const auto next = std::make_shared<kept_lease>(*lease, *token, deadline);
  if (to->what.max_hold) next->last = at + *to->what.max_hold;
  next->seen.number = tell_.next_number();
  next->seen.call = to->record.number;
  next->seen.token = token->value();
  next->seen.valid_until = clock_.when(std::min(deadline, next->last));
  next->seen.got_at = events_->now();
  next->seen.must_end_by = clock_.when(next->last);
  note_mode(next->seen, to->what.mode);
  to->given = next;
  leases_.push_back({next, to->who});
  next->kept_at->keeper.keep(next, at, deadline, to->what.mode);
  tell_.on_hold(next->seen);
  tell(to);
  if (more) {
    next->kept_at->keeper.reserve(at,
                                  {next->keys, next->owner, next->grant, more->last, more->block, more->is_granted});
  }
  return true;
}

}  // namespace holdfast::sim
