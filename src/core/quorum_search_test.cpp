// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_search.hpp"

#include "core/random_testing.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using result = quorum_round::result;

constexpr time_point t0{1h};
constexpr duration timeout = 2s;

// Of three servers.
quorum_search::settings once() { return {true, {}, timeout, false, 2}; }
quorum_search::settings waits(duration wait) { return {false, wait, timeout, false, 2}; }
quorum_search::settings waits_for_ever() { return {false, {}, timeout, false, 2}; }
quorum_search::settings counted(quorum_search::settings s) {
  s.is_counted = true;
  return s;
}

// One search and its clock: what becomes of a try, and what is wanted then.
struct hunt {
  explicit hunt(const quorum_search::settings& how) : flow{how, t0, rng} {}

  void loses(result how) { loses(quorum_search::lost_round{.how = how}); }
  void loses(const quorum_search::lost_round& what) { next = flow.on_lost(now, what, has_turn); }
  // The pause that is wanted; none: something else is.
  std::optional<duration> pauses() const {
    const auto* p = std::get_if<quorum_search::pause>(&next);
    return p ? std::optional{p->until - now} : std::nullopt;
  }
  bool stands() const { return std::holds_alternative<quorum_search::stand_in_line>(next); }
  bool tries() const { return std::holds_alternative<quorum_search::try_now>(next); }
  std::optional<errc> ends() const {
    const auto* e = std::get_if<quorum_search::end>(&next);
    return e ? std::optional{e->code} : std::nullopt;
  }
  bool round_tells() const { return std::get<quorum_search::end>(next).round_tells; }
  // It stands in line and gets its turn.
  void gets_turn() {
    EXPECT_TRUE(stands());
    EXPECT_TRUE(flow.line_of({true, true, true}));
    next = flow.on_turn(now, errc{});
    has_turn = true;
  }

  seeded_random rng;
  quorum_search flow;
  time_point now = t0;
  bool has_turn = false;
  quorum_search::step next{};
};

// ---- busy ----

TEST(quorum_search, a_try_ends_with_the_first_busy) {
  hunt h{once()};
  h.loses(result::busy);
  EXPECT_EQ(h.ends(), errc{});
  EXPECT_FALSE(h.round_tells());
}

TEST(quorum_search, who_waits_stands_in_line_and_tries_when_it_has_its_turn_P25) {
  hunt h{waits(1min)};
  h.loses(result::busy);
  ASSERT_TRUE(h.stands());
  EXPECT_EQ(std::get<quorum_search::stand_in_line>(h.next).until, t0 + 1min);
  h.gets_turn();
  EXPECT_TRUE(h.tries());
}

TEST(quorum_search, an_unbounded_wait_stands_without_an_end) {
  hunt h{waits_for_ever()};
  h.loses(result::busy);
  EXPECT_EQ(std::get<quorum_search::stand_in_line>(h.next).until, never);
}

TEST(quorum_search, who_has_its_turn_tries_soon_at_first_and_never_hot_P25) {
  hunt h{waits_for_ever()};
  h.loses(result::busy);
  h.gets_turn();
  h.loses(result::busy);
  EXPECT_LE(*h.pauses(), 5ms);
  for (int i = 0; i < 10; ++i) {
    h.now += h.pauses().value_or(1h);
    h.loses(result::busy);
  }
  EXPECT_GE(*h.pauses(), 150ms);
  EXPECT_LE(*h.pauses(), 300ms);
}

TEST(quorum_search, who_has_its_turn_does_not_sleep_past_the_holders_end) {
  hunt h{waits_for_ever()};
  h.has_turn = true;
  for (int i = 0; i < 10; ++i) h.loses(result::busy);
  h.loses({.how = result::busy, .held_for = 20ms});
  EXPECT_LE(*h.pauses(), 22ms);
}

TEST(quorum_search, who_has_its_turn_does_not_poll_for_what_has_no_expiry_P25) {
  hunt h{waits_for_ever()};
  h.has_turn = true;
  for (int i = 0; i < 10; ++i) h.loses({.how = result::busy, .held_for = std::nullopt});
  EXPECT_GE(*h.pauses(), 150ms);
}

TEST(quorum_search, a_new_turn_begins_with_short_pauses_again) {
  hunt h{waits_for_ever()};
  h.has_turn = true;
  for (int i = 0; i < 10; ++i) h.loses(result::busy);
  h.has_turn = false;  // Its server died.
  h.loses(result::busy);
  h.gets_turn();
  h.loses(result::busy);
  EXPECT_LE(*h.pauses(), 5ms);
}

