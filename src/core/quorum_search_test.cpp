// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_search.hpp"

#include "core/quorum_search_testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::core {

namespace {

using namespace hunt_testing;

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

// Its head may have died, or its server fallen silent, and the lock be free.
TEST(quorum_search, who_has_waited_in_line_in_vain_tries_once_more_before_its_time_is_over_C7) {
  hunt h{with_patience(waits(4s), 300ms)};
  h.loses(result::busy);
  ASSERT_TRUE(h.stands());
  EXPECT_EQ(std::get<quorum_search::stand_in_line>(h.next).until, t0 + 3700ms);
  EXPECT_TRUE(h.flow.line_of({true, true, true}));
  h.now = t0 + 3700ms;
  h.next = h.flow.on_turn(h.now, errc::timed_out);
  EXPECT_TRUE(h.tries());
  EXPECT_EQ(h.flow.give_up_at(), t0 + 4s) << "the wait in line was no silence";
  h.loses(result::busy);
  EXPECT_EQ(h.pauses(), 300ms) << "the wait is as long as it was told to be";
  EXPECT_TRUE(std::holds_alternative<quorum_search::try_now>(h.flow.on_pause_over(h.now))) << "somebody has released";
  h.now = t0 + 4s;
  h.next = h.flow.on_pause_over(h.now);
  EXPECT_EQ(h.ends(), errc::timed_out);
}

TEST(quorum_search, what_the_last_try_met_ends_the_wait_C5) {
  hunt h{with_patience(waits(4s), 300ms)};
  h.loses(result::busy);
  EXPECT_TRUE(h.flow.line_of({true, true, true}));
  h.now = t0 + 3700ms;
  h.next = h.flow.on_turn(h.now, errc::timed_out);
  h.now = t0 + 3900ms;
  h.loses(result::quarantined);
  EXPECT_EQ(h.pauses(), 100ms);
  h.now = t0 + 4s;
  h.next = h.flow.on_pause_over(h.now);
  EXPECT_EQ(h.ends(), errc::quarantined);
}

TEST(quorum_search, a_short_wait_is_spent_in_line_for_most_of_it_P25) {
  hunt h{with_patience(waits(100ms), 300ms)};
  h.loses(result::busy);
  ASSERT_TRUE(h.stands());
  EXPECT_EQ(std::get<quorum_search::stand_in_line>(h.next).until, t0 + 75ms);
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

// A job that is started at the same second everywhere would run nowhere.
TEST(quorum_search, a_try_is_given_three_ties_R12) {
  for (const auto tie : {result::split, result::tied}) {
    hunt h{once()};
    for (int i = 0; i < 3; ++i) {
      h.loses(tie);
      EXPECT_TRUE(h.pauses());
    }
    h.loses(tie);
    EXPECT_EQ(h.ends(), errc{});
  }
}

// Else the votes of the next round are under way at the same time again.
TEST(quorum_search, who_tries_once_draws_from_longer_than_a_round_takes_and_twice_as_long_each_time_R12) {
  duration drawn[3]{};
  for (int i = 0; i < 100; ++i) {
    hunt h{once()};
    for (std::size_t which = 0; which < 3; ++which) {
      for (std::size_t skip = 0; skip < static_cast<std::size_t>(i % 7); ++skip) (void)h.rng.between(0, 1);
      h.loses({.how = result::tied, .took = 40ms});
      drawn[which] = std::max(drawn[which], h.pauses().value_or(1h));
    }
  }
  for (const auto& [longest, most] : {std::pair{drawn[0], 120ms}, {drawn[1], 240ms}, {drawn[2], 480ms}}) {
    EXPECT_LE(longest, most);
    EXPECT_GT(longest, most / 2);
  }
}

TEST(quorum_search, a_tie_lasts_no_longer_than_the_try_may) {
  hunt h{once()};
  h.now = t0 + timeout - 100ms;
  std::set<duration> seen;
  for (int i = 0; i < 3; ++i) {
    h.loses({.how = result::split, .took = 1s});
    ASSERT_TRUE(h.pauses());
    EXPECT_LE(*h.pauses(), timeout);
    seen.insert(*h.pauses());
  }
  EXPECT_EQ(seen.size(), 3u) << "else both come at its end";
  hunt over{once()};
  over.now = t0 + timeout;
  over.loses(result::split);
  EXPECT_EQ(over.ends(), errc{});
}

TEST(quorum_search, who_waits_leaves_what_nobody_has_to_the_line_R12_P25) {
  hunt h{waits_for_ever()};
  h.loses({.how = result::tied, .took = 1s});
  h.gets_turn();
  h.loses({.how = result::tied, .took = 1s});
  EXPECT_LE(*h.pauses(), 5ms);
  hunt torn{waits_for_ever()};
  torn.loses({.how = result::split, .took = 1s});
  EXPECT_LE(*torn.pauses(), 30ms) << "and has it, where that is too short";
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

// Where a try needs all servers and one has forgotten our list, nobody else opens it there.
TEST(quorum_search, who_opened_our_list_where_it_was_not_comes_at_once_and_once_P26) {
  hunt h{once()};
  h.loses({.how = result::quarantined, .has_opened = true});
  EXPECT_EQ(h.pauses(), 0ns);
  h.loses({.how = result::quarantined, .has_opened = true});
  EXPECT_EQ(h.ends(), errc::quarantined);
  hunt patient{waits_for_ever()};
  patient.loses({.how = result::quarantined, .has_opened = true});
  EXPECT_EQ(patient.pauses(), 0ns);
  patient.loses({.how = result::quarantined, .has_opened = true});
  EXPECT_EQ(patient.pauses(), 250ms);
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

// The machine was suspended between two tries, and the connections have ended meanwhile.
TEST(quorum_search, who_stood_still_in_a_pause_has_not_met_a_silence_H2_C5) {
  hunt h{waits_for_ever()};
  h.loses(result::busy);
  h.gets_turn();
  h.loses(result::busy);
  const auto before = h.flow.give_up_at() - h.now - *h.pauses();
  h.now += *h.pauses() + 1min;
  h.next = h.flow.on_pause_over(h.now);
  EXPECT_TRUE(h.tries());
  EXPECT_EQ(h.flow.give_up_at() - h.now, before);
  h.loses(result::unreachable);
  EXPECT_TRUE(h.pauses());
}

// It is told that somebody has released.
TEST(quorum_search, a_pause_that_ends_early_makes_no_silence_longer_C5) {
  hunt h{waits_for_ever()};
  h.has_turn = true;
  for (int i = 0; i < 10; ++i) h.loses(result::busy);
  const auto before = h.flow.give_up_at();
  ASSERT_GE(*h.pauses(), 100ms);
  EXPECT_TRUE(std::holds_alternative<quorum_search::try_now>(h.flow.on_pause_over(h.now)));
  EXPECT_EQ(h.flow.give_up_at(), before);
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

// Late, or worth little when it was won: nobody has it, and the next try may be quicker.
TEST(quorum_search, what_is_refused_for_no_reason_that_lasts_is_not_busy_C5) {
  hunt h{waits_for_ever()};
  h.loses(result::refused);
  EXPECT_TRUE(h.pauses());
  hunt at_once{once()};
  at_once.loses(result::refused);
  EXPECT_TRUE(at_once.pauses());
}

TEST(quorum_search, at_the_end_of_its_time_what_was_heard_before_counts) {
  hunt h{waits(1s)};
  h.has_turn = true;
  h.loses(result::busy);
  h.now += 1s;
  h.loses(result::unreachable);
  EXPECT_EQ(h.ends(), errc::timed_out);

  hunt forgetful{waits(1s)};
  forgetful.loses(result::quarantined);
  forgetful.now += 1s;
  forgetful.loses(result::unreachable);
  EXPECT_EQ(forgetful.ends(), errc::quarantined);

  hunt silent{waits(1min)};
  silent.has_turn = true;
  silent.loses(result::busy);
  silent.now += timeout;
  silent.loses(result::unreachable);
  EXPECT_EQ(silent.ends(), errc::no_quorum);
  hunt of_patience{with_patience(waits(1min), 300ms)};
  of_patience.has_turn = true;
  of_patience.loses(result::busy);
  of_patience.now += timeout;
  of_patience.loses(result::unreachable);
  EXPECT_EQ(of_patience.ends(), errc::no_quorum) << "it has not waited to the end";
}

// Votes that were torn between several, or that did not become one lock's, are nobody's hold.
TEST(quorum_search, a_sign_of_life_is_not_somebody_elses_hold_C5) {
  const quorum_search::lost_round signs[] = {{.how = result::split},
                                             {.how = result::unreachable, .enough_voted = true}};
  for (const auto& how : {once(), waits(timeout)}) {
    for (const auto& sign : signs) {
      hunt h{how};
      h.now += 10ms;
      h.loses(sign);
      ASSERT_TRUE(h.pauses());
      h.now = t0 + timeout;
      h.loses(result::unreachable);
      EXPECT_EQ(h.ends(), errc::no_quorum);
    }
  }
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

TEST(quorum_search, a_try_waits_for_no_server_longer_than_the_search) {
  hunt h{with_patience(waits(1s), 300ms)};
  EXPECT_EQ(h.flow.patience(t0), 300ms);
  EXPECT_EQ(h.flow.patience(t0 + 900ms), 100ms);
  EXPECT_EQ(h.flow.patience(t0 + 999ms), 50ms) << "a server that is near shall answer";
  hunt quick{with_patience(waits(1ms), 25ms)};
  EXPECT_EQ(quick.flow.patience(t0), 25ms) << "of a short ttl";
}

// Else its last try would be too short to be heard, and a quarantine that is looked at so seldom a silence.
TEST(quorum_search, the_end_of_a_silence_shortens_no_try_C5) {
  hunt h{with_patience(waits_for_ever(), 300ms)};
  EXPECT_EQ(h.flow.patience(t0 + timeout), 300ms);
  EXPECT_EQ(h.flow.over_at(), never);
  // Nor does a wait that ends with it tell of one.
  hunt bounded{with_patience(waits(timeout), 300ms)};
  bounded.loses(result::quarantined);
  bounded.now += timeout + 50ms;
  bounded.loses(result::unreachable);
  EXPECT_EQ(bounded.ends(), errc::quarantined);
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
