// SPDX-License-Identifier: Apache-2.0
// Threads that wait behind one that hears nothing: when they give up, and as what (C5, P30).
#include "integration/hand_over_fixture.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

TEST_F(hand_over, ends_in_trouble_for_all_when_the_server_is_gone_P30) {
  client_options how = options();
  how.timeout = 300ms;
  auto locks = make_client(how);
  auto first = locks.acquire("x", {.ttl = 1s, .wait = 10s});
  server_.pause();
  std::vector<std::thread> all;
  const auto before = boottime();
  for (int i = 0; i < 6; ++i) {
    all.emplace_back([&, i] {
      acquire_options mine;
      if (i % 2) mine.wait = 400ms;
      EXPECT_TRUE(code_of([&] { (void)locks.acquire("x", mine); }));
    });
  }
  for (auto& t : all) t.join();
  EXPECT_LT(boottime() - before, 3s);
  server_.resume();
}

// The silence that the first one met is theirs as well: they have waited for the same answer.
TEST_F(hand_over, gives_up_on_a_silent_server_after_the_timeout_behind_others_too_P30) {
  client_options how = options();
  how.timeout = 4s;
  auto locks = make_client(how);
  locks.acquire("x").release();  // The connection stands.
  server_.pause();
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&] {
      const auto before = boottime();
      EXPECT_TRUE(code_of([&] { (void)locks.acquire("x"); }));
      EXPECT_LT(boottime() - before, 4s + slack);
    });
    let_pass(50ms);
  }
  for (auto& t : all) t.join();
  server_.resume();
}

// Who waits behind a thread that hears nothing must not take that for somebody's hold: the lock is free.
TEST_F(hand_over, calls_a_lock_behind_a_silent_server_not_busy_C5) {
  auto locks = make(16);
  locks.acquire("x").release();  // The connection stands.
  server_.pause();
  std::thread first{[&] { (void)code_of([&] { (void)locks.acquire("x", {.wait = 2s}); }); }};
  let_pass(20ms);
  const auto before = boottime();
  const auto code = code_of([&] { (void)locks.try_synchronize("x", [](lease&) {}, {.wait = 300ms}); });
  EXPECT_LT(boottime() - before, 300ms + slack);
  EXPECT_NE(code, std::error_code{}) << "it said that somebody else held it";
  EXPECT_NE(code, errc::timed_out);
  mutex facade{locks, "x"};
  EXPECT_TRUE(code_of([&] { (void)facade.try_lock_for(50ms); }));
  server_.resume();
  first.join();
}

TEST_F(hand_over, calls_a_lock_busy_of_which_the_thread_in_front_has_heard_so_C5) {
  auto other = make_client();
  auto held = other.acquire("x");
  auto locks = make(16);
  auto front = in_front(locks, {}, [](lease&) {});
  (void)locks.inspect("x");  // Over the same connection: that it is in line has been heard before this.
  server_.pause();
  const auto code = code_of([&] { EXPECT_FALSE(locks.try_synchronize("x", [](lease&) {}, {.wait = in_vain})); });
  EXPECT_EQ(code, std::error_code{}) << code.message();
  server_.resume();
  held.release();
  front.join();
}

}  // namespace
}  // namespace holdfast::test
