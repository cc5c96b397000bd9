// SPDX-License-Identifier: Apache-2.0
// P29: user code runs here and nowhere else, so this thread must not end, hang or jump the queue because of it.
#include "client/callback_thread.hpp"

#include "net/clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr auto deadline = 10s;

class callbacks : public testing::Test {
protected:
  ~callbacks() override { thread->close(true); }

  const std::shared_ptr<callback_thread> thread = std::make_shared<callback_thread>();
};

// User code that keeps the thread busy for longer than it may.
void dawdle() {
  const auto until = net::boottime_now() + callback_thread::longest + 2ms;
  while (net::boottime_now() < until) std::this_thread::yield();
}

TEST_F(callbacks, run_in_the_order_in_which_they_were_posted) {
  std::vector<int> ran;
  std::vector<int> wanted;
  for (int i = 0; i < 1'000; ++i) {
    wanted.push_back(i);
    thread->post([&ran, i] { ran.push_back(i); });
  }
  thread->close(true);
  EXPECT_EQ(ran, wanted);
}

TEST_F(callbacks, run_on_one_thread_that_is_not_the_posting_one) {
  std::vector<std::thread::id> ran_on;
  for (int i = 0; i < 2; ++i) thread->post([&ran_on] { ran_on.push_back(std::this_thread::get_id()); });
  thread->close(true);
  ASSERT_EQ(ran_on.size(), 2U);
  EXPECT_EQ(ran_on[0], ran_on[1]);
  EXPECT_NE(ran_on[0], std::this_thread::get_id());
}

TEST_F(callbacks, made_ahead_are_run_in_the_order_in_which_they_were_posted) {
  std::vector<int> ran;
  callback_thread::made_ahead second{[&ran] { ran.push_back(2); }};
  callback_thread::made_ahead first{[&ran] { ran.push_back(1); }};
  thread->post(first);
  thread->post(second);
  thread->post([&ran] { ran.push_back(3); });
  thread->close(true);
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

// The last handle of a client, say, whose end has something to tell.
TEST_F(callbacks, what_ends_with_one_may_post_another) {
  std::promise<void> told;
  struct last_words {
    ~last_words() {
      to->post([this_one = is_told] { this_one->set_value(); });
    }
    std::shared_ptr<callback_thread> to;
    std::promise<void>* is_told;
  };
  thread->post([held = std::shared_ptr<last_words>{new last_words{thread, &told}}] {});
  EXPECT_EQ(told.get_future().wait_for(deadline), std::future_status::ready);
}

// Who posts may have a mutex that the end of what it holds would need.
TEST_F(callbacks, made_ahead_and_posted_after_a_close_are_dropped_and_stay_with_their_poster) {
  thread->close(true);
  const auto held = std::make_shared<int>(1);
  bool ran = false;
  {
    callback_thread::made_ahead late{[&ran, held] { ran = true; }};
    thread->post(late);
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(callbacks, outlive_one_that_throws) {
  std::vector<int> ran;
  thread->post([] { throw std::runtime_error{"a user's"}; });
  thread->post([] { throw 42; });
  thread->post([&ran] { ran.push_back(3); });
  thread->close(true);
  EXPECT_THAT(ran, ElementsAre(3));
}

// They all wait until just before the close.
TEST_F(callbacks, posted_before_a_close_are_run) {
  std::vector<int> ran;
  std::promise<void> may_go_on;
  auto signal = may_go_on.get_future();
  thread->post([&] { signal.wait_for(deadline); });
  for (int i = 0; i < 3; ++i) thread->post([&ran, i] { ran.push_back(i); });
  may_go_on.set_value();
  thread->close(true);
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
}

TEST_F(callbacks, posted_after_a_close_are_dropped) {
  thread->close(true);
  const auto held = std::make_shared<int>(1);
  bool ran = false;
  thread->post([&ran, held] { ran = true; });
  thread->close(true);
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1) << "what it holds is not kept either";
}

// The last handle of a client may go away inside a callback.
TEST_F(callbacks, may_close_their_own_thread) {
  std::promise<void> closed;
  auto is_closed = closed.get_future();
  thread->post([&] {
    thread->close(true);
    closed.set_value();
  });
  EXPECT_EQ(is_closed.wait_for(deadline), std::future_status::ready);
}

TEST_F(callbacks, posted_before_their_own_thread_is_closed_are_run_too) {
  std::promise<void> posted;
  std::promise<void> ran;
  auto is_posted = posted.get_future();
  auto has_run = ran.get_future();
  thread->post([&] {
    is_posted.wait_for(deadline);
    thread->close(true);
  });
  thread->post([&] { ran.set_value(); });
  posted.set_value();
  EXPECT_EQ(has_run.wait_for(deadline), std::future_status::ready);
}

TEST_F(callbacks, may_post) {
  std::promise<void> ran;
  auto has_run = ran.get_future();
  thread->post([&] { thread->post([&] { ran.set_value(); }); });
  EXPECT_EQ(has_run.wait_for(deadline), std::future_status::ready);
}

TEST_F(callbacks, that_are_slow_are_told_at_most_once_a_second) {
  std::vector<duration> told;
  thread->on_slow([&told](duration took) { told.push_back(took); });
  const auto from = net::boottime_now();
  for (int i = 0; i < 5; ++i) thread->post(dawdle);
  thread->close(true);
  const auto seconds = (net::boottime_now() - from) / 1s;
  ASSERT_GE(told.size(), 1U);
  EXPECT_LE(told.size(), static_cast<std::size_t>(seconds) + 1);
  EXPECT_GT(told[0], callback_thread::longest);
}

// It is the user's log sink in the end.
TEST_F(callbacks, outlive_a_teller_that_throws) {
  bool ran = false;
  thread->on_slow([](duration) { throw std::runtime_error{"the log sink's"}; });
  thread->post(dawdle);
  thread->post([&ran] { ran = true; });
  thread->close(true);
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
