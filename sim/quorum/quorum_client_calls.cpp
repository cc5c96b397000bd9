// SPDX-License-Identifier: Apache-2.0
// What a client of a quorum is asked for, and what becomes of it: core::quorum_search decides, and it is done here as
// src/client/quorum_lease.cpp does it. And the programs that ask.
#include "quorum/quorum_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;
using round = engine::quorum_acquire;
using decider = core::quorum_search;

namespace {

decider::lost_round facts_of(const round& seen, time_point now, canary_switch planted) {
  const bool is_missed =
      planted == canary_switch::quarantine_is_silence && seen.outcome() == round::result::quarantined;
  return {is_missed ? round::result::unreachable : seen.outcome(),
          seen.final_reason(),
          seen.was_cancelled(),
          seen.enough_voted(),
          seen.held_for(),
          now - seen.sent_at(),
          planted == canary_switch::a_vote_that_is_left_is_forgotten ? std::vector<decider::leftover>{} : seen.left(),
          seen.has_opened()};
}

}  // namespace

script::part all_of(const lock& of) {
  if (of.kind == lock_kind::exclusive) return {};
  return {of.kind == lock_kind::semaphore ? 'p' : 'w', of.size, of.size};
}

// ---- a search ----

quorum_client::search::search(quorum_client& by, wish asked, std::function<void(const lease_ptr&)> tell)
    : of{&by},
      what{std::move(asked)},
      then{std::move(tell)},
      began_at{by.now()},
      flow{{what.only_once, what.wait, by.what_.how.timeout, what.part.mode != 'x',
            static_cast<std::size_t>(engine::votes_needed(by.voters_.size(), what.part)),
            patience_of(what.ttl, by.what_.how.timeout)},
           by.now(),
           by.rng_} {}

void quorum_client::acquire(const wish& what, std::function<void(const lease_ptr&)> then) {
  searches_.push_back(std::make_unique<search>(*this, what, std::move(then)));
  search& made = *searches_.back();
  if (what.gives_up_after) after(*what.gives_up_after, [this, &made] { cancel(made); });
  try_once(made);
}

void quorum_client::try_once(search& whose) {
  if (whose.is_cancelled) return finish(whose, nullptr);
  const wish& what = whose.what;
  const auto& of = what_.of->locks[static_cast<std::size_t>(what.lock)];
  // What is allowed of a node's clock goes by max_ttl.
  const auto max_ttl = what_.of->max_ttl * (what_.planted == canary_switch::any_clock_counts ? 1000 : 1);
  open_call call;
  call.whose = &whose;
  whose.tried_as.push_back(owner_id{rng_.bytes16()});
  call.acquire = std::make_unique<round>(
      voters_,
      round::request{
          of.keys, std::make_shared<const std::string>(fmt::format("client {}", what_.number)), what.ttl, max_ttl,
          what.min_fence, rho, whose.flow.patience(now()), whose.flow.give_up_at(), "hf:", what_.list.record, what.part,
          has_turn(whose) ? script::standing::first_in_line : script::standing::newcomer, whose.flow.over_at()},
      whose.tried_as.back(), now());
  calls_.push_back(std::move(call));
  drive();
}

void quorum_client::conclude_acquire(open_call& call) {
  const auto& seen = *call.acquire;
  tell_.on_round(seen.outcome());
  last_round_ = seen.outcome();
  search& whose = *call.whose;
  if (seen.outcome() == round::result::won) {
    const auto lease = keep(whose.what, seen);
    return after(duration{0}, [this, &whose, lease] { finish(whose, lease); });
  }
  for (std::size_t i = 0; i < voters_.size(); ++i) {
    const auto& vote = seen.votes()[i];
    if (vote.not_after == server_time{}) continue;
    keeper_.release_later(now(), i,
                          {what_.of->locks[static_cast<std::size_t>(whose.what.lock)].keys,
                           seen.owner(),
                           {},
                           vote.not_after,
                           vote.not_after_local,
                           std::max(now(), vote.not_after_local) + whose.what.ttl + 1s});
  }
  go_on(whose, whose.flow.on_lost(now(), facts_of(seen, now(), what_.planted), has_turn(whose)));
}