TEST(quorum_search, the_wait_is_over_in_line_as_out_of_it) {
  hunt h{waits(1s)};
  h.now += 1s;
  h.loses(result::busy);
  EXPECT_EQ(h.ends(), errc::timed_out);

  hunt in_line{waits(1s)};
  in_line.loses(result::busy);
  in_line.now += 1s;
  in_line.next = in_line.flow.on_turn(in_line.now, errc::timed_out);
  EXPECT_EQ(in_line.ends(), errc::timed_out);
}

// ---- split ----

TEST(quorum_search, a_tie_is_broken_by_lot_R12) {
  std::set<duration> seen;
  hunt h{waits_for_ever()};
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) h.loses(result::unreachable);
    h.loses(result::split);
    ASSERT_TRUE(h.pauses());
    EXPECT_GE(*h.pauses(), 1ms);
    EXPECT_LE(*h.pauses(), 30ms);
    seen.insert(*h.pauses());
  }
  EXPECT_GT(seen.size(), 90u);
}

// A killed client's vote, beside a server that is away, makes each round a tie until it expires.
TEST(quorum_search, a_tie_that_lasts_sends_into_the_line_and_is_no_reason_to_poll_P25) {
  hunt h{waits_for_ever()};
  for (int i = 0; i < 3; ++i) {
    h.loses(result::split);
    EXPECT_TRUE(h.pauses());
  }
  h.loses(result::split);
  h.gets_turn();
  for (int i = 0; i < 10; ++i) h.loses(result::split);
  ASSERT_TRUE(h.pauses());
  EXPECT_GE(*h.pauses(), 150ms);
}

TEST(quorum_search, of_a_counted_kind_a_tie_that_lasts_is_not_polled_for_either_P25) {
  hunt h{counted(waits_for_ever())};
  h.loses(result::split);
  h.gets_turn();
  for (int i = 0; i < 12; ++i) h.loses(result::split);
  ASSERT_TRUE(h.pauses());
  EXPECT_GE(*h.pauses(), 150ms);
}

TEST(quorum_search, a_try_is_given_one_tie) {
  hunt h{once()};
  h.loses(result::split);
  EXPECT_TRUE(h.pauses());
  h.loses(result::split);
  EXPECT_EQ(h.ends(), errc{});
}

// What the others have of it may be there to stay.
TEST(quorum_search, of_a_counted_kind_a_tie_sends_into_the_line) {
  hunt h{counted(waits_for_ever())};
  h.loses(result::split);
  EXPECT_TRUE(h.stands());
  h.gets_turn();
  h.loses(result::split);
  EXPECT_TRUE(h.pauses());
}

// ---- quarantine ----

TEST(quorum_search, a_quarantine_ends_a_try_and_is_waited_for_else) {
  hunt h{once()};
  h.loses(result::quarantined);
  EXPECT_EQ(h.ends(), errc::quarantined);
  EXPECT_TRUE(h.round_tells());

  hunt patient{waits(1min)};
  patient.loses(result::quarantined);
  EXPECT_EQ(patient.pauses(), 250ms);
  patient.now += 1min;
  patient.loses(result::quarantined);
  EXPECT_EQ(patient.ends(), errc::quarantined);
}

// ---- too few ----

TEST(quorum_search, too_few_are_asked_again_for_as_long_as_a_silence_is_put_up_with) {
  hunt h{waits_for_ever()};
  for (int i = 0; i < 1000 && !h.ends(); ++i) {
    h.loses(result::unreachable);
    if (const auto p = h.pauses()) {
      EXPECT_LE(*p, 250ms);
      h.now += *p;
    }
  }
  EXPECT_EQ(h.ends(), errc::no_quorum);
  EXPECT_TRUE(h.round_tells());
  EXPECT_EQ(h.now, t0 + timeout);
}

TEST(quorum_search, an_answer_is_a_sign_of_life) {
  hunt h{waits_for_ever()};
  h.has_turn = true;
  for (int i = 0; i < 10; ++i) {
    h.now += timeout - 1ms;
    h.loses(result::unreachable);
    EXPECT_TRUE(h.pauses());
    h.loses(i % 2 ? result::split : result::busy);
    EXPECT_TRUE(h.pauses());
  }
}

