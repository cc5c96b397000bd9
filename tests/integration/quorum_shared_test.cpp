// SPDX-License-Identifier: Apache-2.0
// Readers and writers of a lock that a majority of independent servers gives together.
#include "integration/quorum_fixture.hpp"
#include "support/sharing_witness.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

namespace holdfast::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;

const acquire_options brief{.ttl = 4s};

// A reader or a writer in a process of its own.
child_process start_sharing(const std::string& uri, const std::string& seen, const std::string& hold_us,
                            const std::string& how) {
  return child_process{{HOLDFAST_WORKER, uri, "share", "x", "600s", seen, hold_us, "2000", how},
                       {.environment = {"HOLDFAST_TEST_MAX_TTL_MS=8000"}}};
}

// Each server knows what a downgrade is, and does one as soon as it reads it.
void have_the_script(client locks) {
  shared_mutex warm{locks, "warm"};
  auto held = warm.acquire(brief);
  warm.downgrade(held);
}

TEST_F(with_quorum, readers_read_together_and_a_writer_waits_for_all_of_them_H59) {
  auto one = make();
  auto other = make();
  auto first = shared_mutex{one, "x"}.acquire_shared(brief);
  auto second = shared_mutex{other, "x"}.acquire_shared(brief);
  EXPECT_FALSE((shared_mutex{other, "x"}.try_acquire(brief)));
  EXPECT_EQ(first.release(), release_outcome::released);
  EXPECT_FALSE((shared_mutex{other, "x"}.try_acquire(brief)));
  EXPECT_EQ(second.release(), release_outcome::released);
  EXPECT_TRUE((shared_mutex{other, "x"}.acquire({.ttl = ttl, .wait = long_enough}).valid()));
}

TEST_F(with_quorum, a_writer_is_alone_H59) {
  auto one = make();
  auto other = make();
  const auto held = shared_mutex{one, "x"}.acquire(brief);
  EXPECT_FALSE((shared_mutex{other, "x"}.try_acquire_shared(brief)));
  EXPECT_FALSE((shared_mutex{other, "x"}.try_acquire(brief)));
}

TEST_F(with_quorum, a_writer_s_token_is_above_those_before_and_below_those_after_it_C2) {
  auto locks = make();
  shared_mutex both{locks, "x"};
  fencing_token last{};
  for (int i = 0; i < 10; ++i) {
    auto writing = both.acquire({.ttl = ttl, .wait = long_enough});
    EXPECT_LT(last, writing.token());
    const auto written = writing.token();
    writing.release();
    auto one = both.acquire_shared({.ttl = ttl, .wait = long_enough});
    auto other = both.acquire_shared({.ttl = ttl, .wait = long_enough});
    EXPECT_LT(written, one.token());
    EXPECT_LT(written, other.token());
    last = std::max(one.token(), other.token());
    one.release();
    other.release();
  }
}

TEST_F(with_quorum, the_facade_of_std_works_there) {
  auto locks = make();
  shared_mutex both{locks, "x", brief};
  both.lock_shared();
  std::async(std::launch::async, [&] {
    EXPECT_TRUE(both.try_lock_shared());
    both.unlock_shared();
    EXPECT_FALSE(both.try_lock_for(in_vain));
  }).get();
  both.unlock_shared();
  both.lock();
  both.unlock();
}

TEST_F(with_quorum, readers_do_without_a_server_and_renew_on_the_others) {
  lab_.kill(node(1));
  auto locks = make();
  const auto one = shared_mutex{locks, "x"}.acquire_shared({.ttl = 2s});
  const auto other = shared_mutex{locks, "x"}.acquire_shared({.ttl = 2s});
  let_pass(5s);
  EXPECT_TRUE(one.valid());
  EXPECT_TRUE(other.valid());
  EXPECT_FALSE((shared_mutex{locks, "x"}.try_acquire(brief)));
}

TEST_F(with_quorum, a_reader_of_a_bare_majority_is_lost_with_one_of_its_votes_B57) {
  lab_.kill(node(2));
  auto locks = make();
  const auto held = shared_mutex{locks, "x"}.acquire_shared({.ttl = max_ttl});
  ASSERT_TRUE(held.valid());
  ask(0, {"DEL", "hf:{x}", "hf:{x}:holders"});
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, long_enough));
  EXPECT_EQ(held.lost_reason(), errc::lease_gone);
}

