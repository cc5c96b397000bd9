// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a lease's life, all of it: when it ends, when to renew, when to warn (docs/lease_time.md).
// One file, because every safety argument about time quotes these few lines.
#pragma once

#include "base/time.hpp"

#include <chrono>

namespace holdfast::core {

// How far apart the rates of our clock and the server's may be, as parts per million, so that sums stay exact.
struct clock_drift {
  std::int64_t ppm = 10'000;
};

// What may be used of a span that the server counts: span - (drift, rounded up, + 2 ms). Never negative.
// The 2 ms are Redis's millisecond expiry and ours, each rounded the wrong way.
duration usable(std::chrono::milliseconds span, clock_drift drift);

// A grant or a renewal of `ttl` that was handed to the transport at `sent_at` holds until here. Counted from before
// the request left: on a slow link the reply comes most of a round trip after Redis started its timer (B19).
time_point deadline_of(time_point sent_at, std::chrono::milliseconds ttl, clock_drift drift);

// lost() fires this long before the deadline, because timers and threads are late (P13c).
duration lost_lead(std::chrono::milliseconds ttl);
// at_risk() fires this long before the deadline.
duration risk_lead(std::chrono::milliseconds ttl);
// From one renewal's send to the next: min(ttl/3, 10 s).
duration renew_period(std::chrono::milliseconds ttl);
// The last common instant at or before `at`. What a process renews falls on these, so that a hundred thousand leases
// cost a hundred wake-ups and writes a second and not one each: 10 ms apart, less for a short ttl.
time_point renewal_instant(time_point at, std::chrono::milliseconds ttl);
// How long one renewal may stay unanswered before another is sent: min(ttl/6, a third of what is left, 1 s).
duration renew_attempt_timeout(std::chrono::milliseconds ttl, duration left);
// A grant with less than this left when its answer is read is given back: 30 % of the ttl (H16).
duration least_useful(std::chrono::milliseconds ttl);

}  // namespace holdfast::core
