// SPDX-License-Identifier: Apache-2.0
// What a process does with a lease, and what it hears of it: as src/client/release.cpp and lease.cpp.
#include "process.hpp"

#include "script/reply.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast::sim {

bool process::is_valid(const lease_ptr& lease) {
  const bool is = lease->deadline.is_ahead(now());
  tell_.on_validity(lease->seen, is);
  return is;
}

void process::end(const lease_ptr& lease, hold_end how) {
  std::erase_if(leases_, [&](const owned& o) { return o.lease == lease; });
  tell_.on_hold_ended(lease->seen, how);
}

std::optional<time_point> process::let_go(const lease_ptr& lease) {
  const time_point at = now();
  const time_point deadline = at + lease->deadline.left(at);
  const bool keeps_on = tell_.is_planted(canary_switch::renews_after_release);
  const bool was_kept = keeps_on ? lease->kept_at->keeper.is_kept(*lease) : lease->kept_at->keeper.let_go(*lease);
  if (!keeps_on) lease->deadline.end();
  if (was_kept) end(lease, hold_end::released);
  if (was_kept && deadline > at) return deadline;
  release_in_background(lease);
  return std::nullopt;
}

void process::release(customer& who, const lease_ptr& lease) {
  if (hand_on(lease)) {
    news_.emplace_back(&who, [](customer& c) { c.on_released(release_outcome::released); });
    return drive();
  }
  const auto deadline = let_go(lease);
  end_turn(*lease);  // Who asks now comes right behind our release.
  if (!deadline) {
    finish_release(lease, release_outcome::already_lost);
    news_.emplace_back(&who, [](customer& c) { c.on_released(release_outcome::already_lost); });
    return drive();
  }
  send_release(&who, lease, *deadline);
  drive();
}

void process::send_release(customer* who, const lease_ptr& lease, time_point deadline) {
  open_call& made = calls_.emplace_back();
  made.who = who;
  made.lease = lease;
  made.record.number = tell_.next_number();
  const time_point at = now();
  const time_point sure_until = tell_.is_planted(canary_switch::release_has_no_deadline) ? time_point{} : deadline;
  made.at = &node_for(lease->keys);
  made.release = std::make_unique<engine::release>(made.at->caller.wire(), lease->keys, lease->owner, lease->grant,
                                                   sure_until, std::min(at + what_.timeout, deadline));
  made.keys = lease->keys;
  know_slot(made);
  made.at->unattended.start(*made.release, at);
}

void process::finish_release(const lease_ptr& lease, release_outcome outcome) {
  if (outcome == release_outcome::unknown) release_in_background(lease);
  forget_copies(lease);
  tell_.on_released(lease->seen, outcome);
}

void process::drop(const lease_ptr& lease) {
  if (hand_on(lease)) return drive();
  if (lease->kept_at->keeper.let_go(*lease)) end(lease, hold_end::released);
  lease->deadline.end();
  release_in_background(lease);
  forget_copies(lease);
  end_turn(*lease);
  drive();
}

void process::downgrade(customer& who, const lease_ptr& lease) {
  lease->seen.permits = 1;
  tell_.on_narrowed(lease->seen);
  open_call& made = calls_.emplace_back();
  made.who = &who;
  made.lease = lease;
  made.record.number = tell_.next_number();
  const time_point at = now();
  made.at = &node_for(lease->keys);
  made.asked = std::make_unique<engine::question>(made.at->caller.wire(),
                                                  script::downgrade(lease->keys, lease->owner, lease->grant),
                                                  engine::question::repeat::allowed, at + what_.timeout);
  made.keys = lease->keys;
  know_slot(made);
  made.at->unattended.start(*made.asked, at);
  drive();
}

void process::resize(int lock, int size) {
  open_call& made = calls_.emplace_back();
  made.record.number = tell_.next_number();
  const time_point at = now();
  const auto& keys = (*locks_)[static_cast<std::size_t>(lock)].keys;
  made.at = &node_for(keys);
  made.asked = std::make_unique<engine::question>(made.at->caller.wire(), script::resize(keys, size),
                                                  engine::question::repeat::timed, at + what_.timeout);
  made.keys = keys;
  know_slot(made);
  made.at->unattended.start(*made.asked, at);
  drive();
}

