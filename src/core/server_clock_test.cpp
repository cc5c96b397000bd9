// SPDX-License-Identifier: Apache-2.0
#include "core/server_clock.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr time_point t0{1h};
constexpr server_time s0{500'000h};

// One reply at t0 that said s0, after a round trip of 10 ms.
server_clock seen_once() {
  server_clock c;
  EXPECT_FALSE(c.observe(s0, t0 - 10ms, t0));
  return c;
}

TEST(server_clock, knows_nothing_before_a_reply) { EXPECT_FALSE(server_clock{}.is_known()); }

// H12: reckoned from the receive instant, so that the estimate is never ahead of the server.
TEST(server_clock, reckons_from_the_instant_the_reply_was_read_H12) {
  const auto c = seen_once();
  EXPECT_TRUE(c.is_known());
  EXPECT_EQ(c.at(t0), s0);
  EXPECT_EQ(c.at(t0 + 3s), s0 + 3s);
}

TEST(server_clock, goes_by_the_last_reply_P11) {
  auto c = seen_once();
  c.observe(s0 + 1h, t0 + 1s, t0 + 1s);
  EXPECT_EQ(c.at(t0 + 1s), s0 + 1h);
}

TEST(server_clock, notices_a_step_forward_H4) {
  auto c = seen_once();
  EXPECT_EQ(c.observe(s0 + 1s + 20s, t0 + 1s, t0 + 1s), duration{20s});
}

TEST(server_clock, notices_a_step_back_P11) {
  auto c = seen_once();
  EXPECT_EQ(c.observe(s0 + 1s - 1h, t0 + 1s, t0 + 1s), duration{-1h});
}

// H3: a frozen guest: its own clock stood still while the server's ran.
TEST(server_clock, notices_that_we_were_frozen_H3) {
  auto c = seen_once();
  EXPECT_EQ(c.observe(s0 + 60s, t0 + 1ms, t0 + 1ms), duration{60s - 1ms});
}

TEST(server_clock, notices_that_the_server_stands_still_H8) {
  auto c = seen_once();
  EXPECT_EQ(c.observe(s0, t0 + 1s, t0 + 1s), duration{-1s});
}

// Whatever 16 digits say, from the first instant to the last one.
TEST(server_clock, the_longest_step_is_one_in_its_own_direction) {
  constexpr server_time first{0us};
  constexpr server_time last{9'999'999'999'999'999us};
  server_clock c;
  EXPECT_FALSE(c.observe(first, t0, t0));
  EXPECT_GT(c.observe(last, t0 + 1s, t0 + 1s), duration{24h});
  EXPECT_EQ(c.at(t0 + 1s), last);
  EXPECT_LT(c.observe(first, t0 + 2s, t0 + 2s), duration{-24h});
}

TEST(server_clock, a_step_is_told_once) {
  auto c = seen_once();
  EXPECT_TRUE(c.observe(s0 + 1h, t0 + 1s, t0 + 1s));
  EXPECT_FALSE(c.observe(s0 + 1h + 1s, t0 + 2s, t0 + 2s));
}

// hazards 8: max(250 ms, 1 %) + both round trips; the first round trip was 10 ms.
TEST(server_clock, allows_250_ms_and_both_round_trips) {
  EXPECT_FALSE(seen_once().observe(s0 + 1s + 265ms, t0 + 995ms, t0 + 1s));
  EXPECT_TRUE(seen_once().observe(s0 + 1s + 266ms, t0 + 995ms, t0 + 1s));
  EXPECT_FALSE(seen_once().observe(s0 + 1s - 265ms, t0 + 995ms, t0 + 1s));
  EXPECT_TRUE(seen_once().observe(s0 + 1s - 266ms, t0 + 995ms, t0 + 1s));
}

TEST(server_clock, allows_one_percent_of_a_long_silence) {
  EXPECT_FALSE(seen_once().observe(s0 + 1000s + 10s, t0 + 1000s, t0 + 1000s));
  EXPECT_TRUE(seen_once().observe(s0 + 1000s + 10s + 11ms, t0 + 1000s, t0 + 1000s));
}

TEST(server_clock, is_older_than_one_that_heard_later) {
  const auto first = seen_once();
  auto second = seen_once();
  second.observe(s0 + 1s, t0 + 1s, t0 + 1s);
  EXPECT_TRUE(first.is_older_than(second));
  EXPECT_FALSE(second.is_older_than(first));
  EXPECT_FALSE(first.is_older_than(first));
  EXPECT_TRUE(server_clock{}.is_older_than(first));
  EXPECT_FALSE(first.is_older_than(server_clock{}));
  EXPECT_FALSE(server_clock{}.is_older_than(server_clock{}));
}

// Replies may linger both ways for as long as they like: a delay is not a step.
TEST(server_clock, no_delay_looks_like_a_step) {
  EXPECT_TRUE(rc::check("any two round trips against a true clock", [] {
    const auto delay = [] { return duration{*rc::gen::inRange<std::int64_t>(0, 60'000'000'000)}; };
    server_clock c;
    time_point now = t0;
    for (int i = 0; i < 5; ++i) {
      const time_point sent = now;
      const time_point asked = sent + delay();
      const time_point read = asked + delay();
      const auto theirs = s0 + std::chrono::duration_cast<server_time::duration>(asked - t0);
      RC_ASSERT(!c.observe(theirs, sent, read));
      RC_ASSERT(c.at(read) <= s0 + std::chrono::ceil<server_time::duration>(read - t0));
      now = read + delay();
    }
  }));
}

}  // namespace

}  // namespace holdfast::core
