// SPDX-License-Identifier: Apache-2.0
// The main job, as a newcomer would try it: one gets the lock, the others are told.
#include "integration/fixture.hpp"

#include <atomic>
#include <thread>

namespace holdfast::test {
namespace {

class acquire : public on_redis {};

// Origin 1's test: nine callers at the same time, one lock.
TEST_F(acquire, gives_the_lock_to_one_of_nine) {
  std::vector<client> clients;
  for (int i = 0; i < 9; ++i) clients.push_back(make_client());
  std::atomic<int> got{0};
  std::vector<std::optional<lease>> leases(9);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 9; ++i) {
    threads.emplace_back([&, i] {
      leases[i] = clients[i].try_acquire("20171228");
      if (leases[i]) ++got;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got, 1);
}

TEST_F(acquire, says_busy_by_an_empty_optional_and_no_error) {
  auto a = make_client();
  auto b = make_client();
  const auto held = a.try_acquire("x");
  ASSERT_TRUE(held);
  std::error_code ec = std::make_error_code(std::errc::io_error);
  EXPECT_FALSE(b.try_acquire("x", {}, ec));
  EXPECT_FALSE(ec);
}

TEST_F(acquire, two_names_do_not_exclude_each_other) {
  auto locks = make_client();
  const auto a = locks.try_acquire("a");
  const auto b = locks.try_acquire("b");
  EXPECT_TRUE(a && b);
}

// One client is one owner of many leases, not a recursive lock.
TEST_F(acquire, does_not_let_the_same_client_in_twice) {
  auto locks = make_client();
  const auto held = locks.try_acquire("x");
  EXPECT_FALSE(locks.try_acquire("x"));
}

TEST_F(acquire, frees_the_lock_at_release) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(exists("hf:{x}"));
  EXPECT_TRUE(locks.try_acquire("x"));
}

// C2: strictly, also at the speed of one process.
TEST_F(acquire, gives_tokens_that_only_grow) {
  auto locks = make_client();
  fencing_token last;
  for (int i = 0; i < 1000; ++i) {
    auto held = locks.acquire("x");
    ASSERT_GT(held.token(), last);
    last = held.token();
    held.release();
  }
}

// C2 and B13's cousin: Redisson's counter starts at 1 again after a loss; ours has the clock as its floor (H64).
TEST_F(acquire, gives_a_larger_token_after_total_loss_of_data) {
  auto locks = make_client();
  auto first = locks.acquire("x");
  const auto token = first.token();
  first.release();
  server_.lose_all_locks();
  EXPECT_GT(locks.acquire("x").token(), token);
}

TEST_F(acquire, grants_above_min_fence) {
  auto locks = make_client();
  auto first = locks.acquire("x");
  const fencing_token floor{first.token().value() + 5'000'000};
  first.release();
  const auto second = locks.acquire("x", {.min_fence = floor});
  EXPECT_GT(second.token(), floor);
}

// P16: a floor that is not bounded would stop the tokens for ever.
TEST_F(acquire, refuses_a_floor_of_more_than_a_year_ahead) {
  auto locks = make_client();
  const auto now = locks.acquire("y").token().value();
  const fencing_token floor{now + 400ull * 86'400 * 1'000'000};
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x", {.min_fence = floor}); }), errc::fence_too_far);
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x", {.min_fence = floor}); }), outcome::misconfigured);
}

TEST_F(acquire, waits_until_the_holder_releases) {
  auto a = make_client();
  auto b = make_client();
  auto held = a.acquire("x");
  std::optional<lease> got;
  std::thread waiter{[&] { got = b.acquire("x", {.wait = 10s}); }};
  EXPECT_TRUE(eventually([&] { return server_.info("connected_clients") >= 3; }));
  let_pass(100ms);
  EXPECT_FALSE(got);
  held.release();
  waiter.join();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->valid());
}

TEST_F(acquire, waits_no_longer_than_it_is_told) {
  auto a = make_client();
  auto b = make_client();
  const auto held = a.acquire("x");
  const auto began = boottime();
  const auto code = code_of([&] { (void)b.acquire("x", {.wait = in_vain}); });
  const auto took = boottime() - began;
  EXPECT_EQ(code, errc::timed_out);
  EXPECT_EQ(code, outcome::timed_out);
  EXPECT_GE(took, in_vain);
  EXPECT_LT(took, in_vain + slack);
}

TEST_F(acquire, with_a_wait_of_zero_tries_once) {
  auto a = make_client();
  const auto held = a.acquire("x");
  const auto began = boottime();
  EXPECT_EQ(code_of([&] { (void)a.acquire("x", {.wait = 0ms}); }), errc::timed_out);
  EXPECT_LT(boottime() - began, slack);
}

// The holder died: nobody tells the waiter, so it must come by itself at the expiry.
TEST_F(acquire, comes_soon_after_the_expiry_of_a_holder_that_is_gone) {
  server_("SET", "hf:{x}", "v1|00000000000000000000000000000000|1700000000000000|700|1700000000000000|dead", "PX",
          "700");
  auto locks = make_client();
  const auto began = boottime();
  const auto got = locks.acquire("x", {.wait = 5s});
  EXPECT_LT(boottime() - began, 700ms + slack);
  EXPECT_TRUE(got.valid());
}

TEST_F(acquire, names_the_owner_for_people) {
  auto locks = make_client();
  const auto held = locks.acquire("x", {.owner = "anna"});
  EXPECT_EQ(make_client().inspect("x").owner, "anna");
}

TEST_F(acquire, works_in_database_15_as_origin_1_does) {
  server_.declare_nothing_forgotten(15);
  client locks{uri(15), options()};
  const auto held = locks.acquire("x");
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(exists("hf:{x}"));
  auto other = server_.connect();
  other("SELECT", "15");
  EXPECT_EQ(other("EXISTS", "hf:{x}"), 1);
}

TEST_F(acquire, keeps_no_lock_without_expiry_at_any_time) {
  auto locks = make_client();
  const auto held = locks.acquire("x", {.ttl = 7s});
  EXPECT_GT(pttl("hf:{x}"), 0ms);
  EXPECT_LE(pttl("hf:{x}"), 7s);
  EXPECT_TRUE(server_.keys_without_expiry().empty());
}

TEST_F(acquire, synchronize_gives_the_bodys_result_and_releases) {
  auto locks = make_client();
  const int result = locks.synchronize("x", [&](lease& held) {
    EXPECT_TRUE(held.valid());
    EXPECT_TRUE(exists("hf:{x}"));
    return 42;
  });
  EXPECT_EQ(result, 42);
  EXPECT_FALSE(exists("hf:{x}"));
}

TEST_F(acquire, mutex_works_with_scoped_lock_and_unique_lock) {
  auto locks = make_client();
  mutex a{locks, "a"};
  mutex b{locks, "b"};
  {
    const std::scoped_lock both{a, b};
    EXPECT_TRUE(exists("hf:{a}") && exists("hf:{b}"));
    EXPECT_FALSE(make_client().try_acquire("a"));
  }
  EXPECT_FALSE(exists("hf:{a}") || exists("hf:{b}"));
  auto other = make_client();
  const auto held = other.acquire("a");
  std::unique_lock waiting{a, std::defer_lock};
  EXPECT_FALSE(waiting.try_lock());
  EXPECT_FALSE(waiting.try_lock_for(in_vain));
}

TEST_F(acquire, mutex_excludes_the_threads_of_one_object) {
  auto locks = make_client();
  mutex m{locks, "m"};
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const std::scoped_lock hold{m};
        counter = counter + 1;  // Unprotected but for the mutex; tsan watches.
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 100);
}

}  // namespace
}  // namespace holdfast::test
