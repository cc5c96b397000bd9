// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include "guarded_update.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

void worker::rest() {
  ++turn_;
  if (in_->is_over()) {
    state_ = state::done;
    return;
  }
  state_ = state::resting;
  // Whoever fails again and again asks less often, or a server in trouble for seconds would see nothing else.
  of_->after(rng_.any_size(10us, in_->what->think) * (1 << std::min(failures_in_a_row_ / 32, 8)), [this] { want(); });
}

void worker::want() {
  if (in_->is_over()) {
    state_ = state::done;
    return;
  }
  state_ = state::waiting;
  wants_all_ = in_->what->wants_all && rng_.chance(60);
  if (wants_all_) return want_all();
  const auto& locks = in_->what->locks;
  const lock& wanted = locks[rng_.below(locks.size())];
  wish what;
  what.lock = wanted.number;
  what.ttl = std::clamp<std::chrono::milliseconds>(in_->what->ttl * rng_.number(2, 8) / 4, 100ms, in_->what->max_ttl);
  what.is_try = rng_.chance(30);
  const bool is_bounded = rng_.chance(55);
  const duration patience = rng_.any_size(1ms, 4 * duration{in_->what->ttl});
  if (is_bounded) what.wait = patience;
  const bool reads = rng_.chance(60);
  const int permits = rng_.number(1, wanted.size);
  if (wanted.kind == lock_kind::semaphore) what.part = {'p', permits, wanted.size};
  if (wanted.kind == lock_kind::shared) what.part = {reads ? 'r' : 'w', reads ? 1 : wanted.size, wanted.size};
  // A lease is handed on to who wants one of the same ttl.
  const bool wants_what_others_want = in_->what->hand_overs.most > 0 && rng_.chance(85);
  if (wants_what_others_want)
    what.ttl = std::clamp<std::chrono::milliseconds>(in_->what->ttl, 100ms, in_->what->max_ttl);
  if (rng_.chance(10)) what.max_hold = duration{what.ttl} * rng_.number(1, 3);
  if (rng_.chance(10)) what.mode = renewal::none;
  const int mine = ++turn_;
  const bool is_cancelled = rng_.chance(20);
  call_ = of_->acquire(*this, what);
  if (!is_cancelled || what.is_try) return;
  of_->after(patience, [this, mine] {
    if (mine == turn_ && state_ == state::waiting) of_->cancel(call_);
  });
}

void worker::on_not_acquired(call_end) {
  if (wants_all_) give_up_all();
  ++failures_in_a_row_;
  rest();
}

void worker::on_acquired(const lease_ptr& lease) {
  if (wants_all_) return have_next(lease);
  state_ = state::working;
  failures_in_a_row_ = 0;
  const bool is_shared = in_->what->locks[static_cast<std::size_t>(lease->seen.lock)].kind == lock_kind::shared;
  is_to_read_on_ = is_shared && lease->seen.permits > 1 && rng_.chance(40);
  if (!lease->keys.is_counted && rng_.chance(60)) update(lease);
  work(lease);
  if (lease->seen.is_by_hand) renew(lease, turn_);
}

// After each step of its work, until that is over or hangs.
void worker::renew(const lease_ptr& lease, int turn) {
  if (rng_.chance(15)) return;
  of_->after(rng_.any_size(1ms, duration{lease->ttl} / 2), [this, lease, turn] {
    if (turn != turn_) return;
    of_->renew_by_hand(lease);
    renew(lease, turn);
  });
}

void worker::work(const lease_ptr& lease) {
  const int mine = ++turn_;
  of_->after(rng_.any_size(100us, in_->what->work), [this, mine, lease] {
    if (mine == turn_) finish(lease);
  });
}

void worker::on_downgraded(const lease_ptr& lease, downgrade_end how) {
  if (state_ != state::downgrading || lease != downgraded_) return;  // It was lost meanwhile.
  state_ = state::working;
  how == downgrade_end::gone ? finish(lease) : work(lease);
}

void worker::finish(const lease_ptr& lease) {
  if (std::exchange(is_to_read_on_, false)) {
    state_ = state::downgrading;
    ++turn_;
    downgraded_ = lease;
    return of_->downgrade(*this, lease);
  }
  of_->is_valid(lease);
  if (rng_.chance(10)) {
    of_->drop(lease);
    return rest();
  }
  state_ = state::releasing;
  ++turn_;
  of_->release(*this, lease);
}

void worker::on_released(release_outcome) { rest(); }

void worker::on_lost(const lease_ptr& lease) {
  of_->is_valid(lease);
  if (wants_all_ && std::find(all_.begin(), all_.end(), lease) != all_.end()) {
    if (state_ == state::waiting) return of_->cancel(call_);
    give_up_all();
    return rest();
  }
  if (state_ == state::working || (state_ == state::downgrading && lease == downgraded_)) rest();
}

// ---- several as one ----

void worker::want_all() {
  wish_for_all_ = {};
  wish_for_all_.ttl = in_->what->ttl;
  const duration patience = rng_.any_size(1ms, 8 * duration{in_->what->ttl});
  all_by_ = rng_.chance(60) ? in_->events->now() + patience : end_of_time;
  want_next();
}

void worker::want_next() {
  ++turn_;
  wish_for_all_.lock = static_cast<int>(all_.size());
  if (all_by_ != end_of_time) wish_for_all_.wait = std::max<duration>(all_by_ - in_->events->now(), 1ms);
  call_ = of_->acquire(*this, wish_for_all_);
}

void worker::have_next(const lease_ptr& lease) {
  failures_in_a_row_ = 0;
  all_.push_back(lease);
  const bool is_one_lost = std::any_of(all_.begin(), all_.end(), [&](const auto& one) { return !of_->is_valid(one); });
  if (!is_one_lost && all_.size() < in_->what->locks.size()) return want_next();
  if (!is_one_lost) all_ = of_->join(std::exchange(all_, {}));
  if (is_one_lost) give_up_all();
  if (all_.empty()) return rest();
  state_ = state::working;
  for (const auto& one : all_) {
    if (rng_.chance(60)) update(one);
  }
  const int mine = ++turn_;
  of_->after(rng_.any_size(100us, in_->what->work), [this, mine] {
    if (mine == turn_) finish_all();
  });
}

void worker::give_up_all() {
  const auto all = std::exchange(all_, {});
  if (!all.empty() && !all.front()->all.empty()) return of_->drop_all(all);
  for (const auto& one : all) of_->drop(one);
}

void worker::finish_all() {
  for (const auto& one : all_) of_->is_valid(one);
  if (rng_.chance(10)) {
    give_up_all();
    return rest();
  }
  state_ = state::releasing;
  ++turn_;
  of_->release_all(*this, std::exchange(all_, {}));
}

// ---- what the lock protects ----

void worker::update(const lease_ptr& lease) {
  const int lock = lease->seen.lock;
  const auto token = lease->token.value();
  guarded_update::begin({in_->events, in_->store, lock, token, [this] { return way(); },
                         [this](duration wait, std::function<void()> what) { of_->after(wait, std::move(what)); },
                         [this, lock, token](guarded_store::written done) {
                           in_->on_write(done);
                           if (done == guarded_store::written::lost_an_update) in_->on_stale_write(lock, token);
                         }});
}

}  // namespace holdfast::sim
