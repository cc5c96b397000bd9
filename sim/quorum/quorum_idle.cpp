// SPDX-License-Identifier: Apache-2.0
// Liveness: no lock stays free while somebody waits for it, and neither he nor any server is in trouble. What the end
// of a schedule shows is only that he has it some day.
#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// 160 ms are seen: the pause of two who took each other's votes, and who stands in the line of a server that was slow.
constexpr duration soon = 1s;
// Whoever stands still in the line of a server costs a claim window there, and each one behind him that does, too.
constexpr duration patience_with_the_slow = 10s;
constexpr duration between_looks = 20ms;

}  // namespace

// It may grant nothing yet, and who stands in its line does not try.
bool quorum_world::may_be_in_quarantine(std::size_t node) {
  return servers_[node].clock().read(events_.now()) - servers_[node].redis().started_at() < 2 * plan_.max_ttl;
}

// As the server's clock has it, and without setting its world to that.
bool quorum_world::is_free_on(std::size_t node, const lock& what) {
  const auto at = servers_[node].clock().read(events_.now()).time_since_epoch();
  const auto all = recorded_holders_of(servers_[node].redis(), what);
  return std::none_of(all.begin(), all.end(), [&](const holder& h) { return h.expires_at < 0us || h.expires_at > at; });
}

// All of it, so that a wait for few permits is not judged by what others leave.
bool quorum_world::is_free(const lock& what) {
  const auto& list = current_list();
  const auto& valid = valid_[what.number];
  const auto goes_on = [&](const auto& one) { return one.second.valid_until > events_.now(); };
  if (std::any_of(valid.begin(), valid.end(), goes_on)) return false;
  const auto votes =
      std::count_if(list.nodes.begin(), list.nodes.end(), [&](std::size_t node) { return is_free_on(node, what); });
  return static_cast<int>(votes) >= engine::votes_needed(list.nodes.size(), all_of(what));
}

void quorum_world::check_idle(int lock) {
  const instant now = events_.now();
  auto& seen = idle_[lock];
  if (now - seen.looked_at < between_looks) return;
  seen.looked_at = now;
  const auto& nodes = current_list().nodes;
  const auto in_trouble = [&](std::size_t node) {
    return node_trouble_until_[node] > now || may_be_in_quarantine(node);
  };
  const auto is_step = [](const disturbance& one) { return one.what == cause::clock_stepped; };
  if (!is_drawn_ || is_replacing() || std::any_of(nodes.begin(), nodes.end(), in_trouble) ||
      std::any_of(disturbances_.begin(), disturbances_.end(), is_step) || !is_free(lock_of(lock))) {
    seen.waits_since.clear();
    return;
  }
  const auto is_slow = [&](const auto& one) { return one.second > now; };
  const bool is_any_slow = std::any_of(client_trouble_until_.begin(), client_trouble_until_.end(), is_slow);
  const duration patience = soon + patience_with_the_dead() + (is_any_slow ? patience_with_the_slow : duration{0});
  for (const auto& one : clients_) {
    const auto own = client_trouble_until_.find(one->number());
    const bool is_well = own == client_trouble_until_.end() || own->second <= now;
    if (!is_well || !one->is_waiting_for(lock) || !(one->list() == current_list())) {
      seen.waits_since.erase(one->number());
      continue;
    }
    const instant since = std::max({seen.waits_since.emplace(one->number(), now).first->second,
                                    quarantined_at_[one->number()], dead_have_turns_until_});
    if (now - since <= patience) continue;
    complain("liveness",
             fmt::format("lock {} was free for {} ms, and client {} waited", lock, (now - since) / 1ms, one->number()));
  }
}

}  // namespace holdfast::sim
