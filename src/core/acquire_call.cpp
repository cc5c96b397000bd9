// SPDX-License-Identifier: Apache-2.0
#include "core/acquire_call.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

using namespace std::chrono_literals;

namespace {

// A place in line is kept through so long a silence (three looks, src/script/advance.lua).
constexpr duration place_lives = 15s;
constexpr duration heartbeat = 5s;
constexpr duration quick_heartbeat = 1s;  // So that who could go elsewhere soon knows that the server is silent.
constexpr duration wait_for_hearing = 200ms;
constexpr duration answer_expected = 1s;  // To a look that another one makes for us.
constexpr duration most_lead = 200ms;  // Nobody stands by for a grant less than that behind its window (advance.lua).
constexpr std::chrono::milliseconds least_window = 1s;
constexpr duration pass_again = 25ms;  // LOADING and its like, at first.
constexpr duration longest_pause = 1s;
constexpr int refusals_before_giving_up = 3;
constexpr int lates_before_giving_up = 3;
constexpr int unwritten_before_giving_up = (place_lives - heartbeat) / 1s;  // From the first look that was refused.
constexpr int grants_too_late_before_giving_up = 3;

// The second of this instant, never 0. Those that are less than some minutes apart can be told apart.
constexpr int seconds_told_apart = 255;
std::uint8_t second_of(time_point at) {
  return static_cast<std::uint8_t>(1 + at.time_since_epoch() / 1s % seconds_told_apart);
}

}  // namespace

acquire_call::acquire_call(const acquire_settings& settings, time_point now, base::random_source& rng)
    : rng_{&rng},
      ttl_{settings.ttl},
      timeout_{settings.timeout},
      drift_{settings.drift},
      deadline_{never},
      silent_since_{now},
      silent_before_{settings.silent_since},
      ask_at_{now},
      owner_{rng.bytes16()},
      only_once_{settings.only_once},
      had_contact_{settings.had_contact},
      has_alternative_{settings.has_alternative},
      last_news_{settings.heard},
      round_trip_{settings.round_trip} {
  if (settings.only_once) {
    deadline_ = now + settings.timeout;
  } else if (settings.wait) {
    deadline_ = now + *settings.wait;
  }
  // Who knows what keeps it waiting, and could not hear in time, need not end as unknown. A busy machine answers
  // several times later; a far server is not as much later for that.
  const duration answer_takes = std::max(settings.too_little, std::min<duration>(4 * round_trip_, round_trip_ + 50ms));
  const bool knows_why = !only_once_ && last_news_ != errc::server_silent;
  if (knows_why && deadline_ != never && now > deadline_ - answer_takes) ask_at_ = never;
}

acquire_action acquire_call::on_wake(time_point now, bool can_send, hearing told) {
  // It was to be asked, and we were not there to do it (stopped, suspended): that is our silence, not the server's.
  // What it has been asked before and has not answered is its own.
  if (!is_asked_ && !is_unanswered_) {
    if (can_send && now >= ask_at_) silent_since_ = std::max(silent_since_, now);
    const bool came_late = sleeps_until_ != time_point{} && now > sleeps_until_;
    if (!can_send && came_late) {  // Its connection ended meanwhile.
      silent_since_ = std::max(silent_since_, std::min(now, silent_since_ + (now - sleeps_until_)));
    }
  }
  const time_point at_last = std::min(deadline_, silence_ends_at());
  if (!end_ && now >= at_last) finish_at_deadline(now);
  if (end_) return finish{};

  if (is_asked_ || !can_send) return rest(at_last);
  if (now < ask_at_) return rest(std::min(ask_at_, at_last));
  if (is_giving_back()) {
    is_asked_ = true;
    return give_back{owner_};
  }
  // Who asks outside of the line would be granted. Also a try goes on: the answer says whether it is over by now.
  if (now < quarantined_until_ && place_ == place::outside) enter(now);
  // An entry names our channel only after the server said that we hear it, so that nothing is said to nobody (P1, P6).
  const time_point hearing_ends = std::min(wait_for_hearing_until_, last_ask());
  if (place_ == place::entering && wants_hints() && told == hearing::pending && now < hearing_ends) {
    return rest(std::min(hearing_ends, at_last));
  }
  is_asked_ = true;
  is_called_ = false;
  if (now >= stands_by_until_) stands_by_until_ = {};
  was_quarantine_ = now < quarantined_until_;
  ++attempts_;
  return request(now);
}

