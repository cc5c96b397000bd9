// SPDX-License-Identifier: Apache-2.0
// C4 and loss in a quorum's world: who loses a lock of it is told, once and in time, and nobody loses one for nothing.
#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

// C4: who runs is told before the lease is not valid any more, by more than a timer is ever late (core/lease_time.hpp:
// lost_lead); who stood still, at the first instant of running. Also when the first that it does behind that is to give
// the lease back. One that is over may have been taken out, because another has come.
void quorum_world::check_told(int client, const quorum_client::held& one) {
  const auto& who = *clients_[static_cast<std::size_t>(client)];
  const auto& all = valid_[one.lock];
  const auto known = all.find(one.id);
  const bool is_over = known == all.end() || events_.now() > known->second.valid_until;
  if (!is_over || !who.is_running() || who.resumed_at() == events_.now()) return;
  complain("C4", fmt::format("client {}, lock {}, token {}: was not told of its loss by its deadline", client, one.lock,
                             one.token.value()));
}

// Who was told has given it up, and is in valid_ no more.
void quorum_world::check_that_all_losses_were_told() {
  for (const auto& [lock, all] : valid_) {
    for (const auto& [id, one] : all) {
      if (one.valid_until >= events_.now() || !clients_[static_cast<std::size_t>(one.client)]->is_running()) continue;
      complain("C4", fmt::format("client {} was never told that it lost token {}", one.client, one.token));
    }
  }
}

void quorum_world::note_votes(const quorum_client::held& one) {
  auto& seen = valid_.at(one.lock).at(one.id);
  const auto before = std::exchange(seen.votes, {});
  for (const auto node : clients_[static_cast<std::size_t>(seen.client)]->list().nodes) {
    if (has_vote(node, one.lock, one.owner)) seen.votes.push_back(node);
  }
  seen.is_renewed = !before.empty();
  seen.counted = seen.votes;
  const auto is_new = [&](std::size_t node) { return std::find(before.begin(), before.end(), node) == before.end(); };
  if (seen.is_renewed) std::erase_if(seen.counted, is_new);
}

// Since the requests that it counts from enough of those who voted for it then have been there, and so has its client,
// and no operator has broken it: its renewals must have come to a majority.
void quorum_world::check_lost(int client, const quorum_client::held& one, hold_end how) {
  const auto& all = valid_[one.lock];
  const auto known = all.find(one.id);
  if (how != hold_end::lost || known == all.end() || !is_drawn_ || one.mode == renewal::none) return;
  if (const auto found = broken_.find(one.owner.hex()); found != broken_.end() && !found->second.on.empty()) return;
  const instant since = known->second.valid_until - one.ttl;
  if (2 * duration{one.ttl} < 5 * farthest_vote(client)) return;  // A renewal has its tries in that time.
  if (const auto own = client_trouble_until_.find(client); own != client_trouble_until_.end() && own->second > since) {
    return;
  }
  const auto& list = clients_[static_cast<std::size_t>(client)]->list();
  if ((must_finish_ && !is_finished_) || history_.is_being_replaced(list, since)) return;
  const auto& votes = known->second.counted;
  const auto untroubled = static_cast<int>(
      std::count_if(votes.begin(), votes.end(), [&](std::size_t node) { return node_trouble_until_[node] <= since; }));
  if (untroubled < engine::votes_needed(list.nodes.size(), one.part)) return;
  // It may not have heard of each vote when it won, and one that it hears of later counts with the next renewal (R18).
  if (!known->second.is_renewed && untroubled < static_cast<int>(votes.size())) return;
  complain("loss", fmt::format("client {}, lock {}, token {}: is told that it lost, and {} of the {} servers that "
                               "voted for it were there",
                               client, one.lock, one.token.value(), untroubled, votes.size()));
}

}  // namespace holdfast::sim
