// SPDX-License-Identifier: Apache-2.0
// Decides when to renew a held lease, when to warn, and when to call it lost.
// Pure: no socket, clock or timer here. engine/ feeds it and does what it says.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/backoff.hpp"
#include "core/lease_time.hpp"

#include <holdfast/error.hpp>
#include <holdfast/options.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace holdfast::core {

//  state | wake < next send | next send..lost_at | wake >= lost_at       | renewed          | refused by server
//  ------+------------------+--------------------+-----------------------+------------------+------------------
//  held  | sleep            | renew              | lost(lease_expired)   | deadline moves   | lost(its reason)
//  lost  | nothing          | nothing            | nothing               | nothing          | nothing
//
// Without automatic renewal the next send is never, except while somebody asks for one. Likewise when the deadline is
// as late as it may become (R14): then the loss at it is lease_held_too_long.
//
// Several renewals may be in flight: each that is answered counts from its own send instant, and the latest deadline
// wins. So a silent connection is retried on without waiting to hear that the first try is dead. (engine/keeper stops
// at two unanswered ones: a server that is slow would be asked for more and more.)
class lease_keeper {
public:
  // `last`: no renewal moves the deadline beyond it.
  lease_keeper(time_point deadline, std::chrono::milliseconds ttl, renewal mode, clock_drift drift,
               time_point granted_at, time_point last = never)
      : ttl_{ttl},
        drift_{drift},
        is_automatic_{mode == renewal::automatic},
        last_{last},
        deadline_{std::min(deadline, last)} {
    // A grant that was long on its way, or was found again by a repeated request, has less than its ttl left: the
    // first renewal counts from where the deadline counts from, or it would come too late.
    const time_point counted_from = std::min(granted_at, deadline - usable(ttl, drift));
    regular_send_at_ = renews_itself() ? renewal_instant(counted_from + renew_period(ttl), ttl) : never;
    next_send_at_ = regular_send_at_;
    if (renews_itself()) connects_at_ = counted_from + renew_period(ttl) / 3;
  }

  // What to do now, each at most once for its cause. `wake_at` is when to ask again.
  struct decision {
    bool renew = false;
    bool connect = false;  // Or go on trying to.
    bool at_risk = false;
    std::optional<errc> lost{};
    time_point wake_at = never;
  };

  // When to call it first.
  time_point first_wake_at(bool can_send) const {
    const time_point at = std::min(deadline_ - risk_lead(ttl_), next_send_at_);
    return can_send ? at : std::min(at, connects_at_);
  }
  // Call whenever the driver wakes, for any reason: waking early or late is harmless.
  // `can_send`: is there a connection that a renewal could go out on?
  decision on_wake(time_point now, bool can_send);

  // The server renewed; the request had been sent at `sent_at`. True if the deadline moved. An answer that comes
  // after the loss, or at the very instant of it, changes nothing (P13c). `at_most`: whatever the ttl is, it counts no
  // longer than until then (engine/named_primary.hpp); the next renewal is due as if it had been sent so much earlier.
  bool on_renewed(time_point now, time_point sent_at, base::random_source& rng, time_point at_most = never);

  // The server renewed, but no renewal counts that was sent before `counts_from` (engine/named_primary.hpp): the
  // deadline stays, and the next one goes out then.
  void on_early(time_point counts_from);

  // No answer, or an error that says nothing about the lease: the deadline stays (B18: only a definite refusal is a
  // loss), and we try again soon.
  void on_failed(time_point now, base::random_source& rng);

  // Somebody wants it renewed now, whatever the mode: a renewal is due, and due again while it is unanswered, until
  // stop_asking(). Whose wish is met by which answer is the caller's to know.
  void ask(time_point now);
  void stop_asking();

  // Whether it still stands is in doubt: what renews itself is due now.
  void hurry(time_point now);

  // The server refuses: the lease is gone, taken or broken. The loss is reported by the next on_wake.
  void on_refused(errc reason);

  // A connection came (back): renewals that waited for one go out at once.
  void on_connected(time_point now);

  time_point deadline() const { return deadline_; }
  time_point next_send_at() const { return next_send_at_; }
  bool is_lost() const { return is_lost_; }
  // Neither lost, nor about to be called so by the next on_wake.
  bool stands(time_point now) const { return !is_lost_ && !refused_ && now < deadline_ - lost_lead(ttl_); }
  bool waits_for_connection() const { return waits_for_connection_; }

private:
  bool renews_itself() const { return is_automatic_ && deadline_ < last_; }

  std::chrono::milliseconds ttl_;
  clock_drift drift_;
  bool is_automatic_;
  bool is_asked_ = false;
  time_point last_;
  time_point deadline_;
  time_point regular_send_at_;  // When nobody asks: after the last confirmed one.
  time_point next_send_at_;
  // Before the first renewal is due: a name server or a full server may take seconds. Who holds it for a moment only
  // needs none.
  time_point connects_at_ = never;
  bool waits_for_connection_ = false;
  bool warned_ = false;
  bool is_lost_ = false;
  std::optional<errc> refused_{};
  backoff retry_{std::chrono::milliseconds{25}, std::chrono::seconds{2}};
};

}  // namespace holdfast::core
