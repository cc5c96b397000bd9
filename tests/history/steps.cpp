// SPDX-License-Identifier: Apache-2.0
#include "history/steps.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace holdfast::test::history {
namespace {

bool begins(const operation& one) { return one.what == verb::attempt || one.what == verb::acquire; }

// How long before its end a lease may be given up by its holder (docs/lease_time.md): the larger of 5 ms and ttl/20.
instant lead_of(const operation& acquired) { return std::max<instant>(5'000'000, acquired.ttl_ms * 1'000'000 / 20); }

// Intervals that are all known before anybody asks.
class spans {
public:
  void add(instant from, instant to) { all_.emplace_back(from, to); }

  // Afterwards `second` is the latest end of all that begin there or before.
  void settle() {
    std::sort(all_.begin(), all_.end());
    instant latest = 0;
    for (auto& [from, to] : all_) to = latest = std::max(latest, to);
  }

  bool overlap(const operation& one) const {
    const auto after = std::upper_bound(all_.begin(), all_.end(), std::pair{one.returned, never});
    return after != all_.begin() && std::prev(after)->second >= one.called;
  }

private:
  std::vector<std::pair<instant, instant>> all_{};
};

class translation {
public:
  explicit translation(const operations& all) : all_{all} {}

  steps run() {
    for (const auto& one : all_) {
      if (begins(one) && one.how == outcome::acquired) number(one);
    }
    gather_excuses();
    for (const auto& one : all_) translate(one);
    for (std::size_t hold = 0; hold < result_.holders.size(); ++hold) {
      const auto& acquired = *result_.holders[hold];
      if (!ends_[hold]) may_end(static_cast<int>(hold), acquired.until, acquired);
    }
    const auto by_from = [](const auto& a, const auto& b) { return a.from < b.from; };
    std::stable_sort(result_.required.begin(), result_.required.end(), by_from);
    std::stable_sort(result_.ghosts.begin(), result_.ghosts.end(), by_from);
    return std::move(result_);
  }

private:
  void number(const operation& acquired) {
    numbers_[{acquired.worker, acquired.hold}] = static_cast<int>(result_.holders.size());
    result_.holders.push_back(&acquired);
    ends_.push_back(nullptr);
    depths_.push_back(1);
  }

  // The hold that this is about; -1: of an acquire that was cut out of the history, or never returned.
  int hold_of(const operation& one) const {
    const auto found = numbers_.find({one.worker, one.hold});
    return found == numbers_.end() ? -1 : found->second;
  }

  void require(deed what, int hold, const operation& of, instant from, instant to) {
    result_.required.push_back({what, hold, of.part, of.token, from, to, &of});
  }

  void may(deed what, int hold, const operation& of, instant from) {
    result_.optional.push_back({what, hold, of.part, of.token, from, never, &of});
  }

  void may_end(int hold, instant from, const operation& of) { may(deed::end, hold, of, from); }

  void translate(const operation& one) {
    if (begins(one)) return translate_beginning(one);
    const int hold = hold_of(one);
    if (hold < 0) return;
    const auto& acquired = *result_.holders[static_cast<std::size_t>(hold)];
    switch (one.what) {
      case verb::release:
      case verb::drop:
      case verb::unlock: translate_end(one, hold, acquired); break;
      case verb::downgrade:
        if (one.how == outcome::done) require(deed::downgrade, hold, one, one.called, one.returned);
        // A copy may have been done whose answer was cut off, or came when the lease was over.
        if (one.how == outcome::open || one.how == outcome::unknown ||
            (one.how == outcome::already_lost && (one.through_faults || is_slow(one)))) {
          may(deed::downgrade, hold, one, one.called);
        }
        break;
      case verb::again:
      case verb::back:
        // The call of an open one may not even have begun: it says nothing.
        if (one.how == outcome::done) translate_count(one, hold, acquired);
        break;
      case verb::attempt:
      case verb::acquire: break;
    }
  }

  // Also behind the loss of the lease, when the server is asked no more: the token stays, and so does the count.
  void translate_count(const operation& one, int hold, const operation& acquired) {
    const bool is_again = one.what == verb::again;
    int& depth = depths_[static_cast<std::size_t>(hold)];
    const bool is_sound = is_again ? one.token == acquired.token : depth > 1;
    depth += is_again ? 1 : -1;
    require(is_again ? deed::again : deed::back, hold, one, is_sound ? one.called : never, one.returned);
  }

  static bool is_slow(const operation& one) {
    return one.returned == never || one.returned - one.called >= one.ttl_ms * 1'000'000 / 2;
  }

  void translate_beginning(const operation& one) {
    if (one.how == outcome::acquired) require(deed::take, hold_of(one), one, one.called, one.returned);
    if (one.how == outcome::busy && !is_excused(one)) require(deed::busy, -1, one, one.called, one.returned);
    const bool is_definite = one.how == outcome::acquired || one.how == outcome::busy;
    if (!is_definite || is_slow(one) || one.through_faults || is_beside_a_thread(one))
      result_.ghosts.push_back({one.called, one.part});
  }

  void translate_end(const operation& one, int hold, const operation& acquired) {
    ends_[static_cast<std::size_t>(hold)] = &one;
    const bool is_too_early = one.how == outcome::already_lost && one.returned < acquired.until - lead_of(acquired);
    const bool is_short = one.returned != never && one.returned - acquired.called < acquired.ttl_ms * 1'000'000 / 4;
    if (one.how == outcome::released || (one.what == verb::unlock && is_short)) {
      require(deed::end, hold, one, one.called, one.returned);
    } else if (is_too_early) {
      require(deed::end, hold, one, acquired.until, one.returned);
    } else {
      may_end(hold, std::min(one.called, acquired.until), one);
    }
  }

  void gather_excuses() {
    std::map<std::pair<int, int>, instant> begun;
    for (const auto& one : all_) {
      if (one.what == verb::acquire) waits_.add(one.called, one.returned);
      if (begins(one)) begun[{one.worker, one.hold}] = one.called;
      if (one.what != verb::unlock) continue;
      if (const auto found = begun.find({one.worker, one.hold}); found != begun.end()) {
        inside_[one.worker].add(found->second, one.returned);
      }
    }
    waits_.settle();
    for (auto& [worker, within] : inside_) within.settle();
  }

  bool is_excused(const operation& busy) const { return waits_.overlap(busy) || is_beside_a_thread(busy); }

  bool is_beside_a_thread(const operation& busy) const {
    const auto of_its_worker = inside_.find(busy.worker);
    return busy.how == outcome::busy && of_its_worker != inside_.end() && of_its_worker->second.overlap(busy);
  }

  const operations& all_;
  steps result_{};
  std::map<std::pair<int, int>, int> numbers_{};
  std::vector<const operation*> ends_{};  // Of each hold what ended it, if anything did.
  std::vector<int> depths_{};             // Of each hold: how often it was locked and not unlocked.
  spans waits_{};                         // Somebody waits in line.
  std::map<int, spans> inside_{};         // Of each worker: a thread of it has not unlocked yet.
};

}  // namespace

steps steps_of(const operations& all) { return translation{all}.run(); }

}  // namespace holdfast::test::history