// A busy machine: each has voted in time, and the second phase came too late.
TEST(quorum_search, votes_under_several_tokens_are_a_sign_of_life_P23) {
  hunt h{waits_for_ever()};
  for (int i = 0; i < 100; ++i) {
    h.loses({.how = result::unreachable, .enough_voted = true});
    ASSERT_TRUE(h.pauses());
    h.now += *h.pauses();
  }
  // But not where the second phase is refused for good.
  for (int i = 0; i < 100 && !h.ends(); ++i) {
    h.loses({.how = result::unreachable, .final_reason = errc::no_permission, .enough_voted = true});
    h.now += h.pauses().value_or(0ms);
  }
  EXPECT_EQ(h.ends(), errc::no_permission);
}

TEST(quorum_search, what_trying_again_will_not_remove_ends_it) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::refused, .final_reason = errc::no_permission});
  EXPECT_EQ(h.ends(), errc::no_permission);
  EXPECT_TRUE(h.round_tells());
  // Of one server while others are only silent it may be the minority's: said when nothing better comes.
  hunt silent{waits_for_ever()};
  silent.loses({.how = result::unreachable, .final_reason = errc::no_permission});
  EXPECT_TRUE(silent.pauses());
  silent.now += timeout;
  silent.loses({.how = result::unreachable, .final_reason = errc::no_permission});
  EXPECT_EQ(silent.ends(), errc::no_permission);
}

TEST(quorum_search, at_the_end_of_its_time_what_was_heard_before_counts) {
  hunt h{waits(1s)};
  h.has_turn = true;
  h.loses(result::busy);
  h.now += 1s;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::timed_out);

  hunt silent{waits(1min)};
  silent.has_turn = true;
  silent.loses(result::busy);
  silent.now += timeout;
  silent.loses(result::unreachable);
  EXPECT_EQ(silent.ends(), errc::no_quorum);
}

TEST(quorum_search, a_try_has_no_more_time_than_the_search) {
  hunt h{waits(1s)};
  EXPECT_EQ(h.flow.give_up_at(), t0 + 1s);
  hunt patient{waits(1min)};
  EXPECT_EQ(patient.flow.give_up_at(), t0 + timeout);
  patient.now += 1s;
  patient.loses(result::split);
  EXPECT_EQ(patient.flow.give_up_at(), t0 + 1s + timeout);
}

// ---- cancelled ----

TEST(quorum_search, cancelled_says_whether_votes_are_left_to_withdraw_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::busy, .was_cancelled = true});
  EXPECT_EQ(h.ends(), errc::cancelled);
  h.loses({.how = result::busy, .was_cancelled = true, .may_have_votes = true});
  EXPECT_EQ(h.ends(), errc::cancelled_in_flight);
}

// ---- votes that are left ----

// With so many of three servers, each of which was told over its first connection to leave.
std::vector<quorum_search::leftover> left_with(int servers, time_point until = t0 + 10s) {
  std::vector<quorum_search::leftover> all(3);
  for (std::size_t i = 0; i < static_cast<std::size_t>(servers); ++i) all[i] = {until, 1, 0};
  return all;
}
std::vector<quorum_search::leftover> answered_by(int servers, std::uint64_t connection) {
  std::vector<quorum_search::leftover> all(3);
  for (std::size_t i = 0; i < static_cast<std::size_t>(servers); ++i) all[i].heard_over = connection;
  return all;
}

TEST(quorum_search, nobody_knows_the_end_while_a_majority_may_have_its_votes_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  EXPECT_TRUE(h.pauses());
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
  EXPECT_TRUE(h.round_tells());
  EXPECT_EQ(std::get<quorum_search::end>(h.next).reason, errc::no_quorum);
  EXPECT_EQ(h.flow.left_until(), t0 + 10s);
}

// It may be we who hold it.
TEST(quorum_search, nor_is_it_known_to_be_busy_or_timed_out_C5) {
  hunt h{once()};
  h.loses({.how = result::split, .left = left_with(2)});
  h.loses(result::busy);
  EXPECT_EQ(h.ends(), errc::reply_lost);

  hunt in_line{waits(1s)};
  in_line.loses({.how = result::busy, .left = left_with(3)});
  in_line.now += 1s;
  in_line.next = in_line.flow.on_turn(in_line.now, errc::timed_out);
  EXPECT_EQ(in_line.ends(), errc::reply_lost);
}

// No lock is made of that.
TEST(quorum_search, a_minority_s_vote_that_is_left_changes_no_answer) {
  hunt h{waits_for_ever()};
  h.now += timeout;
  h.loses({.how = result::unreachable, .left = left_with(1)});
  EXPECT_EQ(h.ends(), errc::no_quorum);
}

