// SPDX-License-Identifier: Apache-2.0
#include "engine/unattended.hpp"

#include "engine/acquire.hpp"
#include "engine/call_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// Acquires that nobody waits for, labelled by the order of their starts.
class unattended_test : public call_testing::call_test {
protected:
  acquire& start(bool only_once = false) {
    auto what = wants();
    what.label = std::make_shared<const std::string>(std::to_string(all.size()));
    all.emplace_back(calls.wire(), ear, std::move(what), rules(only_once), server.now, rng);
    crowd.start(all.back(), server.now);
    return all.back();
  }
  void TearDown() override {
    for (auto& one : all) calls.stop(one);
  }
  void connect() {
    server.connect();
    EXPECT_THAT(server.take_names(), testing::Contains("acquire").Times(all.size()));
    for (int i = 0; i < 3; ++i) server.say(bulk(std::string(40, 'd')));  // The scripts of the line.
  }
  std::string queued() {
    return list(
        {integer(7), stamp(server.clock), bulk("1795212800000001"), integer(0), integer(5000), bulk(""), integer(-2)});
  }
  std::string answers(const std::string& one) {
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) text += one;
    return text;
  }
  // The labels of the waits that were sent.
  static std::vector<std::string> labels(const std::vector<request>& sent) {
    std::vector<std::string> found;
    for (const auto& r : sent) {
      EXPECT_EQ(named(r), "wait");
      found.push_back(r.at(11));
    }
    return found;
  }

  std::deque<acquire> all;
  unattended crowd{calls};
};

TEST_F(unattended_test, wants_nothing_while_it_is_empty) { EXPECT_EQ(crowd.wake_at(), never); }

// Who started first stands first: all busy at one instant, and all due at one instant.
TEST_F(unattended_test, joins_the_line_in_the_order_of_the_starts) {
  for (int i = 0; i < 5; ++i) start();
  connect();
  server.say(answers(busy()));
  EXPECT_THAT(server.take(), IsEmpty()) << "the subscription is on its way";
  server.pass(crowd.wake_at() - server.now);
  crowd.step_due(server.now);
  EXPECT_THAT(labels(server.take()), ElementsAre("0", "1", "2", "3", "4"));
}

TEST_F(unattended_test, steps_those_that_are_due_and_no_others) {
  start();
  start();
  connect();
  server.say(answers(busy()));
  server.pass(crowd.wake_at() - server.now);
  crowd.step_due(server.now);
  server.take();
  server.say(queued());
  server.pass(1s);
  server.say(queued());
  server.pass(crowd.wake_at() - server.now);
  crowd.step_due(server.now);
  EXPECT_THAT(server.take_names(), ElementsAre("look"));
}

TEST_F(unattended_test, gives_back_who_is_over_in_the_order_of_the_ends) {
  auto& first = start(true);
  auto& second = start(true);
  connect();
  EXPECT_THAT(crowd.take_over(), IsEmpty());
  second.cancel(server.now);
  crowd.look_at(second);
  EXPECT_LT(crowd.wake_at(), server.now) << "somebody must be told";
  server.say(busy());
  EXPECT_THAT(crowd.take_over(), ElementsAre(&second, &first));
  EXPECT_THAT(crowd.take_over(), IsEmpty());
  EXPECT_EQ(crowd.wake_at(), never);
}

TEST_F(unattended_test, gives_back_who_goes_on_elsewhere_and_keeps_who_is_over) {
  auto& over = start(true);
  auto& moved = start(true);
  connect();
  over.cancel(server.now);
  moved.leave_server(server.now);
  for (auto* const one : {&over, &moved}) crowd.look_at(*one);
  EXPECT_THAT(crowd.take_moved(), ElementsAre(&moved));
  EXPECT_EQ(crowd.over(), 1u);
  EXPECT_THAT(crowd.take_over(), ElementsAre(&over));
}

// What is thrown at a start is told to its caller, who may end the call then: it must not be found here afterwards.
TEST_F(unattended_test, has_nothing_of_what_was_taken_back_P32) {
  auto& under_way = start(true);
  auto& over = start(true);
  connect();
  over.cancel(server.now);
  crowd.look_at(over);
  for (auto* const one : {&under_way, &over}) crowd.take_back(*one);
  EXPECT_EQ(crowd.wake_at(), never);
  EXPECT_EQ(crowd.over(), 0u);
  EXPECT_THAT(crowd.all(), IsEmpty());
  EXPECT_THAT(crowd.take_over(), IsEmpty());
  server.say(busy());
  EXPECT_THAT(crowd.take_over(), IsEmpty()) << "nor is it heard of";
}

// Found out with ten thousand: those that were under way when the first was refused came behind the later ones.
TEST_F(unattended_test, loads_the_scripts_of_the_line_ahead_on_each_connection) {
  start(true);
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("SCRIPT", "SCRIPT", "SCRIPT", "acquire"));
  start(true);
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
}

}  // namespace

}  // namespace holdfast::engine
