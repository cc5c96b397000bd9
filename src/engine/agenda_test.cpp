// SPDX-License-Identifier: Apache-2.0
#include "engine/agenda.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;

struct task {
  int name;
  agenda<task>::place place{};
};

constexpr time_point t0{1h};

TEST(agenda, an_empty_one_is_never_due) {
  agenda<task> all;
  EXPECT_EQ(all.next(), never);
}

TEST(agenda, the_earliest_is_first_and_at_one_instant_who_was_put_there_first) {
  agenda<task> all;
  task late{1};
  task soon{2};
  task also{3};
  all.put(late, late.place, t0 + 2s);
  all.put(soon, soon.place, t0 + 1s);
  all.put(also, also.place, t0 + 1s);
  EXPECT_EQ(all.next(), t0 + 1s);
  EXPECT_EQ(all.first().name, 2);
  all.remove(soon.place);
  EXPECT_EQ(all.first().name, 3);
}

TEST(agenda, what_is_put_off_leaves_its_former_instant) {
  agenda<task> all;
  task one{1};
  all.put(one, one.place, t0);
  all.put(one, one.place, t0 + 1s);
  EXPECT_EQ(all.next(), t0 + 1s);
  all.put(one, one.place, never);
  EXPECT_EQ(all.next(), never);
  all.remove(one.place);
  EXPECT_EQ(all.next(), never);
}

// Against a plain list that is sorted each time.
TEST(agenda, any_changes_leave_the_order_of_time_and_then_of_change) {
  EXPECT_TRUE(rc::check("puts and removals", [] {
    agenda<task> all;
    std::array<task, 6> tasks{task{0}, task{1}, task{2}, task{3}, task{4}, task{5}};
    std::vector<std::tuple<time_point, std::uint64_t, int>> expected;
    std::uint64_t changes = 0;
    const auto drop = [&](int name) {
      std::erase_if(expected, [&](const auto& e) { return std::get<int>(e) == name; });
    };
    for (const auto& change : *rc::gen::container<std::vector<std::pair<int, int>>>(
             rc::gen::pair(rc::gen::inRange(0, 6), rc::gen::inRange(-1, 4)))) {
      const int name = change.first;
      const int second = change.second;
      auto& what = tasks[static_cast<std::size_t>(name)];
      const time_point at = second < 0 ? never : t0 + std::chrono::seconds{second};
      const bool stays = std::any_of(expected.begin(), expected.end(), [&](const auto& e) {
        return std::get<int>(e) == name && std::get<time_point>(e) == at;
      });
      all.put(what, what.place, at);
      if (!stays) {
        drop(name);
        if (at != never) expected.emplace_back(at, ++changes, name);
      }
      const auto least = std::min_element(expected.begin(), expected.end());
      RC_ASSERT(all.next() == (least == expected.end() ? never : std::get<time_point>(*least)));
      if (least != expected.end()) RC_ASSERT(all.first().name == std::get<int>(*least));
    }
    for (auto& t : tasks) all.remove(t.place);
    RC_ASSERT(all.next() == never);
  }));
}

}  // namespace

}  // namespace holdfast::engine
