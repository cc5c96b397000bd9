// SPDX-License-Identifier: Apache-2.0
// Is there an order of the steps that respects time and that the model allows? Wing and Gong's search: put any step
// next that no other one wholly precedes, and go back when none fits; with Lowe's memory of (which steps are in order,
// state of the model), so that no such pair is looked at twice. It is a loop over a stack of its own: a history's
// length costs memory, not depth.
//
// What keeps it small, and does not change the answer:
// - Tokens increase in every model, so among takes with tokens only the smallest one that is left can be next.
// - `busy` changes nothing, so where it can be next it is.
// - A step that may or may not have taken effect is only tried where a step that must is refused: put off until just
//   before the one that it makes room for (or for a busy: that it explains), it disturbs nothing in between.
// - What is alike is used in its order: ghosts of one part, once they have begun, and holds of one part that may end.
//   And whoever came to the same pair with fewer ghosts could have done all that follows.
#pragma once

#include "history/steps.hpp"
#include "history/words.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::test::history {

enum class answer { linearizable, refused, undecided };

struct found {
  answer what = answer::undecided;
  std::uint64_t tried = 0;      // Pairs of steps in order and state that were looked at.
  const step* stuck = nullptr;  // When refused: what could not be put in order, in the best try.
  std::vector<int> holds{};     // Who held the lock then.
};

template <class Model>
class search {
public:
  // `of` must live as long. After `give_up_at` (CLOCK_BOOTTIME) the answer is undecided.
  search(const steps& of, Model model, instant give_up_at)
      : of_{of}, model_{std::move(model)}, give_up_at_{give_up_at} {
    const auto count = static_cast<int>(of.required.size());
    for (int i = 0; i <= count; ++i) {  // The list's ends meet in `count`.
      next_.push_back(i == count ? 0 : i + 1);
      before_.push_back(i == 0 ? count : i - 1);
    }
    of_hold_.resize(of.holders.size());
    for (int i = 0; i < static_cast<int>(of.optional.size()); ++i) {
      of_hold_[index(of.optional[index(i)].hold)].push_back(i);
    }
    for (int i = 0; i < count; ++i) {
      if (of.required[index(i)].what == deed::take && of.required[index(i)].token != 0) takes_.push_back(i);
    }
    std::stable_sort(takes_.begin(), takes_.end(), [&](int a, int b) { return required(a).token < required(b).token; });
    for (int i = 0; i < static_cast<int>(of.ghosts.size()); ++i) ghosts_[of.ghosts[index(i)].part].all.push_back(i);
  }

  found run() {
    for (const auto& one : of_.required) {
      if (one.from <= one.to) continue;
      result_.stuck = &one;  // No instant at which it can have been.
      return end_with(answer::refused);
    }
    std::vector<frame> stack;
    stack.push_back({{}, choices_at({}), 0, {}, -1});
    while (!is_complete()) {
      frame& top = stack.back();
      if (top.next == top.choices.size()) {
        if (stack.size() == 1) return end_with(answer::refused);
        undo(top.led_here, top.furthest_before);
        stack.pop_back();
        continue;
      }
      if (++result_.tried % 1024 == 0 && boottime().count() >= give_up_at_) return end_with(answer::undecided);
      const choice next = top.choices[top.next++];
      state after = top.now;
      model_.apply(step_of(next), after);
      const int furthest_before = furthest_;
      take(next);
      if (!is_news(after)) {
        undo(next, furthest_before);
        continue;
      }
      auto choices = choices_at(after);
      stack.push_back({std::move(after), std::move(choices), 0, next, furthest_before});
    }
    return end_with(answer::linearizable);
  }

private:
  using state = typename Model::state;
  enum class sort { required, optional, ghost_begins, ghost_ends };
  struct choice {
    sort what{};
    int number = 0;  // Of the step, of the ghost, or of the ghost's hold.
  };
  struct frame {
    state now;
    std::vector<choice> choices;
    std::size_t next;
    choice led_here;
    int furthest_before;
  };
  struct ghosts_of_a_part {
    std::vector<int> all{};
    std::size_t used = 0;
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  const step& required(int number) const { return of_.required[index(number)]; }
  int end_of_list() const { return static_cast<int>(of_.required.size()); }
  int first() const { return next_[index(end_of_list())]; }
  bool is_complete() const { return first() == end_of_list(); }

  found end_with(answer what) {
    result_.what = what;
    return result_;
  }

  step step_of(const choice& one) const {
    const auto ghosts_begin = static_cast<int>(of_.holders.size());
    switch (one.what) {
      case sort::required: return required(one.number);
      case sort::optional: return of_.optional[index(one.number)];
      case sort::ghost_begins: {
        const ghost& it = of_.ghosts[index(one.number)];
        return {deed::take, ghosts_begin + one.number, it.part, 0, it.from, never, nullptr};
      }
      case sort::ghost_ends: break;
    }
    return {deed::end, one.number, everything, 0, 0, never, nullptr};
  }

  // ---- what may come next ----

