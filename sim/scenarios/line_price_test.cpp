// SPDX-License-Identifier: Apache-2.0
// What the checker of C7's prices says of what the line grants to whoever is not there, told to it by hand.
#include "made_up.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// One lock that others release, and looks of those who wait for it: A, B and C, in this order, of a process each. All
// of them listen and have looked at 100 s, and their claim window is a second.
class a_line {
public:
  a_line() {
    for (int i = 0; i < 3; ++i) {
      line_.push_back({owner_of(i), static_cast<double>(i), channel_of(i), fmt::format("p{}.c1", i), true, 0, 1, 1s,
                       std::chrono::microseconds{100s}.count()});
      world_.server().subscribe(channel_of(i));
    }
  }

  line_place& place(int whose) {
    return *std::find_if(line_.begin(), line_.end(), [&](const line_place& p) { return p.owner == owner_of(whose); });
  }
  void stops_listening(int whose) { world_.server().unsubscribe(channel_of(whose)); }
  void looked(int whose, duration when) { place(whose).looked_us = when / 1us; }
  made_up& world() { return world_; }

  complaints is_granted_by_a_release(int whom, duration when, duration lives = 1s) {
    return run(script::id::release, std::string(32, 'r'), whom, when, lives);
  }
  complaints is_granted_by_a_look(int of, int whom, duration when) {
    return run(script::id::look, owner_of(of), whom, when, 1s);
  }
  complaints is_granted_by_a_leave(int of, int whom, duration when) {
    return run(script::id::leave, owner_of(of), whom, when, 1s);
  }
  void has_lapsed() { holder_.reset(); }

private:
  static std::string owner_of(int i) { return std::string(32, static_cast<char>('a' + i)); }
  static std::string channel_of(int i) { return fmt::format("hf:wake:{}", i); }

  complaints run(script::id which, const std::string& caller, int whom, duration when, duration lives) {
    const std::array<std::string, 1> words{caller};
    script_run run{which, {}, words, nobody, {}, 0, server_time{std::chrono::microseconds{when / 1us}}};
    if (holder_) run.before.push_back(*holder_);
    run.line_before = line_;
    holder_ = holder{owner_of(whom), fmt::format("{:016}", ++last_token_),
                     std::chrono::microseconds{(when + lives) / 1us}, 1};
    run.after.push_back(*holder_);
    std::erase_if(line_, [&](const line_place& p) { return p.owner == holder_->owner; });
    run.reply = &done_;
    return world_.at(when, [&](checker& c) { c.on_script(run); });
  }

  const resp::value done_{std::string{"1795212800000000"}};
  made_up world_{};
  std::vector<line_place> line_{};
  std::optional<holder> holder_{};
  int last_token_ = 0;
};

enum : int { a, b, c };

}  // namespace

TEST(checkers_of_the_line, let_the_first_be_granted_for_its_window) {
  a_line it;
  EXPECT_EQ(it.is_granted_by_a_release(a, 101s), complaints{});
}

TEST(checkers_of_the_line, see_a_grant_that_nobody_has_claimed_and_that_outlives_its_window_C7) {
  a_line it;
  EXPECT_EQ(it.is_granted_by_a_release(a, 101s, 1010ms), complaints{"C7"});
}

TEST(checkers_of_the_line, see_a_grant_to_who_does_not_listen_C7) {
  a_line it;
  it.stops_listening(a);
  EXPECT_EQ(it.is_granted_by_a_release(a, 101s), complaints{"C7"});
}

TEST(checkers_of_the_line, see_a_grant_to_who_cannot_be_told_C7) {
  a_line it;
  it.place(a).is_told = false;
  EXPECT_EQ(it.is_granted_by_a_release(a, 101s), complaints{"C7"});
}

TEST(checkers_of_the_line, see_a_grant_to_a_silent_one_before_somebody_who_has_looked_C7) {
  a_line it;
  it.looked(b, 106s);
  EXPECT_EQ(it.is_granted_by_a_release(a, 107s), complaints{"C7"});
}

TEST(checkers_of_the_line, let_a_silent_one_be_granted_when_all_are) {
  a_line it;
  EXPECT_EQ(it.is_granted_by_a_release(a, 107s), complaints{});
}

// Seed 900005307.
TEST(checkers_of_the_line, let_a_silent_one_be_granted_by_who_has_looked_and_leaves) {
  a_line it;
  it.looked(b, 106s);
  EXPECT_EQ(it.is_granted_by_a_leave(b, a, 107s), complaints{});
}

// Who stands by for a grant counts as silent, whatever has become of that grant (seed 28497).
TEST(checkers_of_the_line, let_a_silent_one_be_granted_before_who_has_not_looked_since_the_last_grant) {
  a_line it;
  it.looked(c, 103s);
  it.is_granted_by_a_release(a, 104s);
  EXPECT_EQ(it.is_granted_by_a_leave(a, b, 107s), complaints{});
}

// C looks 0.4 s behind the end of A's grant: B was to look at 0.2 s.
TEST(checkers_of_the_line, see_a_grant_to_who_did_not_look_when_it_stood_by_C7) {
  a_line it;
  it.is_granted_by_a_release(a, 101s);
  it.has_lapsed();
  EXPECT_EQ(it.is_granted_by_a_look(c, b, 102400ms), complaints{"C7"});
}

// Seed 60221247. B has left with that, and comes back; C is of A's process.
TEST(checkers_of_the_line, let_nobody_stand_by_who_leaves) {
  for (const bool leaves : {true, false}) {
    a_line it;
    it.place(c).channel = it.place(a).channel;
    leaves ? it.is_granted_by_a_leave(b, a, 101s) : it.is_granted_by_a_release(a, 101s);
    it.has_lapsed();
    EXPECT_EQ(it.is_granted_by_a_look(b, c, 102400ms), leaves ? complaints{} : complaints{"C7"});
  }
}

TEST(checkers_of_the_line, let_another_primary_know_nothing_of_who_stood_by) {
  a_line it;
  it.is_granted_by_a_release(a, 101s);
  it.has_lapsed();
  it.world().is_disturbed_by(cause::another_primary, 0);
  EXPECT_EQ(it.is_granted_by_a_look(c, b, 102400ms), complaints{});
}

TEST(checkers_of_the_line, let_who_stood_by_be_granted_when_it_looked_or_still_has_time_for_it) {
  a_line in_time;
  in_time.is_granted_by_a_release(a, 101s);
  in_time.has_lapsed();
  EXPECT_EQ(in_time.is_granted_by_a_look(c, b, 102300ms), complaints{});
  a_line has_looked;
  has_looked.is_granted_by_a_release(a, 101s);
  has_looked.has_lapsed();
  has_looked.looked(b, 102200ms);
  EXPECT_EQ(has_looked.is_granted_by_a_look(c, b, 102400ms), complaints{});
}

TEST(checkers_of_the_line, let_heartbeats_say_nothing_behind_a_step_of_the_clock) {
  a_line it;
  it.looked(b, 106s);
  it.world().at(100s, [](checker&) {});
  it.world().is_disturbed_by(cause::clock_stepped, 0);
  EXPECT_EQ(it.is_granted_by_a_release(a, 107s), complaints{});
}

}  // namespace holdfast::sim
