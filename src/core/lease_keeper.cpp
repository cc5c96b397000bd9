// SPDX-License-Identifier: Apache-2.0
#include "core/lease_keeper.hpp"

#include <algorithm>

namespace holdfast::core {

lease_keeper::decision lease_keeper::on_wake(time_point now, bool can_send) {
  decision what;
  if (is_lost_) return what;

  const time_point lost_at = deadline_ - lost_lead(ttl_);
  if (refused_ || now >= lost_at) {
    is_lost_ = true;
    what.lost = refused_.value_or(deadline_ < last_ ? errc::lease_expired : errc::lease_held_too_long);
    return what;
  }

  const time_point risk_at = deadline_ - risk_lead(ttl_);
  if (now >= risk_at && !warned_) what.at_risk = warned_ = true;

  if (now >= next_send_at_) {
    if (can_send) {
      what.renew = true;
      next_send_at_ = now + renew_attempt_timeout(ttl_, deadline_ - now);
    } else {
      waits_for_connection_ = true;
      next_send_at_ = never;
    }
  }

  what.wake_at = std::min(lost_at, next_send_at_);
  if (!can_send) {
    what.connect = waits_for_connection_ || now >= connects_at_;
    if (now < connects_at_) what.wake_at = std::min(what.wake_at, connects_at_);
  }
  if (!warned_) what.wake_at = std::min(what.wake_at, risk_at);
  return what;
}

bool lease_keeper::on_renewed(time_point now, time_point sent_at, base::random_source& rng, time_point at_most) {
  if (!stands(now)) return false;
  const time_point renewed_until = std::min({deadline_of(sent_at, ttl_, drift_), at_most, last_});
  if (renewed_until <= deadline_) return false;

  deadline_ = renewed_until;
  warned_ = false;
  retry_.reset();
  const duration period = renew_period(ttl_);
  const duration jitter{rng.between(-period.count() / 10, period.count() / 10)};
  regular_send_at_ = never;
  if (renews_itself()) {
    const time_point counted_from = std::min(sent_at, renewed_until - usable(ttl_, drift_));
    regular_send_at_ = renewal_instant(counted_from + period + jitter, ttl_);
    if (regular_send_at_ <= now) regular_send_at_ = now + renew_attempt_timeout(ttl_, deadline_ - now);
  }
  if (!is_asked_) next_send_at_ = regular_send_at_;
  return true;
}

void lease_keeper::on_early(time_point counts_from) {
  if (is_lost_ || (!renews_itself() && !is_asked_)) return;
  next_send_at_ = std::min(next_send_at_, counts_from);
}

void lease_keeper::on_failed(time_point now, base::random_source& rng) {
  if (is_lost_ || (!renews_itself() && !is_asked_)) return;
  const duration quarter = std::max(duration{1}, (deadline_ - now) / 4);
  next_send_at_ = std::min(next_send_at_, now + std::min(retry_.next(rng), quarter));
}

void lease_keeper::ask(time_point now) {
  is_asked_ = true;
  next_send_at_ = std::min(next_send_at_, now);
}

void lease_keeper::stop_asking() {
  is_asked_ = false;
  // A regular one that is overdue keeps the time of its next try; there is none for who does not renew itself.
  next_send_at_ = std::max(next_send_at_, regular_send_at_);
  if (!renews_itself()) waits_for_connection_ = false;
}

void lease_keeper::hurry(time_point now) {
  if (!is_lost_ && renews_itself()) next_send_at_ = std::min(next_send_at_, now);
}

void lease_keeper::on_refused(errc reason) {
  if (!is_lost_) refused_ = reason;
}

void lease_keeper::on_connected(time_point now) {
  if (!waits_for_connection_) return;
  waits_for_connection_ = false;
  next_send_at_ = std::min(next_send_at_, now);
}

}  // namespace holdfast::core
