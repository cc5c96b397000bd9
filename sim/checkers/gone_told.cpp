// SPDX-License-Identifier: Apache-2.0
// C1: where the server has lost a lease that its holder believes in (keys were deleted, its clock stepped, somebody
// broke it at once), that one is told so within one renewal period. So it is while its server answers it, and while the
// lease is renewed: one that has come to the end of its longest hold is not, nor is one by hand before somebody asks.
#include "checkers/checker.hpp"
#include "model_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace holdfast::sim {

namespace {

using namespace std::chrono_literals;

class gone_told final : public checker {
public:
  using checker::checker;

  void on_hold(const hold& one) override { held_[one.number] = one; }
  void on_extended(const hold& one) override {
    const auto known = held_.find(one.number);
    if (known != held_.end()) known->second = one;
  }
  void on_hold_ended(const hold& one, hold_end how) override {
    if (how != hold_end::died) judge(one);
    held_.erase(one.number);
    gone_since_.erase(one.number);
  }

  // Its keys may have come back with an older file.
  void on_script(const script_run& run) override {
    if (in().is_at_primary(run.lock)) compare(run.lock, run.after);
  }
  void on_disturbed(cause) override {
    std::map<int, std::vector<holder>> there;
    for (const auto& [number, one] : held_) {
      if (!there.contains(one.lock)) there[one.lock] = holders_of(in().redis(one.lock), in().lock_of(one.lock));
    }
    for (const auto& [lock, all] : there) compare(lock, all);
  }
  void on_process_step(int process) override {
    for (const auto& [number, since] : gone_since_) {
      const hold& one = held_.at(number);
      if (one.process == process) judge(one);
    }
  }

private:
  void compare(int lock, const std::vector<holder>& there) {
    for (const auto& [number, one] : held_) {
      if (one.lock != lock) continue;
      if (is_among(there, one)) {
        gone_since_.erase(number);
      } else {
        gone_since_.try_emplace(number, in().now());
      }
    }
  }

  static bool is_among(const std::vector<holder>& all, const hold& one) {
    const auto token = fmt::format("{:016}", one.grant);
    return std::any_of(all.begin(), all.end(),
                       [&](const holder& h) { return h.owner == one.owner && h.token == token; });
  }

  void judge(const hold& one) {
    const auto gone = gone_since_.find(one.number);
    if (gone == gone_since_.end() || one.ttl == 0ms || one.is_by_hand || one.valid_until >= one.must_end_by) return;
    const instant since = std::max(gone->second, in().answered_since(one.process));
    // The period, a tenth of it for chance, and clocks that differ.
    const duration period = std::min<duration>(duration{one.ttl} / 3, 10s) * 113 / 100;
    const instant by = since + period + 4 * in().slowest_round_trip(one.process) + 2ms;
    if (in().now() <= by || in().now() >= one.valid_until) return;
    in().complain("C1",
                  fmt::format("process {}, lock {}, token {}: the server has lost it {} us ago, and nobody says so",
                              one.process, one.lock, one.token, (in().now() - gone->second).count() / 1000));
  }

  std::map<int, hold> held_;
  std::map<int, instant> gone_since_;
};

}  // namespace

std::unique_ptr<checker> make_gone_told(surroundings& in) { return std::make_unique<gone_told>(in); }

}  // namespace holdfast::sim