acquire_action acquire_call::rest(time_point until) {
  sleeps_until_ = until;
  return sleep_until{until};
}

acquire_action acquire_call::request(time_point now) {
  const duration may_take = std::min(timeout_, deadline_ - now);
  switch (place_) {
    case place::outside: return ask{owner_, may_take};
    case place::in_line: return look{owner_, may_take, is_heartbeat_};
    case place::entering: break;
  }
  const auto round_trips = std::chrono::ceil<std::chrono::milliseconds>(4 * round_trip_);
  const auto window = std::min(std::max(least_window, round_trips), ttl_);  // P4
  std::optional<duration> wait_left;
  if (deadline_ != never) wait_left = deadline_ - now;
  return stand{owner_, may_take, only_once_, ticket_, window, wait_left};
}

// How long the server may be silent. Who stands in line waits as long as the place is kept.
duration acquire_call::patience() const {
  return place_ == place::in_line ? std::max<duration>(timeout_, place_lives) : timeout_;
}

// A bounded wait lasts as long as it was told to: the server may come back.
time_point acquire_call::silence_ends_at() const {
  const bool is_bounded_wait = deadline_ != never && !only_once_;
  return is_bounded_wait && !has_alternative_ ? never : silent_since_ + patience();
}

// Reached when the time is up, or when the server was silent for too long.
void acquire_call::finish_at_deadline(time_point now) {
  const bool waited_to_the_end = now >= deadline_;
  if (is_asked_ || is_unanswered_ || is_given_back_) return fail(errc::reply_lost);
  // "Busy" was the last news, but whoever has not waited to the end has not timed out.
  fail(!waited_to_the_end && last_news_ == errc::timed_out ? errc::server_silent : last_news_);
}

void acquire_call::fail(errc code) {
  forget_owner();
  end_ = got_failure{code};
}

// The answer is definite for the copy that it answers. If an earlier one was cut off, the whole is unknown (C5).
void acquire_call::fail_definitely(errc code) { fail(is_unanswered_ || is_given_back_ ? errc::reply_lost : code); }

// The present owner id is not used any more. If the server knows it, or may come to, somebody must let it leave.
void acquire_call::forget_owner() {
  const bool may_have_copies = is_asked_ || is_unanswered_ || has_copies_;
  const auto went_by = has_copies_ ? route::was_cut : route::stands;
  if (may_have_copies || place_ == place::in_line)
    clean_ups_.push_back({owner_, may_have_copies, place_ != place::outside, went_by});
  is_asked_ = is_unanswered_ = has_copies_ = false;
  stands_by_until_ = {};
  owner_ = owner_id{rng_->bytes16()};
}

void acquire_call::on_answer(time_point now, time_point sent_at, const acquire_answer& answer, bool have_all_left) {
  if (end_) return;
  HOLDFAST_ASSERT(is_asked_);
  is_asked_ = false;
  is_given_back_ = is_given_back_ && !have_all_left;
  had_contact_ = true;
  silent_before_ = never;
  refusals_ = 0;
  silent_since_ = now;
  // With the time that replicas took, which a leave does not wait for: the next one will take as long.
  if (!std::holds_alternative<was_left>(answer)) round_trip_ = now - sent_at;
  if (!std::holds_alternative<was_late>(answer)) lates_ = 0;
  if (!std::holds_alternative<was_refused>(answer)) unwritten_since_ = passing_ = 0;
  if (usable(ttl_, drift_) - (now - sent_at) >= least_useful(ttl_)) too_late_ = 0;  // It was not the way's doing.
  std::visit([&](const auto& what) { hear(now, sent_at, what); }, answer);
}

void acquire_call::hear(time_point now, time_point sent_at, const was_granted& what) {
  accept(now, what.token, sent_at, what.at_most);
}

