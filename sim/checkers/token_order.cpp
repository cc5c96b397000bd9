// SPDX-License-Identifier: Apache-2.0
// C2: tokens that the server grants for one name strictly increase in the order of the grants; also when its data was
// lost, as long as its clock has not gone behind the last token.
#include "checkers/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace holdfast::sim {

namespace {

class token_order final : public checker {
public:
  using checker::checker;

  void on_script(const script_run& run) override {
    // Several may be granted in one run; in the order of their tokens, because only the script knows another.
    std::vector<std::string> granted;
    for (const auto& h : run.after) {
      const auto is_same = [&](const holder& b) { return b.owner == h.owner && b.token == h.token; };
      if (std::none_of(run.before.begin(), run.before.end(), is_same)) granted.push_back(h.token);
    }
    std::sort(granted.begin(), granted.end());
    for (const auto& token : granted) judge(run, token);
  }

private:
  struct last {
    std::string token{};
    instant at{};
  };

  void judge(const script_run& run, const std::string& granted) {
    auto& before = last_[run.lock];
    if (granted <= before.token && !before.token.empty()) {
      const bool is_behind = fmt::format("{:016}", run.at.time_since_epoch().count()) <= before.token;
      const bool is_lost = in().excuse({cause::data_lost}, before.at) != nullptr;
      if (!(is_behind && is_lost)) {
        in().complain("C2", fmt::format("lock {}: token {} was granted after {}", run.lock, granted, before.token));
      }
    }
    before = {granted, in().now()};
  }

  std::map<int, last> last_;
};

}  // namespace

std::unique_ptr<checker> make_token_order(surroundings& in) { return std::make_unique<token_order>(in); }

}  // namespace holdfast::sim
