// SPDX-License-Identifier: Apache-2.0
// C2: tokens that the server grants for one name strictly increase in the order of the grants; also when its data was
// lost, as long as its clock has not gone behind the last token. So do those that a process hands on (P14b). What a
// server grants that is not the primary any more counts for nobody, so that there the order is that of the leases: who
// gets an exclusive one has the largest token.
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
    if (!in().is_at_primary(run.lock)) return;
    // Several may be granted in one run; in the order of their tokens, because only the script knows another.
    std::vector<holder> granted;
    for (const auto& h : run.after) {
      const auto is_same = [&](const holder& b) { return b.owner == h.owner && b.token == h.token; };
      if (std::none_of(run.before.begin(), run.before.end(), is_same)) granted.push_back(h);
    }
    std::sort(granted.begin(), granted.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
    for (const auto& one : granted) judge(run, one);
  }

  void on_hold(const hold& one) override {
    if (in().lock_of(one.lock).kind != lock_kind::exclusive || one.valid_until <= in().now()) return;
    auto& before = held_[one.lock];
    if (one.token <= before.token && !is_excused(one, before)) {
      in().complain("C2", fmt::format("lock {}: a lease with token {} was got after one with {}", one.lock, one.token,
                                      before.token));
    }
    // Handed on in a process, from the block that the server reserved with its last grant: it grants none of these.
    auto& granted = last_[one.lock];
    const bool is_of_it = granted.owner == one.owner && granted.grant == fmt::format("{:016}", one.grant);
    if (is_of_it) granted.token = std::max(granted.token, fmt::format("{:016}", one.token));
    if (one.token > before.token) {
      before = {one.token, one.counted_from, is_of_it ? std::min(granted.at, one.counted_from) : one.counted_from};
    }
  }

private:
  struct last {
    std::string owner{};
    std::string grant{};
    instant at{};
    std::string token{};  // The grant's, or the largest that was handed on since.
  };

  struct largest {
    std::uint64_t token = 0;
    instant counted_from{};
    instant reserved_at{};  // When the server wrote it down, with the grant.
  };

  // Either lease was cut short, and both are valid; or the server has forgotten the larger token, and its clock is
  // behind it, which may have gone back long before.
  bool is_excused(const hold& one, const largest& before) const {
    const instant since = std::min(one.counted_from, before.counted_from);
    if (in().excuse({cause::clock_stepped, cause::clock_rate, cause::keys_deleted, cause::broken_at_once}, since,
                    one.lock)) {
      return true;
    }
    return in().excuse({cause::data_lost}, std::min(since, before.reserved_at), one.lock) &&
           in().excuse({cause::clock_stepped, cause::clock_rate}, {}, one.lock);
  }

  void judge(const script_run& run, const holder& granted) {
    auto& before = last_[run.lock];
    if (granted.token <= before.token && !before.token.empty()) {
      const bool is_behind = fmt::format("{:016}", run.at.time_since_epoch().count()) <= before.token;
      const bool is_lost = in().excuse({cause::data_lost}, before.at, run.lock) != nullptr;
      if (!(is_behind && is_lost)) {
        in().complain("C2",
                      fmt::format("lock {}: token {} was granted after {}", run.lock, granted.token, before.token));
      }
    }
    before = {granted.owner, granted.token, in().now(), granted.token};
  }

  std::map<int, last> last_;
  std::map<int, largest> held_;
};

}  // namespace

std::unique_ptr<checker> make_token_order(surroundings& in) { return std::make_unique<token_order>(in); }

}  // namespace holdfast::sim
