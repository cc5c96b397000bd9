// SPDX-License-Identifier: Apache-2.0
// How a process finds out who serves which slot: as src/net/cluster_watch.cpp, which asks the primaries for whoever
// wants to know, and again and again.
#pragma once

#include "cluster/slot_views.hpp"
#include "watch.hpp"

#include "base/time.hpp"

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::sim {

class server_set;

class map_watch final : public watch {
public:
  struct news {
    // What is known after a round, the first question of which was put then.
    std::function<void(const slot_views::map&, time_point asked_at)> on_map{};
    bool believes_anybody = false;  // The canary.
  };
  map_watch(event_queue& events, server_set& whom, const settings& what, seeded_random rng, hooks how, news tell);

  // They are asked soon. `whom`: told once, after on_map.
  void look(const std::function<void()>& whom = nullptr);

private:
  struct line {
    bool is_done = false;
    int view = -1;  // What it answered; -1: nothing that would be of use.
  };

  void begin_round() override;
  void ask(int server);
  void hear(int server, int view);
  void judge(bool is_late);
  slot_views::votes as_if_all_said(int view) const;
  void end_round(const slot_views::map& named);
  bool all_are_done() const;

  server_set* whom_;
  news tell_;
  std::map<int, line> lines_{};  // By server.
  slot_views::map map_{};
  std::vector<std::function<void()>> waiting_{};
  std::vector<std::function<void()>> asking_for_{};
  std::uint64_t round_ = 0;
  bool is_confirmed_ = false;
};

}  // namespace holdfast::sim