quorum_client::lease_ptr quorum_client::keep(const wish& what, const round& won) {
  const auto& keys = what_.of->locks[static_cast<std::size_t>(what.lock)].keys;
  const bool counts_late = what_.planted == canary_switch::validity_from_reply;
  auto lease =
      std::make_shared<held>(keys, won.owner(), won.token(), what.ttl, counts_late ? now() + what.ttl : won.deadline(),
                             tell_.next_number(), what.lock, what.part);
  lease->mode = what.mode;
  const bool renews_itself = what_.planted == canary_switch::a_lease_by_hand_renews_itself;
  const bool is_bounded = what_.planted != canary_switch::leases_have_no_last_instant;
  if (what.max_hold && is_bounded) lease->last = won.sent_at() + *what.max_hold;
  keeper_.keep(lease, fmt::format("client {}", what_.number), won.votes(), won.sent_at(),
               renews_itself ? renewal::automatic : what.mode, what.part);
  leases_.push_back(lease);
  tell_.on_hold(*lease, when(now() + lease->deadline.left(now())));
  return lease;
}

void quorum_client::go_on(search& whose, const decider::step& next) {
  if (const auto* end = std::get_if<decider::end>(&next)) {
    const errc reason = end->code == errc::reply_lost ? end->reason : end->code;
    // However late it ends: who waits for less than the timeout has not waited for all of that.
    const duration waited = std::min<duration>(now() - whose.began_at, whose.what.wait.value_or(duration::max()));
    if (reason == errc::no_quorum) tell_.on_no_quorum(whose.what.part, waited);
    const bool is_unknown =
        end->code == errc::reply_lost || end->code == errc::unexpected_reply || end->code == errc::cancelled_in_flight;
    if (!is_unknown) tell_.on_without_effect(whose.what.lock, whose.what.part, whose.tried_as);
    // It can do nothing but ask again, and its programs would do nothing else.
    if (reason == errc::other_quorum) return after(500ms, [this, &whose] { finish(whose, nullptr); });
    return finish(whose, nullptr);
  }
  if (const auto* pause = std::get_if<decider::pause>(&next)) return rest(whose, pause->until);
  if (const auto* line = std::get_if<decider::stand_in_line>(&next)) return stand_in_line(whose, line->until);
  after(duration{0}, [this, &whose] { try_once(whose); });
}

void quorum_client::finish(search& whose, const lease_ptr& got) {
  drop_turn(whose);
  if (const auto then = std::exchange(whose.then, {})) then(got);
}

void quorum_client::cancel(search& whose) {
  if (is_dead_ || !whose.then) return;
  whose.is_cancelled = true;
  if (whose.is_in_line) return leave_line(whose);
  if (whose.is_resting) return wake(whose);
  for (auto& call : calls_) {
    if (call.whose == &whose) call.acquire->cancel();
  }
  drive();
}

// ---- between two tries ----

void quorum_client::rest(search& whose, time_point until) {
  whose.is_resting = true;
  after(until - now(), [this, &whose, which = ++whose.rests] {
    if (whose.is_resting && whose.rests == which) wake(whose);
  });
}

void quorum_client::wake(search& whose) {
  whose.is_resting = false;
  go_on(whose, whose.is_cancelled ? whose.flow.on_cancel(now()) : whose.flow.on_pause_over(now()));
}

// Who rests tries again at once.
void quorum_client::tell_released(int lock) {
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    if (searches_[i]->is_resting && searches_[i]->what.lock == lock) wake(*searches_[i]);
  }
}

bool quorum_client::has_turn(const search& whose) const {
  return whose.turn && whose.turn->deadline.left(now()) > duration{0};
}

void quorum_client::drop_turn(search& whose) {
  if (const auto turn = std::exchange(whose.turn, nullptr)) lines_.of(whose.server).drop(turn);
}

void quorum_client::stand_in_line(search& whose, time_point until) {
  drop_turn(whose);
  std::vector<bool> is_ready;
  for (const auto& one : voters_) is_ready.push_back(one->wire().is_ready());
  const auto server = whose.flow.line_of(is_ready);
  if (!server) return go_on(whose, whose.flow.on_turn(now(), errc::server_silent));
  sim::wish turn;
  turn.lock = whose.what.lock;
  turn.ttl = std::min(turn_ttl, what_.of->max_ttl);
  if (until != never) turn.wait = std::max<duration>(1ms, until - now());
  whose.server = *server;
  whose.is_in_line = true;
  whose.turn_call = lines_.of(*server).acquire(whose, turn);
}

void quorum_client::leave_line(const search& whose) { lines_.of(whose.server).cancel(whose.turn_call); }

// A client of one server would wait for it to come back (client/turn_watch.hpp).
void quorum_client::on_line_down(std::size_t server) {
  if (what_.planted == canary_switch::waits_in_a_line_that_is_gone) return;
  after(duration{0}, [this, server] {
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      if (searches_[i]->is_in_line && searches_[i]->server == server) leave_line(*searches_[i]);
    }
  });
}

