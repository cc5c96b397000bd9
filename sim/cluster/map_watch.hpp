// SPDX-License-Identifier: Apache-2.0
// How a process finds out who serves which slot: as src/net/cluster_watch.cpp, which asks the primaries for whoever
// wants to know, and again and again.
#pragma once

#include "cluster/slot_views.hpp"
#include "event_queue.hpp"
#include "seeded_random.hpp"

#include "base/time.hpp"

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::sim {

class server_set;

class map_watch {
public:
  struct settings {
    server_set* whom;
    int process;
    duration worth;
    duration least_delay;  // One way.
    duration jitter;
  };
  struct hooks {
    std::function<time_point()> now{};
    // What a paused process does when it runs again, and a dead one never.
    std::function<void(std::function<void()>)> when_running{};
    // What is known after a round, the first question of which was put then.
    std::function<void(const slot_views::map&, time_point asked_at)> on_map{};
    bool believes_anybody = false;  // The canary.
  };
  map_watch(event_queue& events, settings what, seeded_random rng, hooks tell);

  // They are asked soon. `whom`: told once, after on_map.
  void look(const std::function<void()>& whom = nullptr);
  // Nobody needs to know any more.
  void close() { is_closed_ = true; }

private:
  struct line {
    bool is_done = false;
    int view = -1;  // What it answered; -1: nothing that would be of use.
  };

  void begin_round();
  void ask(int server);
  void hear(int server, int view);
  void judge(bool is_late);
  slot_views::votes as_if_all_said(int view) const;
  void end_round(const slot_views::map& named);
  void wait_for_next();
  bool all_are_done() const;
  duration way() { return what_.least_delay + rng_.span(duration{0}, what_.jitter); }

  event_queue* events_;
  settings what_;
  seeded_random rng_;
  hooks tell_;
  duration period_;
  std::map<int, line> lines_{};  // By server.
  slot_views::map map_{};
  time_point began_at_{};
  std::vector<std::function<void()>> waiting_{};
  std::vector<std::function<void()>> asking_for_{};
  std::uint64_t round_ = 0;
  std::uint64_t pause_ = 0;
  bool is_confirmed_ = false;
  bool is_asking_ = false;
  bool is_started_ = false;
  bool is_wanted_ = false;
  bool is_closed_ = false;
};

}  // namespace holdfast::sim
