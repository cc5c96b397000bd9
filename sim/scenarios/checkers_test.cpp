// SPDX-License-Identifier: Apache-2.0
// What the checkers say of leases, of scripts, and of a lock that nobody has, where all of that is told to them by
// hand.
#include "checkers/one_script.hpp"
#include "made_up.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// Under the next token, by the thread that has it.
hold handed_on(hold made) {
  ++made.number;
  ++made.token;
  return made;
}

// By an operator who saw this one, at once.
struct break_of {
  explicit break_of(const hold& seen) : words{fmt::format("{:016}", seen.grant), "now"} {
    run.args = words;
    run.before = {{seen.owner, words[0], {}, 1}};
    run.reply = &done;
  }
  break_of(const break_of&) = delete;
  break_of& operator=(const break_of&) = delete;
  const std::array<std::string, 2> words;
  const resp::value done{std::string{"1795212800000000"}};
  script_run run{script::id::break_lock, {}, {}, nobody, {}, 0, {}};
};

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

TEST(checkers, see_a_loss_that_was_not_told_before_the_lease_is_given_back) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  EXPECT_EQ(world.at(12s, [&](checker& c) { c.on_hold_ended(a, hold_end::released); }), complaints{"C4"});
}

TEST(checkers, see_a_loss_that_is_never_told) {
  made_up world;
  world.at(1s, [&](checker& c) { c.on_hold(lease(1, 1s, 10s)); });
  EXPECT_EQ(world.at(12s, [&](checker& c) { c.at_rest(); }), complaints{"C4"});
}

TEST(checkers, let_who_stood_still_give_back_what_it_has_lost) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  world.all_run_again_at(12s);
  EXPECT_EQ(world.at(12s, [&](checker& c) { c.on_hold_ended(a, hold_end::released); }), complaints{});
}

// ---- what is lost for nothing ----

TEST(checkers, see_a_lease_that_is_lost_for_nothing) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  EXPECT_EQ(world.at(5s, [&](checker& c) { c.on_hold_ended(a, hold_end::lost); }), complaints{"loss"});
}

TEST(checkers, let_a_lease_be_lost_to_what_befell_its_holder) {
  made_up world;
  const hold a = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(a); });
  world.all_are_well_since(1s + 1ns);
  EXPECT_EQ(world.at(5s, [&](checker& c) { c.on_hold_ended(a, hold_end::lost); }), complaints{});
}

// Of two grants that one owner id had, one after the other.
TEST(checkers, let_a_lease_be_lost_to_who_broke_it_and_not_to_who_broke_the_one_before) {
  made_up world;
  const hold broken = lease(1, 1s, 10s);
  hold next = lease(2, 3s, 12s);
  next.owner = broken.owner;
  world.at(1s, [&](checker& c) { c.on_hold(broken); });
  world.at(2s, [&](checker& c) { c.on_script(break_of{broken}.run); });
  EXPECT_EQ(world.at(2s, [&](checker& c) { c.on_hold_ended(broken, hold_end::lost); }), complaints{});
  world.at(3s, [&](checker& c) { c.on_hold(next); });
  EXPECT_EQ(world.at(4s, [&](checker& c) { c.on_hold_ended(next, hold_end::lost); }), complaints{"loss"});
}

TEST(checkers, see_what_a_break_of_another_grant_has_ended) {
  made_up world;
  const hold seen = lease(1, 1s, 10s);
  const hold there = lease(2, 2s, 11s);
  break_of what{seen};
  what.run.before = break_of{there}.run.before;
  world.at(2s, [&](checker& c) { c.on_hold(there); });
  world.at(3s, [&](checker& c) { c.on_script(what.run); });
  EXPECT_EQ(world.at(3s, [&](checker& c) { c.on_hold_ended(there, hold_end::lost); }), complaints{"loss"});
}

