// SPDX-License-Identifier: Apache-2.0
// An acquire that counts only when replicas have it: given back when too few do, and what its end says then.
#include "engine/acquire.hpp"

#include "engine/acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using acquire_testing::acquire_test;
using call_testing::timeout;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

channel::settings of_two() {
  channel::settings s;
  s.durable = {.replicas = 2, .timeout = 100ms};
  return s;
}

class durable_acquire_test : public acquire_test {
protected:
  durable_acquire_test() : acquire_test{of_two()} { server.is_asked_for_wait = true; }

  // Granted, and so many replicas have it after a while.
  void granted(int replicas, duration after = 20ms) {
    server.say(stamp(server.clock));
    server.pass(after);
    server.say(integer(replicas));
  }
  // It goes on when it wants to.
  void wake() {
    server.pass(call->wake_at() - server.now);
    call->step(server.now);
  }
};

TEST_F(durable_acquire_test, a_grant_is_believed_when_enough_replicas_have_it_and_counts_from_its_sending_B19) {
  start();
  const auto sent_at = server.now;
  EXPECT_EQ(named(asked.at(1)), "WAIT");
  server.say(stamp(server.clock));
  EXPECT_FALSE(call->is_over()) << "the script's word alone is not enough";
  server.pass(90ms);
  server.say(integer(2));
  ASSERT_TRUE(lease());
  EXPECT_EQ(lease()->deadline, core::deadline_of(sent_at, 10s, core::clock_drift{10'000}));
  EXPECT_THAT(call->take_unsettled(), IsEmpty());
}

TEST_F(durable_acquire_test, too_few_replicas_and_a_try_gives_it_back_and_says_so_when_that_is_done_B63) {
  start();
  granted(1);
  const auto sent = server.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(named(sent[0]), "leave");
  EXPECT_THAT(sent[0], testing::Contains(owner_of(asked[0])));
  EXPECT_FALSE(call->is_over());
  server.say(stamp(server.clock));
  EXPECT_EQ(failure(), errc::not_replicated);
  EXPECT_EQ(call->replicas(), 1);
  EXPECT_THAT(call->take_unsettled(), IsEmpty()) << "nothing of it is left";
}

// What was granted and then expired is not ours either.
TEST_F(durable_acquire_test, what_is_gone_already_is_given_back_too) {
  start();
  granted(0);
  server.say(not_mine());
  EXPECT_EQ(failure(), errc::not_replicated);
}

TEST_F(durable_acquire_test, as_long_as_it_is_not_back_the_end_is_unknown_and_it_is_released_later_C5) {
  start();
  granted(1);
  server.pass(timeout);
  call->step(server.now);
  EXPECT_EQ(failure(), errc::reply_lost);
  EXPECT_EQ(call->take_unsettled().size(), 1u);
}

TEST_F(durable_acquire_test, is_given_back_on_the_next_connection_when_this_one_is_cut) {
  start();
  granted(1);
  server.take();
  server.cut();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(stamp(server.clock));
  EXPECT_EQ(failure(), errc::not_replicated);
}

TEST_F(durable_acquire_test, a_giving_back_that_is_refused_is_unknown) {
  start();
  granted(1);
  server.say(refusal("OOM command not allowed when used memory > 'maxmemory'."));
  EXPECT_EQ(failure(), errc::reply_lost);
  EXPECT_EQ(call->take_unsettled().size(), 1u);
}

TEST_F(durable_acquire_test, a_cut_before_wait_is_answered_is_asked_again_and_waits_for_the_replicas_again_H11) {
  start();
  server.say(stamp(server.clock));
  server.cut();
  EXPECT_FALSE(call->is_over());
  server.connect();
  const auto again = server.take();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(owner_of(again[0]), owner_of(asked[0]));
  EXPECT_EQ(named(again[1]), "WAIT");
  server.say(mine(9'970));
  EXPECT_FALSE(call->is_over());
  server.say(integer(1));
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
}

TEST_F(durable_acquire_test, busy_is_busy_whatever_the_replicas_do) {
  start();
  server.say(busy() + integer(0));
  ASSERT_TRUE(call->is_over());
  EXPECT_TRUE(std::holds_alternative<core::got_busy>(call->end()));
}

TEST_F(durable_acquire_test, a_refusal_of_wait_is_its_error_and_never_a_grant_B66) {
  start();
  server.say(stamp(server.clock) + refusal("NOPERM this user has no permissions to run the 'wait' command"));
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(stamp(server.clock));
  EXPECT_EQ(failure(), errc::no_permission);
  EXPECT_THAT(call->server_text(), HasSubstr("+wait"));
}

// ---- one that waits ----

TEST_F(durable_acquire_test, one_that_waits_tries_again_after_a_pause_with_another_owner_id) {
  start(false);
  granted(1);
  server.take();
  server.say(stamp(server.clock));
  EXPECT_FALSE(call->is_over());
  EXPECT_GT(call->wake_at(), server.now);
  EXPECT_LE(call->wake_at(), server.now + 25ms);
  wake();
  const auto again = server.take();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(named(again[0]), "acquire");
  EXPECT_NE(owner_of(again[0]), owner_of(asked[0]));
  granted(2);
  EXPECT_TRUE(lease());
}

TEST_F(durable_acquire_test, its_pauses_grow_to_a_second_while_the_replicas_are_away) {
  start(false);
  duration longest{0};
  for (int i = 0; i < 20; ++i) {
    granted(0);
    EXPECT_THAT(server.take_names(), ElementsAre("leave"));
    server.say(stamp(server.clock));
    longest = call->wake_at() - server.now;
    wake();
    EXPECT_THAT(server.take_names(), ElementsAre("acquire", "WAIT"));
  }
  EXPECT_GE(longest, 500ms);
  EXPECT_LE(longest, 1s);
}

TEST_F(durable_acquire_test, at_the_end_of_its_wait_it_says_that_the_replicas_were_away) {
  auto how = rules(false);
  how.wait = 2s;
  call.emplace(calls.wire(), ear, wants(), how, server.now, rng);
  calls.start(*call, server.now);
  server.connect();
  while (!call->is_over()) {
    const auto sent = server.take_names();
    if (sent.empty()) {
      wake();
    } else if (sent[0] == "leave") {
      server.say(stamp(server.clock));
    } else {
      ASSERT_THAT(sent, ElementsAre("acquire", "WAIT"));
      granted(1);
    }
  }
  EXPECT_EQ(failure(), errc::not_replicated);
}

// What it was granted out of the line: it goes back to the end of it.
TEST_F(durable_acquire_test, a_claim_that_too_few_replicas_have_is_given_back_like_any_grant) {
  start(false);
  server.say(busy() + integer(2));
  wake();  // Not to be heard: nobody answers on the other connection.
  const auto stood = server.take();
  ASSERT_FALSE(stood.empty());
  EXPECT_EQ(named(stood[0]), "wait");
  EXPECT_EQ(named(stood.back()), "WAIT");
  server.say(mine(10'000) + integer(0));
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(stamp(server.clock));
  wake();
  EXPECT_THAT(server.take_names(), ElementsAre("wait", "WAIT"));
}

// A heartbeat has no WAIT: what it is granted is asked for once more.
TEST_F(durable_acquire_test, what_a_heartbeat_is_granted_is_asked_for_once_more_with_wait) {
  start(false);
  server.say(busy() + integer(2));
  wake();
  server.take();
  server.say(list({integer(7), stamp(server.clock), bulk("1795212800000001"), integer(0), integer(5'000), bulk(""),
                   integer(-2)}) +
             integer(2));
  wake();
  EXPECT_THAT(server.take_names(), ElementsAre("look"));
  server.say(mine(10'000));
  EXPECT_FALSE(call->is_over());
  EXPECT_THAT(server.take_names(), ElementsAre("look", "WAIT"));
  server.say(mine(10'000) + integer(2));
  EXPECT_TRUE(lease());
}

}  // namespace

}  // namespace holdfast::engine
