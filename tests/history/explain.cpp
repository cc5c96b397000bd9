// SPDX-License-Identifier: Apache-2.0
// A refused history of thousands of operations helps nobody: this finds the few that have no order among themselves.
// Holds may be left out one by one, because a history that a lock allows stays allowed without one of its holds. That
// is not so for the answer `busy`, which may need any hold: a history that is refused for a `busy` keeps all of them up
// to there, and shows what went on at the time.
#include "history/checker.hpp"

#include <algorithm>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace holdfast::test::history {
namespace {

using hold_name = std::pair<int, int>;  // Worker and hold.

hold_name hold_of(const operation& one) { return {one.worker, one.hold}; }

class explanation {
public:
  explanation(const operations& all, const lock_kind& kind, instant give_up_at)
      : all_{all}, kind_{kind}, give_up_at_{give_up_at} {}

  std::string run() {
    operations left = without_busy(all_);
    if (!is_refused(left)) return of_busy();
    const instant until = stuck_.to;
    // Whole holds: one whose end is left out would look as if it stayed.
    std::set<hold_name> begun;
    for (const auto& one : left) {
      if (one.called <= until) begun.insert(hold_of(one));
    }
    std::erase_if(left, [&](const operation& one) { return !begun.contains(hold_of(one)); });
    left = fewest_last(left);
    for (const auto& one : holds_of(left)) {
      if (operations fewer = without(left, one); is_refused(fewer)) left = std::move(fewer);
    }
    is_refused(left);
    return words(left);
  }

private:
  bool is_refused(const operations& some) {
    const steps of = steps_of(some);
    const found it = search_one(of, kind_, give_up_at_);
    if (it.what != answer::refused) return false;
    stuck_ = *it.stuck;
    stuck_of_ = *it.stuck->of;
    holders_.clear();
    for (const int hold : it.holds) {
      if (static_cast<std::size_t>(hold) < of.holders.size())
        holders_.push_back(*of.holders[static_cast<std::size_t>(hold)]);
    }
    return true;
  }

  static operations without_busy(operations some) {
    std::erase_if(some, [](const operation& one) { return one.how == outcome::busy; });
    return some;
  }

  static operations without(operations some, const hold_name& which) {
    std::erase_if(some, [&](const operation& one) { return hold_of(one) == which; });
    return some;
  }

  static std::vector<hold_name> holds_of(const operations& some) {
    std::vector<hold_name> all;
    std::set<hold_name> seen;
    for (const auto& one : some) {
      if (seen.insert(hold_of(one)).second) all.push_back(hold_of(one));
    }
    return all;
  }

  // The last 2, 4, 8 and so on, until they are refused.
  operations fewest_last(const operations& some) {
    const auto holds = holds_of(some);
    for (std::size_t count = 2; count < holds.size(); count *= 2) {
      const std::set<hold_name> kept(holds.end() - static_cast<std::ptrdiff_t>(count), holds.end());
      operations last = some;
      std::erase_if(last, [&](const operation& one) { return !kept.contains(hold_of(one)); });
      if (is_refused(last)) return last;
    }
    return some;
  }

  // For an answer that was not true: what went on at the same time, and the last two holds before it.
  std::string of_busy() {
    if (!is_refused(all_)) return "it was refused, and was not when asked again\n";
    std::vector<hold_name> before;
    for (const auto& one : all_) {
      if (one.how == outcome::acquired && one.called < stuck_of_.called) before.push_back(hold_of(one));
    }
    const auto count = std::min<std::size_t>(before.size(), 2);
    const std::set<hold_name> last(before.end() - static_cast<std::ptrdiff_t>(count), before.end());
    operations shown;
    for (const auto& one : all_) {
      const bool is_beside = one.called <= stuck_of_.returned && one.returned >= stuck_of_.called;
      if (is_beside || last.contains(hold_of(one))) shown.push_back(one);
    }
    return words(shown);
  }

