// SPDX-License-Identifier: Apache-2.0
// A terminal that nobody gives, without one and without a clock.
#include "terminal_wish.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;
using act = terminal_wish::act;

bool yes() { return true; }
bool no() { return false; }

TEST(terminal_wish, is_hinted_at_once_where_somebody_could_give_it) {
  terminal_wish wish{SIGTERM};
  EXPECT_EQ(wish.look(1000ms, no).what, act::hint);
  EXPECT_EQ(wish.look(2000ms, no).what, act::none);
}

// Each look may read all of /proc, and a job may wait for its fg for days.
TEST(terminal_wish, is_looked_after_less_and_less_often) {
  terminal_wish wish{SIGTERM};
  int looks = 0;
  const auto count = [&] { return ++looks < 0; };
  for (auto now = 1000ms; now < 1000ms + 1h; now += 100ms) wish.look(now, count);
  EXPECT_LE(looks, 3600 / 5 + 7);
  EXPECT_GE(looks, 3600 / 5);
}

TEST(terminal_wish, is_seen_to_be_in_vain_5_s_after_the_shell_has_ended) {
  terminal_wish wish{SIGTERM};
  for (auto now = 1000ms; now < 1h; now += 100ms) wish.look(now, no);
  bool is_denied = false;
  for (auto now = 1h + 0ms; now <= 1h + 5s; now += 100ms)
    is_denied = is_denied || wish.look(now, yes).what == act::deny;
  EXPECT_TRUE(is_denied);
}

TEST(terminal_wish, that_nobody_can_fulfil_is_denied_more_firmly_each_time_and_at_once) {
  terminal_wish wish{SIGINT};
  for (auto now = 1000ms; now < 1h; now += 100ms) wish.look(now, no);
  for (const int signal : {SIGHUP, SIGINT, SIGKILL, SIGKILL}) {
    const auto step = wish.look(2h, yes);
    EXPECT_EQ(step.what, act::deny);
    EXPECT_EQ(step.signal, signal);
    EXPECT_EQ(wish.is_news(true), signal == SIGHUP);
  }
}

// As of sudo's command: it stands, and is signalled no more often than it is looked at.
TEST(terminal_wish, of_who_hears_nobody_is_told_once_and_stays_with_the_first_signal) {
  terminal_wish wish{SIGTERM};
  ASSERT_EQ(wish.look(1000ms, yes).signal, SIGHUP);
  EXPECT_TRUE(wish.is_news(false));
  EXPECT_EQ(wish.look(1050ms, yes).what, act::none);
  EXPECT_EQ(wish.look(1h, yes).signal, SIGHUP);
  EXPECT_FALSE(wish.is_news(false));
}

}  // namespace
