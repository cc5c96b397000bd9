// SPDX-License-Identifier: Apache-2.0
#include "quorum/list_history.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

std::size_t list_history::add(server_list list) {
  all_.push_back({std::move(list)});
  return all_.size() - 1;
}

std::size_t list_history::find(const server_list& list) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const entry& one) { return one.list == list; });
  return static_cast<std::size_t>(found - all_.begin());
}

void list_history::note_told(std::size_t which, instant now) {
  all_[which].told_at = now;
  if (list(which).record.generation >= list(current_).record.generation) current_ = which;
}

bool list_history::note_written(std::size_t which, const script::quorum_record& record, instant now) {
  entry& of = all_[which];
  auto& since = record.is_open ? of.opened_at : of.closed_since;
  since = std::min(since, now);
  if (!record.is_open || has_forgotten()) return true;
  return std::none_of(all_.begin(), all_.end(), [&](const entry& one) {
    return one.list.record.generation == record.generation && one.list.record.servers != record.servers &&
           one.opened_at != end_of_time;
  });
}

void list_history::note_kept(std::size_t node, std::uint32_t generation) {
  auto& of = kept_[node];
  if (of.most > 1 && generation < of.now) forgotten_.insert(node);
  of.now = generation;
  of.most = std::max(of.most, generation);
}

bool list_history::is_any_open(instant now) const {
  return std::any_of(std::next(all_.begin()), all_.end(), [&](const entry& one) { return one.opened_at <= now; });
}

bool list_history::is_first_left_open(instant now) const {
  const auto& nodes = list(0).nodes;
  const auto forgot = std::count_if(nodes.begin(), nodes.end(), [&](std::size_t node) {
    const auto found = kept_.find(node);
    return found != kept_.end() && found->second.most > 1 && found->second.now <= 1;
  });
  return (is_any_open(now) || were_records_deleted_) && 2 * static_cast<std::size_t>(forgot) > nodes.size();
}

bool list_history::may_overlap(std::size_t one, std::size_t other, bool is_left_open, instant now) const {
  if (!is_replacing() || one == other) return false;
  // Each was closed for by a majority, so a server has forgotten the one.
  const bool are_rivals = list(one).record.generation == list(other).record.generation;
  if (are_rivals && has_forgotten()) return true;
  return is_left_open || (were_records_deleted_ && is_first_left_open(now));
}

bool list_history::is_being_replaced(const server_list& which, instant since) const {
  if (!is_replacing()) return false;
  const auto next = which.record.generation + 1;
  const bool is_closed = std::any_of(all_.begin(), all_.end(), [&](const entry& one) {
    return one.list.record.generation == next && one.closed_since != end_of_time;
  });
  return is_closed || (next > 2 && all_[find(which)].told_at > since);
}

}  // namespace holdfast::sim
