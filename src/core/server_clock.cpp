// SPDX-License-Identifier: Apache-2.0
#include "core/server_clock.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace holdfast::core {

using namespace std::chrono_literals;

namespace {

// The 16 digits of a server's stamp are more nanoseconds than a duration holds. A step is a step from here on.
constexpr std::chrono::microseconds farthest = std::chrono::years{100};

}  // namespace

std::optional<duration> server_clock::observe(server_time server_now, time_point sent_at, time_point received_at) {
  const duration round_trip = received_at - sent_at;
  std::optional<duration> step;
  if (known_) {
    const duration theirs = std::clamp(server_now - server_now_, -farthest, farthest);
    const duration ours = received_at - received_at_;
    const duration apart = theirs - ours;
    const duration allowed = std::max<duration>(250ms, ours / 100) + round_trip + round_trip_;
    if (apart > allowed || -apart > allowed) step = apart;
  }
  known_ = true;
  server_now_ = server_now;
  received_at_ = received_at;
  round_trip_ = round_trip;
  return step;
}

server_time server_clock::at(time_point now) const {
  HOLDFAST_ASSERT(known_);
  return server_now_ + std::chrono::duration_cast<server_time::duration>(now - received_at_);
}

}  // namespace holdfast::core
