// SPDX-License-Identifier: Apache-2.0
// Readers together, writers alone, in the order of the line (H63).
#include "integration/fixture.hpp"
#include "support/child_process.hpp"
#include "support/scratch_directory.hpp"
#include "support/sharing_witness.hpp"

#include <signal.h>

#include <cstdlib>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

namespace holdfast::test {
namespace {

class a_shared_mutex : public on_redis {
protected:
  bool waits(int count) {
    return eventually([&] { return server_("ZCARD", "hf:{x}:line") == count; });
  }

  client locks_ = make_client();
  holdfast::shared_mutex rw_{locks_, "x"};
};

TEST_F(a_shared_mutex, lets_readers_in_together_and_a_writer_alone_C1) {
  auto one = rw_.acquire_shared();
  auto two = rw_.acquire_shared();
  EXPECT_FALSE(rw_.try_acquire());
  one.release();
  EXPECT_FALSE(rw_.try_acquire());
  two.release();
  auto writer = rw_.try_acquire();
  ASSERT_TRUE(writer);
  EXPECT_FALSE(rw_.try_acquire_shared());
  EXPECT_FALSE(rw_.try_acquire());
}

TEST_F(a_shared_mutex, does_not_let_later_readers_overtake_a_writer_H63) {
  auto reader = rw_.acquire_shared();
  std::atomic<bool> is_written{false};
  std::thread writer{[&] {
    auto ours = make_client();
    auto held = holdfast::shared_mutex{ours, "x"}.acquire();
    is_written = true;
    held.release();
  }};
  ASSERT_TRUE(waits(1));
  EXPECT_FALSE(rw_.try_acquire_shared());
  std::thread late{[&] {
    auto ours = make_client();
    auto held = holdfast::shared_mutex{ours, "x"}.acquire_shared();
    EXPECT_TRUE(is_written);
  }};
  ASSERT_TRUE(waits(2));
  reader.release();
  writer.join();
  late.join();
}

TEST_F(a_shared_mutex, lets_the_readers_behind_a_writer_enter_together) {
  auto writer = rw_.acquire();
  std::atomic<int> inside{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 5; ++i) {
    readers.emplace_back([&] {
      auto ours = make_client();
      auto held = holdfast::shared_mutex{ours, "x"}.acquire_shared();
      ++inside;
      EXPECT_TRUE(eventually([&] { return inside == 5; }, 3s));
    });
  }
  ASSERT_TRUE(waits(5));
  writer.release();
  for (auto& r : readers) r.join();
}

TEST_F(a_shared_mutex, downgrades_in_one_step_H63) {
  auto held = rw_.acquire();
  const auto token = held.token();
  std::atomic<bool> writer_is_in{false};
  std::thread writer{[&] {
    auto ours = make_client();
    auto mine = holdfast::shared_mutex{ours, "x"}.acquire();
    writer_is_in = true;
  }};
  ASSERT_TRUE(waits(1));
  rw_.downgrade(held);
  EXPECT_EQ(held.token(), token);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(writer_is_in);
  EXPECT_FALSE(rw_.try_acquire_shared()) << "a writer waits";
  rw_.downgrade(held);  // A reader already.
  held.release();
  writer.join();
  EXPECT_TRUE(rw_.try_acquire_shared());
}

TEST_F(a_shared_mutex, says_that_a_lost_lease_cannot_be_downgraded) {
  auto held = rw_.acquire();
  server_("DEL", "hf:{x}");
  EXPECT_EQ(code_of([&] { rw_.downgrade(held); }), errc::lease_gone);
  lease empty;
  EXPECT_EQ(code_of([&] { rw_.downgrade(empty); }), errc::empty_handle);
}

// Another writes by then. Whoever reads on would read beside it, so the lease ends here and now, also when nothing
// renews it.
TEST_F(a_shared_mutex, loses_the_lease_that_its_downgrade_does_not_find_C1_C4) {
  for (const auto mode : {renewal::automatic, renewal::none}) {
    auto held = rw_.acquire({.ttl = 60s, .renew = mode});
    server_("DEL", "hf:{x}", "hf:{x}:holders");
    auto others = make_client();
    const auto theirs = holdfast::shared_mutex{others, "x"}.try_acquire();
    ASSERT_TRUE(theirs);
    EXPECT_EQ(code_of([&] { rw_.downgrade(held); }), errc::lease_gone);
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.lost_reason(), errc::lease_gone);
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 3s));
  }
}

TEST_F(a_shared_mutex, says_that_what_it_cannot_downgrade_was_broken_C4) {
  auto held = rw_.acquire({.ttl = 60s});
  make_client().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_EQ(code_of([&] { rw_.downgrade(held); }), errc::lease_broken);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_broken);
}

// The keeper has no connection yet, and gets none before the call ends.
TEST_F(a_shared_mutex, does_not_wait_longer_than_its_timeout_to_lose_a_lease_and_loses_it_C4) {
  auto locks = make_client(1s);
  auto held = holdfast::shared_mutex{locks, "x"}.acquire({.ttl = 60s, .renew = renewal::none});
  server_("DEL", "hf:{x}", "hf:{x}:holders");
  server_("CONFIG", "SET", "maxclients", "1");
  const auto from = boottime();
  EXPECT_EQ(code_of([&] { rw_.downgrade(held); }), errc::lease_gone);
  EXPECT_LT(boottime() - from, 1s + slack);
  server_("CONFIG", "SET", "maxclients", "1000");
  EXPECT_TRUE(eventually([&] { return !held.valid(); }));
  EXPECT_EQ(held.lost_reason(), errc::lease_gone);
}

