// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next try: doubling, with jitter, capped. Its own file because connecting, renewing and
// cleaning up all need the same rule.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"

#include <algorithm>

namespace holdfast::core {

class backoff {
public:
  constexpr backoff(duration first, duration most) : first_{first}, most_{most}, next_{first} {}

  // Between half and all of the present step; the step doubles.
  duration next(base::random_source& rng) {
    const duration step = std::min(next_, most_);
    next_ = std::min(next_ * 2, most_);
    return duration{rng.between(step.count() / 2, step.count())};
  }

  void reset() { next_ = first_; }

private:
  duration first_;
  duration most_;
  duration next_;
};

}  // namespace holdfast::core
