// SPDX-License-Identifier: Apache-2.0
#include "missed_news.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace holdfast::sim {

TEST(missed_news, are_read_in_any_order_but_each_sources_own) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    seeded_random rng{seed};
    std::string order;
    missed_news missed;
    for (const auto& [from, what] : {std::pair{1, 'a'}, {2, 'x'}, {1, 'b'}, {2, 'y'}}) {
      missed.push(from, [&order, what = what] { order += what; });
    }
    while (!missed.empty()) missed.take_any(rng)();
    orders.insert(order);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"abxy", "axby", "axyb", "xaby", "xayb", "xyab"}));
}

TEST(missed_news, are_read_as_they_came_when_that_is_asked_for) {
  std::string order;
  missed_news missed;
  for (const auto& [from, what] : {std::pair{1, 'a'}, {2, 'x'}, {1, 'b'}}) {
    missed.push(from, [&order, what = what] { order += what; });
  }
  while (!missed.empty()) missed.take_first()();
  EXPECT_EQ(order, "axb");
}

}  // namespace holdfast::sim
