// SPDX-License-Identifier: Apache-2.0
// Semaphores that independent servers give together: their holders need more votes than a majority (H59).
#include "integration/quorum_fixture.hpp"
#include "support/sharing_witness.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

namespace holdfast::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const acquire_options brief{.ttl = 4s};

TEST_F(with_quorum, a_semaphore_has_so_many_places_and_no_more_H59) {
  auto one = make();
  auto other = make();
  auto first = semaphore{one, "x", 2}.acquire(brief);
  auto second = semaphore{other, "x", 2}.acquire(brief);
  EXPECT_FALSE((semaphore{other, "x", 2}.try_acquire(brief)));
  EXPECT_EQ(first.release(), release_outcome::released);
  EXPECT_TRUE((semaphore{other, "x", 2}.acquire({.ttl = ttl, .wait = long_enough}).valid()));
}

TEST_F(with_quorum, permits_have_weights_H59) {
  auto locks = make();
  semaphore three{locks, "x", 3};
  const auto two = three.acquire({.ttl = ttl, .permits = 2});
  EXPECT_FALSE(three.try_acquire({.ttl = ttl, .permits = 2}));
  EXPECT_TRUE(three.try_acquire(brief));
  EXPECT_EQ(code_of([&] { (void)three.try_acquire({.permits = 4}); }), errc::invalid_option);
}

TEST_F(with_quorum, another_size_is_refused_and_named) {
  auto locks = make();
  const auto held = semaphore{locks, "x", 2}.acquire(brief);
  const auto e = error_of([&] { (void)semaphore{locks, "x", 5}.try_acquire(brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::other_size);
  EXPECT_THAT(e->detail().why, HasSubstr("it has 2 permits"));
  EXPECT_THAT(e->detail().why, HasSubstr("you say 5"));
}

// Two places on three servers take all three votes: no majority is enough, and whoever needs it is told so.
TEST_F(with_quorum, a_semaphore_says_how_many_votes_it_takes_H59) {
  lab_.kill(node(1));
  auto locks = make(2s);
  const auto e = error_of([&] { (void)semaphore{locks, "x", 2}.try_acquire(brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_quorum);
  EXPECT_THAT(e->detail().why, HasSubstr(node(1).address));
  EXPECT_THAT(e->detail().why, HasSubstr("a semaphore of 2 takes 3 votes"));
  EXPECT_TRUE((semaphore{locks, "one", 1}.acquire(brief).valid())) << "one place takes a majority";
}

TEST_F(with_five, a_semaphore_of_two_does_without_one_of_five_servers_and_not_without_two_H59) {
  auto locks = make(3s);
  semaphore two{locks, "x", 2};
  const auto held = two.acquire({.ttl = 3s});
  have_all_votes(held);
  lab_.kill(node(0));
  let_pass(6s);
  EXPECT_TRUE(held.valid());
  const auto other = two.acquire({.ttl = 3s});
  lab_.kill(node(1));
  const auto killed_at = boottime();
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested() && other.lost().stop_requested(); }, long_enough));
  EXPECT_LT(boottime() - killed_at, 6s);
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  EXPECT_EQ(code_of([&] { (void)two.try_acquire(brief); }), errc::no_quorum);
}

TEST_F(with_five, a_vote_that_is_lost_keeps_the_lease_and_is_given_again_R18_B57) {
  auto locks = make();
  const auto held = semaphore{locks, "x", 2}.acquire(brief);
  const auto all_have_it = [&] {
    for (int i = 0; i < 5; ++i)
      if (ask_number(node(i), {"ZCARD", "hf:{x}"}) != "1") return false;
    return true;
  };
  have_all_votes(held);
  ask(2, {"DEL", "hf:{x}", "hf:{x}:holders"});
  EXPECT_TRUE(eventually(all_have_it, long_enough));
  EXPECT_TRUE(held.valid());
}

TEST_F(with_five, with_fewer_votes_than_are_needed_the_lease_is_lost_B57) {
  lab_.kill(node(0));  // Four votes are left, and all four are needed.
  auto locks = make();
  const auto held = semaphore{locks, "x", 2}.acquire({.ttl = max_ttl, .renew = renewal::none});
  held.renew();
  ask(3, {"DEL", "hf:{x}", "hf:{x}:holders"});
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::lease_gone);
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, max_ttl / 2)) << "not only at its deadline";
}