TEST(checkers, let_a_lease_be_lost_with_one_that_is_held_with_it_and_was_broken) {
  made_up world;
  hold a = lease(1, 1s, 10s);
  hold b = lease(2, 1s, 10s);
  const hold alone = lease(3, 1s, 10s);
  a.set = b.set = 1;
  for (const hold& one : {a, b}) world.at(1s, [&](checker& c) { c.on_extended(one); });
  world.at(2s, [&](checker& c) { c.on_script(break_of{a}.run); });
  EXPECT_EQ(world.at(2s, [&](checker& c) { c.on_hold_ended(b, hold_end::lost); }), complaints{});
  EXPECT_EQ(world.at(2s, [&](checker& c) { c.on_hold_ended(alone, hold_end::lost); }), complaints{"loss"});
}

// ---- what a server says to a script ----

TEST(checkers, tell_a_script_that_fails_from_one_that_is_refused_something) {
  const auto says = [](const char* text) { return resp::value{resp::server_error{text}}; };
  const auto fails = says("ERR user_script:12: attempt to compare nil with number script: 0ab, on @user_script.");
  const auto denied = says("ERR The user executing the script can't run this command script: 0ab, on @user_script.");
  const auto full = says("OOM command not allowed when used memory > 'maxmemory'. script: 0ab, on @user_script.");
  const auto unknown = says("ERR the model does not know PUBSUB CHANNELS");
  EXPECT_STREQ(failure_of_command(fails), "script");
  EXPECT_STREQ(failure_of_lock_script(fails), "script");
  EXPECT_STREQ(failure_of_command(denied), nullptr);  // INFO, of epoch.lua.
  EXPECT_STREQ(failure_of_lock_script(denied), "script");
  EXPECT_STREQ(failure_of_lock_script(full), nullptr);
  EXPECT_STREQ(failure_of_command(unknown), "model");
  EXPECT_STREQ(failure_of_lock_script(resp::value{std::int64_t{1}}), nullptr);
}

// ---- a lock that nobody has ----

// Of a lock whose holder died: A has it from 1 s to 2 s, and nobody hears of its end. B and C came to the line at 1.1 s
// and 1.2 s, D at 1.3 s.
class whose_holder_died {
public:
  // All of it so much later, by the true time.
  explicit whose_holder_died(duration later = 0s) : later_{later} {
    for (int i = 0; i < 4; ++i) {
      call_record call;
      call.process = i;
      call.label = label_of(i);
      world_.at(later_ + 1s, [&](checker& c) { c.on_call_started(call); });
    }
    run_at(1s, 0);
    has_it_ = true;
    for (int i = 1; i < 4; ++i) {
      run_at(1s + i * 100ms, i);
      line_.push_back({owner_of(i), static_cast<double>(i), {}, label_of(i), true, 0});
    }
  }

  made_up& world() { return world_; }
  std::vector<line_place>& line() { return line_; }
  // Who came next; or, behind the end of A's lease, whoever asks first then.
  complaints run_at(duration when, int whose) {
    const std::array<std::string, 1> words{owner_of(whose)};
    script_run run{
        whose == 0 ? script::id::acquire : script::id::look, {}, words, nobody, {}, 0, server_time{} + us(when)};
    const std::vector<holder> a{{owner_of(0), "0000000001000000", us(2s), 1}};
    const bool is_over = when >= 2s;
    run.before = has_it_ && !is_over ? a : std::vector<holder>{};
    run.after = is_over ? std::vector<holder>{} : a;
    run.line_before = line_;
    run.reply = whose == 0 ? &done_ : &queued_;
    return world_.at(later_ + when, [&](checker& c) { c.on_script(run); });
  }
  void has_its_clock_stepped_at(duration when) {
    world_.at(when, [](checker&) {});
    world_.is_disturbed_by(cause::clock_stepped, 0);
  }

private:
  static std::chrono::microseconds us(duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d); }
  static std::string owner_of(int i) { return std::string(32, static_cast<char>('a' + i)); }
  static std::string label_of(int i) { return fmt::format("p{}.c1", i); }

  const resp::value done_{std::string{"1795212800000000"}};
  const resp::value queued_{resp::value::array{resp::value{std::int64_t{7}}, done_, done_}};
  const duration later_;
  bool has_it_ = false;
  std::vector<line_place> line_{};
  made_up world_{};
};

