// SPDX-License-Identifier: Apache-2.0
// What the checkers say of courses that the engine must not take, and that no canary can bring about: told to them by
// hand.
#include "checkers/checker.hpp"

#include <gtest/gtest.h>

#include <set>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// One exclusive lock, everybody is well, and nothing is excused.
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

  instant now() const override { return now_; }
  server_time server_now(int) const override { return {}; }
  const model_redis& redis(int) override { return redis_; }
  const lock& lock_of(int) const override { return lock_; }
  int largest_size(int, instant) const override { return 1; }
  int missing_copies(const hold&) override { return 0; }
  bool is_at_primary(int) const override { return true; }
  bool is_running(int) const override { return true; }
  instant resumed_at(int) const override { return now_; }
  instant healthy_since(int) const override { return {}; }
  duration slowest_round_trip(int) const override { return 1ms; }
  const disturbance* excuse(std::initializer_list<cause>, instant) const override { return nullptr; }
  void complain(std::string_view invariant, std::string) override { complaints_.emplace(invariant); }
  void attribute(cause) override {}
  void at(instant, std::function<void()>) override {}

private:
  instant now_{};
  lock lock_{0, lock_kind::exclusive, 1, {}};
  model_redis redis_{{}, nullptr};
  std::set<std::string> complaints_{};
  std::vector<std::unique_ptr<checker>> checkers_;
};

hold lease(int number, duration from, duration until) {
  hold made;
  made.number = made.process = number;
  made.token = made.grant = static_cast<std::uint64_t>(10 * number);
  made.owner = std::string(32, static_cast<char>('a' + number));
  made.counted_from = made.got_at = instant{} + from;
  made.valid_until = instant{} + until;
  return made;
}
hold renewed(hold made, duration until) {
  made.valid_until = instant{} + until;
  return made;
}

using complaints = std::set<std::string>;

}  // namespace

// A stood still from 2 s on. What lay in its socket is read first, and nobody has looked at its deadline since.
TEST(checkers, see_a_lease_that_comes_back_behind_its_deadline_P13c) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  EXPECT_EQ(world.at(13s, [&](checker& c) { c.on_extended(renewed(a, 19s)); }), complaints{"C4"});
}

TEST(checkers, see_a_lease_that_comes_back_beside_the_next_one_P13c) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  world.at(12s, [&](checker& c) { c.on_hold(lease(2, 12s, 21s)); });
  EXPECT_EQ(world.at(13s, [&](checker& c) { c.on_extended(renewed(a, 19s)); }), (complaints{"C1", "C4"}));
}

TEST(checkers, see_whom_the_next_one_is_let_in_beside_when_it_has_come_back_P13c) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  world.at(12s, [&](checker& c) { c.on_hold(lease(2, 12s, 14s)); });
  world.at(15s, [&](checker& c) { c.on_extended(renewed(a, 19s)); });
  EXPECT_TRUE(world.at(16s, [&](checker& c) { c.on_hold(lease(3, 16s, 25s)); }).contains("C1"));
}

TEST(checkers, let_a_lease_be_renewed_in_time) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  EXPECT_EQ(world.at(10s - 1ns, [&](checker& c) { c.on_extended(renewed(a, 19s)); }), complaints{});
  EXPECT_EQ(world.at(19s - 1ns, [&](checker& c) { c.on_extended(renewed(a, 28s)); }), complaints{});
}

// It has run again for long when it is told, and nobody is there but it.
TEST(checkers, let_a_deadline_that_has_passed_be_brought_forward) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  EXPECT_EQ(world.at(13s, [&](checker& c) { c.on_extended(renewed(a, 9s)); }), complaints{});
}

}  // namespace holdfast::sim
