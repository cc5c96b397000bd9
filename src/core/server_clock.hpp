// SPDX-License-Identifier: Apache-2.0
// What we know of the server's clock from one connection's replies: enough to say until when a request may still
// take effect (H12), and to notice that it stepped, or that we were frozen (H3, H4, H8).
//
// An estimate counts from the present connection's own replies (P11): a channel asks at() only after its greeting has
// brought TIME. Steps are looked for across connections, or the time between two of them would be a blind spot.
#pragma once

#include "base/time.hpp"

#include <optional>

namespace holdfast::core {

class server_clock {
public:
  // A reply that carried `server_now`; its request was sent at `sent_at` and it was read at `received_at`.
  // Gives how far the two clocks moved apart since the last one, if that is more than drift and delay explain:
  // |server's advance - ours| > max(250 ms, 1 %) + both round trips.
  std::optional<duration> observe(server_time server_now, time_point sent_at, time_point received_at);

  bool is_known() const { return known_; }
  bool is_older_than(const server_clock& other) const {
    return other.known_ && (!known_ || received_at_ < other.received_at_);
  }

  // The server's time at `now`, reckoned from the instant the last reply was read: too early by its way back, so a
  // request that waits too long is refused rather than let in. Only when is_known().
  server_time at(time_point now) const;

private:
  bool known_ = false;
  server_time server_now_{};
  time_point received_at_{};
  duration round_trip_{0};
};

}  // namespace holdfast::core
