// SPDX-License-Identifier: Apache-2.0
// Several leases as one: as src/client/lease_set.cpp, and what release.cpp there does for it.
#include "process.hpp"

#include <algorithm>

namespace holdfast::sim {

lease_ptrs process::join(const lease_ptrs& several) {
  const time_point at = now();
  auto& keeper = several.front()->kept_at->keeper;
  const bool are_kept =
      std::all_of(several.begin(), several.end(), [&](const auto& one) { return keeper.is_kept(*one); });
  if (!are_kept) {
    for (const auto& one : several) drop(one);
    return {};
  }
  time_point deadline = never;
  instant counted_from = end_of_time;
  for (const auto& one : several) {
    deadline = std::min(deadline, at + one->deadline.left(at));
    counted_from = std::min(counted_from, one->seen.counted_from);
  }
  lease_ptrs joined;
  for (const auto& one : several) joined.push_back(std::make_shared<kept_lease>(*one, deadline));
  for (const auto& one : several) keeper.let_go(*one);
  keeper.keep_as_one({joined.begin(), joined.end()}, never, deadline, renewal::automatic);
  for (std::size_t i = 0; i < several.size(); ++i) {
    joined[i]->all.assign(joined.begin(), joined.end());
    joined[i]->seen.set = several.front()->seen.number;
    joined[i]->seen.ttl = several.front()->ttl;
    joined[i]->seen.counted_from = counted_from;
    joined[i]->seen.valid_until = clock_.when(std::min(deadline, joined[i]->last));
    for (auto& o : leases_) {
      if (o.lease == several[i]) o.lease = joined[i];
    }
    several[i]->deadline.end();
    end_turn(*several[i]);  // Nobody hands on what is held with others.
    tell_.on_joined(joined[i]->seen);
  }
  drive();
  return joined;
}

// The earliest deadline; none: it is lost, and all is released in the background.
std::optional<time_point> process::let_go_all(const lease_ptrs& joined) {
  const time_point at = now();
  const bool was_kept = joined.front()->kept_at->keeper.let_go(*joined.front());
  time_point deadline = never;
  for (const auto& one : joined) {
    deadline = std::min(deadline, at + one->deadline.left(at));
    one->deadline.end();
    if (was_kept) end(one, hold_end::released);
  }
  if (was_kept && deadline > at) return deadline;
  for (const auto& one : joined) release_in_background(one);
  return std::nullopt;
}

void process::release_all(customer& who, const lease_ptrs& joined) {
  const auto deadline = let_go_all(joined);
  for (const auto& one : joined) {
    // It goes on when the first is released; the others are.
    if (deadline) send_release(one == joined.front() ? &who : nullptr, one, *deadline);
    if (!deadline) finish_release(one, release_outcome::already_lost);
  }
  if (!deadline) news_.emplace_back(&who, [](customer& c) { c.on_released(release_outcome::already_lost); });
  drive();
}

void process::drop_all(const lease_ptrs& joined) {
  if (let_go_all(joined)) {
    for (const auto& one : joined) release_in_background(one);
  }
  for (const auto& one : joined) forget_copies(one);
  drive();
}

}  // namespace holdfast::sim
