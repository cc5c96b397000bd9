// SPDX-License-Identifier: Apache-2.0
// What a process asks others again and again: when it asks, how long a message takes, and whom it tells. As
// src/net/asked_line.hpp and the threads of src/net/sentinel_watch.cpp and cluster_watch.cpp.
#pragma once

#include "event_queue.hpp"
#include "seeded_random.hpp"

#include "base/time.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

namespace holdfast::sim {

class watch {
public:
  struct settings {
    int process;
    duration worth;        // engine::named_primary
    duration least_delay;  // One way.
    duration jitter;
  };
  struct hooks {
    std::function<time_point()> now{};
    // What a paused process does when it runs again, and a dead one never.
    std::function<void(std::function<void()>)> when_running{};
  };
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  // Nobody needs to know any more.
  void close() { is_closed_ = true; }

protected:
  static constexpr duration answer_patience = std::chrono::seconds{1};

  watch(event_queue& events, const settings& what, seeded_random rng, hooks tell);
  ~watch() = default;

  virtual void begin_round() = 0;
  // For the next round: in a while, or soon if somebody wants to know.
  void wait_for_next();

  event_queue& events() { return *events_; }
  int process() const { return what_.process; }
  duration period() const { return period_; }
  duration way() { return what_.least_delay + rng_.span(duration{0}, what_.jitter); }
  time_point now() const { return tell_.now(); }
  void when_running(std::function<void()> then) const { tell_.when_running(std::move(then)); }

  time_point began_at_{};  // The last round.
  bool is_asking_ = false;
  bool is_started_ = false;
  bool is_wanted_ = false;
  bool is_closed_ = false;

private:
  event_queue* events_;
  settings what_;
  seeded_random rng_;
  hooks tell_;
  duration period_;
  std::uint64_t pause_ = 0;  // The number of the latest one between two rounds.
};

}  // namespace holdfast::sim
