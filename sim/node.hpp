// SPDX-License-Identifier: Apache-2.0
// What a process has for one server, as src/client/node.hpp: a connection for commands and one for hints, driven
// together, and the keeper's.
#pragma once

#include "canary.hpp"
#include "facts.hpp"
#include "network.hpp"

#include "base/random.hpp"
#include "base/time.hpp"
#include "engine/caller.hpp"
#include "engine/hints.hpp"
#include "engine/keeper.hpp"
#include "engine/named_primary.hpp"
#include "engine/unattended.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::sim {

struct wire {
  engine::channel* channel;
  int id = 0;  // Zero: closed.
  bool is_open = false;
  network* net = nullptr;                       // It leads over this one.
  engine::named_primary::term_number term = 0;  // To this primary.
  int attempt = 0;
  bool has_open_renewal = false;  // Since when nothing was read from it.
};
bool has_renewal(std::string_view requests);

class node {
public:
  struct settings {
    engine::channel::settings commands{};
    engine::channel::settings keeper{};
    std::string ear{};  // The channel on which the line speaks to it.
    // Of a cluster: which of its servers, and when it was named; nobody: until any is known, as
    // client/cluster_nodes.hpp has its lobby.
    int server = nobody;
    std::shared_ptr<engine::named_primary> named{};
    std::shared_ptr<std::atomic<int>> epoch_tag{};
  };
  struct hooks {
    std::function<time_point()> now{};
    std::function<void()> on_down{};
    std::function<bool(canary_switch)> is_planted{};
    // The canary's: somebody takes what was said for a grant.
    std::function<void(time_point at, std::string_view owner, server_time said_at)> on_believed{};
  };
  node(const settings& what, base::random_source& rng, engine::keeper_listener& listener, hooks tell);
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  int server() const { return server_; }
  engine::named_primary& named() { return *named_; }
  std::atomic<int>& epoch_tag() { return *epoch_tag_; }

  std::array<wire*, 3> wires() { return {&commands, &listening, &keeping}; }
  // Has it anything to do before that?
  time_point wake_at() const;

  engine::caller caller;
  engine::hints ear;
  engine::keeper keeper;
  engine::unattended unattended;
  wire commands;
  wire listening;
  wire keeping;

private:
  hooks tell_;
  int server_;
  std::shared_ptr<engine::named_primary> named_;
  std::shared_ptr<std::atomic<int>> epoch_tag_;
};

}  // namespace holdfast::sim
