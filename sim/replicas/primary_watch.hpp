// SPDX-License-Identifier: Apache-2.0
// How a process finds the primary: as src/net/sentinel_watch.cpp, which asks the sentinels for whoever wants to connect
// and again and again, so that engine/named_primary.hpp knows what a grant is worth.
#pragma once

#include "event_queue.hpp"
#include "replicas/sentinels.hpp"
#include "seeded_random.hpp"

#include "engine/named_primary.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::sim {

class primary_watch {
public:
  struct settings {
    const sentinels* whom;
    int process;
    duration worth;
    duration least_delay;  // One way.
    duration jitter;
  };
  struct hooks {
    std::function<time_point()> now{};
    // What a paused process does when it runs again, and a dead one never.
    std::function<void(std::function<void()>)> when_running{};
    std::function<void()> on_change{};
  };
  primary_watch(event_queue& events, settings what, seeded_random rng, hooks tell);

  struct found {
    int server = 0;
    engine::named_primary::term_number term = 0;  // 0: nobody is named.
  };
  // Tells it once; now, if they were asked not long ago.
  void find(std::function<void(const found&)> whom);
  std::shared_ptr<const engine::named_primary> primary() const { return named_; }
  // Nobody needs to know any more.
  void close() { is_closed_ = true; }

private:
  struct answer {
    std::size_t sentinel;
    instant given_at;
    instant comes_at;  // Or the asker's patience is over.
    bool is_given;
  };
  using round = std::array<answer, sentinels::count>;  // In the order in which they come.

  void begin_round();
  // When so many of them have come.
  void read(const round& answers, std::size_t count);
  void end_round(found result);
  void wait_for_next();

  event_queue* events_;
  settings what_;
  seeded_random rng_;
  hooks tell_;
  std::shared_ptr<engine::named_primary> named_;
  duration period_;
  std::vector<std::function<void(const found&)>> waiting_{};
  std::vector<std::function<void(const found&)>> asking_for_{};
  time_point began_at_{};
  std::uint64_t pause_ = 0;  // The number of the latest one between two rounds.
  bool is_asking_ = false;
  bool is_started_ = false;
  bool is_wanted_ = false;
  bool is_closed_ = false;
  found last_{};
  time_point last_at_{};
};

}  // namespace holdfast::sim
