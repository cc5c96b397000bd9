// SPDX-License-Identifier: Apache-2.0
// Ten thousand waiters in one process, through holdfast/asio.hpp: all are served, in order, and none costs the others.
#include "integration/asio_fixture.hpp"
#include "integration/line_fixture.hpp"

#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

constexpr int crowd = scaled(10'000);

class crowd_of_waiters : public on_asio {
protected:
  static std::size_t threads() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator{"/proc/self/task"}) ++count;
    return count;
  }
};

// Each gives the lock back as soon as it has it. One lost wake-up would stop the line for a claim window, and each
// would show in the time.
TEST_F(crowd_of_waiters, on_one_lock_is_served_in_the_order_of_its_requests) {
  auto holder = make_client();
  auto held = std::optional{holder.acquire("x", {.ttl = 60s})};
  auto locks = make_client();
  std::vector<int> order;
  std::uint64_t last_token = held->token().value();
  int released = 0;
  for (int i = 0; i < crowd; ++i) {
    async_acquire(locks, "x", {}, bound([&, i](error_code ec, lease got) {
                    ASSERT_FALSE(ec) << ec.message();
                    order.push_back(i);
                    EXPECT_GT(got.token().value(), last_token);
                    last_token = got.token().value();
                    async_release(std::move(got), bound([&](release_outcome how) {
                                    EXPECT_EQ(how, release_outcome::released);
                                    ++released;
                                  }));
                  }));
  }
  ASSERT_TRUE(waits_for(crowd, 60s)) << waiting();
  // This one, a deputy, and for each of two clients a keeper and whoever calls back.
#ifdef __SANITIZE_THREAD__
  EXPECT_LE(threads(), 7u) << "and its own";
#else
  EXPECT_LE(threads(), 6u);
#endif
  held.reset();
  const auto from = boottime();
  run();
  const auto took = std::chrono::duration<double>{boottime() - from};
  RecordProperty("hand_offs_per_second", static_cast<int>(crowd / took.count()));
  ASSERT_EQ(order.size(), static_cast<std::size_t>(crowd));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(released, crowd);
  EXPECT_EQ(waiting(), 0);
}

// Who waits in two clients, which are two processes to the server, while something happens to all of them.
class thousand_waiters : public on_asio {
protected:
  static constexpr int count = scaled(1000);

  void line_up() {
    for (int i = 0; i < count; ++i) {
      async_acquire(i % 2 == 0 ? a_ : b_, "x", {}, bound([this](error_code ec, lease got) {
                      ASSERT_FALSE(ec) << ec.message();
                      EXPECT_EQ(++inside_, 1);
                      EXPECT_GT(got.token().value(), last_token_);
                      last_token_ = got.token().value();
                      asio::post(io, [this, held = std::move(got)]() mutable { give_back(std::move(held)); });
                    }));
    }
    ASSERT_TRUE(waits_for(count, 60s)) << waiting();
  }
  void give_back(lease held) {
    --inside_;
    async_release(std::move(held), bound([this](release_outcome how) {
                    EXPECT_EQ(how, release_outcome::released);
                    ++served_;
                  }));
  }

  client a_ = make_client();
  client b_ = make_client();
  int inside_ = 0;
  int served_ = 0;
  std::uint64_t last_token_ = 0;
};

TEST_F(thousand_waiters, are_served_after_their_holder_was_killed_B25) {
  waiting_process holder{uri(), worker_environment(), "1000"};
  holder.go();
  last_token_ = holder.acquired().number;
  line_up();
  holder.process().signal(SIGKILL);
  run();
  EXPECT_EQ(served_, count);
  EXPECT_EQ(waiting(), 0);
}

// Its data are gone, the line with them; tokens go on from the clock.
TEST_F(thousand_waiters, are_served_after_a_restart_of_the_server) {
  waiting_process holder{uri(), worker_environment(), "1000"};
  holder.go();
  last_token_ = holder.acquired().number;
  line_up();
  server_.kill();
  server_.restart_undoubted();
  run();
  EXPECT_EQ(served_, count);
  EXPECT_EQ(waiting(), 0);
}

TEST_F(crowd_of_waiters, on_free_locks_gets_them_all) {
  auto locks = make_client();
  std::vector<lease> all;
  for (int i = 0; i < crowd; ++i) {
    async_acquire(locks, "free:" + std::to_string(i), {.ttl = 60s}, bound([&](error_code ec, lease got) {
                    ASSERT_FALSE(ec) << ec.message();
                    all.push_back(std::move(got));
                  }));
  }
  run();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(crowd));
  for (const auto& one : all) EXPECT_TRUE(one.valid());
  int released = 0;
  for (auto& one : all) {
    async_release(std::move(one), bound([&](release_outcome how) { released += how == release_outcome::released; }));
  }
  run();
  EXPECT_EQ(released, crowd);
}

TEST_F(crowd_of_waiters, cancelled_together_leaves_the_line) {
  auto holder = make_client();
  auto held = holder.acquire("x", {.ttl = 60s});
  auto locks = make_client();
  std::vector<asio::cancellation_signal> signals(static_cast<std::size_t>(crowd));
  int cancelled = 0;
  for (auto& one : signals) {
    async_acquire(locks, "x", {}, asio::bind_cancellation_slot(one.slot(), bound([&](error_code ec, const lease&) {
                                                                 cancelled += is_cancelled(ec);
                                                               })));
  }
  ASSERT_TRUE(waits_for(crowd, 60s));
  for (auto& one : signals) one.emit(asio::cancellation_type::terminal);
  run();
  EXPECT_EQ(cancelled, crowd);
  EXPECT_TRUE(waits_for(0, 60s));
}

// What waiting costs: memory in this process, looks at the server, and no look of one for a hint to another.
TEST_F(crowd_of_waiters, costs_at_most_1024_bytes_each_and_few_looks_P8) {
  auto holder = make_client();
  auto held = holder.acquire("x", {.ttl = 60s});
  auto locks = make_client();
  EXPECT_FALSE(locks.try_acquire("x"));
  malloc_trim(0);
  const auto before = mallinfo2().uordblks;
  int ended = 0;
  for (int i = 0; i < crowd; ++i) {
    async_acquire(locks, "x", {}, bound([&](error_code ec, const lease&) { ended += is_cancelled(ec); }));
  }
  ASSERT_TRUE(waits_for(crowd, 60s));
  let_pass(500ms);  // The last answers.
  const auto each = (mallinfo2().uordblks - before) / static_cast<std::size_t>(crowd);
  RecordProperty("bytes_each", static_cast<int>(each));
#ifndef HOLDFAST_SANITIZED
  EXPECT_LE(each, 1024u);
#endif
  const auto asked = server_.scripts_run();
  let_pass(6s);
  EXPECT_LE(server_.scripts_run() - asked, 2 * (crowd / 256 + 1) + 10);
  locks = make_client();
  run();
  EXPECT_EQ(ended, crowd);
}

}  // namespace
}  // namespace holdfast::test
