// SPDX-License-Identifier: Apache-2.0
#include "core/clean_up.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr time_point t0{1h};
constexpr server_time s0{500'000h};
constexpr server_time not_after = s0 + 500ms;
constexpr time_point give_up = t0 + 10s;

class clean_up_test : public testing::Test {
protected:
  clean_up of_a_copy() { return {t0, not_after, t0 + 500ms, give_up}; }
  // When it asks, each time answered at once by a server whose clock runs as ours.
  std::vector<duration> asks(clean_up c) {
    std::vector<duration> all;
    for (time_point now = t0; !c.is_over(now); now = std::max(now, c.wake_at(true))) {
      if (!c.on_wake(now, true)) continue;
      all.push_back(now - t0);
      c.on_definite(now, s0 + std::chrono::duration_cast<server_time::duration>(now - t0), rng);
      now += 1us;
    }
    return all;
  }
  seeded_random rng;
};

TEST_F(clean_up_test, asks_at_once_and_once) {
  auto c = of_a_copy();
  EXPECT_EQ(c.wake_at(true), t0);
  EXPECT_TRUE(c.on_wake(t0, true));
  EXPECT_FALSE(c.on_wake(t0, true));
  EXPECT_EQ(c.wake_at(true), give_up);
}

TEST_F(clean_up_test, without_outstanding_copies_the_first_answer_ends_it) {
  clean_up c{t0, server_time{}, time_point{}, give_up};
  EXPECT_TRUE(c.on_wake(t0, true));
  c.on_definite(t0, s0, rng);
  EXPECT_TRUE(c.is_over(t0));
  EXPECT_EQ(c.wake_at(true), never);
}

// A place in line outlives the lease that it was for. It is asked for until anybody answers, and no longer.
TEST_F(clean_up_test, a_place_that_nobody_has_answered_for_is_asked_for_beyond_the_lease_P2) {
  clean_up c{t0, not_after, t0 + 500ms, give_up, route::stands, give_up + 10min};
  const time_point back = give_up + 5min;
  EXPECT_FALSE(c.is_over(back));
  EXPECT_EQ(c.wake_at(false), give_up + 10min);
  EXPECT_TRUE(c.on_wake(back, true));
  c.on_failed(back, rng);
  EXPECT_FALSE(c.is_over(back));
  EXPECT_TRUE(c.on_wake(c.wake_at(true), true));
  c.on_definite(back, s0, rng);
  EXPECT_TRUE(c.is_over(back)) << "also of a server whose clock was set back: it has no place any more";
}

TEST_F(clean_up_test, a_place_that_was_answered_for_ends_with_the_lease) {
  clean_up c{t0, not_after, t0 + 500ms, give_up, route::stands, give_up + 10min};
  EXPECT_TRUE(c.on_wake(t0, true));
  c.on_definite(t0, s0 - 1h, rng);
  EXPECT_FALSE(c.is_over(give_up - 1ns));
  EXPECT_TRUE(c.is_over(give_up));
}

// P10: "not yours" before not_after proves nothing, because the copy may still come. Nor does the very instant: the
// script refuses only what is later than not_after.
TEST_F(clean_up_test, an_answer_up_to_not_after_does_not_end_it_P10_H12) {
  for (const auto said : {s0, not_after - 1us, not_after}) {
    auto c = of_a_copy();
    EXPECT_TRUE(c.on_wake(t0, true));
    c.on_definite(t0 + 1ms, said, rng);
    EXPECT_FALSE(c.is_over(t0 + 1ms));
    EXPECT_FALSE(c.on_wake(t0 + 499ms, true));
    EXPECT_TRUE(c.on_wake(t0 + 500ms, true)) << "asked again after the last not_after, by our estimate";
  }
}

TEST_F(clean_up_test, the_first_answer_after_not_after_ends_it_P10) {
  auto c = of_a_copy();
  EXPECT_TRUE(c.on_wake(t0 + 600ms, true));
  c.on_definite(t0 + 600ms, not_after + 1us, rng);
  EXPECT_TRUE(c.is_over(t0 + 600ms));
  EXPECT_FALSE(c.on_wake(t0 + 2s, true));
}

// P9: the mark that the first one left may be gone. What took the lock for nobody meanwhile is not left until
// not_after.
TEST_F(clean_up_test, asks_ever_later_for_a_copy_that_was_cut_off_P10) {
  const auto asked = asks({t0, s0 + 5s, t0 + 5s + 1ms, t0 + 15s, route::was_cut});
  ASSERT_EQ(asked.size(), 6u) << testing::PrintToString(asked);
  EXPECT_EQ(asked.front(), 0s);
  EXPECT_LE(asked[1], 60ms);
  for (std::size_t i = 1; i < asked.size(); ++i) {
    EXPECT_LE(asked[i] - asked[i - 1], 3 * asked[i - 1] + 51ms) << "more than three times what the copy was late";
  }
  EXPECT_EQ(asked.back(), 5s + 1ms) << "the last word is that behind not_after";
}

TEST_F(clean_up_test, asks_twice_when_what_it_sends_comes_behind_the_copy) {
  EXPECT_EQ(asks({t0, s0 + 5s, t0 + 5s + 1ms, t0 + 15s, route::stands}), (std::vector<duration>{0s, 5s + 1ms}));
}

// P5: the line called somebody whom nobody knows any more. The last not_after still decides when it is over.
TEST_F(clean_up_test, hurries_when_a_copy_took_effect_P5) {
  auto c = of_a_copy();
  EXPECT_TRUE(c.on_wake(t0, true));
  c.hurry(t0 + 1ms);
  EXPECT_FALSE(c.on_wake(t0 + 1ms, true)) << "one is under way";
  c.on_definite(t0 + 2ms, s0, rng);
  EXPECT_FALSE(c.on_wake(t0 + 100ms, true));
  c.hurry(t0 + 100ms);
  EXPECT_EQ(c.wake_at(true), t0 + 100ms);
  EXPECT_TRUE(c.on_wake(t0 + 100ms, true));
  c.on_definite(t0 + 101ms, s0 + 1ms, rng);
  EXPECT_FALSE(c.is_over(t0 + 101ms));
}

// P11: the server's clock stepped back by an hour, so no answer is after not_after.
TEST_F(clean_up_test, a_server_clock_far_behind_is_not_a_storm) {
  auto c = of_a_copy();
  int asked = 0;
  for (time_point now = t0; !c.is_over(now); now = std::max(now, c.wake_at(true))) {
    if (c.on_wake(now, true)) ++asked;
    now += 100us;
    c.on_definite(now, s0 - 1h, rng);
  }
  EXPECT_GE(asked, 5);
  EXPECT_LE(asked, 40);
}

TEST_F(clean_up_test, a_failure_is_repeated_later_and_later) {
  auto c = of_a_copy();
  int asked = 0;
  for (time_point now = t0; !c.is_over(now); now = c.wake_at(true)) {
    if (!c.on_wake(now, true)) continue;
    ++asked;
    c.on_failed(now, rng);
    ASSERT_GT(c.wake_at(true), now);
  }
  EXPECT_GE(asked, 10);
  EXPECT_LE(asked, 40);
}

TEST_F(clean_up_test, gives_up_when_everything_has_expired) {
  auto c = of_a_copy();
  EXPECT_TRUE(c.on_wake(t0, true));
  EXPECT_FALSE(c.is_over(give_up - 1ns));
  EXPECT_TRUE(c.is_over(give_up));
  EXPECT_FALSE(c.on_wake(give_up, true));
}

TEST_F(clean_up_test, without_a_connection_nothing_is_due) {
  auto c = of_a_copy();
  EXPECT_FALSE(c.on_wake(t0, false));
  EXPECT_EQ(c.wake_at(false), give_up);
  EXPECT_TRUE(c.on_wake(t0 + 1s, true));
}

}  // namespace

}  // namespace holdfast::core
