// SPDX-License-Identifier: Apache-2.0
// A world that is told by hand, to those who watch: what they say of courses that the engine must not take, and that no
// canary can bring about.
#pragma once

#include "checkers/checker.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

using complaints = std::set<std::string>;

// One exclusive lock, everybody is well, and nothing is excused that nobody says.
class made_up final : public surroundings {
public:
  made_up() : checkers_{all_checkers(*this)} {}

  // What the invariants' checkers say of this, at that time.
  template <class Tell>
  std::set<std::string> at(duration when, const Tell& tell) {
    now_ = instant{} + when;
    complaints_.clear();
    for (const auto& one : checkers_) tell(*one);
    return complaints_;
  }

  model_redis& server() { return redis_; }
  // To this lock, from now on.
  void is_disturbed_by(cause what, int lock) { disturbances_.push_back({what, now_, lock}); }
  // Every process; until then they stood still.
  void all_run_again_at(duration when) { resumed_at_ = instant{} + when; }
  // Until then something befell each of them.
  void all_are_well_since(duration when) { healthy_since_ = instant{} + when; }
  // Nothing was granted until then.
  void was_quarantined_until(duration when) { quarantined_until_ = instant{} + when; }

  instant now() const override { return now_; }
  server_time server_now(int) const override { return {}; }
  const model_redis& redis(int) override { return redis_; }
  const lock& lock_of(int) const override { return lock_; }
  int largest_size(int, instant) const override { return 1; }
  int missing_copies(const hold&) override { return 0; }
  bool is_at_primary(int) const override { return true; }
  std::vector<const model_redis*> all_servers() override { return {&redis_}; }
  bool is_running(int) const override { return true; }
  instant resumed_at(int) const override { return resumed_at_; }
  instant healthy_since(int) const override { return healthy_since_; }
  instant answered_since(int) const override { return healthy_since_; }
  duration slowest_round_trip(int) const override { return std::chrono::milliseconds{1}; }
  core::hand_over_limits hand_overs() const override { return {2, std::chrono::milliseconds{20}}; }
  bool is_one_server() const override { return true; }
  instant quarantined_until(int) const override { return quarantined_until_; }
  const disturbance* excuse(std::initializer_list<cause> which, instant since, int lock) const override {
    const auto found = std::find_if(disturbances_.begin(), disturbances_.end(), [&](const disturbance& d) {
      return d.at >= since && d.lock == lock && std::find(which.begin(), which.end(), d.what) != which.end();
    });
    return found == disturbances_.end() ? nullptr : &*found;
  }
  void complain(std::string_view invariant, std::string) override { complaints_.emplace(invariant); }
  void attribute(cause) override {}
  void at(instant, std::function<void()>) override {}

private:
  instant now_{};
  instant resumed_at_{};
  instant healthy_since_{};
  instant quarantined_until_{};
  lock lock_{0, lock_kind::exclusive, 1, {}};
  model_redis redis_{{}, nullptr};
  std::vector<disturbance> disturbances_{};
  std::set<std::string> complaints_{};
  std::vector<std::unique_ptr<checker>> checkers_;
};

inline hold lease(int number, duration from, duration until) {
  hold made;
  made.number = made.process = number;
  made.token = made.grant = static_cast<std::uint64_t>(10 * number);
  made.owner = std::string(32, static_cast<char>('a' + number));
  made.counted_from = made.got_at = instant{} + from;
  made.valid_until = instant{} + until;
  return made;
}
inline hold renewed(hold made, duration until) {
  made.valid_until = instant{} + until;
  return made;
}

}  // namespace holdfast::sim
