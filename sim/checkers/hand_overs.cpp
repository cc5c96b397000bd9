// SPDX-License-Identifier: Apache-2.0
// C7, P14: what the server granted is handed on in a process so often at most, and for so long, and then the line
// outside has its turn, whether or not anybody knows that somebody stands there. Each grant is counted by itself, and
// anew from where the server said that nobody does.
#include "checkers/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace holdfast::sim {

namespace {

class hand_overs final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    if (run.which != script::id::reserve || !run.reply->as_bulk()) return;
    if (!run.line_before.empty() && !in().excuse({cause::data_lost, cause::keys_deleted}, {}, run.lock)) {
      in().complain("C7", fmt::format("lock {}: process {} may hand token {} on for longer, and {} wait", run.lock,
                                      run.process, run.args[1], run.line_before.size()));
    }
    grants_[{run.owner(), std::stoull(std::string{run.args[1]})}] = {in().now(), 0};
  }

  void on_hold(const hold& one) override {
    auto& of = grants_[{one.owner, one.grant}];
    if (one.token == one.grant) {
      // Its time begins with the request. Where a grant may be worth less than its ttl, the deadline does not tell when
      // that was, but it was before the answer.
      of.begins_at = in().is_one_server() ? one.counted_from : one.got_at;
      return;
    }
    const auto allowed = in().hand_overs();
    if (++of.times > allowed.most) complain(one, fmt::format("{} times, of {}", of.times, allowed.most));
    // The process counts by its own clock, which may be slow. Who stood still when it was handed the lease takes it
    // when it runs again.
    const instant over_at = of.begins_at + allowed.longest + allowed.longest / 100;
    const instant last = std::max(over_at, in().resumed_at(one.process)) + std::chrono::milliseconds{1};
    if (in().now() <= last) return;
    complain(one, fmt::format("{} us after its time for that was over", (in().now() - over_at).count() / 1000));
  }

private:
  struct grant {
    instant begins_at{};
    int times = 0;
  };

  void complain(const hold& one, const std::string& how) {
    in().complain("C7",
                  fmt::format("lock {}: process {} has handed token {} on, {}", one.lock, one.process, one.grant, how));
  }

  std::map<std::pair<std::string, std::uint64_t>, grant> grants_;  // By owner id and token.
};

}  // namespace

std::unique_ptr<checker> make_hand_overs(surroundings& in) { return std::make_unique<hand_overs>(in); }

}  // namespace holdfast::sim
