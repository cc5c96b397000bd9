// SPDX-License-Identifier: Apache-2.0
// Decides the course of one acquire: when to ask, when to ask again, when it is over and how.
// Pure: time, randomness and answers come in, actions go out. engine/ turns the actions into requests.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/clean_up.hpp"
#include "core/lease_time.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::core {

// What the server said to one request. `at_most`: the lease counts no longer than until then, whatever its ttl is
// (engine/named_primary.hpp).
struct was_granted {
  fencing_token token;
  time_point at_most = never;
};
struct was_mine {  // Granted before, by an earlier copy or by the line; so much of the server's ttl is left.
  fencing_token token;
  std::chrono::milliseconds remaining;
  time_point at_most = never;
};
struct was_unconfirmed {};  // Granted, or no for what may have been our own; to be asked once more.
struct was_uncounted {};    // Granted, but the server may have forgotten somebody who holds it: to be given back.
struct was_unreplicated {   // Granted, but too few replicas have it, or nobody knows how many: to be given back.
  errc code;
  bool passes;  // So that trying again makes sense.
};
struct was_left {};  // What was to be given back is.
struct was_busy {};
struct was_lined {};   // Free, but somebody may be in line to take it.
struct was_unseen {};  // A try saw nobody live in line, and not all of it.
struct was_queued {
  std::uint64_t ticket;
  std::chrono::milliseconds look_in;
};
struct was_not_in_line {};
struct was_late {};   // This copy had no effect. An earlier one may have had (P10).
struct was_spent {};  // An earlier copy was granted and has ended (P9).
struct was_refused {
  errc code;
  bool passes;               // By itself, so that asking again makes sense.
  bool keeps_place = false;  // Not soon; but a place in line is worth waiting for as long as the server keeps it.
};
using acquire_answer =
    std::variant<was_granted, was_mine, was_unconfirmed, was_uncounted, was_unreplicated, was_left, was_busy, was_lined,
                 was_unseen, was_queued, was_not_in_line, was_late, was_spent, was_refused>;

// Can we be told? Pending: the subscription is on its way.
enum class hearing { pending, yes, no };

// What acquire_call wants. `may_take`: the request must have no effect later than this after it was sent.
struct ask {  // For the lock, now or not at all.
  owner_id owner;
  duration may_take;
};
struct stand {  // For the lock or a place in line; with `only_try` for the lock if nobody is ahead.
  owner_id owner;
  duration may_take;
  bool only_try;
  std::uint64_t ticket;              // Had before; zero: none.
  std::chrono::milliseconds window;  // To claim a grant in.
  std::optional<duration> wait_left;
};
struct look {
  owner_id owner;
  duration may_take;
  bool is_heartbeat;  // It has no other reason, and can be for others of the process, too.
};
struct give_back {  // Whatever it was granted; and hear that it is back, so that the end is definite.
  owner_id owner;
};
struct sleep_until {
  time_point at;
};
struct got_lease {  // Under the call's owner().
  fencing_token token;
  time_point granted_at;  // When the server was asked; for a grant found later, as much earlier as it has run since.
  time_point deadline;
  bool was_repeated;  // An earlier copy is unanswered and may still arrive: clean up after the lease, too.
};
struct got_busy {};
struct got_failure {
  errc code;
};
using acquire_end = std::variant<got_lease, got_busy, got_failure>;
struct finish {};
using acquire_action = std::variant<ask, stand, look, give_back, sleep_until, finish>;

// An owner id that the server may know, or may come to know by a copy that is still on its way.
struct unfinished {
  owner_id owner;
  bool may_have_copies;
  bool may_stand;  // In line, where a place lasts longer than a lease (P2).
  route went_by;   // One of them at least was cut off; or none.
};

struct acquire_settings {
  std::chrono::milliseconds ttl;
  clock_drift drift;
  bool only_once;                // try_acquire, or wait = 0: busy ends it.
  std::optional<duration> wait;  // Empty: until cancelled.
  duration timeout;              // The longest silence of the server that is put up with.
  bool had_contact;              // This client has talked to this server before: a refusal may be a restart.
  bool has_alternative = false;  // Another server would do as well: none is waited for that is gone or silent.
  // What whoever asked for us has heard, and how long the server's answers take. Who has waited behind others, and has
  // too little time left to ask itself, ends with that.
  errc heard = errc::server_silent;
  duration round_trip{0};
  // Too little, at least: many threads of one process whose time ends at once make a near server slower for each.
  duration too_little = std::chrono::milliseconds{5};
  time_point silent_since = never;  // Where they heard nothing: since when.
};

