// SPDX-License-Identifier: Apache-2.0
// C6: after release() returned, this process never renews that lease again. Only what was sent after the return counts:
// a renewal that was under way is the network's business, and finds another owner id or none.
#include "checkers/checker.hpp"

#include <fmt/format.h>

#include <map>

namespace holdfast::sim {

namespace {

class no_late_renewal final : public checker {
public:
  using checker::checker;

  void on_released(const hold& one, int) override { over_[one.owner] = in().now(); }
  void on_script(const script_run& run) override {
    if (run.which != script::id::renew && run.which != script::id::renew_counted) return;
    const auto found = over_.find(run.owner());
    if (found == over_.end() || run.sent_at <= found->second) return;
    in().complain("C6", fmt::format("process {}, lock {}: renewed {} us after release() had returned", run.process,
                                    run.lock, (run.sent_at - found->second).count() / 1000));
  }

private:
  std::map<std::string, instant> over_;
};

}  // namespace

std::unique_ptr<checker> make_no_late_renewal(surroundings& in) { return std::make_unique<no_late_renewal>(in); }

}  // namespace holdfast::sim
