// SPDX-License-Identifier: Apache-2.0
#include "core/hand_over_queue.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

class hand_over_in_queue : public testing::Test {
protected:
  const time_point now{100s};
  const time_point until = now + 60s;
  const time_point deadline = now + 9s;
  const hand_over_wish wish{.ttl = 10s};
  const hand_over_limits limits{.most = 16, .longest = 20ms};
  const owner_id owner{{1}};
  const hand_over_queue::lease_of granted{owner, fencing_token{1000}};

  static constexpr duration patience = 5s;
  hand_over_queue queue{};
  hand_over_queue::waiter_ptr a = joined();
  hand_over_queue::waiter_ptr b = joined();
  hand_over_queue::waiter_ptr c = joined();

  hand_over_queue::waiter_ptr joined() {
    auto one = std::make_shared<hand_over_queue::waiter>();
    one->wish = wish;
    queue.join(one);
    return one;
  }
  void asks_and_gets(const hand_over_queue::waiter_ptr& who, int block = 16) {
    ASSERT_TRUE(queue.may_ask(*who, now));
    queue.go_and_ask(who);
    queue.got(granted, block, now, wish, limits);
  }
};

TEST_F(hand_over_in_queue, asks_one_at_a_time_and_the_first) {
  EXPECT_TRUE(queue.may_ask(*a, now));
  EXPECT_FALSE(queue.may_ask(*b, now));
  EXPECT_TRUE(queue.go_and_ask(a)) << "others wait behind it";
  EXPECT_FALSE(queue.may_ask(*b, now));
  EXPECT_EQ(queue.wake_at(*b, now, until), until) << "it is told";
  EXPECT_EQ(queue.wake_at(*c, now, until), now + 100ms) << "it may become the first without a word";
}

// Reserved is handed out, as far as the next block goes (block_of()).
TEST_F(hand_over_in_queue, knows_the_last_token_that_it_may_have_handed_out_C2) {
  EXPECT_EQ(queue.last(), fencing_token{});
  asks_and_gets(a);
  EXPECT_EQ(queue.last(), fencing_token{1016});
  EXPECT_TRUE(queue.ended(granted));
  EXPECT_EQ(queue.last(), fencing_token{1016}) << "also when nobody has the lock any more";
}

TEST_F(hand_over_in_queue, gives_the_lease_to_the_first_with_each_token_once_P14b) {
  asks_and_gets(a);
  EXPECT_FALSE(queue.may_ask(*b, now));
  const auto next = queue.next_token(granted, now, deadline);
  ASSERT_EQ(next, fencing_token{1001});
  EXPECT_EQ(queue.hand_on(*next), b);
  EXPECT_EQ(queue.first(), c);
  EXPECT_EQ(queue.next_token(granted, now, deadline), std::nullopt) << "the giver has it no more";
  EXPECT_EQ(queue.next_token({owner, *next}, now, deadline), fencing_token{1002});
  EXPECT_EQ(queue.next_token({owner, *next}, now, deadline), fencing_token{1003}) << "of the other nothing came";
}

TEST_F(hand_over_in_queue, puts_whoever_came_too_late_for_it_in_front_again_P14b) {
  asks_and_gets(a);
  const auto next = queue.next_token(granted, now, deadline);
  ASSERT_EQ(queue.hand_on(*next), b);
  EXPECT_TRUE(queue.ended({owner, *next})) << "it lets go what is too little";
  queue.join_again(b);
  EXPECT_EQ(queue.first(), b);
  EXPECT_EQ(b->heard, errc::timed_out) << "it was somebody else's hold";
  EXPECT_TRUE(queue.may_ask(*b, now));
  EXPECT_FALSE(queue.may_ask(*c, now));
}

// The server lost its data, and another lease of this process has the token of the one that was lost.
TEST_F(hand_over_in_queue, hands_on_no_other_lease_with_the_same_token_C2_seed_26203511) {
  asks_and_gets(a);
  const hand_over_queue::lease_of other{owner_id{{2}}, granted.token};
  EXPECT_EQ(queue.next_token(other, now, deadline), std::nullopt);
  EXPECT_FALSE(queue.ended(other));
  EXPECT_EQ(queue.next_token(granted, now, deadline), fencing_token{1001});
}

TEST_F(hand_over_in_queue, lets_the_first_ask_when_the_chain_is_over_whatever_its_holder_does_P14) {
  asks_and_gets(a);
  EXPECT_EQ(queue.wake_at(*b, now, until), now + 20ms);
  EXPECT_EQ(queue.wake_at(*b, now, now + 5ms), now + 5ms);
  EXPECT_FALSE(queue.may_ask(*b, now + 20ms - 1ns));
  EXPECT_TRUE(queue.may_ask(*b, now + 20ms));
  EXPECT_EQ(queue.next_token(granted, now + 20ms, deadline), std::nullopt);
}

