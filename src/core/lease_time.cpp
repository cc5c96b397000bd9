// SPDX-License-Identifier: Apache-2.0
#include "core/lease_time.hpp"

#include <algorithm>

namespace holdfast::core {

using namespace std::chrono_literals;

duration usable(std::chrono::milliseconds span, clock_drift drift) {
  // A span is at most a day (options) and a drift at most 0.2: 8.64e13 ns / 1e6 * 2e5 stays far inside 63 bits.
  const std::int64_t ns = duration{span}.count();
  const std::int64_t lost_to_drift = (ns / 1'000'000 + 1) * drift.ppm;
  return std::max(duration{0}, duration{ns} - duration{lost_to_drift} - duration{2ms});
}

time_point deadline_of(time_point sent_at, std::chrono::milliseconds ttl, clock_drift drift) {
  return sent_at + usable(ttl, drift);
}

duration lost_lead(std::chrono::milliseconds ttl) { return std::max<duration>(5ms, duration{ttl} / 20); }

duration risk_lead(std::chrono::milliseconds ttl) { return duration{ttl} / 6; }

duration renew_period(std::chrono::milliseconds ttl) { return std::min<duration>(duration{ttl} / 3, 10s); }

time_point renewal_instant(time_point at, std::chrono::milliseconds ttl) {
  const auto apart = std::min<duration>(10ms, duration{ttl} / 100);
  return at - at.time_since_epoch() % apart;
}

duration renew_attempt_timeout(std::chrono::milliseconds ttl, duration left) {
  return std::max<duration>(1ms, std::min({duration{ttl} / 6, left / 3, duration{1s}}));
}

duration least_useful(std::chrono::milliseconds ttl) { return duration{ttl} * 3 / 10; }

}  // namespace holdfast::core
