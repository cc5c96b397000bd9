// SPDX-License-Identifier: Apache-2.0
// An operator of a quorum who sees that a lock is held, thinks about it, and breaks what he saw: what `holdfast show`
// and `holdfast break` do, at one server after the other. What it has come to is for core::break_count to say; the
// looks and their order are written again here (src/client/quorum_inspect.cpp, quorum_break.cpp).
#pragma once

#include "event_queue.hpp"
#include "facts.hpp"
#include "model_server.hpp"
#include "seeded_random.hpp"

#include "core/break_count.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::sim {

class quorum_break {
public:
  struct settings {
    lock of;
    std::string owner;               // Of the hold that he saw,
    std::string token;               // and its token.
    bool at_once;                    // --now
    duration ttl;                    // A slow server takes as long.
    std::vector<std::size_t> nodes;  // The list that he goes by.
    int unreachable_percent = 15;    // Each of the servers, for him alone.
  };
  using end = core::break_count::end;
  using told = std::function<void(end)>;
  // It must not end before it has told, and once.
  quorum_break(event_queue& events, std::deque<model_server>& servers, const settings& what, seeded_random rng,
               told tell);

private:
  struct vote {
    std::size_t node;  // In his list.
    holder seen;
  };
  struct survey {
    std::map<std::string, std::vector<vote>> by_owner{};
    std::size_t silent = 0;
  };

  bool answers(std::size_t node) const;
  survey look();
  model_server& at(std::size_t node) const { return (*servers_)[what_.nodes[node]]; }
  bool is_majority(std::size_t count) const { return count > what_.nodes.size() / 2; }
  void begin();
  void break_next();
  std::error_code ask_to_break(const vote& one);
  duration way();

  event_queue* events_;
  std::deque<model_server>* servers_;
  settings what_;
  seeded_random rng_;
  told tell_;
  std::vector<bool> is_cut_off_{};  // From which servers.
  std::vector<vote> votes_{};
  std::size_t next_ = 0;
  core::break_count count_;
};

}  // namespace holdfast::sim