TEST(quorum_search, votes_that_must_have_ended_are_none_C5) {
  hunt h{waits(11s)};
  h.loses({.how = result::busy, .left = left_with(3)});
  h.now += 10s - 1ns;
  h.next = h.flow.on_turn(h.now, errc::timed_out);
  EXPECT_EQ(h.ends(), errc::reply_lost);
  h.now += 1ns;
  h.next = h.flow.on_turn(h.now, errc::timed_out);
  EXPECT_EQ(h.ends(), errc::timed_out);
}

TEST(quorum_search, who_answers_over_the_same_connection_has_left_before) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  h.loses({.how = result::split, .left = answered_by(2, 1)});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::no_quorum);
}

TEST(quorum_search, who_answers_over_another_connection_says_nothing_of_it_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  h.loses({.how = result::split, .left = answered_by(2, 2)});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
}

// What came over one of two connections is not settled by the other, whichever was the later.
TEST(quorum_search, votes_of_two_connections_are_there_until_they_end_C5) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::unreachable, .left = left_with(2)});
  auto over_the_next = left_with(2);
  for (auto& one : over_the_next) one.told_over = 2;
  h.loses({.how = result::unreachable, .left = over_the_next});
  h.loses({.how = result::split, .left = answered_by(2, 2)});
  h.now += timeout;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::reply_lost);
}

TEST(quorum_search, who_cancels_between_two_tries_is_told_of_votes_that_are_left_C5) {
  hunt h{waits_for_ever()};
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(h.now)).code, errc::cancelled);
  h.loses({.how = result::busy, .left = left_with(1)});
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(h.now)).code, errc::cancelled_in_flight);
  h.loses({.how = result::busy, .was_cancelled = true});
  EXPECT_EQ(h.ends(), errc::cancelled_in_flight);
  EXPECT_EQ(std::get<quorum_search::end>(h.flow.on_cancel(t0 + 10s)).code, errc::cancelled);
}

// ---- the line ----

TEST(quorum_search, all_stand_at_the_first_server_that_speaks) {
  hunt h{waits_for_ever()};
  EXPECT_EQ(h.flow.line_of({true, true, true}), 0u);
  EXPECT_EQ(h.flow.line_of({false, true, true}), 1u);
  EXPECT_EQ(h.flow.line_of({false, false, false}), std::nullopt);
}

TEST(quorum_search, without_a_server_that_speaks_it_tries_again_a_little_later) {
  hunt h{waits(50ms)};
  h.loses(result::busy);
  EXPECT_FALSE(h.flow.line_of({false, false, false}));
  h.next = h.flow.on_turn(h.now, errc::server_silent);
  EXPECT_EQ(h.pauses(), 50ms);
  h.now += 50ms;
  h.next = h.flow.on_turn(h.now, errc::server_silent);
  EXPECT_EQ(h.ends(), errc::timed_out);
}

// Its connection for votes may still speak.
TEST(quorum_search, a_line_that_is_gone_is_passed_over_the_next_time_P25) {
  hunt h{waits_for_ever()};
  EXPECT_EQ(h.flow.line_of({true, true, true}), 0u);
  h.next = h.flow.on_turn(h.now, errc::server_silent);
  EXPECT_EQ(h.pauses(), 50ms);
  EXPECT_EQ(h.flow.line_of({true, true, true}), 1u);
  h.next = h.flow.on_turn(h.now, errc::cannot_connect);
  EXPECT_EQ(h.flow.line_of({true, true, true}), 2u);
  h.next = h.flow.on_turn(h.now, errc::cannot_connect);
  EXPECT_EQ(h.flow.line_of({true, true, true}), 0u);
  h.next = h.flow.on_turn(h.now, errc::cannot_connect);
  EXPECT_EQ(h.flow.line_of({true, true, true}), 1u);
  h.next = h.flow.on_turn(h.now, errc{});
  EXPECT_TRUE(h.tries());
  EXPECT_EQ(h.flow.line_of({true, true, true}), 0u) << "with a turn all is forgotten";
}

// A wait in line may last for hours: the silence of the votes' servers begins behind it.
TEST(quorum_search, a_wait_in_line_is_no_silence) {
  hunt h{waits_for_ever()};
  h.loses(result::busy);
  h.now += 1h;
  h.gets_turn();
  h.loses(result::unreachable);
  EXPECT_TRUE(h.pauses());
}

}  // namespace

}  // namespace holdfast::core
