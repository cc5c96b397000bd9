// SPDX-License-Identifier: Apache-2.0
// Decides the course of one acquire: when to ask, when to ask again, when it is over and how.
// Pure: time, randomness and answers come in, actions go out. engine/ turns the actions into requests.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/lease_time.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::core {

// What the server said to one acquire request.
struct was_granted {
  fencing_token token;
};
struct was_mine {  // An earlier copy of this request was granted; so much of the server's ttl is left.
  fencing_token token;
  std::chrono::milliseconds remaining;
};
struct was_busy {
  std::optional<std::chrono::milliseconds> remaining;  // Of the holder; empty when it has no expiry (foreign).
};
struct was_late {};   // This copy had no effect. An earlier one may have had (P10).
struct was_spent {};  // An earlier copy was granted and has ended (P9).
struct was_refused {
  errc code;
  bool passes;  // By itself, so that asking again makes sense.
};
using acquire_answer = std::variant<was_granted, was_mine, was_busy, was_late, was_spent, was_refused>;

// What acquire_call wants.
struct ask {
  owner_id owner;
  duration may_take;  // The request must have no effect later than this after it was sent.
};
struct sleep_until {
  time_point at;
};
struct got_lease {
  owner_id owner;
  fencing_token token;
  time_point deadline;
  bool was_repeated;  // An earlier copy is unanswered and may still arrive: clean up after the lease, too.
};
struct got_busy {};
struct got_failure {
  errc code;
};
using acquire_end = std::variant<got_lease, got_busy, got_failure>;
struct finish {};
using acquire_action = std::variant<ask, sleep_until, finish>;

struct acquire_settings {
  std::chrono::milliseconds ttl;
  clock_drift drift;
  bool only_once;                // try_acquire, or wait = 0: busy ends it.
  std::optional<duration> wait;  // Empty: until cancelled.
  duration timeout;              // The longest silence of the server that is put up with.
  bool had_contact;              // This client has talked to this server before: a refusal may be a restart.
};

//  state   | wake                          | answer                         | connection cut       | cannot connect
//  --------+-------------------------------+--------------------------------+----------------------+----------------
//  idle    | ask, if due and connected     | invalid                        | nothing              | count, maybe end
//  asked   | sleep to the deadline         | end, or idle with next ask_at  | idle, same owner id  | nothing
//  ended   | finish                        | nothing                        | nothing              | nothing
//
// Past the deadline: an unanswered request makes it unknown (reply_lost); else the last news decides: busy is
// timed_out, no connection is the connection's error.
class acquire_call {
public:
  acquire_call(const acquire_settings&, time_point now, base::random_source& rng);

  acquire_action on_wake(time_point now, bool can_send);

  // The answer to the request that was sent at `sent_at`, read at `now`.
  void on_answer(time_point now, time_point sent_at, const acquire_answer&);

  // The connection ended while the request was unanswered.
  void on_cut(time_point now);

  // A connection could not be made. `is_final`: trying again will not help (password, permission, TLS, ...).
  // `is_refusal`: somebody definitely said no (connection refused, no such host): three of them end a call that
  // never had contact, because nobody wants to look at a typing error for five seconds.
  void on_no_connection(time_point now, errc code, bool is_final, bool is_refusal);

  void on_cancel(time_point now);

  bool is_over() const { return end_.has_value(); }
  const acquire_end& end() const { return *end_; }
  int attempts() const { return attempts_; }

  // Owner ids whose requests may have taken effect, or may yet: the caller releases each in the background.
  std::vector<owner_id> take_clean_ups() { return std::exchange(clean_ups_, {}); }

private:
  void finish_at_deadline(time_point now);
  void fail(errc code);
  void fail_definitely(errc code);
  void forget_owner();
  void schedule_ask(time_point now, time_point at);
  void accept(time_point now, fencing_token token, time_point deadline);
  void hear(time_point now, time_point sent_at, const was_granted&);
  void hear(time_point now, time_point sent_at, const was_mine&);
  void hear(time_point now, time_point sent_at, const was_busy&);
  void hear(time_point now, time_point sent_at, const was_late&);
  void hear(time_point now, time_point sent_at, const was_spent&);
  void hear(time_point now, time_point sent_at, const was_refused&);

  acquire_settings settings_;
  base::random_source* rng_;
  time_point deadline_;      // `never` when waiting without bound.
  time_point silent_since_;  // The last sign of life of the server.
  time_point ask_at_;
  owner_id owner_;
  bool is_asked_ = false;
  bool is_unanswered_ = false;  // A copy with this owner id was cut off: it may still take effect.
  bool had_contact_;
  int attempts_ = 0;
  int refusals_ = 0;
  int lates_ = 0;
  duration round_trip_{0};
  errc last_news_ = errc::server_silent;
  std::vector<owner_id> clean_ups_;
  std::optional<acquire_end> end_;
};

}  // namespace holdfast::core