void quorum_client::search::on_acquired(const sim::lease_ptr& lease) {
  is_in_line = false;
  turn = lease;
  of->tell_.on_turn(call_end::acquired);
  is_cancelled ? of->finish(*this, nullptr) : of->go_on(*this, flow.on_turn(of->now(), {}));
}

void quorum_client::search::on_not_acquired(call_end how) {
  is_in_line = false;
  of->tell_.on_turn(how);
  if (is_cancelled) return of->finish(*this, nullptr);
  of->go_on(*this, flow.on_turn(of->now(), how == call_end::timed_out ? errc::timed_out : errc::server_silent));
}

// ---- programs ----

void quorum_client::start(int workers) {
  for (int i = 0; i < workers; ++i) {
    ++jobs_;
    after(rng_.span(duration{0}, what_.of->think), [this, i] { work_on(i); });
  }
}

bool quorum_client::is_waiting() const {
  return is_running() &&
         std::any_of(searches_.begin(), searches_.end(), [](const auto& one) { return one->is_patient(); });
}

bool quorum_client::is_waiting_for(int lock) const {
  const auto waits = [&](const auto& one) { return one->what.lock == lock && one->is_patient(); };
  return is_running() && std::any_of(searches_.begin(), searches_.end(), waits);
}

void quorum_client::stop() {
  wind_down();
  for (std::size_t i = 0; i < what_.of->locks.size(); ++i) stop_waiting_for(static_cast<int>(i));
}

void quorum_client::stop_waiting_for(int lock) {
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    if (searches_[i]->what.lock == lock && searches_[i]->is_patient()) cancel(*searches_[i]);
  }
}

script::part quorum_client::some_part_of(const lock& of) {
  if (of.kind == lock_kind::exclusive) return {};
  if (of.kind == lock_kind::semaphore) return {'p', rng_.chance(70) ? 1 : rng_.number(1, of.size), of.size};
  const bool reads = rng_.chance(70);
  return {reads ? 'r' : 'w', reads ? 1 : of.size, of.size};
}

// Mostly it waits for as long as it takes.
quorum_client::wish quorum_client::some_wish() {
  wish any{.lock = static_cast<int>(rng_.below(what_.of->locks.size())),
           .ttl = std::max<std::chrono::milliseconds>(100ms, what_.of->ttl / rng_.number(1, 2))};
  any.part = some_part_of(what_.of->locks[static_cast<std::size_t>(any.lock)]);
  any.only_once = rng_.chance(15);
  if (!any.only_once && rng_.chance(25)) any.wait = rng_.any_size(20ms, 3 * duration{what_.of->ttl});
  if (rng_.chance(10)) any.gives_up_after = rng_.any_size(10us, 2 * duration{what_.of->ttl});
  if (rng_.chance(15)) any.mode = renewal::none;
  return any;
}

void quorum_client::work_on(int job) {
  if (is_stopping_) {
    --jobs_;
    return;
  }
  const auto next = [this, job] { after(rng_.span(duration{0}, what_.of->think), [this, job] { work_on(job); }); };
  acquire(some_wish(), [this, next](const lease_ptr& lease) {
    if (!lease) return next();
    if (!lease->keys.is_counted && rng_.chance(60)) update(lease);
    if (lease->mode == renewal::none) renew_by_hand(lease);
    // Mostly short, now and then for several ttl.
    const duration work =
        rng_.chance(20) ? rng_.any_size(1ms, 5 * duration{lease->ttl}) : rng_.span(duration{0}, what_.of->work);
    after(work, [this, lease, next] {
      rng_.chance(10) ? drop(lease) : release(lease);
      next();
    });
  });
}

void quorum_client::probe(int lock, duration within, std::function<void(bool)> tell) {
  wish all{.lock = lock, .ttl = what_.of->ttl, .wait = within};
  all.part = all_of(what_.of->locks[static_cast<std::size_t>(lock)]);
  acquire(all, [this, lock, tell, until = now() + within](const lease_ptr& lease) {
    // Before `within` it ends when nobody has answered for its timeout.
    if (!lease && now() + 10ms < until) {
      return after(10ms, [this, lock, tell, until] { probe(lock, std::max<duration>(1ms, until - now()), tell); });
    }
    tell(lease != nullptr);
    if (lease) release(lease);
  });
}

}  // namespace holdfast::sim
