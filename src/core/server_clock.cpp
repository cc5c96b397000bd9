// SPDX-License-Identifier: Apache-2.0
#include "core/server_clock.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace holdfast::core {

using namespace std::chrono_literals;

std::optional<duration> server_clock::observe(server_time server_now, time_point sent_at, time_point received_at) {
  const duration round_trip = received_at - sent_at;
  std::optional<duration> step;
  if (known_) {
    const duration theirs = server_now - server_now_;
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
