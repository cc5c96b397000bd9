// SPDX-License-Identifier: Apache-2.0
// A process that gets no memory while it asks or hears: no answer goes to the wrong one, and nobody is left behind
// (C5).
#include "engine/channel_testing.hpp"
#include "engine/cluster_talk.hpp"
#include "engine/scarce_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <string>
#include <vector>

namespace holdfast::engine {
namespace {

using namespace channel_testing;
using namespace scarce_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;

// It needs no memory to hear.
struct counter final : reply_sink {
  void on_reply(time_point, time_point, const resp::value&) override { ++times; }
  void on_cut(time_point) override { ++times; }
  int times = 0;
};

class scarce_channel : public channel_test {
protected:
  scarce_channel() { connect(); }

  // With memory for so many allocations; whether that was too little.
  template <class Do>
  static bool fails_with(int allocations, Do what) {
    bool is_too_little = false;
    allocations_left = allocations;
    try {
      what();
    } catch (const std::bad_alloc&) {
      is_too_little = true;
    }
    allocations_left = all;
    return is_too_little;
  }
  // Each of those that were written, and no other, is answered with its place in line.
  void answer_all() {
    const auto written = requests_in(wire.output());
    std::string{}.swap(wire.output());  // The next one needs memory to be written.
    for (std::size_t i = 0; i < written.size(); ++i) wire.on_bytes(server.now, integer(static_cast<int>(i)));
  }
};

TEST_F(scarce_channel, writes_no_request_to_which_it_would_not_know_the_answer_C1_C5) {
  int failures = 0;
  for (int round = 0; round < 200; ++round) {
    recorder never_sent;
    auto command = a_release();
    const bool is_too_little = fails_with(round % 4, [&] { wire.send(server.now, std::move(command), never_sent); });
    failures += is_too_little ? 1 : 0;
    recorder next;
    ask(next);
    answer_all();
    ASSERT_EQ(next.own, words{is_too_little ? "0" : "1"}) << round;
    ASSERT_EQ(never_sent.own, is_too_little ? words{} : words{"0"}) << round;
    ASSERT_EQ(wire.open_requests(), 0U);
    wire.forget(never_sent);
  }
  EXPECT_GE(failures, 10) << "or this tests nothing";
}

// It is written again, by its text, and there is no memory for that: the driver ends the connection, and it hears so.
TEST_F(scarce_channel, cuts_off_whom_it_cannot_ask_for_again_H28) {
  recorder asks;
  wire.send(server.now, a_release(), asks);
  wire.output().clear();
  ASSERT_TRUE(fails_with(3, [&] { wire.on_bytes(server.now, refusal("NOSCRIPT No matching script.")); }));
  wire.on_closed(server.now, {errc::connection_lost, "", false, false});
  EXPECT_THAT(asks.own, ElementsAre("cut"));
  EXPECT_EQ(channel::open_requests(asks), 0);
  server.pass(2s);
  connect();
  recorder other;
  ask(other);
  wire.forget(asks);
  answer_all();
  EXPECT_THAT(other.own, ElementsAre("0"));
}

// It asks by itself whether it may let a line go on (P2); who released has its answer all the same.
TEST_F(scarce_channel, answers_whose_line_it_cannot_let_go_on_C5) {
  const auto unseen = list({integer(18), stamp(server.clock)});
  int unasked = 0;
  for (int left = 0; left < 40; ++left) {
    counter releases;
    wire.send(server.now, a_release(), releases);
    std::string{}.swap(wire.output());
    if (fails_with(left, [&] { wire.on_bytes(server.now, unseen); })) {  // As its driver does:
      wire.on_closed(server.now, {errc::connection_lost, "", false, false});
      server.pass(2s);
      connect();
    } else {
      unasked += wire.output().empty() ? 1 : 0;
    }
    EXPECT_EQ(releases.times, 1) << left;
    EXPECT_EQ(channel::open_requests(releases), 0) << left;
    wire.forget(releases);
    answer_all();
  }
  EXPECT_GT(unasked, 0) << "or this tests nothing";
}

TEST(scarce_talk, keeps_who_we_are_C4) {
  repeated_question talk{credentials{"app", "secret"}};
  allocations_left = 0;
  EXPECT_THROW(talk.begin(), std::bad_alloc);
  allocations_left = all;
  talk.begin();
  std::string out;
  talk.ask(out, std::vector<std::string_view>{"PING"});
  EXPECT_THAT(out, testing::HasSubstr("secret"));
}

}  // namespace
}  // namespace holdfast::engine
