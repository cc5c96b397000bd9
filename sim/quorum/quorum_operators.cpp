// SPDX-License-Identifier: Apache-2.0
// What operators do to a quorum, and what must hold of it.
#include "checkers/one_script.hpp"
#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

bool has(const std::vector<holder>& all, const std::string& owner) {
  return std::any_of(all.begin(), all.end(), [&](const holder& one) { return one.owner == owner; });
}

}  // namespace

// ---- what they do ----

// Of what a client has been granted: whom somebody breaks while he is still being granted it, and gets another token
// (raise.lua), may hold it in the end.
void quorum_world::break_something() {
  const lock& of = plan_.locks[trouble_.below(plan_.locks.size())];
  const auto& all = valid_[of.number];
  if (all.empty()) return;
  const auto& seen = std::next(all.begin(), static_cast<std::ptrdiff_t>(trouble_.below(all.size())))->second;
  const auto& list = clients_[static_cast<std::size_t>(seen.client)]->list();
  if (history_.is_being_replaced(list, events_.now())) return;  // He would be refused.
  const quorum_break::settings how{of,        seen.owner, fmt::format("{:016}", seen.token), trouble_.chance(40),
                                   plan_.ttl, list.nodes};
  ++to_come_;
  breaks_.emplace_back(events_, servers_, how, seeded_random{trouble_.next()}, [this, how](quorum_break::end end) {
    --to_come_;
    ++statistics_->breaks[static_cast<std::size_t>(end)];
    mix(static_cast<std::uint64_t>(end) + 40);
    static constexpr std::array words{"broken", "not known", "not broken"};
    if (keeps_trace_) {
      say(fmt::format("an operator is told of {:.8} on lock {}{}: {}", how.owner, how.of.number,
                      how.at_once ? ", at once" : "", words[static_cast<std::size_t>(end)]));
    }
    auto& told_at = broken_[how.owner].told_at;
    if (end == quorum_break::end::broken) told_at = std::min(told_at, events_.now());
  });
}

// ---- what must hold ----

void quorum_world::note_vote(std::size_t node, const script_run& run) {
  if (has(run.after, run.owner()) && !has(run.before, run.owner())) voted_for_by_[run.owner()].insert(node);
}

void quorum_world::note_break(std::size_t node, const script_run& run) {
  const holder* whose = broken_by(run);
  if (!whose) return;
  const bool is_at_once = run.args[1] == "now";  // What ends a hold without being asked to is no excuse.
  if (keeps_trace_) say(fmt::format("node {}: {:.8} is broken{}", node, whose->owner, is_at_once ? " at once" : ""));
  auto& of = broken_[whose->owner];
  of.on.insert(node);
  of.since = std::min(of.since, events_.now());
  if (is_at_once) of.at_once_on.insert(node);
}

// It has a vote that was taken from the other.
bool quorum_world::is_let_in_by_a_break(const std::string& one, const std::string& other) const {
  const auto taken = broken_.find(other);
  const auto has = voted_for_by_.find(one);
  if (taken == broken_.end() || has == voted_for_by_.end()) return false;
  return std::any_of(taken->second.at_once_on.begin(), taken->second.at_once_on.end(),
                     [&](std::size_t node) { return has->second.contains(node); });
}

// Without the record of the break its server renews it again.
void quorum_world::check_broken(int client, const quorum_client::held& one, instant until) {
  const auto found = broken_.find(one.owner.hex());
  if (found == broken_.end() || found->second.told_at == end_of_time) return;
  const auto& of = found->second;
  // All that was sent before counts from before.
  if (until <= of.told_at + one.ttl + one.ttl / 100) return;
  const bool is_deleted = std::any_of(of.on.begin(), of.on.end(), [&](std::size_t node) {
    const auto at = deleted_at_.find(node);
    return at != deleted_at_.end() && at->second >= of.since;
  });
  if (is_deleted) {
    ++statistics_->attributed[static_cast<std::size_t>(cause::keys_deleted)];
    return;
  }
  complain("break",
           fmt::format("client {}, lock {}, token {}: goes on {} us after an operator was told that it is broken",
                       client, one.lock, one.token.value(), (events_.now() - of.told_at).count() / 1000));
}

}  // namespace holdfast::sim