TEST_F(a_shared_mutex, downgrades_where_the_lease_is_by_whichever_client_H63) {
  auto held = rw_.acquire();
  auto another = make_client();
  holdfast::shared_mutex{another, "y"}.downgrade(held);
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(rw_.try_acquire_shared());
  const redis_server elsewhere;
  client theirs{elsewhere.unix_uri()};
  auto far = holdfast::shared_mutex{theirs, "x"}.acquire();
  rw_.downgrade(far);
  EXPECT_TRUE(far.valid());
  EXPECT_TRUE((holdfast::shared_mutex{theirs, "x"}.try_acquire_shared()));
}

// B6, B7: a reader's lease is its own.
TEST_F(a_shared_mutex, forgets_a_crashed_reader_while_others_renew_B6_B7) {
  auto kept = rw_.acquire_shared({.ttl = 1500ms});
  auto crashed = rw_.acquire_shared({.ttl = 1500ms, .renew = renewal::none});
  let_pass(4s);
  EXPECT_TRUE(kept.valid());
  EXPECT_FALSE(crashed.valid());
  EXPECT_EQ(locks_.inspect("x").holders.size(), 1u);
  kept.release();
  EXPECT_TRUE(rw_.try_acquire());
}

TEST_F(a_shared_mutex, is_what_std_asks_for) {
  {
    const std::unique_lock writer{rw_};
    EXPECT_FALSE(rw_.try_lock_shared_for(in_vain));
  }
  {
    const std::shared_lock reader{rw_};
    std::thread other{[&] {
      const std::shared_lock also{rw_, 1s};
      EXPECT_TRUE(also.owns_lock());
      EXPECT_FALSE(rw_.try_lock_for(in_vain));
    }};
    other.join();
  }
  rw_.lock();
  rw_.unlock_and_lock_shared();
  std::thread other{[&] {
    EXPECT_TRUE(rw_.try_lock_shared());
    rw_.unlock_shared();
    EXPECT_FALSE(rw_.try_lock());
  }};
  other.join();
  rw_.unlock_shared();
  EXPECT_TRUE(rw_.try_lock());
  rw_.unlock();
}

// By the same thread twice: the second lock takes the first one's place, and nothing of that is renewed.
TEST_F(a_shared_mutex, that_is_read_twice_by_one_thread_is_free_after_one_unlock_B8) {
  shared_mutex brief{locks_, "y", {.ttl = 900ms}};
  brief.lock_shared();
  brief.lock_shared();
  brief.unlock_shared();
  ASSERT_TRUE(eventually([&] { return !exists("hf:{y}"); }));
  let_pass(20ms);
  const auto before = server_.info("total_commands_processed");
  let_pass(700ms);  // Two renewals of a lease that is held.
  EXPECT_LE(server_.info("total_commands_processed") - before, 1);
  brief.unlock_shared();
}

// The 7.
TEST_F(a_shared_mutex, of_thirty_processes_with_kills_keeps_writers_alone_and_in_their_turn) {
  const scratch_directory scratch;
  const std::string seen = scratch.path() + "/seen";
  constexpr auto ttl = 2000ms;
  const auto start = [&](int i) {
    return child_process{{HOLDFAST_WORKER, uri(), "share", "x", "600s", seen, i % 5 == 0 ? "1000" : "3000",
                          std::to_string(ttl.count()), i % 5 == 0 ? "writer" : "reader"},
                         {.environment = worker_environment()}};
  };
  std::vector<child_process> all;
  for (int i = 0; i < 30; ++i) all.push_back(start(i));
  EXPECT_TRUE(eventually([&] { return server_("ZCARD", "hf:{x}:line").number >= 10; }, 60s));

  // Under a sanitizer thirty processes on two cores take their time for it.
  constexpr on_the_way most = scaled(2000) == 2000 ? on_the_way{1500ms, 250ms} : on_the_way{3s, 3s};
  const auto judged = [&] { return judge_sharing(seen, 30, most); };

  std::mt19937 dice{20251121};
  // The minute is for one login; what the others have of their own is seen sooner.
  const bool is_first_login = std::getenv("HOLDFAST_TEST_LOGIN") == nullptr;
  const auto until = boottime() + std::chrono::milliseconds{scaled(is_first_login ? 60'000 : 15'000)};
  const auto at_last = until + 60s;  // A machine that was slow so far gets more time for the kills to matter.
  while (boottime() < until || (judged().writers <= 10 && boottime() < at_last)) {
    const auto i = static_cast<int>(dice() % all.size());
    auto& victim = all[static_cast<std::size_t>(i)];
    const int pid = victim.pid();
    victim.signal(SIGKILL);
    victim.wait();
    sharing_witness{seen, part::some}.is_dead(pid);
    victim = start(i);
    let_pass(500ms);
  }
  for (auto& one : all) one.signal(SIGKILL);
  for (auto& one : all) one.wait();
  const auto verdict = judged();
  EXPECT_EQ(verdict.intrusions, 0) << verdict.first_offence;
  EXPECT_EQ(verdict.overtakings, 0) << verdict.first_offence;
  EXPECT_GT(verdict.writers, 10);
  EXPECT_GT(verdict.most_inside, 1);  // How many more depends on how busy the machine is.
  RecordProperty("holds", verdict.holds);
  RecordProperty("writers", verdict.writers);
}

}  // namespace
}  // namespace holdfast::test