  std::vector<choice> choices_at(const state& now) {
    const int earliest = first_to_return();
    const instant limit = earliest == end_of_list() ? never : required(earliest).to;
    std::vector<choice> all;
    bool wants_room = false, wants_a_ghost = false;
    for (int i = first(); i != end_of_list() && required(i).from <= limit; i = next_[index(i)]) {
      const step& one = required(i);
      const bool has_turn = one.what != deed::take || one.token == 0 || takes_[next_take_] == i;
      state after = now;
      if (has_turn && model_.apply(one, after)) {
        if (one.what == deed::busy) return {{sort::required, i}};
        all.push_back({sort::required, i});
      } else if (has_turn) {
        wants_room = wants_room || one.what == deed::take;
        wants_a_ghost = wants_a_ghost || one.what == deed::busy;
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [&](const choice& a, const choice& b) { return required(a.number).to < required(b.number).to; });
    if (wants_room || wants_a_ghost) add_ends(now, limit, all);  // A ghost wants room, too.
    if (wants_a_ghost) add_ghosts(now, limit, all);
    note_how_far(now, earliest, limit);
    return all;
  }

  // Nothing can come before a step that has returned when it was called.
  int first_to_return() const {
    int earliest = end_of_list();
    instant limit = never;
    for (int i = first(); i != end_of_list() && required(i).from <= limit; i = next_[index(i)]) {
      if (earliest != end_of_list() && required(i).to >= limit) continue;
      earliest = i;
      limit = required(i).to;
    }
    return earliest;
  }

  void add_ends(const state& now, instant limit, std::vector<choice>& all) {
    std::set<int> parts, parts_of_ghosts;
    for (const int hold : now.holds) {
      if (const auto count = of_.holders.size(); index(hold) >= count) {
        const int part = of_.ghosts[index(hold) - count].part;
        if (parts_of_ghosts.insert(part).second) all.push_back({sort::ghost_ends, hold});
        continue;
      }
      for (const int i : of_hold_[index(hold)]) {
        const step& one = of_.optional[index(i)];
        state after = now;
        if (one.from > limit || !model_.apply(one, after)) continue;
        if (one.what == deed::end && !parts.insert(of_.holders[index(hold)]->part).second) continue;
        all.push_back({sort::optional, i});
      }
    }
  }

  void add_ghosts(const state& now, instant limit, std::vector<choice>& all) {
    for (const auto& [part, ghosts] : ghosts_) {
      if (ghosts.used == ghosts.all.size()) continue;
      const choice next{sort::ghost_begins, ghosts.all[ghosts.used]};
      state after = now;
      if (of_.ghosts[index(next.number)].from <= limit && model_.apply(step_of(next), after)) all.push_back(next);
    }
  }

  void note_how_far(const state& now, int earliest, instant limit) {
    if (earliest == end_of_list() || (result_.stuck != nullptr && limit < result_.stuck->to)) return;
    result_.stuck = &required(earliest);
    result_.holds = now.holds;
  }

  // ---- there and back ----

  void take(const choice& one) {
    if (one.what == sort::ghost_begins) ++ghosts_[of_.ghosts[index(one.number)].part].used;
    if (one.what != sort::required) return;
    next_[index(before_[index(one.number)])] = next_[index(one.number)];
    before_[index(next_[index(one.number)])] = before_[index(one.number)];
    furthest_ = std::max(furthest_, one.number);
    if (required(one.number).what == deed::take && required(one.number).token != 0) ++next_take_;
  }

  void undo(const choice& one, int furthest_before) {
    if (one.what == sort::ghost_begins) --ghosts_[of_.ghosts[index(one.number)].part].used;
    if (one.what != sort::required) return;
    next_[index(before_[index(one.number)])] = one.number;
    before_[index(next_[index(one.number)])] = one.number;
    furthest_ = furthest_before;
    if (required(one.number).what == deed::take && required(one.number).token != 0) --next_take_;
  }

  // Was nobody here with as few ghosts?
  bool is_news(const state& now) {
    std::vector<std::size_t> used;
    for (const auto& [part, ghosts] : ghosts_) used.push_back(ghosts.used);
    auto& before = seen_[key_of(now)];
    for (const auto& one : before) {
      if (std::equal(one.begin(), one.end(), used.begin(), std::less_equal<>{})) return false;
    }
    before.push_back(std::move(used));
    return true;
  }

  // The steps in order are all up to the furthest one but a few, so those few name them. Ghosts of one part are alike.
  std::string key_of(const state& now) const {
    std::string key;
    append_number(key, furthest_);
    for (int i = first(); i < furthest_; i = next_[index(i)]) append_number(key, i);
    append_number(key, -1);
    for (const int hold : now.holds) {
      const bool is_ghost = index(hold) >= of_.holders.size();
      append_number(key, is_ghost ? -2 - of_.ghosts[index(hold) - of_.holders.size()].part : hold);
    }
    model_.append_to(key, now);
    return key;
  }

  const steps& of_;
  Model model_;
  instant give_up_at_;
  std::vector<int> next_{};  // A list of the required steps that are not in order yet.
  std::vector<int> before_{};
  int furthest_ = -1;
  std::vector<int> takes_{};  // With tokens, in their order.
  std::size_t next_take_ = 0;
  std::vector<std::vector<int>> of_hold_{};  // The optional steps of each hold.
  std::map<int, ghosts_of_a_part> ghosts_{};
  std::unordered_map<std::string, std::vector<std::vector<std::size_t>>> seen_{};  // Ghosts used at each pair.
  found result_{};
};

}  // namespace holdfast::test::history
