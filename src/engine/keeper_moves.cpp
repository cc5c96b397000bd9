// SPDX-License-Identifier: Apache-2.0
// How what is kept goes to the keeper of another server, when that one serves its keys from now on.
#include "engine/keeper.hpp"
#include "engine/keeper_task.hpp"
#include "engine/releasing.hpp"
#include "engine/renewing.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace holdfast::engine {

std::vector<keeper::departing> keeper::take_away(time_point now,
                                                 const std::function<bool(const script::lock_keys&)>& which) noexcept {
  // In the order in which they came, because what is drawn and sent for them must not depend on where they lie in
  // memory.
  struct found {
    std::uint64_t number;
    const held_lease* lease;
    const releasing* release;
  };
  std::vector<found> leaving;
  for (const auto& [key, one] : leases_) {
    if (one->is_about(which)) leaving.push_back({one->number, key, nullptr});
  }
  for (const auto& [key, one] : releases_) {
    if (which(one->keys())) leaving.push_back({one->number, nullptr, key});
  }
  std::sort(leaving.begin(), leaving.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  std::vector<departing> out;
  out.reserve(leaving.size());
  for (const auto& one : leaving) {
    if (one.lease) {
      out.push_back(leases_.at(one.lease)->depart(now));
      leases_.erase(one.lease);
    } else {
      out.push_back(releases_.at(one.release)->depart(now));
      releases_.erase(one.release);
    }
  }
  std::erase_if(ghosts_, [&](const ghost& one) {
    if (!which(one.keys)) return false;
    departing with_it;
    with_it.ghost = one;
    out.push_back(std::move(with_it));
    return true;
  });
  update_demand();
  return out;
}

void keeper::adopt(time_point now, departing what) noexcept {
  if (what.ghost) return remember(what.ghost->keys, what.ghost->owner, what.ghost->grant);
  if (what.release) {
    auto background = std::make_unique<releasing>(*this, std::move(*what.release), *what.release_plan);
    const releasing* key = background.get();
    schedule(*releases_.emplace(key, std::move(background)).first->second, now);
    return;
  }
  const held_lease* key = what.several.front().get();
  // By owner id, which who is handed it in the process has, too, and who is granted the same lock later has not. Many
  // come at once, so the old ones are not looked for each time.
  const duration most = channel_.longest_moving_takes();
  if (now >= forget_moved_at_) {
    std::erase_if(moved_, [&](const auto& one) { return one.second + most <= now; });
    forget_moved_at_ = now + most;
  }
  for (const auto& lease : what.several) moved_[std::string{lease->owner.hex()}] = now;
  auto kept = std::make_unique<renewing>(*this, std::move(what.several), what.renewed_from, *what.plan);
  kept->take_over(now, std::move(what.wishes));
  schedule(*kept, now);
  leases_.emplace(key, std::move(kept));
}

time_point keeper::renewals_from(const held_lease& lease, time_point now) const {
  const auto moved = moved_.find(std::string{lease.owner.hex()});
  const time_point it_counts = moved == moved_.end() ? time_point{} : moved->second + channel_.moving_takes(now);
  return std::max(channel_.renewals_from(now), it_counts);
}

}  // namespace holdfast::engine
