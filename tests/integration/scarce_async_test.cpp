// SPDX-License-Identifier: Apache-2.0
// An operation of holdfast/asio.hpp that gets no memory to begin: who is thrown something has none under way.
#include "integration/asio_fixture.hpp"
#include "integration/scarce_memory.hpp"

#include <holdfast/start.hpp>

#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <new>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

class scarce_async : public on_asio {};

// With memory for i allocations of this thread: none at all, one, two, until it needs no more.
TEST_F(scarce_async, memory_for_an_acquire_throws_or_completes_and_never_both) {
  auto holder = make_client();
  const auto held = holder.acquire("x", {.ttl = 60s});
  auto locks = make_client();
  const auto works = [&] {
    std::error_code ec;
    return locks.try_acquire("y", {}, ec).has_value();
  };
  int failures = 0;
  for (bool is_enough = false; !is_enough; ++failures) {
    ASSERT_LT(failures, 5000) << "it never has enough";
    // A failure may have cost the connection, with the last try under way: what that was granted is there until a
    // clean-up finds it (P10).
    ASSERT_TRUE(eventually(works, 15s));
    std::stop_source stop;
    const acquire_options how{.wait = 200ms, .cancel = stop.get_token()};
    int ends = 0;
    auto handler = bound([&](error_code ec, const lease&) {
      EXPECT_TRUE(ec);
      ++ends;
    });
    bool is_thrown = false;
    allocations_left = failures;
    try {
      async_acquire(locks, "x", how, std::move(handler));
      is_enough = allocations_left > 0;
    } catch (const std::bad_alloc&) {
      is_thrown = true;
    }
    allocations_left = -1;
    stop.request_stop();
    io.restart();
    io.run_for(20s);
    ASSERT_TRUE(io.stopped()) << "begun, and never over, with " << failures << " allocations";
    EXPECT_EQ(ends, is_thrown ? 0 : 1) << failures << " allocations";
  }
  EXPECT_GT(failures, 10) << "or this tests nothing";
}

// What is left of one that was thrown something would be told of the lease's end.
TEST_F(scarce_async, memory_for_a_renewal_throws_or_completes_and_never_both) {
  auto locks = make_client();
  int failures = 0;
  for (bool is_enough = false; !is_enough; ++failures) {
    ASSERT_LT(failures, 5000) << "it never has enough";
    auto held = locks.acquire("x", {.wait = 15s});
    int ends = 0;
    auto handler = bound([&](error_code) { ++ends; });
    bool is_thrown = false;
    allocations_left = failures;
    try {
      async_renew(held, std::move(handler));
      is_enough = allocations_left > 0;
    } catch (const std::bad_alloc&) {
      is_thrown = true;
    }
    allocations_left = -1;
    (void)held.release();
    io.restart();
    io.run_for(20s);
    ASSERT_TRUE(io.stopped()) << "begun, and never over, with " << failures << " allocations";
    // It posts what it tells, if at all, before another call of that client is over.
    (void)locks.try_acquire("y");
    io.restart();
    io.poll();
    EXPECT_EQ(ends, is_thrown ? 0 : 1) << failures << " allocations";
  }
  EXPECT_GT(failures, 3) << "or this tests nothing";
}

// The usual handler keeps the lease that it is about. Where the end is heard of the keeper's mutex is held, for which a
// handler that ended there would wait to give the lease back, and all of the client behind it.
TEST_F(scarce_async, memory_for_the_end_of_a_renewal_is_not_needed_C4) {
  auto locks = make_client();
  auto held = std::make_shared<lease>(locks.acquire("x", {.renew = renewal::none}));
  const detail::lease_reference renewed{*held};
  server_.pause();
  std::promise<std::error_code> told;
  auto end = told.get_future();
  const auto renewal =
      detail::start_renew(renewed, [held = std::move(held), &told](std::error_code ec) { told.set_value(ec); });
  std::atomic<bool> is_over{false};
  std::thread by{[&] {
    allocations_left = 0;
    renewal.cancel();
    allocations_left = -1;
    is_over = true;
  }};
  if (!eventually([&] { return is_over.load(); }, 20s)) {
    ADD_FAILURE() << "the lease ends under the keeper's mutex, and waits for it";
    std::abort();  // Nothing of this client can end any more.
  }
  by.join();
  ASSERT_EQ(end.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(is_cancelled(end.get()));
  server_.resume();
  EXPECT_TRUE(eventually([&] { return locks.try_acquire("x").has_value(); }, 15s)) << "it was given back";
}

}  // namespace
}  // namespace holdfast::test
