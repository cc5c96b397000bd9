// SPDX-License-Identifier: Apache-2.0
// C4: the loss of a lease is told once, and no later than its deadline while the process runs; valid() is false from
// the deadline on, also as the first thing after a pause, and from the end of its longest hold on (R14). So nothing
// moves a deadline that has passed, also when nobody has looked at it since (P13c), and nobody gives back what it
// should have been told that it had lost. That it is at risk is told a sixth of the ttl before the deadline.
#include "checkers/checker.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>

namespace holdfast::sim {

namespace {

class loss_told final : public checker {
public:
  using checker::checker;

  void on_hold(const hold& one) override { held_[one.number] = one; }
  void on_extended(const hold& one) override {
    const auto had = held_.find(one.number);
    if (had != held_.end() && in().now() >= had->second.valid_until && one.valid_until > in().now()) {
      in().complain("C4", fmt::format("process {}, lock {}, token {}: comes back {} us after its deadline, for {} us",
                                      one.process, one.lock, one.token, us(in().now() - had->second.valid_until),
                                      us(one.valid_until - in().now())));
    }
    if (had != held_.end() && one.valid_until > had->second.valid_until) at_risk_.erase(one.number);
    held_[one.number] = one;
  }
  void on_at_risk(const hold& one) override { at_risk_.insert(one.number); }
  void on_hold_ended(const hold& one, hold_end how) override {
    held_.erase(one.number);
    const bool is_told = how == hold_end::lost || how == hold_end::held_too_long;
    if (is_told && !told_.insert(one.number).second) complain(one, "was told lost twice");
    judge(one);
    at_risk_.erase(one.number);
  }
  void on_validity(const hold& one, bool is_valid) override {
    if (is_valid && in().now() >= one.valid_until) complain(one, "says that it is valid behind its deadline");
    if (is_valid && in().now() >= one.must_end_by) complain(one, "says that it is valid behind its longest hold");
  }
  void on_process_step(int process) override {
    for (const auto& [number, one] : held_) {
      if (one.process == process) judge(one);
    }
  }
  void at_rest() override {
    for (const auto& [number, one] : held_) judge(one);
  }

private:
  // Who was paused at the deadline is told at the first instant of running. Who ran, earlier than it by more than a
  // timer is ever late (core/lease_time.hpp: lost_lead), so that whatever comes behind it finds the lease lost.
  void judge(const hold& one) {
    const instant now = in().now();
    if (now > one.valid_until && in().is_running(one.process) && in().resumed_at(one.process) != now) {
      complain(one, "was not told by its deadline");
    }
    // As above, but for clocks that differ, and a timer that is late.
    const duration lead = duration{one.ttl} / 6;
    const instant risk_at = one.valid_until - lead + lead / 50 + std::chrono::milliseconds{1};
    if (one.ttl.count() > 0 && now > risk_at && !at_risk_.contains(one.number) && in().is_running(one.process) &&
        in().resumed_at(one.process) != now) {
      complain(one, "was not told that it is at risk before its deadline");
    }
  }
  void complain(const hold& one, const char* what) {
    in().complain("C4", fmt::format("process {}, lock {}, token {}: {}, which was {} us ago", one.process, one.lock,
                                    one.token, what, us(in().now() - one.valid_until)));
  }
  static std::int64_t us(duration time) { return time.count() / 1000; }

  std::map<int, hold> held_;
  std::set<int> told_;
  std::set<int> at_risk_;  // Since their deadline was moved last.
};

}  // namespace

std::unique_ptr<checker> make_loss_told(surroundings& in) { return std::make_unique<loss_told>(in); }

}  // namespace holdfast::sim