TEST(checkers, see_a_wake_up_that_is_lost_C7) {
  whose_holder_died it;
  EXPECT_EQ(it.run_at(2600ms, 3), complaints{});
  EXPECT_EQ(it.run_at(2700ms, 3), complaints{"C7"});
}

TEST(checkers, let_a_lock_be_free_until_a_heartbeat_for_who_was_not_told_when_its_lease_ends) {
  whose_holder_died it;
  it.run_at(1400ms, 2);
  it.line().erase(it.line().begin(), it.line().begin() + 2);  // B and C have left.
  EXPECT_EQ(it.run_at(9s, 3), complaints{});
  EXPECT_EQ(it.run_at(10s, 3), complaints{"C7"});
}

TEST(checkers, let_a_lock_be_free_until_a_heartbeat_behind_who_cannot_be_called) {
  whose_holder_died it;
  it.line().front().is_told = false;
  EXPECT_EQ(it.run_at(9s, 3), complaints{});
  EXPECT_EQ(it.run_at(10s, 3), complaints{"C7"});
}

TEST(checkers, let_a_lock_be_free_until_a_heartbeat_of_who_was_befallen) {
  whose_holder_died it;
  it.world().all_are_well_since(3s);
  EXPECT_EQ(it.run_at(10s, 3), complaints{});
  EXPECT_EQ(it.run_at(11s, 3), complaints{"C7"});
}

TEST(checkers, let_a_lock_be_free_until_a_quarantine_is_over) {
  whose_holder_died it;
  it.world().was_quarantined_until(2500ms);
  EXPECT_EQ(it.run_at(3050ms, 3), complaints{});
  EXPECT_EQ(it.run_at(3200ms, 3), complaints{"C7"});
}

TEST(checkers, see_a_wake_up_that_is_lost_long_after_a_step_of_the_clock_C7) {
  whose_holder_died it{40s};
  it.has_its_clock_stepped_at(1s);
  EXPECT_EQ(it.run_at(2700ms, 3), complaints{"C7"});
}

TEST(checkers, let_a_wake_up_be_lost_in_a_step_of_the_clock) {
  whose_holder_died it;
  it.has_its_clock_stepped_at(1900ms);
  EXPECT_EQ(it.run_at(2700ms, 3), complaints{});
}

// ---- what is handed on in a process: twice, for 20 ms ----

TEST(checkers, see_that_a_lease_is_handed_on_too_often_P14) {
  made_up world;
  hold one = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(one); });
  for (int times = 1; times <= 3; ++times) {
    const hold next = handed_on(one);
    const auto said = world.at(1s + times * 1ms, [&](checker& c) {
      c.on_hold_ended(one, hold_end::handed_on);
      c.on_hold(next);
    });
    EXPECT_EQ(said.contains("C7"), times > 2) << times;
    one = next;
  }
}

TEST(checkers, see_that_a_lease_is_handed_on_for_too_long_P14) {
  made_up world;
  const hold first = lease(1, 1s, 10s);
  const hold second = handed_on(first);
  world.at(1s, [&](checker& c) { c.on_hold(first); });
  EXPECT_FALSE(world.at(1s + 20ms, [&](checker& c) { c.on_hold(second); }).contains("C7"));
  EXPECT_TRUE(world.at(1s + 22ms, [&](checker& c) { c.on_hold(handed_on(second)); }).contains("C7"));
}

TEST(checkers, let_who_stood_still_take_late_what_it_was_handed_in_time_P14) {
  made_up world;
  const hold first = lease(1, 1s, 10s);
  world.at(1s, [&](checker& c) { c.on_hold(first); });
  world.all_run_again_at(2s);
  EXPECT_FALSE(world.at(2s, [&](checker& c) { c.on_hold(handed_on(first)); }).contains("C7"));
}

}  // namespace holdfast::sim