void process::conclude_downgrade(const open_call& call) {
  const auto& reply = call.asked->reply();
  const auto parsed = reply && !reply->as_error() ? script::parse_release(*reply) : std::nullopt;
  auto how = downgrade_end::unknown;
  if (parsed) how = parsed->what == script::release_answer::released ? downgrade_end::reads : downgrade_end::gone;
  tell_.on_downgraded(call.lease->seen, how);
  news_.emplace_back(call.who, [lease = call.lease, how](customer& c) { c.on_downgraded(lease, how); });
}

void process::release_in_background(const lease_ptr& lease) {
  const time_point at = now();
  node_for(lease->keys)
      .keeper.release_later(at, {lease->keys, lease->owner, lease->grant, {}, {}, at + lease->ttl + after_ttl});
}

void process::forget_copies(const lease_ptr& lease) {
  const time_point at = now();
  if (lease->copies_until == server_time{} || at >= lease->copies_until_local) return;
  node_for(lease->keys)
      .keeper.release_later(at, {lease->keys,
                                 lease->owner,
                                 {},
                                 lease->copies_until,
                                 lease->copies_until_local,
                                 lease->copies_until_local + lease->ttl + after_ttl,
                                 core::route::was_cut});
}

void process::on_lost(const std::shared_ptr<engine::held_lease>& lease, errc reason) {
  const auto ours = std::static_pointer_cast<kept_lease>(lease);
  const auto found = std::find_if(leases_.begin(), leases_.end(), [&](const owned& o) { return o.lease == ours; });
  if (found == leases_.end()) return;  // It was lost with another.
  news_.emplace_back(found->who, [ours](customer& c) { c.on_lost(ours); });
  const auto how = reason == errc::lease_held_too_long ? hold_end::held_too_long : hold_end::lost;
  if (ours->all.empty() || tell_.is_planted(canary_switch::parts_are_lost_alone)) return end(ours, how);
  for (const auto& one : ours->all) end(one.lock(), how);
}

// Of several that are held as one: each of them.
void process::on_at_risk(const std::shared_ptr<engine::held_lease>& lease) {
  if (tell_.is_planted(canary_switch::nobody_is_told_of_a_risk)) return;
  const auto ours = std::static_pointer_cast<kept_lease>(lease);
  if (ours->all.empty()) return tell_.on_at_risk(ours->seen);
  for (const auto& one : ours->all) tell_.on_at_risk(one.lock()->seen);
}

bool process::is_late_answer(wire& of, time_point at) const {
  if (!std::exchange(of.has_open_renewal, false)) return false;
  return std::any_of(leases_.begin(), leases_.end(), [&](const owned& o) {
    const time_point ends = o.lease->deadline.at();
    return &o.lease->kept_at->keeping == &of && ends != time_point{} && ends <= at;
  });
}

// ---- renewed by hand ----

void process::note_mode(hold& seen, renewal mode) {
  seen.is_by_hand = mode == renewal::none;
  seen.may_last_until = seen.valid_until;
}

struct process::renewal_by_hand final : engine::renewal_wish {
  renewal_by_hand(const process& by, lease_ptr what) : of{&by}, lease{std::move(what)} {
    ++lease->open_wishes;
    lease->seen.may_last_until = end_of_time;
  }
  // All that it may have sent was sent by now.
  void on_end(errc) noexcept override {
    if (--lease->open_wishes > 0) return;
    const instant until = of->clock_.when(core::deadline_of(of->now(), lease->ttl, rho));
    lease->seen.may_last_until = std::max(lease->seen.valid_until, until);
  }
  const process* of;
  lease_ptr lease;
};

void process::renew_by_hand(const lease_ptr& lease) {
  const auto by_then = now() + duration{lease->ttl} / 2;
  if (!lease->kept_at->keeper.is_kept(*lease)) return;
  const auto asked = std::make_shared<renewal_by_hand>(*this, lease);
  lease->kept_at->keeper.renew_now(now(), *lease, by_then, asked);
  drive();
}

void process::on_renewed(const std::shared_ptr<engine::held_lease>& lease, duration) {
  const auto ours = std::static_pointer_cast<kept_lease>(lease);
  const time_point ends = now() + ours->deadline.left(now());
  ours->seen.valid_until = clock_.when(ends);
  ours->seen.counted_from = clock_.when(ends - core::usable(ours->ttl, rho));
  tell_.on_extended(ours->seen);
}

}  // namespace holdfast::sim
