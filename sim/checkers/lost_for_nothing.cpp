// SPDX-License-Identifier: Apache-2.0
// A holder that is well, on connections that are well, at a server that is well, keeps its lease: it is told lost only
// when somebody has broken that lease, or another that it holds as one with it.
#include "checkers/checker.hpp"
#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace holdfast::sim {

namespace {

class lost_for_nothing final : public checker {
public:
  using checker::checker;

  void on_call_started(const call_record& call) override { timeouts_[call.process] = call.timeout; }
  void on_extended(const hold& one) override {
    if (one.set != 0) sets_[one.set].insert(grant_of(one));
  }
  void on_script(const script_run& run) override {
    if (const holder* whose = broken_by(run)) broken_.insert({whose->owner, whose->token});
  }
  void on_hold_ended(const hold& one, hold_end how) override {
    if (one.is_by_hand || how != hold_end::lost || in().healthy_since(one.process) > one.counted_from) return;
    if (is_too_slow(one) || is_broken(one)) return;
    in().complain("loss",
                  fmt::format("process {}, lock {}, token {}: is told that it lost, {} us after the request "
                              "that it counts from, and nothing had befallen it",
                              one.process, one.lock, one.token, (in().now() - one.counted_from).count() / 1000));
  }

private:
  using grant = std::pair<std::string, std::string>;  // Owner id and token: that id may be granted another.
  static grant grant_of(const hold& one) { return {one.owner, fmt::format("{:016}", one.grant)}; }

  // A renewal has no time for its tries, or a connection none to come about.
  bool is_too_slow(const hold& one) const {
    const auto found = timeouts_.find(one.process);
    const duration timeout = found == timeouts_.end() ? duration::max() : found->second;
    return std::min(timeout, one.valid_until - one.counted_from) < 10 * in().slowest_round_trip(one.process);
  }
  bool is_broken(const hold& one) const {
    const auto set = sets_.find(one.set);
    if (set == sets_.end()) return broken_.contains(grant_of(one));
    return std::any_of(set->second.begin(), set->second.end(),
                       [&](const grant& part) { return broken_.contains(part); });
  }

  std::map<int, duration> timeouts_;  // By process.
  std::map<int, std::set<grant>> sets_;
  std::set<grant> broken_;
};

}  // namespace

std::unique_ptr<checker> make_lost_for_nothing(surroundings& in) { return std::make_unique<lost_for_nothing>(in); }

}  // namespace holdfast::sim
