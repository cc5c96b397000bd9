// SPDX-License-Identifier: Apache-2.0
#include "watch.hpp"

#include "engine/named_primary.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

// As src/net/sentinel_watch.cpp and cluster_watch.cpp.
constexpr duration least_pause = std::chrono::milliseconds{20};

}  // namespace

watch::watch(event_queue& events, const settings& what, seeded_random rng, hooks tell)
    : events_{&events},
      what_{what},
      rng_{rng},
      tell_{std::move(tell)},
      period_{engine::named_primary{what.worth}.grants_for() / 4} {}

void watch::wait_for_next() {
  const duration passed = now() - began_at_;
  const duration left = std::max((is_wanted_ ? least_pause : period_) - passed, duration{0});
  events_->after(left, [this, number = ++pause_] {
    when_running([this, number] {
      if (number == pause_ && !is_asking_ && !is_closed_) begin_round();
    });
  });
}

}  // namespace holdfast::sim