//  state   | wake, due and connected | answer                           | connection cut       | hint
//  --------+-------------------------+----------------------------------+----------------------+-----------------
//  outside | ask                     | end, or entering (busy, line)    | ask again, same id   | nothing
//  entering| stand, once it is known | end, or in line                  | stand again, same id | kept for the answer
//          | whether we can be told  |                                  |                      |
//  in line | look                    | end, in line, or entering        | look again           | look, now or then
//          |                         | (not in line: with the ticket)   |                      |
//  ended   | finish                  | nothing                          | nothing              | nothing
//
// Granted, and too few replicas have it: give_back comes next, outside or entering; its answer ends a try, and anybody
// when no replica will ever do; else it goes on as it came, after a pause.
//
// In quarantine, while nothing is granted: outside becomes entering without a question, what asks only once ends, and
// who is in line looks for the heartbeat, and at the end of it.
//
// Refused in line because the server takes no writes: that look was missed, the next one is the heartbeat's. The third
// of those in a row ends it, for then the place is gone; a bounded wait lasts.
//
// Past the deadline: an unanswered request makes it unknown (reply_lost); else the last news decides: busy is
// timed_out, no connection is the connection's error.
class acquire_call {
public:
  acquire_call(const acquire_settings&, time_point now, base::random_source& rng);

  acquire_action on_wake(time_point now, bool can_send, hearing told = hearing::no);

  // Somebody says that we should look after so long. Only ever a hint (H20, B31). It sticks until a look that is sent
  // then, or later: an answer to what is under way by now may be older than it (P6).
  void on_hint(time_point now, duration look_in);
  // The subscription came up or went down: what was said meanwhile is lost, so look (H18).
  void on_hearing_changed(time_point now);
  // Nothing is granted before `until`: the server may have forgotten who holds what. To be said before each event.
  void on_quarantine(time_point until) { quarantined_until_ = until; }
  // There is a connection again: the server may not know us any more.
  void on_connected(time_point now);
  // From the first busy on: would it help to be told?
  bool wants_hints() const { return place_ != place::outside && !only_once_; }

  // Another waiter of this process, in the same line, can look for this one with its own look: this one has nothing to
  // do there but to be heard of, and that is due soon. Not for who waits for the proof that what it was granted is
  // back: only an answer of its own is one. `is_heartbeat_due`: now.
  bool can_be_looked_for(time_point now) const;
  bool is_heartbeat_due(time_point now) const { return can_be_looked_for(now) && now >= ask_at_; }
  // This one is to look for others.
  void on_chosen(time_point now) { beat_at(now, now); }
  // Another one does, and says soon what came of it; should it not, this one looks itself.
  void on_taken_along(time_point now);
  // This one is in line as before; or it must look for itself; or the other one's look said nothing about it.
  void on_looked_for(time_point now);
  void on_missed(time_point now) { look_now(now); }
  void on_not_looked_for(time_point now);

  // The answer to the request that was sent at `sent_at`, read at `now`. `have_all_left`: it proves that the clean-ups
  // which were sent ahead of it are done.
  void on_answer(time_point now, time_point sent_at, const acquire_answer&, bool have_all_left = true);

  // The connection ended while the request was unanswered.
  void on_cut(time_point now);

  // A connection could not be made. `is_final`: trying again will not help (password, permission, TLS, ...).
  // `is_refusal`: somebody definitely said no (connection refused, no such host): three of them end a call that
  // never had contact, because nobody wants to look at a typing error for five seconds, and one that has an
  // alternative.
  void on_no_connection(time_point now, errc code, bool is_final, bool is_refusal);

  void on_cancel(time_point now);

  // What on_wake() said last, if it is not over; before the first it is due.
  time_point sleeps_until() const { return sleeps_until_; }
  bool is_over() const { return end_.has_value(); }
  const acquire_end& end() const { return *end_; }
  int attempts() const { return attempts_; }
  // What was heard last; server_silent: nothing yet.
  errc last_news() const { return last_news_; }
  // Since when the server owes a sign of life, to us or to whoever asked for us; it may be a time to come, when nothing
  // is asked before.
  time_point silent_since() const { return std::min(silent_since_, silent_before_); }
  // What it was granted is given back, nothing proves that it is back, and there is time for another question: that
  // will take as long as the one that was sent at `sent_at`.
  bool can_ask_for_proof(time_point now, time_point sent_at) const {
    return is_given_back_ && now < last_ask(std::max(round_trip_, now - sent_at));
  }
  // It has asked nothing, and will not: it only waits for the end of its time.
  bool is_past_asking() const { return attempts_ == 0 && ask_at_ == never; }
  // The next answer is that to give_back.
  bool is_giving_back() const { return giving_back_for_ != errc{}; }
  bool is_in_line() const { return !end_ && place_ == place::in_line; }
  std::uint64_t ticket() const { return ticket_; }
  // The present one; of a lease that it got, the lease's.
  const owner_id& owner() const { return owner_; }
  std::chrono::milliseconds ttl() const { return ttl_; }
  // Of the last answer.
  duration round_trip() const { return round_trip_; }
  // Over as invalid_option: grants were over, or nearly, when they came.
  bool was_too_far() const { return was_too_far_; }

