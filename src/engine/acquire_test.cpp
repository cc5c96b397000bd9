// SPDX-License-Identifier: Apache-2.0
// The exchange of an acquire is one request and one reply: here it goes well, and wrong in every way.
#include "engine/acquire.hpp"

#include "engine/acquire_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using acquire_testing::acquire_test;
using call_testing::keys;
using call_testing::timeout;
using call_testing::token;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(acquire_test, asks_when_the_connection_is_ready) {
  start();
  EXPECT_EQ(asked[0][3], keys.holder);
  EXPECT_EQ(asked[0][6], "10000");
  EXPECT_EQ(not_after_of(asked[0]), server.clock + timeout) << "H12: no effect after the call's own deadline";
}

TEST_F(acquire_test, a_lone_stamp_is_a_grant) {
  start();
  server.say(stamp(server.clock));
  ASSERT_TRUE(lease());
  EXPECT_EQ(call->owner().hex(), owner_of(asked[0]));
  EXPECT_EQ(lease()->token.value(), static_cast<std::uint64_t>(server.clock.time_since_epoch().count()));
}

TEST_F(acquire_test, busy_is_busy) {
  start();
  server.say(busy());
  ASSERT_TRUE(call->is_over());
  EXPECT_TRUE(std::holds_alternative<core::got_busy>(call->end()));
}

// H11: carried out, reply lost; the second connection hears that it is ours. No clean-up would be right, and the lease
// says that a copy is out.
TEST_F(acquire_test, a_lost_reply_is_asked_for_on_a_new_connection_H11) {
  start();
  server.pass(20ms);
  server.cut();
  EXPECT_FALSE(call->is_over());
  server.connect();
  const auto again = server.take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(owner_of(again[0]), owner_of(asked[0]));
  server.say(mine(9'970));
  ASSERT_TRUE(lease());
  EXPECT_EQ(lease()->token, token);
  EXPECT_TRUE(lease()->was_repeated);
  EXPECT_THAT(call->take_unsettled(), IsEmpty());
}

// P11: an estimate belongs to its connection. Carried over, this copy could take effect for an hour.
TEST_F(acquire_test, not_after_is_reckoned_anew_on_each_connection_P11) {
  start();
  server.cut();
  const auto first = not_after_of(asked[0]);
  server.clock -= 1h;
  server.connect();
  EXPECT_EQ(not_after_of(server.take().at(0)), server.clock + timeout);
  call->cancel(server.now);
  const auto left = call->take_unsettled();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].not_after, first) << "the clean-up waits for the last of all copies";
}

TEST_F(acquire_test, late_brings_a_better_not_after_P10_P11) {
  start();
  server.clock += 1h;
  server.say(late());
  const auto again = server.take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(owner_of(again[0]), owner_of(asked[0]));
  EXPECT_EQ(not_after_of(again[0]), server.clock + timeout);
}

TEST_F(acquire_test, an_unanswered_request_is_unknown_and_to_be_cleaned_up_C5) {
  start();
  server.pass(timeout);
  EXPECT_LE(call->wake_at(), server.now);
  call->step(server.now);
  EXPECT_EQ(failure(), errc::reply_lost);
  const auto left = call->take_unsettled();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner.hex(), owner_of(asked[0]));
  EXPECT_EQ(left[0].not_after, not_after_of(asked[0]));
}

// H50, B46: the answer to a cancelled request must not turn up in somebody's hands, nor shift the replies of others.
TEST_F(acquire_test, the_late_answer_to_a_cancelled_acquire_is_dropped_H50_B46_P30) {
  start();
  call->cancel(server.now);
  EXPECT_EQ(failure(), errc::cancelled_in_flight);
  EXPECT_EQ(call->take_unsettled().size(), 1u);
  acquire other{calls.wire(), ear, wants(), rules(), server.now, rng};
  calls.start(other, server.now);
  server.say(stamp(server.clock) + busy());
  EXPECT_EQ(failure(), errc::cancelled_in_flight);
  ASSERT_TRUE(other.is_over());
  EXPECT_TRUE(std::holds_alternative<core::got_busy>(other.end()));
  calls.stop(other);
}

// H28: "no such script" says that the cancelled request had no effect; sending it once more would give it one.
TEST_F(acquire_test, a_cancelled_acquire_is_not_sent_by_text_H50_H28) {
  start();
  call->cancel(server.now);
  server.say(refusal("NOSCRIPT No matching script."));
  EXPECT_THAT(server.take(), IsEmpty());
}