// A server whose clock was set back meanwhile says more than the ttl, and may be set forward again (H5).
void acquire_call::hear(time_point now, time_point sent_at, const was_mine& what) {
  const auto remaining = std::min(what.remaining, ttl_);
  accept(now, what.token, deadline_of(sent_at, remaining, drift_) - usable(ttl_, drift_), what.at_most);
}

void acquire_call::accept(time_point now, fencing_token token, time_point granted_at, time_point at_most) {
  const time_point deadline = std::min(deadline_of(granted_at, ttl_, drift_), at_most);
  if (deadline - now < least_useful(ttl_)) {
    // It came so late that little of it is left. Give it back; if there is time, ask for a fresh one. Until it is back
    // the server is changed by this call, so an end without another answer is unknown (C5).
    is_unanswered_ = true;  // To be released as if we had never heard of it.
    is_given_back_ = true;
    if (only_once_) return fail(errc::reply_lost);
    // The way is longer than the ttl: whoever asks for ever is in its own way. It ends when the last one is given back.
    if (++too_late_ >= grants_too_late_before_giving_up) {
      giving_back_for_ = errc::invalid_option;
      is_hopeless_ = was_too_far_ = true;
    } else {
      forget_owner();
    }
    if (place_ == place::in_line) come_back(now);
    return schedule_ask(now, now);
  }
  end_ = got_lease{token, granted_at, deadline, is_unanswered_ || has_copies_};
}

// The same owner id: the answer will be "mine".
void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_unconfirmed&) {
  is_unanswered_ = true;
  schedule_ask(now, now);
}

// Given back, and the place kept. The next answer proves that it is back, because it was sent behind.
void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_uncounted&) {
  is_unanswered_ = is_given_back_ = true;  // To be released as if we had never heard of it.
  forget_owner();
  enter(now);
  schedule_ask(now, now < quarantined_until_ ? now : now + pass_again);
}

// At once, also after the last instant to ask at: until it is back the server is changed by this call, and an end
// without another answer is unknown (C5).
void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_unreplicated& what) {
  is_unanswered_ = is_given_back_ = true;  // Should it end now: to be released as if we had never heard of it.
  giving_back_for_ = what.code;
  is_hopeless_ = !what.passes;
  if (place_ == place::in_line) come_back(now);
  is_heartbeat_ = is_taken_along_ = false;
  ask_at_ = now;
}

void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_left&) {
  last_news_ = std::exchange(giving_back_for_, errc{});
  is_unanswered_ = false;
  forget_owner();
  if (only_once_ || is_hopeless_) return fail(last_news_);
  const duration pause = std::min(longest_pause, pass_again * (1 << unreplicated_));
  if (unreplicated_ < 6) ++unreplicated_;
  schedule_ask(now, now + pause / 2 + duration{rng_->between(0, (pause / 2).count())});
}

void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_busy&) {
  forget_owner();  // A definite answer ends the use of an owner id.
  if (only_once_) {
    if (is_given_back_) return fail(errc::reply_lost);
    end_ = got_busy{};
    return;
  }
  last_news_ = errc::timed_out;
  enter(now);
  schedule_ask(now, now);
}

void acquire_call::hear(time_point now, time_point sent_at, const was_lined&) {
  if (only_once_ && was_quarantine_) {
    if (now >= quarantined_until_) return schedule_ask(now, now);
    forget_owner();
    return fail_definitely(errc::quarantined);
  }
  if (place_ != place::outside) return hear(now, sent_at, was_busy{});
  if (only_once_) {
    // Nothing came of it, so the owner id serves again.
    place_ = place::entering;
    return schedule_ask(now, now);
  }
  hear(now, sent_at, was_busy{});
}

// Whoever it passed over is seen no more: behind a crowd of the dead a few of these find out whether the lock is free.
// The owner id serves again, because nothing came of it.
void acquire_call::hear(time_point now, time_point sent_at, const was_unseen&) {
  if (!only_once_) return hear(now, sent_at, was_lined{});
  place_ = place::entering;
  schedule_ask(now, now);
}