TEST_F(with_five, a_writer_s_vote_that_is_lost_is_given_again_R18_B57) {
  auto locks = make();
  const auto held = shared_mutex{locks, "x"}.acquire(brief);
  have_all_votes(held);
  const auto has_all = [&] {
    for (int i = 0; i < 5; ++i)
      if (ask_number(node(i), {"ZCARD", "hf:{x}"}) != "1") return false;
    return true;
  };
  ask(0, {"DEL", "hf:{x}", "hf:{x}:holders"});
  EXPECT_TRUE(eventually(has_all, long_enough));
  EXPECT_TRUE(held.valid());
  // Two of the others go: without the one that was mended there is no majority.
  let_pass(ttl);
  lab_.kill(node(3));
  lab_.kill(node(4));
  let_pass(2 * ttl);
  EXPECT_TRUE(held.valid());
}

TEST_F(with_quorum, a_shared_lease_leaves_nothing_behind_B55) {
  auto locks = make();
  shared_mutex both{locks, "x"};
  const auto all_are_empty = [&] {
    for (int i = 0; i < size(); ++i)
      if (ask_number(node(i), {"EXISTS", "hf:{x}", "hf:{x}:holders"}) != "0") return false;
    return true;
  };
  { const auto dropped = both.acquire_shared({.ttl = max_ttl}); }
  EXPECT_TRUE(eventually(all_are_empty, before_its_ttl_ends)) << "a reader that is dropped";
  both.acquire({.ttl = max_ttl, .wait = long_enough}).release();
  EXPECT_TRUE(eventually(all_are_empty, before_its_ttl_ends)) << "a writer that is released";
}

// Readers that always come before the last one has gone would keep a writer out for ever.
TEST_F(with_quorum, a_waiting_writer_is_not_starved_by_readers_that_keep_coming_H63) {
  auto locks = make();
  std::atomic<bool> is_over{false};
  std::atomic<int> reads{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      auto mine = make();
      shared_mutex both{mine, "x"};
      while (!is_over) {
        auto held = both.acquire_shared({.ttl = ttl, .wait = long_enough});
        ++reads;
        let_pass(200ms);
        held.release();
      }
    });
  }
  ASSERT_TRUE(eventually([&] { return reads > 6; }, long_enough));
  for (int i = 0; i < 3; ++i) {
    const auto asked_at = boottime();
    const auto held = shared_mutex{locks, "x"}.acquire({.ttl = ttl, .wait = long_enough});
    EXPECT_LT(boottime() - asked_at, 15s);
    const int before = reads;
    let_pass(300ms);
    EXPECT_EQ(reads, before);
  }
  is_over = true;
  for (auto& one : readers) one.join();
}

TEST_F(with_quorum, a_crowd_of_processes_with_kills_keeps_writers_alone) {
  const scratch_directory scratch;
  const std::string seen = scratch.path() + "/seen";
  const auto start = [&](int i) {
    const bool writes = i % 4 == 0;
    return start_sharing(lab_.uri(), seen, writes ? "1000" : "3000", writes ? "writer" : "reader");
  };
  std::vector<child_process> all;
  for (int i = 0; i < 8; ++i) all.push_back(start(i));
  std::mt19937 dice{20261122};
  const auto until = boottime() + 20s;
  const auto at_last = until + 60s;
  int turn = 0;
  while (boottime() < until || (judge_sharing(seen, 8).writers <= 10 && boottime() < at_last)) {
    const int i = static_cast<int>(dice() % all.size());
    auto& victim = all[static_cast<std::size_t>(i)];
    const int pid = victim.pid();
    victim.signal(SIGKILL);
    victim.wait();
    sharing_witness{seen, part::some}.is_dead(pid);
    victim = start(i);
    // One server after the other is silent for a while.
    const int silent = turn++ % 3;
    lab_.pause(node(silent));
    let_pass(700ms);
    lab_.resume(node(silent));
    let_pass(300ms);
  }
  for (auto& one : all) one.signal(SIGKILL);
  for (auto& one : all) one.wait();
  const auto verdict = judge_sharing(seen, 8);
  EXPECT_EQ(verdict.intrusions, 0) << verdict.first_offence;
  EXPECT_GT(verdict.writers, 10);
  EXPECT_GT(verdict.most_inside, 1);
  RecordProperty("holds", verdict.holds);
  RecordProperty("writers", verdict.writers);
}