  std::size_t clean_ups() const { return clean_ups_.size(); }
  // The caller lets each leave, in the background.
  std::vector<unfinished> take_clean_ups() { return std::exchange(clean_ups_, {}); }

private:
  enum class place : unsigned char { outside, entering, in_line };

  acquire_action request(time_point now);
  acquire_action rest(time_point until);
  duration patience() const;
  time_point silence_ends_at() const;
  void finish_at_deadline(time_point now);
  void fail(errc code);
  void fail_definitely(errc code);
  void forget_owner();
  time_point last_ask() const { return last_ask(round_trip_); }
  time_point last_ask(duration round_trip) const;
  void schedule_ask(time_point now, time_point at);
  void look_now(time_point now);
  void ask_sooner(time_point at);
  void beat_at(time_point now, time_point at);
  duration beat() const;  // From one look to the next, where there is no other reason for one.
  time_point next_beat(time_point now, duration look_in);
  void enter(time_point now);
  void come_back(time_point now);
  void accept(time_point now, fencing_token token, time_point granted_at, time_point at_most);
  void hear(time_point now, time_point sent_at, const was_granted&);
  void hear(time_point now, time_point sent_at, const was_mine&);
  void hear(time_point now, time_point sent_at, const was_unconfirmed&);
  void hear(time_point now, time_point sent_at, const was_uncounted&);
  void hear(time_point now, time_point sent_at, const was_unreplicated&);
  void hear(time_point now, time_point sent_at, const was_left&);
  void hear(time_point now, time_point sent_at, const was_busy&);
  void hear(time_point now, time_point sent_at, const was_lined&);
  void hear(time_point now, time_point sent_at, const was_unseen&);
  void hear(time_point now, time_point sent_at, const was_queued&);
  void hear(time_point now, time_point sent_at, const was_not_in_line&);
  void hear(time_point now, time_point sent_at, const was_late&);
  void hear(time_point now, time_point sent_at, const was_spent&);
  void hear(time_point now, time_point sent_at, const was_refused&);

  base::random_source* rng_;
  std::chrono::milliseconds ttl_;
  duration timeout_;
  clock_drift drift_;
  time_point deadline_;       // `never` when waiting without bound.
  time_point silent_since_;   // The last sign of life of the server.
  time_point silent_before_;  // Where whoever asked for us has heard nothing, and we have not yet: since when.
  time_point ask_at_;
  time_point sleeps_until_{};  // What it said last; the epoch: nothing yet, and it is due.
  owner_id owner_;
  place place_ = place::outside;
  bool only_once_ : 1;  // Bits, because ten thousand may wait.
  bool had_contact_ : 1;
  bool has_alternative_ : 1;
  bool is_asked_ : 1 = false;
  bool is_called_ : 1 = false;     // Since it asked: to look now.
  bool is_heartbeat_ : 1 = false;  // The next look: it has no other reason.
  bool is_taken_along_ : 1 = false;
  bool is_unanswered_ : 1 = false;   // A copy with this owner id was cut off, and what became of it is not known.
  bool is_given_back_ : 1 = false;   // What was granted is, as it is of no use, and nothing was answered behind it.
  bool has_copies_ : 1 = false;      // One was cut off at all: it may still arrive.
  bool was_quarantine_ : 1 = false;  // When the last request was sent.
  bool is_hopeless_ : 1 = false;     // What it is given back for stays so.
  bool was_too_far_ : 1 = false;
  bool has_come_back_ = false;
  // Each ends it when it is three, or goes no further.
  std::uint8_t refusals_ = 0;
  std::uint8_t lates_ = 0;
  std::uint8_t unwritten_since_ = 0;  // Of looks in a row to a server that takes no writes, the first one's second.
  std::uint8_t passing_ = 0;          // Refusals in a row of those that pass.
  std::uint8_t too_late_ = 0;  // Grants of which little was left when they came, and no answer in between was quicker.
  std::uint8_t unreplicated_ = 0;
  int attempts_ = 0;
  errc giving_back_for_{};
  errc last_news_ = errc::server_silent;
  time_point wait_for_hearing_until_{};
  time_point quarantined_until_{};
  std::uint64_t ticket_ = 0;
  time_point stands_by_until_{};  // Told to look then; the epoch: nothing, or it has looked.
  duration round_trip_{0};
  std::vector<unfinished> clean_ups_;
  std::optional<acquire_end> end_;
};

}  // namespace holdfast::core