void acquire_call::hear(time_point now, time_point sent_at, const was_queued& what) {
  place_ = place::in_line;
  is_unanswered_ = false;  // Whatever became of earlier copies: this is where we stand.
  last_news_ = errc::timed_out;
  ticket_ = what.ticket;
  if (now < quarantined_until_) {  // Nobody's turn can have come, whoever calls.
    last_news_ = errc::quarantined;
    return beat_at(now, std::max(now, next_beat(sent_at, heartbeat)));
  }
  if (was_quarantine_) return schedule_ask(now, now);  // Over since it was asked.
  if (is_called_) return schedule_ask(now, now);  // What was said after it was sent may be newer than the answer (P6).
  // From one look's send instant to the next one's: with the way back on top, whoever is far away counted as silent.
  const duration look_in = has_alternative_ ? std::min<duration>(what.look_in, quick_heartbeat) : what.look_in;
  if (what.look_in >= heartbeat) return beat_at(now, std::max(now, next_beat(sent_at, look_in)));
  schedule_ask(now, now + look_in);
}

duration acquire_call::beat() const { return has_alternative_ ? quick_heartbeat : heartbeat; }

time_point acquire_call::next_beat(time_point now, duration look_in) {
  const time_point at = now + look_in + duration{rng_->between(0, (beat() / 10).count())};
  return now < quarantined_until_ ? std::min(at, quarantined_until_) : at;
}

void acquire_call::beat_at(time_point now, time_point at) {
  schedule_ask(now, at);
  is_heartbeat_ = ask_at_ >= at;
}

bool acquire_call::can_be_looked_for(time_point now) const {
  if (!is_in_line() || is_asked_ || !is_heartbeat_ || is_given_back_) return false;
  return is_taken_along_ ? ask_at_ <= now : ask_at_ <= now + beat() / 2;
}

void acquire_call::on_taken_along(time_point now) {
  beat_at(now, now + answer_expected);
  is_taken_along_ = true;
}

void acquire_call::on_looked_for(time_point now) {
  if (!is_taken_along_) return;
  silent_since_ = now;
  beat_at(now, next_beat(now, beat()));
}

void acquire_call::on_not_looked_for(time_point now) {
  if (is_taken_along_) beat_at(now, now);
}

// It missed its claim or three looks, or the line is lost. Once it comes back with its ticket (P4), as a new entry.
void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_not_in_line&) {
  // It is over by now, and somebody else has noticed that before: the line may have granted it to us.
  if (was_quarantine_ && now >= quarantined_until_) return schedule_ask(now, now);
  if (!was_quarantine_) {
    place_ = place::entering;
    forget_owner();
    come_back(now);
  } else {
    forget_owner();  // Still in line: it may be that what it was granted must not be claimed, and is let go.
    is_given_back_ = true;
    enter(now);
  }
  schedule_ask(now, now);
}

// With the ticket the first time; a waiter that cannot claim in time must not be the head for ever (P4).
void acquire_call::come_back(time_point now) {
  if (std::exchange(has_come_back_, true)) ticket_ = 0;
  enter(now);
}

// Outside of the line and on the way into it.
void acquire_call::enter(time_point now) {
  place_ = place::entering;
  wait_for_hearing_until_ = now + wait_for_hearing;
}

// LATE says that this copy had no effect, nothing more. The reply brought the server's time, so the next one carries
// a better not_after; if that is late again and again, the server's clock is running away from us (P10, P11).
void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_late&) {
  if (++lates_ >= lates_before_giving_up) return fail_definitely(errc::clock_stepped);
  schedule_ask(now, now);
}

void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_spent&) {
  is_unanswered_ = false;  // It had its turn and is over.
  // A copy that is still under way finds the lock's memory of spent owner ids, which is one long (P9): when another
  // one has left meanwhile, it could lock. So it is let go like any other whose copies are not over.
  if (place_ == place::in_line) place_ = place::entering;
  forget_owner();
  schedule_ask(now, now);
}