TEST_F(with_quorum, what_waits_for_places_is_served_in_its_order) {
  auto locks = make();
  auto one = semaphore{locks, "x", 2}.acquire(brief);
  std::mutex mutex;
  std::vector<int> order;
  const auto wait_for = [&](int who, int permits) {
    return std::thread{[&, who, permits] {
      auto mine = make();
      const auto got = semaphore{mine, "x", 2}.acquire({.ttl = ttl, .wait = long_enough, .permits = permits});
      const std::lock_guard guard{mutex};
      order.push_back(who);
    }};
  };
  auto large = wait_for(1, 2);
  // It has its turn, and says so where it finds no room: who wants less is not let in before it.
  ASSERT_TRUE(eventually([&] { return ask_number(node(0), {"EXISTS", "hf:{x}:wanted"}) == "1"; }, long_enough));
  auto small = wait_for(2, 1);
  let_pass(1s);
  EXPECT_THAT(order, SizeIs(0));
  one.release();
  large.join();
  small.join();
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

TEST_F(with_quorum, of_many_threads_never_more_are_inside_than_there_are_places_H59) {
  auto one = make();
  auto other = make();
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 6; ++t) {
    all.emplace_back([&, t] {
      semaphore two{t % 2 == 0 ? one : other, "x", 2};
      for (int i = 0; i < 6; ++i) {
        auto held = two.acquire({.ttl = ttl, .wait = long_enough});
        const int now_inside = ++inside;
        EXPECT_LE(now_inside, 2);
        for (int had = most; had < now_inside && !most.compare_exchange_weak(had, now_inside);) {
        }
        let_pass(5ms);
        --inside;
        held.release();
        ++done;
      }
    });
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(done, 36);
  EXPECT_EQ(most, 2);
}

TEST_F(with_five, a_crowd_of_processes_with_kills_has_never_more_inside_than_there_are_places_H59) {
  const scratch_directory scratch;
  const std::string seen = scratch.path() + "/seen";
  sharing_witness testimony{seen, part::one};
  constexpr auto short_ttl = 2000ms;
  const auto start = [&] {
    return child_process{
        {HOLDFAST_WORKER, lab_.uri(), "share", "x", "600s", seen, "2000", std::to_string(short_ttl.count()), "2"},
        {.environment = {"HOLDFAST_TEST_MAX_TTL_MS=8000"}}};
  };
  const auto kill = [&](child_process& one) {
    const int pid = one.pid();
    one.signal(SIGKILL);
    one.wait();
    testimony.is_dead(pid);
  };
  std::vector<child_process> all;
  for (int i = 0; i < 8; ++i) all.push_back(start());
  std::mt19937 dice{20261122};
  const auto until = boottime() + 20s;
  const auto at_last = until + 60s;
  int turn = 0;
  while (boottime() < until || (judge_sharing(seen, 2).holds <= 50 && boottime() < at_last)) {
    auto& victim = all[dice() % all.size()];
    kill(victim);
    victim = start();
    const int silent = turn++ % 5;
    lab_.pause(node(silent));
    let_pass(700ms);
    lab_.resume(node(silent));
    let_pass(300ms);
  }
  for (auto& one : all) one.signal(SIGSTOP);  // So that nobody enters while the others are killed.
  for (auto& one : all) kill(one);
  const auto killed_at = boottime();
  auto locks = make();
  const auto everything = semaphore{locks, "x", 2}.acquire({.ttl = ttl, .wait = long_enough, .permits = 2});
  // The turn of whoever waited first ends with a ttl of its own, 5 s, before that of the places matters.
  EXPECT_LT(boottime() - killed_at, 5s + short_ttl + slack) << "the places did not come back";
  const auto verdict = judge_sharing(seen, 2);
  EXPECT_EQ(verdict.intrusions, 0) << verdict.first_offence;
  EXPECT_EQ(verdict.most_inside, 2);
  EXPECT_GT(verdict.holds, 50);
  RecordProperty("holds", verdict.holds);
}

// R17: a silent server's vote comes late.
TEST_F(with_five, a_place_that_was_given_late_is_withdrawn_R17) {
  auto locks = make();
  semaphore two{locks, "x", 2};
  two.acquire(brief).release();
  lab_.pause(node(0));
  for (int i = 0; i < 5; ++i) two.acquire({.ttl = max_ttl}).release();
  lab_.resume(node(0));
  EXPECT_TRUE(eventually(
      [&] {
        for (int i = 0; i < size(); ++i)
          if (ask_number(node(i), {"EXISTS", "hf:{x}"}) != "0") return false;
        return true;
      },
      before_its_ttl_ends));
}

TEST_F(with_quorum, all_places_come_back_within_a_ttl_of_holders_that_were_killed_B7) {
  const scratch_directory scratch;
  const std::string seen = scratch.path() + "/seen";
  std::vector<child_process> all;
  for (int i = 0; i < 2; ++i) {
    all.push_back(child_process{{HOLDFAST_WORKER, lab_.uri(), "share", "x", "1", seen, "600000000", "2000", "2"},
                                {.environment = {"HOLDFAST_TEST_MAX_TTL_MS=8000"}}});
  }
  auto locks = make();
  semaphore two{locks, "x", 2};
  ASSERT_TRUE(eventually([&] { return locks.inspect("x").permits_held == 2; }, long_enough));
  EXPECT_FALSE(two.try_acquire(brief));
  const auto killed_at = boottime();
  for (auto& one : all) one.signal(SIGKILL);
  for (auto& one : all) one.wait();
  const auto everything = two.acquire({.ttl = ttl, .wait = long_enough, .permits = 2});
  EXPECT_LT(boottime() - killed_at, 2s + slack);
}

TEST_F(with_quorum, inspect_shows_the_permits_that_are_taken) {
  auto locks = make();
  const auto held = semaphore{locks, "x", 5}.acquire({.ttl = ttl, .owner = "ann", .permits = 3});
  const auto info = locks.inspect("x");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.kind, lock_kind::semaphore);
  EXPECT_EQ(info.size, 5);
  EXPECT_EQ(info.permits_held, 3);
  ASSERT_THAT(info.holders, SizeIs(1));
  EXPECT_EQ(info.holders[0].owner, "ann");
  EXPECT_EQ(info.holders[0].token, held.token());
}