TEST_F(acquire_test, a_waiter_sleeps_while_there_is_no_connection) {
  start(false);
  server.cut();
  EXPECT_GT(call->wake_at(), server.now);
  server.refuse();
  EXPECT_GT(call->wake_at(), server.now);
  EXPECT_FALSE(call->is_over());
}

// The exchange is one request and one reply: the reply is replaced by every word that a server may say instead. None
// may be busy, and only what says nothing is unknown.
TEST_F(acquire_test, every_error_instead_of_a_reply_is_itself_and_never_busy) {
  const struct {
    const char* text;
    errc code;
  } table[] = {
      {"NOPERM this user has no permissions to access one of the keys", errc::no_permission},
      {"NOAUTH Authentication required.", errc::no_password},
      {"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
      {"MISCONF Redis is configured to save RDB snapshots", errc::server_refused},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_kind},
      {"READONLY You can't write against a read only replica.", errc::not_a_primary},
      {"MOVED 42 127.0.0.1:7001", errc::wrong_server},
      {"ERR something new", errc::server_refused},
  };
  for (const auto& row : table) {
    acquire one{calls.wire(), ear, wants(), rules(), server.now, rng};
    calls.start(one, server.now);
    if (calls.wire().is_closed()) server.connect();
    server.say(refusal(row.text));
    ASSERT_TRUE(one.is_over()) << row.text;
    const auto* failed = std::get_if<core::got_failure>(&one.end());
    ASSERT_TRUE(failed) << row.text;
    EXPECT_EQ(failed->code, row.code) << row.text;
    EXPECT_EQ(one.server_text(), row.text);
    // What is denied may be denied in the middle of a script.
    EXPECT_THAT(one.take_unsettled(), SizeIs(row.code == errc::no_permission ? 1 : 0)) << row.text;
    calls.stop(one);
  }
}

TEST_F(acquire_test, loading_is_asked_again_until_it_passes) {
  start();
  server.say(refusal("LOADING Redis is loading the dataset in memory"));
  EXPECT_FALSE(call->is_over());
  server.pass(call->wake_at() - server.now);
  call->step(server.now);
  EXPECT_THAT(server.take_names(), ElementsAre("acquire"));
  server.say(stamp(server.clock));
  EXPECT_TRUE(lease());
}

TEST_F(acquire_test, a_primary_that_became_a_replica_is_hung_up_on) {
  start();
  server.say(refusal("READONLY You can't write against a read only replica."));
  EXPECT_TRUE(calls.wire().must_close());
  EXPECT_EQ(failure(), errc::not_a_primary);
}

TEST_F(acquire_test, a_reply_of_a_wrong_type_is_unknown_C5) {
  for (const auto& wrong : {integer(1), std::string{"$-1\r\n"}, simple("OK"), list({}), bulk("42"),
                            list({integer(99), stamp(server.clock)}), list({integer(2), stamp(server.clock)})}) {
    acquire one{calls.wire(), ear, wants(), rules(), server.now, rng};
    calls.start(one, server.now);
    if (calls.wire().is_closed()) server.connect();
    server.say(wrong);
    ASSERT_TRUE(one.is_over()) << wrong;
    EXPECT_EQ(std::get<core::got_failure>(one.end()).code, errc::unexpected_reply) << wrong;
    EXPECT_EQ(one.take_unsettled().size(), 1u) << wrong;
    calls.stop(one);
  }
}

TEST_F(acquire_test, the_kind_that_was_found_is_kept_for_the_message) {
  start();
  server.say(list({integer(9), stamp(server.clock), bulk("zset")}));
  EXPECT_EQ(failure(), errc::wrong_kind);
  EXPECT_EQ(call->found_kind(), "zset");
}

TEST_F(acquire_test, a_final_greeting_failure_ends_it) {
  call.emplace(calls.wire(), ear, wants(), rules(), server.now, rng);
  calls.start(*call, server.now);
  calls.wire().on_connecting(server.now);
  calls.wire().on_connected(server.now);
  server.say(refusal("WRONGPASS invalid username-password pair or user is disabled."));
  EXPECT_EQ(failure(), errc::wrong_password);
}

TEST_F(acquire_test, the_driver_hears_of_every_end) {
  start();
  struct noting final : call_listener {
    void on_news(engine::call& of) override { told.push_back(&of); }
    std::vector<engine::call*> told;
  } who;
  call->set_listener(&who);
  server.say(stamp(server.clock));
  EXPECT_THAT(who.told, testing::ElementsAre(&*call));
}

}  // namespace

}  // namespace holdfast::engine
