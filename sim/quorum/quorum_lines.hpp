// SPDX-License-Identifier: Apache-2.0
// Where the callers of a quorum's client wait: in the line of an ordinary lock of one server, by an ordinary client of
// that server (process.hpp), made when it is first wanted. As quorum::turn_of of src/client/quorum.cpp.
#pragma once

#include "event_queue.hpp"
#include "network.hpp"
#include "plan.hpp"
#include "process.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

class quorum_lines {
public:
  struct settings {
    int number;  // Of the client: its clock and its host are those of its lines.
    process_plan how;
    const plan* of;
    seeded_random rng;
    bool has_alternative = true;
  };
  struct hooks {
    // Its connection to this server has ended. Not to be called back from.
    std::function<void(std::size_t node)> on_down{};
    std::function<void(const std::string& what)> on_spin{};
  };
  // `nets`: to each of the servers of its client's list, by whose places they are called here.
  quorum_lines(event_queue& events, std::vector<network*> nets, settings what, hooks tell);

  // Who stands in the line of this server, by the number of the lock.
  process& of(std::size_t node);

  void pause();
  void resume();
  void die(process::death how);
  bool is_idle() const;
  // Its connections to one server.
  std::vector<int> connections_to(std::size_t node) const;

private:
  event_queue* events_;
  std::vector<network*> nets_;
  settings what_;
  hooks tell_;
  std::vector<lock> locks_{};
  std::vector<std::unique_ptr<process>> clients_;  // By server; null: nobody wanted to wait there.
  int last_number_ = 0;
};

}  // namespace holdfast::sim