void acquire_call::hear(time_point now, time_point /*sent_at*/, const was_refused& what) {
  if (what.keeps_place && place_ == place::in_line) {
    // By time: who was cut off, or hears a hint, looks more often.
    if (unwritten_since_ == 0) unwritten_since_ = second_of(now);
    const int unwritten_for = (second_of(now) - unwritten_since_ + seconds_told_apart) % seconds_told_apart;
    if (deadline_ != never || unwritten_for < unwritten_before_giving_up) {
      last_news_ = what.code;
      if (is_called_) return schedule_ask(now, now);
      return beat_at(now, next_beat(now, heartbeat));
    }
  }
  if (!what.passes) {
    // It may have taken effect all the same: of a script the ACL may deny what stands behind the grant.
    const bool may_be_half_done = what.code == errc::no_permission || what.code == errc::unexpected_reply;
    const bool is_definite = !is_unanswered_ && !is_given_back_;
    is_unanswered_ = is_unanswered_ || may_be_half_done;
    return fail(is_definite || what.code == errc::unexpected_reply ? what.code : errc::reply_lost);
  }
  last_news_ = what.code;
  // Some do not pass soon: a slot whose move was interrupted.
  schedule_ask(now, now + pass_again * (1 << passing_));
  if (passing_ < 3) ++passing_;
}

// Who is called in line has a turn to lose, and goes for it while there is time for twice the round trip.
time_point acquire_call::last_ask(duration round_trip) const {
  const int round_trips = place_ == place::in_line ? 2 : 4;
  return deadline_ == never ? never : deadline_ - std::max<duration>(5ms, round_trips * round_trip);
}

// A request that is sent a moment before the deadline is answered after it, and a wait that ends as `unknown` helps
// nobody. So the last one goes out a few round trips before, and after that we only wait.
void acquire_call::schedule_ask(time_point now, time_point at) {
  const bool stands_by = place_ == place::in_line && stands_by_until_ != time_point{};
  ask_at_ = at = stands_by ? std::min(at, stands_by_until_) : at;
  is_heartbeat_ = is_taken_along_ = false;
  // In line nothing is gained by a last look: we would have been told.
  if (at > last_ask()) ask_at_ = now < last_ask() && place_ != place::in_line ? last_ask() : never;
  // Nothing is expected of the server before it is asked again: that is no silence.
  if (ask_at_ != never) silent_since_ = std::max(silent_since_, ask_at_);
}

void acquire_call::on_cut(time_point now) {
  if (end_ || !is_asked_) return;
  is_asked_ = false;
  is_unanswered_ = has_copies_ = true;
  last_news_ = errc::connection_lost;
  is_heartbeat_ = is_taken_along_ = false;
  ask_at_ = now;  // The same owner id: if the lost request was granted, the answer will be "mine" (H11).
}

void acquire_call::on_hint(time_point now, duration look_in) {
  if (end_ || place_ == place::outside) return;
  // It is meant for the server: to be there then, the look leaves as much earlier as hint and look are on their way.
  const duration way = std::min(round_trip_, most_lead);
  const time_point at = now + std::max(look_in - way, duration{0});
  if (at > now) {
    stands_by_until_ = at;  // Only the last grant has anybody stand by (advance.lua).
  } else {
    is_called_ = is_asked_;
  }
  if (place_ == place::in_line && at <= last_ask()) ask_sooner(at);
}

void acquire_call::on_hearing_changed(time_point now) {
  is_called_ = is_asked_;  // What is under way may be answered as of before the change.
  look_now(now);
}

void acquire_call::on_connected(time_point now) { look_now(now); }

void acquire_call::look_now(time_point now) {
  if (is_in_line() && now <= last_ask()) ask_sooner(now);
}

void acquire_call::ask_sooner(time_point at) {
  if (at >= ask_at_) return;
  ask_at_ = at;
  is_heartbeat_ = is_taken_along_ = false;
}

void acquire_call::on_no_connection(time_point /*now*/, errc code, bool is_final, bool is_refusal) {
  if (end_) return;
  last_news_ = code;
  if (is_final) return fail_definitely(code);
  const bool may_give_up = has_alternative_ || (!had_contact_ && !is_unanswered_);
  if (is_refusal && may_give_up && ++refusals_ >= refusals_before_giving_up) fail_definitely(code);
}

void acquire_call::on_cancel(time_point /*now*/) {
  if (end_) return;
  fail(is_asked_ || is_unanswered_ || is_given_back_ ? errc::cancelled_in_flight : errc::cancelled);
}

}  // namespace holdfast::core
