// SPDX-License-Identifier: Apache-2.0
#include "core/lease_deadline.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

constexpr time_point t0{1h};

TEST(lease_deadline, is_ahead_until_it_is_reached) {
  lease_deadline d{t0};
  EXPECT_TRUE(d.is_ahead(t0 - 1ns));
  EXPECT_FALSE(d.is_ahead(t0));
}

// B13, P13c: somebody was told "not valid", so it stays so, also for a thread whose clock reading is older.
TEST(lease_deadline, is_final_once_a_reader_saw_it_pass_P13c) {
  lease_deadline d{t0};
  EXPECT_FALSE(d.is_ahead(t0));
  EXPECT_FALSE(d.is_ahead(t0 - 1s));
  EXPECT_FALSE(d.extend(t0 - 1s, t0 + 1h));
  EXPECT_FALSE(d.is_ahead(t0 - 1s));
}

TEST(lease_deadline, a_reader_of_what_is_left_ends_it_too) {
  lease_deadline d{t0};
  EXPECT_EQ(d.left(t0 + 1ns), 0ns);
  EXPECT_FALSE(d.extend(t0 - 1s, t0 + 1h));
}

TEST(lease_deadline, extends_while_it_is_ahead) {
  lease_deadline d{t0};
  EXPECT_TRUE(d.extend(t0 - 1ns, t0 + 1s));
  EXPECT_TRUE(d.is_ahead(t0 + 1s - 1ns));
  EXPECT_FALSE(d.is_ahead(t0 + 1s));
}

// P13c: "at the very instant" is too late, even when nobody looked.
TEST(lease_deadline, an_answer_at_the_deadline_is_too_late_P13c) {
  lease_deadline d{t0};
  EXPECT_FALSE(d.extend(t0, t0 + 1s));
  EXPECT_FALSE(d.is_ahead(t0));
}

TEST(lease_deadline, an_older_answer_does_not_move_it_back_P13c) {
  lease_deadline d{t0 + 2s};
  EXPECT_TRUE(d.extend(t0, t0 + 1s));
  EXPECT_TRUE(d.is_ahead(t0 + 1s));
}

// Of a quorum: a node that lost its vote does not count any more (B57).
TEST(lease_deadline, is_brought_forward_but_never_back_to_life_B57) {
  lease_deadline d{t0 + 2s};
  d.shorten(t0 + 1s);
  d.shorten(t0 + 3s);
  EXPECT_EQ(d.left(t0), 1s);
  EXPECT_FALSE(d.is_ahead(t0 + 1s));
  d.shorten(t0 + 5s);
  EXPECT_FALSE(d.is_ahead(t0));
}

TEST(lease_deadline, end_is_final) {
  lease_deadline d{t0};
  d.end();
  EXPECT_FALSE(d.is_ahead(t0 - 1h));
  EXPECT_FALSE(d.extend(t0 - 1h, t0 + 1h));
  EXPECT_EQ(d.left(t0 - 1h), 0ns);
}

TEST(lease_deadline, says_what_is_left) {
  lease_deadline d{t0};
  EXPECT_EQ(d.left(t0 - 3s), 3s);
  EXPECT_EQ(d.left(t0 - 1ns), 1ns);
}

// The danger: a renewal and a reader at the same moment, each told what the other's word makes untrue.
// The trick: two threads walk along the same row of deadlines. Who is ahead waits for the memory, who is behind finds
// it near, so they run side by side and meet often. The expectation: they agree on every one.
TEST(lease_deadline, a_renewal_and_a_reader_that_race_agree_B13) {
  constexpr int walks = 300;
  constexpr std::size_t row = 4'000;
  int disagreements = 0;
  std::deque<lease_deadline> raced;
  std::vector<char> was_extended(row);
  std::barrier<> both{2};
  std::thread renewer{[&] {
    for (int i = 0; i < walks; ++i) {
      both.arrive_and_wait();
      for (std::size_t k = 0; k < row; ++k) was_extended[k] = raced[k].extend(t0 - 1ns, t0 + 1s);
      both.arrive_and_wait();
    }
  }};
  for (int i = 0; i < walks; ++i) {
    raced.clear();
    for (std::size_t k = 0; k < row; ++k) raced.emplace_back(t0);
    std::vector<char> was_valid(row);
    both.arrive_and_wait();
    for (std::size_t k = 0; k < row; ++k) was_valid[k] = raced[k].is_ahead(t0);
    both.arrive_and_wait();
    for (std::size_t k = 0; k < row; ++k) disagreements += was_valid[k] != was_extended[k];
  }
  renewer.join();
  EXPECT_EQ(disagreements, 0);
}

}  // namespace

}  // namespace holdfast::core