TEST_F(with_quorum, a_name_is_one_kind_there_too) {
  auto locks = make();
  auto held = shared_mutex{locks, "x"}.acquire_shared(brief);
  auto e = error_of([&] { (void)locks.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_kind);
  EXPECT_THAT(e->detail().why, HasSubstr("it is a shared lock"));
  held.release();
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x", brief); }), errc::wrong_kind);
  EXPECT_EQ(code_of([&] { (void)semaphore{locks, "x", 2}.try_acquire(brief); }), errc::wrong_kind);
  (void)locks.acquire("y", brief).release();
  EXPECT_EQ(code_of([&] { (void)shared_mutex{locks, "y"}.try_acquire_shared(brief); }), errc::wrong_kind);
}

TEST_F(with_quorum, a_key_of_another_program_is_no_lock_whoever_looks) {
  auto locks = make();
  auto other = locks.acquire("other", brief);
  for (const int i : {0, 1}) ask(i, {"RPUSH", "hf:{x}", "theirs"});
  const auto alone = single(2).acquire("x", brief);
  EXPECT_EQ(code_of([&] { (void)locks.inspect("x"); }), errc::wrong_kind);
  EXPECT_EQ(code_of([&] { locks.break_lock("x", fencing_token{7}); }), errc::wrong_kind);
  const auto all = locks.list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "other");
  EXPECT_TRUE(all[1].foreign) << "a client of one server alone has it";
  for (const int i : {0, 1}) ask(i, {"DEL", "hf:{x}"});
}

TEST_F(with_quorum, inspect_shows_the_readers_of_a_majority) {
  auto one = make();
  auto other = make();
  const auto first = shared_mutex{one, "x"}.acquire_shared({.ttl = ttl, .owner = "ann"});
  const auto second = shared_mutex{other, "x"}.acquire_shared({.ttl = ttl, .owner = "bob"});
  const auto info = one.inspect("x");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.kind, lock_kind::shared);
  EXPECT_THAT(info.holders, SizeIs(2));
  EXPECT_THAT(one.list(), SizeIs(1));
  ASSERT_THAT(info.nodes, SizeIs(3));
  // A majority is enough for each, and for the answer; the third may still have been asked for its votes.
  EXPECT_GE(info.nodes[0].holders + info.nodes[1].holders + info.nodes[2].holders, 4);
}

TEST_F(with_quorum, one_reader_is_broken_and_the_other_goes_on) {
  auto one = make();
  auto other = make();
  const auto first = shared_mutex{one, "x"}.acquire_shared(brief);
  const auto second = shared_mutex{other, "x"}.acquire_shared(brief);
  make().break_lock("x", first.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_TRUE(eventually([&] { return first.lost().stop_requested(); }, long_enough));
  let_pass(ttl);
  EXPECT_TRUE(second.valid());
}

TEST_F(with_quorum, a_writer_that_is_downgraded_lets_readers_in_and_no_writer_H63) {
  auto locks = make();
  auto other = make();
  shared_mutex both{locks, "x"};
  shared_mutex theirs{other, "x"};
  auto held = both.acquire(brief);
  const auto token = held.token();
  EXPECT_FALSE(theirs.try_acquire_shared(brief));
  auto waiting =
      std::async(std::launch::async, [&] { return theirs.acquire_shared({.ttl = ttl, .wait = long_enough}); });
  let_pass(300ms);
  both.downgrade(held);
  const auto reader = waiting.get();
  EXPECT_LT(token, reader.token());
  EXPECT_EQ(held.token(), token);
  EXPECT_FALSE(theirs.try_acquire(brief));
  both.downgrade(held);  // A reader already.
  let_pass(2 * ttl);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(with_quorum, a_writer_is_downgraded_by_a_majority) {
  lab_.kill(node(1));
  auto locks = make();
  auto held = shared_mutex{locks, "x"}.acquire(brief);
  shared_mutex{locks, "x"}.downgrade(held);
  EXPECT_TRUE((shared_mutex{locks, "x"}.try_acquire_shared(brief)));
}

// C5: the servers do it all the same, and then readers read beside who believes that it still writes.
TEST_F(with_quorum, where_a_majority_does_not_answer_a_downgrade_says_so_and_can_be_repeated) {
  auto locks = make(500ms);
  shared_mutex both{locks, "x"};
  have_the_script(make());
  auto held = both.acquire({.ttl = max_ttl});
  lab_.pause(node(1));
  lab_.pause(node(2));
  const auto e = error_of([&] { both.downgrade(held); });
  lab_.resume(node(1));
  lab_.resume(node(2));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), outcome::unknown) << e->what();
  EXPECT_THAT(e->detail().why, ContainsRegex("[23] of 3 servers did not do it"))
      << "two were enough for the lease, and the one that stays may have been the third";
  EXPECT_TRUE(eventually([&] { return !code_of([&] { both.downgrade(held); }); }, max_ttl));
  EXPECT_TRUE(both.try_acquire_shared(brief));
}

