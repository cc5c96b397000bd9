// SPDX-License-Identifier: Apache-2.0
#include "watchdog_policy.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

// Whoever is not our child ends without a word.
constexpr milliseconds gone_look{20};

constexpr milliseconds ended_look{1000};
// So long a command that somebody else had go on may be beside the next holder's.
constexpr milliseconds standing_look{100};
constexpr milliseconds longest_patience{20};

}  // namespace

watchdog_policy::watchdog_policy(const limits& given)
    : limits_{given}, patience_{std::min(given.margin / 4, longest_patience)} {}

watchdog_policy::step watchdog_policy::look(milliseconds now, const sight& seen) {
  switch (phase_) {
    case phase::killed: return {};
    case phase::watching: return seen.owner_lives ? beside_owner(now, seen) : without_owner(now, seen);
    case phase::stopping: break;
  }
  return now >= kill_at_ ? kill() : step{act::none, std::min(kill_at_ - now, gone_look)};
}

// Nobody renews the lease any more, so the command has no time to win: but it may end well.
watchdog_policy::step watchdog_policy::without_owner(milliseconds now, const sight& seen) {
  const auto latest = seen.deadline - limits_.margin;
  const bool asks = limits_.grace > milliseconds{0};
  const auto kill_at = asks ? std::min(now + limits_.grace, latest) : latest;
  if (limits_.kills_with_owner || kill_at <= now) return kill();
  const auto stopping = stop(now, kill_at);
  return asks && !seen.is_stopping ? stopping : step{act::none, stopping.look_again_in};
}

watchdog_policy::step watchdog_policy::beside_owner(milliseconds now, const sight& seen) {
  const auto end = seen.deadline - limits_.margin / 2;
  const auto due_at = seen.is_stopping ? end : end - limits_.grace;
  const bool ended_itself = seen.has_ended && !seen.is_stopping;
  const bool is_owners = ended_itself || seen.stands;
  if (is_owners || now < due_at) {
    due_since_.reset();
    if (ended_itself) return {act::none, ended_look};
    return seen.stands ? beside_standing(now, end) : step{act::none, due_at - now};
  }
  if (!due_since_) due_since_ = now;
  const auto act_at = *due_since_ + patience_;
  if (now < act_at) return {act::none, act_at - now};
  return now < end ? stop(now, end) : kill();
}

watchdog_policy::step watchdog_policy::beside_standing(milliseconds now, milliseconds end) {
  return now < end ? step{act::none, end - now} : step{act::stand, standing_look};
}

watchdog_policy::step watchdog_policy::stop(milliseconds now, milliseconds kill_at) {
  phase_ = phase::stopping;
  kill_at_ = kill_at;
  return {act::stop, std::min(kill_at - now, gone_look)};
}

watchdog_policy::step watchdog_policy::kill() {
  phase_ = phase::killed;
  return {act::kill, milliseconds::max()};
}

}  // namespace holdfast::cli