TEST_F(hand_over_in_queue, lets_the_first_ask_when_the_lease_is_given_back_or_nothing_was_reserved) {
  asks_and_gets(a);
  EXPECT_FALSE(queue.ended({owner, fencing_token{999}})) << "an older one";
  EXPECT_FALSE(queue.may_ask(*b, now));
  EXPECT_TRUE(queue.ended(granted));
  asks_and_gets(b, 0);
  EXPECT_TRUE(queue.may_ask(*c, now));
}

TEST_F(hand_over_in_queue, lets_the_first_ask_behind_a_failure_and_all_where_the_server_is_in_trouble) {
  queue.go_and_ask(a);
  EXPECT_FALSE(queue.failed({errc::timed_out}, now, patience));
  EXPECT_TRUE(queue.may_ask(*b, now));
  EXPECT_FALSE(queue.may_ask(*c, now));
  queue.go_and_ask(b);
  queue.join(a);
  EXPECT_TRUE(queue.failed({errc::cannot_connect}, now, patience));
  EXPECT_TRUE(queue.may_ask(*c, now));
  EXPECT_TRUE(queue.may_ask(*a, now));
}

TEST_F(hand_over_in_queue, lets_the_first_ask_behind_whoever_has_ended_for_its_own_sake) {
  for (const errc own : {errc::quarantined, errc::not_replicated, errc::cancelled, errc::cancelled_in_flight}) {
    queue.go_and_ask(a);
    EXPECT_FALSE(queue.failed({own, now - 1min}, now, patience)) << to_string(own);
    EXPECT_TRUE(queue.may_ask(*b, now));
    EXPECT_FALSE(queue.may_ask(*c, now));
    EXPECT_EQ(b->silent_since, never);
  }
}

TEST_F(hand_over_in_queue, tells_all_since_when_the_server_was_silent_to_who_asked) {
  queue.go_and_ask(a);
  EXPECT_TRUE(queue.failed({errc::reply_lost, now - patience}, now, patience));
  EXPECT_EQ(b->silent_since, now - patience);
  EXPECT_EQ(c->silent_since, now - patience);
  EXPECT_EQ(joined()->silent_since, never);
}

// Its own time was too short for an answer: that says little of the server, and nothing to those who have more of it.
TEST_F(hand_over_in_queue, keeps_its_one_place_in_line_behind_a_wait_that_was_too_short_for_an_answer_C5) {
  for (const errc silence : {errc::reply_lost, errc::server_silent}) {
    queue.go_and_ask(a);
    EXPECT_FALSE(queue.failed({silence, now - patience + 1ns}, now, patience)) << to_string(silence);
    EXPECT_TRUE(queue.may_ask(*b, now));
    EXPECT_FALSE(queue.may_ask(*c, now));
    EXPECT_EQ(b->silent_since, now - patience + 1ns) << "its patience goes on from there";
    EXPECT_EQ(c->silent_since, never);
  }
}

// A wait that ends before whoever asks has an answer went to a silent server, and to nobody's hold.
TEST_F(hand_over_in_queue, calls_nothing_busy_of_which_nobody_has_heard_C5) {
  queue.go_and_ask(a);
  EXPECT_EQ(queue.heard_by(*b), errc::server_silent);
  queue.news() = errc::timed_out;
  EXPECT_EQ(queue.heard_by(*b), errc::timed_out);
  EXPECT_EQ(queue.heard_by(*joined()), errc::timed_out) << "it was busy when this one came";
}

TEST_F(hand_over_in_queue, remembers_what_was_heard_while_one_waited_and_no_longer_C5) {
  queue.go_and_ask(a);
  queue.news() = errc::timed_out;
  EXPECT_FALSE(queue.failed({errc::timed_out}, now, patience));
  queue.go_and_ask(b);
  EXPECT_EQ(queue.heard_by(*c), errc::timed_out);
  EXPECT_EQ(queue.heard_by(*joined()), errc::server_silent) << "this one has heard nothing";
}

TEST_F(hand_over_in_queue, knows_what_a_thread_of_its_own_holds_C5) {
  asks_and_gets(a, 0);
  queue.go_and_ask(b);
  EXPECT_EQ(queue.heard_by(*c), errc::timed_out) << "for a the lock was granted";
  EXPECT_FALSE(queue.failed({errc::timed_out}, now, patience));
  asks_and_gets(c);
  const auto late = joined();
  EXPECT_TRUE(queue.ended(granted));
  queue.go_and_ask(late);
  EXPECT_EQ(queue.heard_by(*late), errc::timed_out) << "c had it when this one came";
}