// Nor is it where a server that is there cannot say to whom it gave its vote.
TEST_F(with_quorum, a_semaphore_whose_holders_cannot_be_read_is_shown_as_held) {
  auto locks = make();
  for (const int places : {1, 2}) {
    const std::string name = "x" + std::to_string(places);
    const std::string holders = "hf:{" + name + "}:holders";
    const auto held = semaphore{locks, name, places}.acquire({.ttl = max_ttl, .owner = "ann"});
    for (const int i : {0, 1, 2}) {
      ASSERT_TRUE(eventually([&] { return ask_number(node(i), {"EXISTS", holders.c_str()}) == "1"; }, long_enough));
    }
    for (const int i : {0, 1, 2}) {
      ask(i, {"DEL", holders.c_str()});
      const auto info = locks.inspect(name);
      EXPECT_TRUE(info.held) << places << " lost on " << i + 1;
      if (i < 2) continue;
      EXPECT_TRUE(info.foreign);
      EXPECT_EQ(info.permits_held, places) << "of which nobody knows who has them, it is full";
      EXPECT_THAT(locks.list(name), SizeIs(1));
    }
  }
}

// Each server lists a hundred holders, those that end first: it is not "free", and any of them can be broken.
TEST_F(with_quorum, counts_and_breaks_holders_whom_no_server_lists) {
  constexpr int all = 120;
  auto locks = make();
  semaphore many{locks, "x", all};
  std::vector<lease> held;
  for (int i = 0; i < all; ++i) held.push_back(many.acquire({.ttl = ttl, .wait = long_enough}));
  auto looks = make();
  const auto full = looks.inspect("x");
  EXPECT_EQ(full.permits_held, all);
  EXPECT_THAT(full.holders, SizeIs(100));
  EXPECT_TRUE(full.held);
  for (auto* const one : {&held.back(), &held.front()}) {
    looks.break_lock("x", one->token(), {.why = "test", .mode = break_mode::immediately});
    EXPECT_TRUE(eventually([&] { return one->lost().stop_requested(); }, before_its_ttl_ends));
  }
  EXPECT_EQ(looks.inspect("x").permits_held, all - 2);
  EXPECT_EQ(code_of([&] { looks.break_lock("x", fencing_token{7}, {.why = "test"}); }), errc::changed_hands);
}

TEST_F(with_quorum, counts_readers_whom_no_server_lists) {
  constexpr int all = 120;
  auto locks = make();
  shared_mutex both{locks, "x"};
  std::vector<lease> held;
  for (int i = 0; i < all; ++i) held.push_back(both.acquire_shared({.ttl = ttl, .wait = long_enough}));
  auto looks = make();
  const auto seen = looks.inspect("x");
  EXPECT_EQ(seen.permits_held, all);
  EXPECT_TRUE(seen.held);
  // Two votes are enough, and the last one's third may be on its way.
  EXPECT_TRUE(eventually([&] { return looks.inspect("x").nodes.at(1).holders == all; }, long_enough));
}

// A majority could vote, and nobody is granted a place.
TEST_F(with_quorum, inspect_says_for_how_long_a_semaphore_that_needs_all_servers_lacks_one_H24) {
  auto locks = make();
  const auto held = semaphore{locks, "x", 2}.acquire({.ttl = ttl});
  EXPECT_EQ(make().inspect("x").quarantine, 0ms);
  lab_.kill(node(1));
  lab_.restart(node(1), lab_data::dropped);
  const auto info = make().inspect("x");
  EXPECT_EQ(info.size, 2);
  EXPECT_GT(info.nodes[0].quarantine + info.nodes[1].quarantine + info.nodes[2].quarantine, 0ms);
  EXPECT_GT(info.quarantine, 0ms);
}

TEST_F(with_quorum, the_size_does_not_change_there_and_who_wants_that_is_told_why) {
  auto locks = make();
  semaphore two{locks, "x", 2};
  const auto e = error_of([&] { two.resize(3); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::invalid_option);
  EXPECT_THAT(e->detail().subject, HasSubstr("resize of 'x' to 3 on a quorum"));
  EXPECT_THAT(e->detail().why, HasSubstr("each server alone"));
  EXPECT_EQ(two.size(), 2);
  // And so it is done.
  (void)two.acquire({.ttl = ttl, .wait = long_enough}).release();
  semaphore three{locks, "x", 3};
  EXPECT_EQ(code_of([&] { (void)three.try_acquire(brief); }), errc::other_size);
  for (int i = 0; i < size(); ++i) {
    auto alone = single(i);
    semaphore{alone, "x", 2}.resize(3);
  }
  EXPECT_TRUE(three.acquire({.ttl = ttl, .wait = long_enough, .permits = 3}).valid());
}

}  // namespace
}  // namespace holdfast::test
