// SPDX-License-Identifier: Apache-2.0
// The lists of servers that a quorum has, had or was to have: which of them its operators take for the one in use, and
// what its servers have forgotten of them. What that excuses is decided here, and not by whoever complains.
#pragma once

#include "quorum/server_list.hpp"
#include "world_time.hpp"

#include "script/quorum_record.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace holdfast::sim {

class list_history {
public:
  struct entry {
    server_list list{};
    instant closed_since = end_of_time;  // The first server, for it.
    instant opened_at = end_of_time;     // Likewise.
    instant told_at = end_of_time;       // The last time that an operator was told that it is in use.
  };

  // Which one it is. The first is that with which everything begins.
  std::size_t add(server_list list);
  std::size_t size() const { return all_.size(); }
  bool is_replacing() const { return all_.size() > 1; }
  const entry& at(std::size_t which) const { return all_[which]; }
  const server_list& list(std::size_t which) const { return all_[which].list; }
  std::size_t find(const server_list& list) const;
  // Of which an operator was told last, of the latest generation.
  std::size_t current() const { return current_; }

  void note_told(std::size_t which, instant now);
  // False: a server was opened for it beside another list of its generation, and none has forgotten anything.
  bool note_written(std::size_t which, const script::quorum_record& record, instant now);
  // What a server keeps now; 0: nothing.
  void note_kept(std::size_t node, std::uint32_t generation);
  // An operator has deleted it, who knows what he does.
  void note_cleared(std::size_t node) { kept_.erase(node); }
  void note_records_deleted() { were_records_deleted_ = true; }

  bool has_forgotten() const { return !forgotten_.empty(); }
  // Servers of the first list that have forgotten that it was closed vote for it again. Before the next one is open
  // that is waited for; later it is what decision 19 leaves open, and why clients are to be given the new list and
  // servers that were replaced are to be stopped.
  bool is_first_left_open(instant now) const;
  // May two leases of one lock stand, one of each, where at least one was granted while it was left open?
  bool may_overlap(std::size_t one, std::size_t other, bool is_left_open, instant now) const;
  // Some servers are its, and some are not: was that so since then?
  bool is_being_replaced(const server_list& which, instant since) const;

private:
  struct kept {
    std::uint32_t most = 0;  // The latest generation that it ever knew.
    std::uint32_t now = 0;
  };
  bool is_any_open(instant now) const;

  std::vector<entry> all_{};
  std::size_t current_ = 0;
  std::map<std::size_t, kept> kept_{};  // By node.
  std::set<std::size_t> forgotten_{};   // Nodes that ever lost a record of a later generation than the first.
  bool were_records_deleted_ = false;   // Of those.
};

}  // namespace holdfast::sim