  // ---- in words ----

  std::string words(operations some) const {
    std::stable_sort(some.begin(), some.end(),
                     [](const operation& a, const operation& b) { return a.called < b.called; });
    const instant origin = some.empty() ? 0 : some.front().called;
    std::ostringstream text;
    text << "no order of these operations is one that the lock allows (ms since the first of them):\n";
    for (const auto& one : some) text << "  " << line(one, origin) << '\n';
    text << "what cannot be put in order: " << reason(origin) << '\n';
    return text.str();
  }

  static std::string ms(instant at, instant origin) {
    if (at == never) return "never";
    std::ostringstream text;
    text << std::fixed << std::setprecision(3) << static_cast<double>(at - origin) / 1e6;
    return text.str();
  }

  static std::string who(const operation& one) {
    return "worker " + std::to_string(one.worker) + "." + std::to_string(one.thread);
  }

  std::string part(const operation& one) const {
    if (one.what != verb::attempt && one.what != verb::acquire) return "";
    if (kind_.what == lock_kind::is::semaphore) return " for permits: " + std::to_string(one.part) + ",";
    if (kind_.what == lock_kind::is::shared_mutex) return one.part == everything ? " for writing" : " for reading";
    return "";
  }

  std::string line(const operation& one, instant origin) const {
    static const std::map<verb, std::string> verbs{{verb::attempt, "tries"},     {verb::acquire, "waits"},
                                                   {verb::release, "releases"},  {verb::drop, "drops"},
                                                   {verb::unlock, "unlocks"},    {verb::downgrade, "downgrades"},
                                                   {verb::again, "locks again"}, {verb::back, "unlocks once"}};
    static const std::map<outcome, std::string> outcomes{
        {outcome::open, "no answer"},      {outcome::acquired, "acquired"}, {outcome::busy, "busy"},
        {outcome::timed_out, "timed out"}, {outcome::released, "released"}, {outcome::already_lost, "already lost"},
        {outcome::unknown, "unknown"},     {outcome::done, "done"}};
    std::ostringstream text;
    text << who(one) << ' ' << verbs.at(one.what) << part(one) << " hold " << one.hold << ", from "
         << ms(one.called, origin) << " to " << ms(one.returned, origin) << ": " << outcomes.at(one.how);
    if (one.token != 0) text << ", token " << one.token;
    if (one.how == outcome::acquired) text << "; told that it stands until " << ms(one.until, origin);
    return text.str();
  }

  std::string reason(instant origin) const {
    std::ostringstream text;
    text << who(stuck_of_) << " hold " << stuck_of_.hold;
    std::string inside;
    for (const auto& one : holders_)
      inside += (inside.empty() ? "" : " and ") + who(one) + " hold " + std::to_string(one.hold);
    switch (stuck_.what) {
      case deed::take:
        text << " was let in by " << ms(stuck_.to, origin)
             << (inside.empty()
                     ? ", with a token that was not above those before it"
                     : ", when the place of " + inside + " could not be free yet, or its token was not above");
        break;
      case deed::busy: text << " was told busy, when there was room for it and nobody waited"; break;
      case deed::end:
        text << (stuck_.from > stuck_.to ? " was lost before its lease could end" : " was ended after it had been lost")
             << (inside.empty() ? "" : ", and held by " + inside);
        break;
      case deed::downgrade: text << " became a reader when it was no writer any more"; break;
      case deed::again:
      case deed::back: text << " was locked again or unlocked by a wrong token or too often"; break;
    }
    return text.str();
  }

  const operations& all_;
  lock_kind kind_;
  instant give_up_at_;
  step stuck_{};
  operation stuck_of_{};
  operations holders_{};
};

}  // namespace

std::string explain(const operations& of_one_lock, const lock_kind& kind, instant give_up_at) {
  return explanation{of_one_lock, kind, give_up_at}.run();
}

}  // namespace holdfast::test::history