// It is a writer's still, and nothing of it has been done.
TEST_F(with_quorum, a_downgrade_that_all_servers_refuse_is_not_applied_C5) {
  auto locks = make();
  shared_mutex both{locks, "x"};
  auto held = both.acquire(brief);
  for (int i = 0; i < size(); ++i) ask(i, {"ACL", "SETUSER", "default", "-hset"});
  const auto code = code_of([&] { both.downgrade(held); });
  for (int i = 0; i < size(); ++i) ask(i, {"ACL", "SETUSER", "default", "+hset"});
  EXPECT_EQ(code, errc::no_quorum);
  EXPECT_EQ(code, outcome::not_applied);
  EXPECT_FALSE(both.try_acquire_shared(brief));
}

TEST_F(with_quorum, the_lease_of_a_writer_that_is_lost_cannot_be_downgraded) {
  auto locks = make();
  auto held = shared_mutex{locks, "x"}.acquire(brief);
  for (int i = 0; i < size(); ++i) ask(i, {"DEL", "hf:{x}", "hf:{x}:holders"});
  EXPECT_EQ(code_of([&] { shared_mutex{locks, "x"}.downgrade(held); }), errc::lease_gone);
}

// Whoever reads on would read beside the other writer.
TEST_F(with_quorum, the_lease_that_a_majority_does_not_find_to_downgrade_is_lost_at_once_C1_C4) {
  auto locks = make();
  auto others = make();
  shared_mutex both{locks, "x"};
  for (const auto mode : {renewal::automatic, renewal::none}) {
    auto held = both.acquire({.ttl = max_ttl, .wait = long_enough, .renew = mode});
    for (int i = 0; i < size(); ++i) ask(i, {"DEL", "hf:{x}", "hf:{x}:holders"});
    const auto theirs = shared_mutex{others, "x"}.try_acquire(brief);
    ASSERT_TRUE(theirs);
    EXPECT_EQ(code_of([&] { both.downgrade(held); }), errc::lease_gone);
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.lost_reason(), errc::lease_gone);
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 3s));
  }
}

TEST_F(with_quorum, the_lease_of_a_writer_that_was_broken_says_so_when_it_is_downgraded_C4) {
  auto locks = make();
  auto held = shared_mutex{locks, "x"}.acquire({.ttl = max_ttl});
  make().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_EQ(code_of([&] { shared_mutex{locks, "x"}.downgrade(held); }), errc::lease_broken);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_broken);
}

// As a writer's it would keep readers out of that server for as long as the reader reads.
TEST_F(with_quorum, what_a_downgraded_writer_lost_is_asked_for_again_as_a_reader_s_R18) {
  auto locks = make();
  auto held = shared_mutex{locks, "x"}.acquire(brief);
  shared_mutex{locks, "x"}.downgrade(held);
  have_all_votes(held);
  ask(0, {"DEL", "hf:{x}", "hf:{x}:holders"});
  ASSERT_TRUE(eventually([&] { return ask_number(node(0), {"ZCARD", "hf:{x}"}) == "1"; }, long_enough));
  EXPECT_THAT(grants(0), ContainsRegex("(^| )1\\|r\\|"));
}

// It has a token of its own there. As a writer's it would be renewed, and keep readers out, for as long as the reader
// reads.
TEST_F(with_quorum, a_vote_that_was_given_again_becomes_a_reader_s_R18) {
  auto locks = make();
  shared_mutex both{locks, "x"};
  auto held = both.acquire(brief);
  have_all_votes(held);
  ask(0, {"DEL", "hf:{x}", "hf:{x}:holders"});
  ASSERT_TRUE(eventually([&] { return ask_number(node(0), {"ZCARD", "hf:{x}"}) == "1"; }, long_enough));
  ASSERT_THAT(grants(0), ContainsRegex("(^| )[0-9]+\\|w\\|"));
  const auto reads = [&] {
    both.downgrade(held);
    return testing::Matches(ContainsRegex("(^| )1\\|r\\|"))(grants(0));
  };
  EXPECT_TRUE(eventually(reads, 5s)) << grants(0);
}

}  // namespace
}  // namespace holdfast::test