// Who asks writes its news into it.
TEST_F(hand_over_in_queue, is_there_while_anybody_waits_asks_or_has_the_lock) {
  queue.leave(b);
  queue.leave(c);
  EXPECT_FALSE(queue.is_idle());
  queue.go_and_ask(a);
  EXPECT_FALSE(queue.is_idle());
  queue.got(granted, 16, now, wish, limits);
  EXPECT_FALSE(queue.is_idle());
  EXPECT_TRUE(queue.ended(granted));
  EXPECT_TRUE(queue.is_idle());
}

class hand_over_that_goes_on : public hand_over_in_queue {
protected:
  // a has it, and the next of the tokens was handed to b: then the server is asked.
  hand_over_queue::more asked_for_more() {
    queue.go_and_ask(a);
    queue.got(granted, 2, now, wish, {.most = 2, .longest = 20ms, .may_go_on = true});
    EXPECT_EQ(queue.wants_more(now, deadline), std::nullopt) << "nothing was handed on";
    held.token = *queue.next_token(granted, now, deadline);
    auto more = queue.wants_more(now, deadline);
    queue.hand_on(held.token);
    return *std::move(more);
  }
  hand_over_queue::lease_of held = granted;
};

TEST_F(hand_over_that_goes_on, asks_once_for_tokens_behind_those_that_it_has_P14) {
  const auto more = asked_for_more();
  EXPECT_EQ(more.last, fencing_token{1002});
  EXPECT_EQ(more.block, 2);
  EXPECT_FALSE(queue.wants_more(now, deadline).has_value());
}

TEST_F(hand_over_that_goes_on, has_them_when_the_server_has_said_so_P14b) {
  const auto more = asked_for_more();
  joined();
  joined();
  *more.is_granted = true;
  for (std::uint64_t token = 1002; token <= 1003; ++token) {
    ASSERT_EQ(queue.next_token(held, now, deadline), fencing_token{token});
    queue.hand_on(held.token = fencing_token{token});
  }
  EXPECT_EQ(queue.last(), fencing_token{1004});
  EXPECT_EQ(queue.next_token(held, now, deadline), std::nullopt) << "two since the question";
  const auto again = queue.wants_more(now, deadline);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->last, fencing_token{1004});
}

TEST_F(hand_over_that_goes_on, ends_as_ever_when_the_server_says_nothing_P14) {
  asked_for_more();
  EXPECT_EQ(queue.next_token(held, now, deadline), fencing_token{1002});
  EXPECT_EQ(queue.next_token(held, now, deadline), std::nullopt);
  EXPECT_TRUE(queue.may_ask(*c, now + 20ms));
}

TEST_F(hand_over_that_goes_on, keeps_the_first_from_asking_for_so_long_P14) {
  const auto more = asked_for_more();
  *more.is_granted = true;
  EXPECT_FALSE(queue.may_ask(*c, now + 20ms - 1ns));
  EXPECT_EQ(queue.wake_at(*c, now, until), now + 20ms) << "since it asked";
  EXPECT_TRUE(queue.may_ask(*c, now + 20ms));
}

TEST_F(hand_over_that_goes_on, hears_of_them_too_late_when_the_first_is_on_its_way_to_the_server_C7) {
  const auto more = asked_for_more();
  const auto d = joined();
  queue.go_and_ask(c);
  *more.is_granted = true;
  EXPECT_EQ(queue.next_token(held, now, deadline), fencing_token{1002});
  EXPECT_EQ(queue.next_token(held, now, deadline), std::nullopt);
  EXPECT_EQ(queue.last(), fencing_token{1002});
}

TEST_F(hand_over_that_goes_on, hears_nothing_of_what_was_asked_for_another_lease_C2) {
  const auto more = asked_for_more();
  EXPECT_TRUE(queue.ended(held));
  asks_and_gets(c);
  *more.is_granted = true;
  EXPECT_FALSE(queue.may_ask(*joined(), now));
  EXPECT_EQ(queue.last(), fencing_token{1016});
}

TEST_F(hand_over_in_queue, hands_nothing_to_who_has_left) {
  asks_and_gets(a);
  queue.leave(b);
  const auto next = queue.next_token(granted, now, deadline);
  ASSERT_TRUE(next);
  EXPECT_EQ(queue.hand_on(*next), c);
  EXPECT_EQ(queue.next_token({owner, *next}, now, deadline), std::nullopt);
  EXPECT_FALSE(queue.is_idle());
  EXPECT_TRUE(queue.ended({owner, *next}));
  EXPECT_TRUE(queue.is_idle());
}

}  // namespace

}  // namespace holdfast::core
