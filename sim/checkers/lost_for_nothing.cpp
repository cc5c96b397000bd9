// SPDX-License-Identifier: Apache-2.0
// A holder that is well, on connections that are well, at a server that is well, keeps its lease: it is told lost only
// when somebody has broken that lease, or another that it holds as one with it.
#include "checkers/checker.hpp"

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

  void on_hold(const hold& one) override { process_of_[one.owner] = one.process; }
  void on_script(const script_run& run) override {
    if (run.which != script::id::break_lock && run.which != script::id::break_counted) return;
    for (const auto& h : run.before) {
      if (run.which == script::id::break_lock || h.token == run.args[0]) broken_.insert({h.owner, h.token});
    }
  }
  void on_hold_ended(const hold& one, hold_end how) override {
    if (how != hold_end::lost || in().healthy_since(one.process) > one.counted_from) return;
    // A renewal has its tries in that time.
    if (one.valid_until - one.counted_from < 10 * in().slowest_round_trip(one.process)) return;
    if (is_broken(one)) return;
    in().complain("loss",
                  fmt::format("process {}, lock {}, token {}: is told that it lost, {} us after the request "
                              "that it counts from, and nothing had befallen it",
                              one.process, one.lock, one.token, (in().now() - one.counted_from).count() / 1000));
  }

private:
  bool is_broken(const hold& one) const {
    if (broken_.contains({one.owner, fmt::format("{:016}", one.grant)})) return true;
    return one.is_joined && std::any_of(broken_.begin(), broken_.end(), [&](const auto& each) {
             const auto found = process_of_.find(each.first);
             return found != process_of_.end() && found->second == one.process;
           });
  }

  std::map<std::string, int> process_of_;                 // By owner id.
  std::set<std::pair<std::string, std::string>> broken_;  // Owner id and token: that id may be granted another.
};

}  // namespace

std::unique_ptr<checker> make_lost_for_nothing(surroundings& in) { return std::make_unique<lost_for_nothing>(in); }

}  // namespace holdfast::sim
