// SPDX-License-Identifier: Apache-2.0
// C1: two exclusive leases on one name are never both valid; a semaphore never has more valid permits than its size; a
// writer is never valid beside a reader. An overlap whose older lease was cut short by a step of the server's clock, by
// a deletion of its keys while it ran or by an operator who broke it at once is put down to that; every other one is a
// violation, also behind a restart that lost data: the quarantine is for that.
#include "checkers/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace holdfast::sim {

namespace {

// What the line grants is claimed, and counted from, so much later at most.
constexpr std::chrono::seconds longest_window{5};
// Of sim/plan.hpp: longest_ttl().
constexpr std::chrono::seconds longest_quarantine{21};

class exclusion final : public checker {
public:
  using checker::checker;

  void on_hold(const hold& one) override { let_in(one, "got"); }
  void on_extended(const hold& one) override { change(one); }
  void on_narrowed(const hold& one) override { change(one); }
  void on_hold_ended(const hold& one, hold_end) override {
    std::erase_if(valid_[one.lock], [&](const hold& h) { return h.number == one.number; });
    ended_.insert(one.number);
  }

private:
  void let_in(const hold& one, std::string_view how) {
    auto& all = valid_[one.lock];
    const instant now = in().now();
    std::erase_if(all, [&](const hold& h) { return h.valid_until <= now; });
    int taken = one.permits;
    for (const auto& h : all) taken += h.permits;
    const instant granted_at = one.counted_from - longest_window;
    if (one.valid_until > now && taken > in().largest_size(one.lock, granted_at)) judge(one, all, how);
    all.push_back(one);
  }
  // Others may have come since one that is not there any more was over (P13c). What was given back and goes on is C6's.
  void change(const hold& one) {
    auto& all = valid_[one.lock];
    const auto known = std::find_if(all.begin(), all.end(), [&](const hold& h) { return h.number == one.number; });
    if (known != all.end()) {
      *known = one;
    } else if (one.valid_until > in().now() && !ended_.contains(one.number)) {
      let_in(one, "has again");
    }
  }
  void judge(const hold& one, const std::vector<hold>& others, std::string_view how) {
    instant since = one.counted_from;
    for (const auto& h : others) since = std::min(since, h.counted_from);
    // The new primary's clock measures for how long it grants nothing, and the old one may go on renewing meanwhile.
    if (in().excuse({cause::another_primary}, since, one.lock)) since -= longest_quarantine;
    const auto* why = in().excuse({cause::clock_stepped, cause::clock_rate, cause::keys_deleted, cause::broken_at_once},
                                  since, one.lock);
    if (why) return in().attribute(why->what);
    const auto& first = others.front();
    in().complain("C1", fmt::format("lock {}: process {} {} token {} while process {} is valid with token {} for {} us",
                                    one.lock, one.process, how, one.token, first.process, first.token,
                                    (first.valid_until - in().now()).count() / 1000));
  }

  std::map<int, std::vector<hold>> valid_;
  std::set<int> ended_;
};

}  // namespace

std::unique_ptr<checker> make_exclusion(surroundings& in) { return std::make_unique<exclusion>(in); }

}  // namespace holdfast::sim
