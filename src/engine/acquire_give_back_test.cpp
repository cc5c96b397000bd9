// SPDX-License-Identifier: Apache-2.0
// What an acquire was granted and cannot use, it gives back ahead of its next question. What is answered to that proves
// that it is back, unless the server did not hear of it, or refused it.
#include "engine/acquire.hpp"

#include "engine/acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class give_back_test : public acquire_testing::acquire_test {
protected:
  // It asks for another one, and lets that one leave ahead of it.
  void is_granted_too_late() {
    start(false);
    server.pass(9s);
    server.say(stamp(server.clock));
    ASSERT_THAT(server.take_names(), ElementsAre("leave", "acquire"));
  }
};

// Over a connection that had ended already it was said to nobody, and what was granted would keep us out ourselves.
// What is answered next stands for that it is back.
TEST_F(give_back_test, a_grant_that_came_too_late_is_given_back_again_over_the_next_connection_C5) {
  is_granted_too_late();
  server.cut();
  server.connect();
  const auto again = server.take();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(named(again[0]), "leave");
  EXPECT_EQ(again[0].at(7), owner_of(asked[0]));
  EXPECT_EQ(named(again[1]), "acquire");
  server.say(stamp(server.clock) + busy());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("leave", "wait"));
  server.cut();
  server.connect();
  const auto at_last = server.take();
  ASSERT_EQ(at_last.size(), 2u) << "the first one is back for good";
  EXPECT_EQ(at_last[0].at(7), owner_of(again[1]));
  EXPECT_EQ(named(at_last[1]), "wait");
  call->cancel(server.now);
  const auto left = call->take_unsettled();
  ASSERT_EQ(left.size(), 3u);
  EXPECT_TRUE(left[0].was_told && left[1].was_told);
  EXPECT_FALSE(left[2].was_told);
}

// Who refused the question has refused the leave before it, too, which nobody hears.
TEST_F(give_back_test, a_grant_that_came_too_late_is_given_back_again_behind_a_refusal_C5) {
  is_granted_too_late();
  const auto loading = refusal("LOADING Redis is loading the dataset in memory");
  server.say(loading + loading);
  ASSERT_THAT(server.take_names(), ElementsAre("leave")) << "at once, and it is refused, too";
  server.say(loading);
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("acquire"));
  server.say(busy());
  EXPECT_THAT(server.take_names(), ElementsAre("leave", "acquire")) << "for a grant of its own, perhaps";
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled_in_flight);
}

// What only reads is answered where what writes is refused.
TEST_F(give_back_test, a_grant_whose_leave_is_refused_is_there_C5) {
  is_granted_too_late();
  const auto refused = refusal("MISCONF Redis is configured to save RDB snapshots");
  server.say(refused + busy());
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(server.take_names(), ElementsAre("leave", "acquire")) << i;
    server.say(refused + busy());
  }
  ASSERT_THAT(server.take_names(), ElementsAre("leave", "acquire"));
  server.say(refused + busy());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  EXPECT_THAT(server.take_names(), testing::Contains("wait")) << "not for ever";
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled_in_flight);
}

// It stood still, and to enter once more would take as long: then it has its place, and its next look is the proof.
TEST_F(give_back_test, who_has_no_time_for_proof_keeps_its_place_C7) {
  const auto queued = [&] {
    return list(
        {integer(7), stamp(server.clock), bulk("1795212800000001"), integer(1), integer(5000), bulk(""), integer(-2)});
  };
  const auto goes_on = [&] {
    server.pass(call->wake_at() - server.now);
    call->step(server.now);
  };
  auto how = rules(false);
  how.wait = 30s;
  call.emplace(calls.wire(), ear, wants(), how, server.now, rng);
  calls.start(*call, server.now);
  server.connect();
  server.take();
  server.say(busy());
  goes_on();
  ASSERT_THAT(server.take_names(), ElementsAre("wait"));
  server.say(queued());
  goes_on();
  ASSERT_THAT(server.take_names(), ElementsAre("look"));
  server.say(mine(100));  // Too little.
  goes_on();
  ASSERT_THAT(server.take_names(), ElementsAre("leave", "wait"));
  server.pass(6s);
  server.say(refusal("NOSCRIPT No matching script.") + queued());
  EXPECT_THAT(server.take_names(), testing::Contains("look"));
}

// Else it would ask nothing more for five seconds, and end as unknown if its time is over before.
TEST_F(give_back_test, who_is_in_line_asks_again_behind_a_leave_that_was_not_done_C5) {
  const auto queued = [&] {
    return list(
        {integer(7), stamp(server.clock), bulk("1795212800000001"), integer(1), integer(5000), bulk(""), integer(-2)});
  };
  start(false);
  server.say(busy());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("wait"));
  server.say(queued());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("look"));
  server.pass(9s);
  server.say(mine(500));  // Too late.
  ASSERT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(refusal("NOSCRIPT No matching script."));
  ASSERT_EQ(server.take().size(), 1u) << "the leave once more, by the channel";
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("wait"));
  server.say(stamp(server.clock) + queued());
  EXPECT_THAT(server.take_names(), ElementsAre("leave", "wait")) << "by the call, which does not know of that";
  server.say(stamp(server.clock) + queued());
  EXPECT_TRUE(server.take().empty());
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled);
}

// Its first request was cut off and asked again, and came to nothing: the place in line is all that it has.
TEST_F(give_back_test, who_is_in_line_doubts_nothing_where_it_was_granted_nothing) {
  start(false);
  server.cut();
  server.connect();
  server.take();
  server.say(busy());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  ASSERT_THAT(server.take_names(), ElementsAre("leave", "wait"));
  server.say(refusal("NOSCRIPT No matching script.") + list({integer(7), stamp(server.clock), bulk("1795212800000001"),
                                                             integer(1), integer(5000), bulk(""), integer(-2)}));
  EXPECT_THAT(server.take_names(), testing::Not(testing::Contains("wait")));
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled);
}

// The leave of our own grant is sent again, and what was asked behind it is answered before.
TEST_F(give_back_test, busy_for_a_grant_of_its_own_is_none_C5) {
  start();
  server.cut();
  server.connect();
  server.take();
  server.say(list({integer(4), stamp(server.clock)}));  // Spent: it leaves, and goes on under another id.
  const auto next = server.take();
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(named(next[0]), "leave");
  server.say(refusal("NOSCRIPT No matching script.") + busy());
  EXPECT_FALSE(call->is_over());
  const auto again = server.take();
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].at(0), "EVAL") << "the leave, by the channel";
  EXPECT_EQ(named(again[1]), "leave") << "and by the call, which does not know of that";
  EXPECT_EQ(owner_of(again[2]), owner_of(next[1]));
  server.say(stamp(server.clock) + stamp(server.clock) + busy());
  EXPECT_TRUE(call->is_over());
  EXPECT_TRUE(std::holds_alternative<core::got_busy>(call->end()));
}

}  // namespace

}  // namespace holdfast::engine
