// SPDX-License-Identifier: Apache-2.0
// The checker on histories written by hand: each rule of steps.hpp and of the models, once allowed and once not.
#include "history/checker.hpp"
#include "history/story.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::test::history {
namespace {

constexpr told ann{1, 1}, ben{2, 1}, cleo{3, 1}, ann_later{1, 2}, ben_later{2, 2};

void allows(const operations& all, const lock_kind& kind = a_fenced_mutex) {
  const auto result = check(all, kind);
  EXPECT_EQ(result.what, answer::linearizable) << result.explanation;
}

std::string refuses(const operations& all, const lock_kind& kind = a_fenced_mutex) {
  const auto result = check(all, kind);
  EXPECT_EQ(result.what, answer::refused);
  return result.explanation;
}

// ---- the fenced mutex ----

TEST(history_mutex, allows_nothing_at_all) { allows({}); }

TEST(history_mutex, allows_one_after_the_other) {
  allows({got(ann, {0, 1}, 5, 100), gave(ann, {2, 3}), got(ben, {4, 5}, 6, 100), gave(ben, {6, 7})});
}

TEST(history_mutex, refuses_two_at_once) {
  const auto why = refuses({got(ann, {0, 1}, 5, 100), got(ben, {2, 3}, 6, 100), gave(ann, {4, 5}), gave(ben, {6, 7})});
  EXPECT_NE(why.find("worker 2.0 hold 1 was let in by 3.000"), std::string::npos) << why;
}

// The releases of the two that are in order begin after what is not: left out, the two would seem to be in conflict.
TEST(history_mutex, names_who_is_to_blame_and_not_those_who_were_waiting) {
  const auto why =
      refuses({got(cleo, {0, 2}, 5, 100), gave(cleo, {3, 4}, outcome::already_lost), got(ann, {1, 10}, 6, 100),
               gave(ann, {11, 12}), got(ben, {1, 20}, 7, 100), gave(ben, {21, 22})});
  EXPECT_NE(why.find("worker 3.0 hold 1 was lost before its lease could end"), std::string::npos) << why;
  EXPECT_EQ(why.find("worker 1.0"), std::string::npos) << why;
}

// The release of the first and the call of the second have an instant in common: there it can have happened.
TEST(history_mutex, allows_what_overlaps_only_in_its_calls) {
  allows({got(ann, {0, 1}, 5, 100), gave(ann, {2, 6}), got(ben, {3, 5}, 6, 100), gave(ben, {7, 8})});
}

TEST(history_mutex, refuses_a_token_that_is_not_above) {
  refuses({got(ann, {0, 1}, 5, 100), gave(ann, {2, 3}), got(ben, {4, 5}, 5, 100), gave(ben, {6, 7})});
  refuses({got(ann, {0, 1}, 5, 100), gave(ann, {2, 3}), got(ben, {4, 5}, 4, 100), gave(ben, {6, 7})});
}

TEST(history_mutex, orders_calls_that_overlap_by_their_tokens) {
  allows({got(ann, {0, 9}, 6, 100), got(ben, {0, 8}, 5, 100), gave(ben, {8, 9}), gave(ann, {10, 11})});
  refuses({got(ann, {0, 9}, 5, 100), got(ben, {0, 8}, 6, 100), gave(ben, {10, 11}), gave(ann, {12, 13})});
}

TEST(history_mutex, lets_the_next_one_in_when_a_lease_ran_out) {
  allows({got(ann, {0, 1}, 5, 100), got(ben, {101, 102}, 6, 200), gave(ann, {103, 104}, outcome::already_lost)});
}

TEST(history_mutex, refuses_the_next_one_while_a_lease_stands) {
  refuses({got(ann, {0, 1}, 5, 100), got(ben, {90, 99}, 6, 200), gave(ann, {103, 104}, outcome::already_lost)});
}

TEST(history_mutex, lets_the_place_of_the_killed_go_when_their_lease_is_over) {
  allows({got(ann, {0, 1}, 5, 100), got(ben, {90, 101}, 6, 200)});
  refuses({got(ann, {0, 1}, 5, 100), got(ben, {90, 99}, 6, 200)});
}

TEST(history_mutex, believes_that_a_release_without_an_answer_took_effect_or_not) {
  for (const auto& release : {gave(ann, {2, 3}, outcome::unknown), gave(ann, {2, -1}), dropped(ann, {2, 3})}) {
    allows({got(ann, {0, 1}, 5, 100), release, got(ben, {4, 5}, 6, 100), gave(ben, {6, 7})});
    allows({got(ann, {0, 1}, 5, 100), release, asked(ben, {4, 5}, outcome::busy)});
    refuses({got(ann, {0, 1}, 5, 100), got(ben, {0, 1}, 6, 100), release, gave(ben, {6, 7})});
  }
}

TEST(history_mutex, refuses_a_loss_before_the_lease_can_end) {
  const auto why = refuses({got(ann, {0, 1}, 5, 100), gave(ann, {10, 11}, outcome::already_lost)});
  EXPECT_NE(why.find("lost before its lease could end"), std::string::npos) << why;
}

// It gives up 5 ms before its deadline, so it may say so.
TEST(history_mutex, allows_a_loss_in_the_last_moments_of_a_lease) {
  allows({got(ann, {0, 1}, 5, 100), gave(ann, {96, 97}, outcome::already_lost)});
}

TEST(history_mutex, refuses_released_when_another_had_it_meanwhile) {
  refuses({got(ann, {0, 1}, 5, 100), got(ben, {110, 111}, 6, 200), gave(ben, {112, 113}), gave(ann, {114, 115})});
}

TEST(history_mutex, wants_a_reason_for_busy) {
  allows({got(ann, {0, 1}, 5, 100), asked(ben, {2, 3}, outcome::busy), gave(ann, {4, 5})});
  allows({got(ann, {0, 3}, 5, 100), asked(ben, {1, 2}, outcome::busy), gave(ann, {4, 5})});
  const auto why = refuses({got(ann, {0, 1}, 5, 100), gave(ann, {2, 3}), asked(ben, {4, 5}, outcome::busy)});
  EXPECT_NE(why.find("told busy, when there was room"), std::string::npos) << why;
  refuses({asked(ben, {0, 1}, outcome::busy), got(ann, {2, 3}, 5, 100)});
}

TEST(history_mutex, takes_somebody_in_line_for_a_reason) {
  allows({waited(ann, {0, 9}, outcome::timed_out), asked(ben, {4, 5}, outcome::busy)});
  allows({waited(ann, {0, -1}, outcome::open), asked(ben, {40, 41}, outcome::busy)});
}

// A request without an answer may lock later, once; nobody believes in it, so it makes way at any time.
TEST(history_mutex, takes_an_unknown_request_for_a_reason_once) {
  const auto unknown = asked(ann, {0, 1}, outcome::unknown);
  allows({unknown, asked(ben, {10, 11}, outcome::busy)});
  allows({unknown, asked(ben, {10, 11}, outcome::busy), got(cleo, {12, 13}, 5, 100), gave(cleo, {14, 15})});
  refuses({unknown, asked(ben, {10, 11}, outcome::busy), got(cleo, {12, 13}, 5, 100), gave(cleo, {14, 15}),
           asked(ben_later, {16, 17}, outcome::busy)});
  refuses({asked(ben, {10, 11}, outcome::busy), asked(ann, {12, 13}, outcome::unknown)});
}

TEST(history_mutex, takes_the_killed_the_slow_and_the_faulty_for_a_reason) {
  allows({asked(ann, {0, -1}, outcome::open), asked(ben, {10, 11}, outcome::busy)});
  allows({got(ann, {0, 60}, 5, 100), gave(ann, {61, 62}), asked(ben, {63, 64}, outcome::busy)});
  auto faulty = got(ann, {0, 1}, 5, 100);
  faulty.through_faults = true;
  allows({faulty, gave(ann, {2, 3}), asked(ben, {4, 5}, outcome::busy)});
}

TEST(history_mutex, does_not_let_an_unknown_request_excuse_two_at_once) {
  refuses({asked(cleo, {0, 1}, outcome::unknown), got(ann, {2, 3}, 5, 100), got(ben, {4, 5}, 6, 100), gave(ann, {6, 7}),
           gave(ben, {8, 9})});
}

TEST(history_mutex, keeps_locks_of_different_names_apart) {
  auto other = got(ben, {2, 3}, 1, 100);
  other.name = "y";
  const auto result = check({got(ann, {0, 1}, 5, 100), other}, a_fenced_mutex);
  EXPECT_EQ(result.what, answer::linearizable);
  EXPECT_EQ(result.locks, 2);
}

TEST(history_mutex, explains_by_the_two_that_matter_of_a_thousand) {
  operations all;
  for (int i = 0; i < 500; ++i) {
    all.push_back(got({1, i}, {4 * i, 4 * i + 1}, 10 * static_cast<std::uint64_t>(i) + 10, 4 * i + 100));
    all.push_back(gave({1, i}, {4 * i + 2, 4 * i + 3}));
  }
  all.push_back(got(ben, {1206, 1207}, 3025, 1400));  // After hold 301, and still there when 302 begins.
  all.push_back(gave(ben, {1400, 1401}));
  const auto why = refuses(all);
  EXPECT_EQ(std::count(why.begin(), why.end(), '\n'), 7) << why;
}

TEST(history_mutex, is_refused_when_it_never_ends_in_time) {
  operations all;
  for (int i = 0; i < 5000; ++i) {
    all.push_back(got({1, i}, {4 * i, 4 * i + 1}, 10 + static_cast<std::uint64_t>(i), 4 * i + 100));
    all.push_back(gave({1, i}, {4 * i + 2, 4 * i + 3}));
  }
  EXPECT_EQ(check(all, a_fenced_mutex, std::chrono::seconds{0}).what, answer::undecided);
}

// ---- the reentrant mutex ----

TEST(history_reentrant, allows_again_by_the_holder_with_the_same_token) {
  allows({got(ann, {0, 1}, 5, 100), locked_again(ann, {2, 3}, 5), unlocked_once(ann, {4, 5}), unlocked(ann, {6, 7}),
          got(ben, {8, 9}, 6, 100), unlocked(ben, {10, 11})},
         a_reentrant_mutex);
  refuses({got(ann, {0, 1}, 5, 100), locked_again(ann, {2, 3}, 6), unlocked_once(ann, {4, 5}), unlocked(ann, {6, 7})},
          a_reentrant_mutex);
}

TEST(history_reentrant, is_held_until_the_last_unlock) {
  refuses({got(ann, {0, 1}, 5, 100), locked_again(ann, {2, 3}, 5), unlocked_once(ann, {4, 5}), got(ben, {6, 7}, 6, 100),
           unlocked(ann, {8, 9}), unlocked(ben, {10, 11})},
          a_reentrant_mutex);
}

TEST(history_reentrant, refuses_one_unlock_too_many) {
  refuses({got(ann, {0, 1}, 5, 100), unlocked_once(ann, {2, 3}), unlocked(ann, {4, 5})}, a_reentrant_mutex);
}

TEST(history_reentrant, only_counts_when_the_lease_is_lost) {
  allows({got(ann, {0, 1}, 5, 100), got(ben, {101, 102}, 6, 200), locked_again(ann, {103, 104}, 5),
          unlocked_once(ann, {105, 106}), unlocked(ann, {107, 108}), unlocked(ben, {109, 110})},
         a_reentrant_mutex);
}

TEST(history_reentrant, keeps_token_and_count_when_the_lease_is_lost) {
  refuses({got(ann, {0, 1}, 5, 20), got(ben, {30, 31}, 6, 90), locked_again(ann, {32, 33}, 6),
           unlocked_once(ann, {34, 35}), unlocked(ann, {36, 37}), unlocked(ben, {80, 81})},
          a_reentrant_mutex);
  refuses({got(ann, {0, 1}, 5, 20), got(ben, {30, 31}, 6, 90), unlocked_once(ann, {32, 33}), unlocked(ann, {36, 37}),
           unlocked(ben, {80, 81})},
          a_reentrant_mutex);
}

TEST(history_reentrant, takes_a_thread_of_the_same_object_for_a_reason) {
  auto other_thread = asked(ann_later, {108, 109}, outcome::busy);
  other_thread.thread = 1;
  allows({got(ann, {0, 1}, 5, 100), got(ben, {101, 102}, 6, 200), gave(ben, {103, 104}), other_thread,
          unlocked(ann, {110, 111})},
         a_reentrant_mutex);
}

// An unlock waits for its answer and keeps it: what was over long before its lease was freed.
TEST(history_reentrant, knows_that_a_short_hold_was_freed) {
  allows({got(ann, {0, 1}, 5, 100), unlocked(ann, {30, 31}), asked(ben, {32, 33}, outcome::busy)}, a_reentrant_mutex);
  refuses({got(ann, {0, 1}, 5, 100), unlocked(ann, {2, 3}), asked(ben, {4, 5}, outcome::busy)}, a_reentrant_mutex);
}

// ---- the semaphore ----

TEST(history_semaphore, allows_as_many_permits_as_it_has) {
  const operations two{got(ann, {0, 1}, 5, 100, 1), got(ben, {2, 3}, 6, 100, 2)};
  allows(two, a_semaphore(3));
  refuses(two, a_semaphore(2));
}

TEST(history_semaphore, wants_tokens_in_the_order_of_the_grants) {
  refuses({got(ann, {0, 1}, 6, 100, 1), got(ben, {2, 3}, 5, 100, 1)}, a_semaphore(3));
}

TEST(history_semaphore, knows_for_whom_there_was_no_room) {
  const operations held{got(ann, {0, 1}, 5, 100, 2), gave(ann, {9, 10})};
  auto many = held, few = held;
  many.push_back(asked(ben, {2, 3}, outcome::busy, 2));
  few.push_back(asked(ben, {2, 3}, outcome::busy, 1));
  allows(many, a_semaphore(3));
  refuses(few, a_semaphore(3));
}

// One of two dead holders must make room, and it is the one whose lease is over.
TEST(history_semaphore, frees_the_permits_of_whose_lease_is_over) {
  allows({got(ann, {0, 1}, 5, 100, 1), got(ben, {0, 1}, 6, 300, 1), got(cleo, {110, 111}, 7, 300, 1)}, a_semaphore(2));
  refuses({got(ann, {0, 1}, 5, 300, 1), got(ben, {0, 1}, 6, 300, 1), got(cleo, {110, 111}, 7, 300, 1)}, a_semaphore(2));
}

// ---- the reader-writer lock ----

constexpr int read = 1;

TEST(history_shared, allows_readers_together_and_a_writer_alone) {
  allows({got(ann, {0, 1}, 5, 100, read), got(ben, {2, 3}, 6, 100, read), gave(ann, {4, 5}), gave(ben, {6, 7}),
          got(cleo, {8, 9}, 7, 100)},
         a_shared_mutex);
  refuses({got(ann, {0, 1}, 5, 100, read), got(ben, {2, 3}, 6, 100)}, a_shared_mutex);
  refuses({got(ann, {0, 1}, 5, 100), got(ben, {2, 3}, 6, 100, read)}, a_shared_mutex);
}

TEST(history_shared, lets_readers_in_after_a_downgrade) {
  const auto story = [](const operation& downgrade) {
    return operations{got(ann, {0, 1}, 5, 100), downgrade, got(ben, {4, 5}, 6, 100, read), gave(ann, {6, 7}),
                      gave(ben, {8, 9})};
  };
  allows(story(downgraded(ann, {2, 3})), a_shared_mutex);
  allows(story(downgraded(ann, {2, 3}, outcome::unknown)), a_shared_mutex);
  refuses(story(downgraded(ann, {2, 3}, outcome::already_lost)), a_shared_mutex);
  // It may have been done, and the answer have come when the lease was over.
  allows(story(downgraded(ann, {2, 180}, outcome::already_lost)), a_shared_mutex);
  refuses({got(ann, {0, 1}, 5, 100), downgraded(ann, {2, 3}), got(ben, {4, 5}, 6, 100), gave(ann, {6, 7})},
          a_shared_mutex);
}

TEST(history_shared, knows_for_whom_there_was_no_room) {
  allows({got(ann, {0, 1}, 5, 100, read), asked(ben, {2, 3}, outcome::busy), gave(ann, {4, 5})}, a_shared_mutex);
  refuses({got(ann, {0, 1}, 5, 100, read), asked(ben, {2, 3}, outcome::busy, read), gave(ann, {4, 5})}, a_shared_mutex);
}

// Readers whose leases were over, and then a writer that nobody knows of. (The first recording of four seconds had it.)
TEST(history_shared, lets_an_unknown_writer_in_behind_readers_that_are_gone) {
  const operations all{got(ann, {0, 1}, 5, 100, read), got(cleo, {0, 1}, 6, 100, read),
                       asked(ben_later, {101, 102}, outcome::unknown), asked(ben, {103, 104}, outcome::busy, read)};
  allows(all, a_shared_mutex);
  auto too_early = all;
  too_early[0].until = ms(200);
  refuses(too_early, a_shared_mutex);
}

// ---- size ----

// Eight workers with calls that overlap, some of them for long: the memory keeps this from being exponential.
TEST(history_search, takes_thirty_thousand_operations) {
  operations all;
  std::uint64_t token = 0;
  for (int i = 0; i < 10'000; ++i) {
    const int worker = i % 8;
    all.push_back(got({worker, i}, {10 * i, 10 * i + 3}, ++token, 10 * i + 100));
    all.push_back(gave({worker, i}, {10 * i + 2, 10 * i + 12}));
    all.push_back(asked({8, i}, {10 * i, 10 * i + 9}, outcome::busy));
  }
  const auto result = check(all, a_fenced_mutex);
  EXPECT_EQ(result.what, answer::linearizable) << result.explanation;
  EXPECT_EQ(result.operations, 30'000);
}

// Without tokens nothing says which of two that overlap was first, and at the end nothing fits.
TEST(history_search, refuses_a_long_history_without_tokens) {
  operations all;
  for (int i = 0; i < 3'000; ++i) {
    all.push_back(got({i % 4, i}, {10 * i, 10 * i + 25}, 0, 10 * i + 1000));
    all.push_back(gave({i % 4, i}, {10 * i + 25, 10 * i + 40}));
  }
  all.push_back(got({9, 1}, {29'985, 29'986}, 0, 40'000));
  all.push_back(got({9, 2}, {29'987, 29'988}, 0, 40'000));
  refuses(all);
}

}  // namespace
}  // namespace holdfast::test::history
