// SPDX-License-Identifier: Apache-2.0
// Many of one process in one line: one look for all of them (P8).
#include "engine/line_mates.hpp"

#include "engine/acquire.hpp"
#include "engine/call_testing.hpp"
#include "engine/scarce_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <string>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class line_mates_test : public call_testing::call_test {
protected:
  using words = std::vector<std::string>;

  void SetUp() override {
    ear.want(server.now);
    ear.wire().on_connecting(server.now);
    ear.wire().on_connected(server.now);
    ear.wire().on_bytes(server.now,
                        hello("master", "standalone", "7.0.15") + time_of_day(server.clock) + info("a run"));
    ear.wire().on_bytes(server.now, list({bulk("subscribe"), bulk("hf:wake:me"), integer(1)}));
    ASSERT_EQ(ear.hearing(), core::hearing::yes);
  }
  void TearDown() override {
    for (auto& one : all) calls.stop(one);
  }

  // In line by the order of their starts. The owner ids.
  words stand(int count, int look_ms = 5000, const std::string& key = "hf:{x}") {
    const auto first = all.size();
    for (int i = 0; i < count; ++i) {
      auto what = wants();
      what.keys.holder = key;
      all.emplace_back(calls.wire(), ear, std::move(what), rules(false), server.now, rng);
      calls.start(all.back(), server.now);
    }
    if (!calls.wire().is_ready()) server.connect();
    const auto asked = server.take();
    EXPECT_EQ(asked.size(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < asked.size(); ++i) server.say(busy());
    words ids;
    for (const auto& stood : server.take()) {
      EXPECT_EQ(named(stood), "wait");
      ids.push_back(stood.at(7));
    }
    for (auto i = first; i < all.size(); ++i) server.say(queued(static_cast<int>(i), look_ms));
    return ids;
  }
  std::string queued(int number, int look_ms = 5000) {
    return list({integer(7), stamp(server.clock), bulk(ticket(number)), integer(number), integer(look_ms), bulk(""),
                 integer(-2)});
  }
  std::string queued_for(int number, std::initializer_list<std::string> missing) {
    return list({integer(7), stamp(server.clock), bulk(ticket(number)), integer(number), integer(5000), bulk(""),
                 integer(-2), list(missing)});
  }
  static std::string ticket(int number) { return fmt::format("{:016}", 1'795'212'800'000'001 + number); }
  void step() {
    for (auto& one : all) {
      if (!one.is_over() && server.now >= one.wake_at()) one.step(server.now);
    }
  }
  // A turn that was missed makes the subscription doubtful, so whoever comes back waits for a new one first.
  words names_after(duration time) {
    server.pass(time);
    step();
    words names;
    for (const auto& r : server.take()) names.push_back(named(r));
    return names;
  }
  // The looks of the next so long: whose, and for whom.
  struct look {
    std::string whose;
    words others;
    bool operator==(const look&) const = default;
  };
  std::vector<look> looks_within(duration time) {
    std::vector<look> seen;
    for (const auto end = server.now + time; server.now < end; server.pass(10ms)) {
      step();
      for (const auto& r : server.take()) {
        EXPECT_EQ(named(r), "look");
        seen.push_back({r.at(7), r.size() > 13 ? words(r.begin() + 13, r.end()) : words{}});
      }
      if (!seen.empty()) break;
    }
    return seen;
  }

  std::deque<acquire> all;
};

TEST_F(line_mates_test, one_look_is_for_all_P8) {
  const auto ids = stand(3);
  EXPECT_THAT(looks_within(4900ms), IsEmpty());
  EXPECT_THAT(looks_within(700ms), ElementsAre(look{ids[0], {ids[1], ids[2]}}));
  server.say(queued_for(0, {}));
  EXPECT_THAT(looks_within(4900ms), IsEmpty());
  EXPECT_THAT(looks_within(700ms), ElementsAre(look{ids[0], {ids[1], ids[2]}}));
}

TEST_F(line_mates_test, who_is_missing_looks_for_itself) {
  const auto ids = stand(3);
  ASSERT_EQ(looks_within(5600ms).size(), 1u);
  server.say(queued_for(0, {integer(2)}));
  EXPECT_THAT(looks_within(10ms), ElementsAre(look{ids[2], {}}));
  server.say(list({integer(15), stamp(server.clock)}));
  EXPECT_THAT(names_after(200ms), ElementsAre("wait")) << "it comes back";
}

TEST_F(line_mates_test, when_the_first_has_the_lock_the_next_one_looks_for_the_others) {
  const auto ids = stand(3);
  ASSERT_EQ(looks_within(5600ms).size(), 1u);
  server.say(mine(10'000));
  EXPECT_TRUE(all[0].is_over());
  EXPECT_THAT(looks_within(10ms), ElementsAre(look{ids[1], {ids[2]}}));
}

// FLUSHALL: whoever waits for others to find it out one by one waits long.
TEST_F(line_mates_test, when_the_first_is_not_in_line_each_looks_for_itself) {
  const auto ids = stand(3);
  ASSERT_EQ(looks_within(5600ms).size(), 1u);
  server.say(list({integer(15), stamp(server.clock)}));
  EXPECT_THAT(names_after(0ms), ElementsAre("look", "look"));
  EXPECT_THAT(names_after(200ms), ElementsAre("wait"));
}

TEST_F(line_mates_test, an_answer_that_never_comes_costs_the_others_a_second) {
  const auto ids = stand(3);
  ASSERT_EQ(looks_within(5600ms).size(), 1u);
  all[0].cancel(server.now);
  EXPECT_THAT(looks_within(2600ms), ElementsAre(look{ids[1], {ids[2]}}));
}

TEST_F(line_mates_test, hundreds_are_looked_for_by_few) {
  stand(600);
  std::vector<std::size_t> others;
  for (int rounds = 0; rounds < 5; ++rounds) {
    for (const auto& seen : looks_within(rounds == 0 ? 5600ms : 600ms)) {
      others.push_back(seen.others.size());
      server.say(queued_for(0, {}));
    }
  }
  EXPECT_THAT(others, ElementsAre(255, 255, 87));
}

TEST_F(line_mates_test, other_lines_and_those_who_look_at_an_expiry_look_themselves) {
  const auto here = stand(2);
  const auto there = stand(1, 5000, "hf:{y}");
  const auto near = stand(1, 700);
  EXPECT_THAT(looks_within(800ms), ElementsAre(look{near[0], {}}));
  server.say(queued(3));
  std::vector<look> seen;
  for (int rounds = 0; rounds < 3; ++rounds) {
    for (const auto& one : looks_within(5600ms)) {
      seen.push_back(one);
      one.others.empty() ? server.say(queued(2)) : server.say(queued_for(0, {}));
    }
    if (seen.size() == 2) break;
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre(look{here[0], {here[1], near[0]}}, look{there[0], {}}));
}

TEST_F(line_mates_test, a_hint_is_still_followed_by_its_owner_alone) {
  const auto ids = stand(3);
  server.pass(4900ms);  // The heartbeat is near.
  calls.on_hint(server.now, ids[1], server.clock + 1s, 0s);
  EXPECT_THAT(looks_within(10ms), ElementsAre(look{ids[1], {}}));
}

// Without memory a wait ends, and on its way out leaves the place that it has here. The key is too long to need none.
TEST(scarce_line_mates, who_has_no_memory_to_stand_there_stands_nowhere) {
  const std::string key = "hf:{a name that is longer than most}";
  line_mates mates;
  line_mate who;
  int failures = 0;
  for (bool is_enough = false; !is_enough; ++failures) {
    ASSERT_LT(failures, 100) << "it never has enough";
    scarce_testing::allocations_left = failures;
    try {
      mates.place(key, who, 7);
      is_enough = true;
    } catch (const std::bad_alloc&) {
    }
    scarce_testing::allocations_left = scarce_testing::all;
    EXPECT_EQ(who.ticket, is_enough ? 7u : 0u);
    EXPECT_EQ(mates.of(key) != nullptr, is_enough);
    mates.place(key, who, 0);
    EXPECT_FALSE(mates.of(key));
  }
  EXPECT_GT(failures, 1) << "or this tests nothing";
}

}  // namespace

}  // namespace holdfast::engine
