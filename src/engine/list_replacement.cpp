// SPDX-License-Identifier: Apache-2.0
// The order of it. What a server's record says is in list_standing.cpp.
#include "engine/list_replacement.hpp"

#include "script/field.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace holdfast::engine {

list_replacement::list_replacement(lists what, const std::vector<std::string>& from, const std::vector<std::string>& to)
    : what_{std::move(what)}, closed_{what_.to}, open_{what_.to} {
  open_.generation = closed_.generation = what_.from.generation + 1;
  closed_.is_open = false;
  add(from, &member::is_old);
  add(to, &member::is_new);
  std::sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

void list_replacement::add(const std::vector<std::string>& names, bool member::*which) {
  for (const auto& name : names) {
    auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& m) { return m.name == name; });
    if (found == members_.end()) {
      members_.push_back({.name = name});
      found = std::prev(members_.end());
    }
    (*found).*which = true;
  }
}

// ---- what has come of it ----

void list_replacement::on_seen(std::size_t at, seen what) {
  member& one = members_[at];
  one.kept = std::move(what.kept);
  one.run_id = std::move(what.run_id);
  const auto hold = std::string_view{what.epoch}.substr(std::min(what.epoch.rfind('|') + 1, what.epoch.size()));
  const std::chrono::milliseconds found{static_cast<std::int64_t>(script::parse_digits(hold, 12).value_or(0))};
  one.hold = std::max(one.hold, found);
  one.is_away = one.was_told_away = false;
  mind_other(at);
}

void list_replacement::on_away(std::size_t at, std::string trouble) {
  members_[at].is_away = true;
  members_[at].trouble = std::move(trouble);
}

void list_replacement::on_written(std::size_t at, const script::quorum_record& record,
                                  const std::optional<std::string>& instead) {
  members_[at].kept = instead ? *instead : text_of(record);
  mind_other(at);
}

// Of a new server nothing hangs on its record before its vote: once something has been changed it is not worth stopping
// half-way for. An old one of somebody else's may be voting for them.
void list_replacement::mind_other(std::size_t at) {
  const member& one = members_[at];
  if (phase_ == phase::looks || one.is_old || of(one) != standing::other) return;
  on_away(at, "it belongs to " + one.kept);
}

// ---- what to do next ----

auto list_replacement::next() -> action {
  switch (phase_) {
    case phase::begins: phase_ = phase::looks; return look_at_all{};
    case phase::looks: {
      if (auto why = check()) return *std::move(why);
      is_through_ = is_waited_ = had_waited();  // Who closes now has not waited yet.
      return enter(phase::tells);
    }
    case phase::tells: return tell();
    case phase::closes: return close();
    case phase::looks_at_closed:
      return is_majority(&member::is_old, closed_for_us()) ? wait_for_leases() : enter(phase::closes);
    case phase::waits: phase_ = phase::looks_again; return look_at_all{};
    case phase::looks_again: {
      // Who lost its data meanwhile would vote for the old list again, so it is closed again, and what it may have
      // granted is waited for.
      is_waited_ = is_majority(&member::is_old, closed_for_us());
      if (!is_waited_) {
        waited_for_ = {};
      } else if (longest_hold() > waited_for_) {
        return wait_for_leases();  // For the rest.
      }
      return enter(phase::closes);
    }
    case phase::opens: return open();
  }
  return done{};
}

auto list_replacement::enter(phase next) -> action {
  phase_ = next;
  at_ = 0;
  has_looked_again_ = false;
  return this->next();
}

auto list_replacement::check() const -> std::optional<action> {
  const auto anything_but_away = {standing::before, standing::closed, standing::opened, standing::rival};
  constexpr auto missed = "answered, and nothing was changed";
  auto why = not_apart();
  if (!why) why = not_known();
  if (!why) why = no_majority(&member::is_old, count(&member::is_old, anything_but_away), missed);
  if (!why) why = no_majority(&member::is_new, count(&member::is_new, anything_but_away), missed);
  if (!why) why = not_in_use();
  return why;
}

auto list_replacement::tell() -> action {
  while (at_ < members_.size()) {
    const auto one = at_++;
    if (members_[one].is_away) {
      members_[one].was_told_away = true;
      return tell_away{one};
    }
  }
  return enter(phase::closes);
}

// An earlier call has, if what it closed and what it opened still is so. That something is open says that somebody
// waited once; old servers that forgot since then that they were closed have voted, and who closed them again may have
// been killed before he waited. That a majority is open makes nothing of it undone: the new list has granted since.
bool list_replacement::had_waited() const {
  return is_majority(&member::is_old, closed_for_us()) &&
         is_majority(&member::is_new, count(&member::is_new, {standing::opened}));
}

// One after the other: of two who begin at the same time with other lists one stops at the first server that both
// reach. Who meets the other one's servers behind some of his own goes on: they grant nothing either, and who has a
// majority is through. Nobody closes again what is closed for the other, so only one of them can have it.
auto list_replacement::close() -> action {
  for (; at_ < members_.size(); ++at_) {
    const member& one = members_[at_];
    // Again, where a client of the old list has written its record meanwhile.
    if (one.is_old && of(one) == standing::before) return write{at_, closed_, one.kept};
    if (one.is_old && of(one) == standing::other) return fail_for_other(one);
    if (of(one) == standing::rival && is_outdone()) return fail_for_rival();
  }
  if (!is_majority(&member::is_old, closed_for_us()) && count(&member::is_old, {standing::rival}) != 0)
    return fail_for_rival();
  if (auto why = no_majority(&member::is_old, closed_for_us(),
                             "are closed; those that are stay so: start the others and call again")) {
    return *std::move(why);
  }
  return look_or_open();
}

// How long to wait is asked of a majority that is closed by then. Before that a client may come whose leases live
// longer than anybody's; behind it nobody gets one, and of the majority that gave one a server at least is among those
// asked.
auto list_replacement::look_or_open() -> action {
  if (is_waited_) {
    if (!std::exchange(is_through_, false)) return enter(phase::opens);
    return tell_goes_on{};  // And here again.
  }
  phase_ = phase::looks_at_closed;
  return look_at_all{};
}

// By any clock no lease of the old list lives longer than this after a majority was closed: what was renewed last was
// renewed before.
auto list_replacement::wait_for_leases() -> action {
  phase_ = phase::waits;
  const auto all = longest_hold();
  return wait{all - std::exchange(waited_for_, all)};
}

std::chrono::milliseconds list_replacement::longest_hold() const {
  auto hold = what_.hold;
  for (const auto& one : members_) {
    if (one.is_old) hold = std::max(hold, one.hold);
  }
  return hold;
}

auto list_replacement::open() -> action {
  for (; at_ < members_.size(); ++at_, has_looked_again_ = false) {
    member& one = members_[at_];
    if (!one.is_new) continue;
    if (one.is_away && !std::exchange(has_looked_again_, true)) return look{at_};
    if (one.is_away && !std::exchange(one.was_told_away, true)) return tell_away{at_};
    if (!one.is_away && of(one) != standing::opened && of(one) != standing::other) {
      return write{at_, open_, one.kept};
    }
  }
  if (auto why = no_majority(&member::is_new, count(&member::is_new, {standing::opened}),
                             "are open for the new list, so that nobody can have a lock: start the others and call "
                             "again")) {
    return *std::move(why);
  }
  return done{};
}

}  // namespace holdfast::engine
