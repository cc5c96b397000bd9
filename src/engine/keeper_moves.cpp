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
                                                 const std::function<bool(const script::lock_keys&)>& which) {
  // In the order in which they came, because what is sent for them must not depend on where they lie in memory.
  std::vector<std::pair<std::uint64_t, departing>> found;
  const auto take_from = [&](auto& all, const auto& is_one) {
    for (auto one = all.begin(); one != all.end();) {
      if (!is_one(*one->second)) {
        ++one;
        continue;
      }
      found.emplace_back(one->second->number, one->second->depart(now));
      one = all.erase(one);
    }
  };
  take_from(leases_, [&](const renewing& one) { return one.is_about(which); });
  take_from(releases_, [&](const releasing& one) { return which(one.keys()); });
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<departing> out;
  out.reserve(found.size());
  for (auto& [number, leaving] : found) out.push_back(std::move(leaving));
  std::erase_if(ghosts_, [&](const ghost& one) {
    if (!which(one.keys)) return false;
    departing leaving;
    leaving.ghost = one;
    out.push_back(std::move(leaving));
    return true;
  });
  update_demand();
  return out;
}

void keeper::adopt(time_point now, departing what) {
  if (what.ghost) return remember(what.ghost->keys, what.ghost->owner, what.ghost->grant);
  if (what.release) {
    auto background = std::make_unique<releasing>(*this, std::move(*what.release), *what.release_plan);
    const releasing* key = background.get();
    schedule(*releases_.emplace(key, std::move(background)).first->second, now);
    return;
  }
  const held_lease* key = what.several.front().get();
  // By key, because it may be handed on in the process meanwhile. Many come at once, so the old ones are not looked for
  // each time.
  if (now >= forget_moved_at_) {
    std::erase_if(moved_, [&](const auto& one) { return one.second <= now; });
    forget_moved_at_ = now + channel_.moving_takes();
  }
  for (const auto& lease : what.several) moved_[lease->keys.holder] = now + channel_.moving_takes();
  auto kept = std::make_unique<renewing>(*this, std::move(what.several), what.renewed_from, *what.plan);
  kept->take_over(now, std::move(what.wishes));
  schedule(*kept, now);
  leases_.emplace(key, std::move(kept));
}

time_point keeper::renewals_from(const held_lease& lease) const {
  const auto moved = moved_.find(lease.keys.holder);
  const time_point since_it_moved = moved == moved_.end() ? time_point{} : moved->second;
  return std::max(channel_.renewals_from(), since_it_moved);
}

}  // namespace holdfast::engine
