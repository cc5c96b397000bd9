// SPDX-License-Identifier: Apache-2.0
// holdfast/asio.hpp with every kind of completion token, and every outcome.
#include "integration/asio_fixture.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

class asynchronous : public on_asio {};

// ---- Every kind of token ----

TEST_F(asynchronous, callback_gets_the_lease_in_its_executor) {
  auto locks = make_client();
  std::optional<lease> got;
  async_acquire(locks, "x", {}, bound([&](error_code ec, lease l) {
                  EXPECT_FALSE(ec) << ec.message();
                  EXPECT_TRUE(io.get_executor().running_in_this_thread());
                  got = std::move(l);
                }));
  EXPECT_FALSE(got) << "called in place";
  run();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->valid());
  EXPECT_TRUE(got->token());
  EXPECT_EQ(got->name(), "x");
  EXPECT_FALSE(make_client().try_acquire("x"));
}

TEST_F(asynchronous, callback_without_an_executor_is_called_in_the_system_executor) {
  auto locks = make_client();
  std::promise<bool> done;
  async_acquire(locks, "x", {}, [&](error_code ec, const lease& l) { done.set_value(!ec && l.valid()); });
  EXPECT_TRUE(done.get_future().get());
}

TEST_F(asynchronous, callback_runs_in_its_strand_and_in_a_pool) {
  auto locks = make_client();
  asio::thread_pool pool{2};
  auto strand = asio::make_strand(pool);
  std::atomic<int> right = 0;
  for (int i = 0; i < 20; ++i) {
    async_acquire(locks, "x" + std::to_string(i), {}, asio::bind_executor(strand, [&](error_code ec, const lease&) {
                    if (!ec && strand.running_in_this_thread()) ++right;
                  }));
  }
  pool.join();
  EXPECT_EQ(right, 20);
}

TEST_F(asynchronous, future_gives_the_lease_or_throws) {
  auto locks = make_client();
  auto held = async_acquire(locks, "x", {}, asio::use_future).get();
  EXPECT_TRUE(held.valid());
  auto second = async_acquire(locks, "x", {.wait = in_vain}, asio::bind_executor(io, asio::use_future));
  run();
  try {
    second.get();
    FAIL() << "two holders";
  } catch (const boost::system::system_error& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
    EXPECT_EQ(e.code(), outcome::timed_out);
  }
  EXPECT_EQ(async_release(std::move(held), asio::use_future).get(), release_outcome::released);
  EXPECT_TRUE(locks.try_acquire("x"));
}

TEST_F(asynchronous, deferred_operation_begins_when_it_is_called) {
  auto locks = make_client();
  auto operation = async_acquire(locks, "x", {}, asio::deferred);
  EXPECT_TRUE(make_client().try_acquire("x"));
  auto held = std::move(operation)(asio::use_future).get();
  auto giving_back = async_release(std::move(held), asio::deferred);
  EXPECT_FALSE(make_client().try_acquire("x"));
  EXPECT_EQ(std::move(giving_back)(asio::use_future).get(), release_outcome::released);
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT
TEST_F(asynchronous, coroutine_gets_the_lease_or_throws) {
  auto locks = make_client();
  bool is_through = false;
  const auto body = [&]() -> asio::awaitable<void> {
    auto one = co_await async_acquire(locks, "x", {}, asio::use_awaitable);
    EXPECT_TRUE(one.valid());
    error_code ec;
    try {
      auto two = co_await async_acquire(locks, "x", {.ttl = 1s, .wait = in_vain, .owner = "two"}, asio::use_awaitable);
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    }
    EXPECT_EQ(ec, outcome::timed_out);
    EXPECT_EQ(co_await async_release(std::move(one), asio::use_awaitable), release_outcome::released);
    const acquire_options named{.ttl = 1s, .wait = 5s, .owner = std::string(100, 'o')};
    auto three = co_await async_acquire(locks, "x", named, asio::use_awaitable);
    EXPECT_EQ(three.name(), "x");
    is_through = true;
  };
  asio::co_spawn(io, body, asio::detached);
  run();
  EXPECT_TRUE(is_through);
}
#endif

// ---- A token with a name ----

class named_token : public on_asio {
protected:
  // Begins two operations with one handler, which owns something, and ends what they acquired.
  template <class Begin>
  void serves_twice(const Begin& begin) {
    int calls = 0;
    auto count = std::make_shared<int*>(&calls);  // Not const, or a move would copy it.
    auto handler = bound([count](error_code ec, const lease& got) {
      EXPECT_FALSE(ec) << ec.message();
      EXPECT_TRUE(got);
      ASSERT_TRUE(count) << "it was moved from";
      ++**count;
    });
    for (int i = 1; i <= 2; ++i) {
      begin(handler);
      run();
      EXPECT_EQ(calls, i);
    }
    EXPECT_EQ(count.use_count(), 2) << "what was copied has ended, and the handler has its own";
  }
  client locks_ = make_client();
};

TEST_F(named_token, is_copied_and_not_moved_from) {
  semaphore three{locks_, "s", 3};
  shared_mutex rw{locks_, "rw"};
  const acquire_options named{.wait = 20s};
  serves_twice([&](auto& handler) { async_acquire(locks_, "x", {.wait = 20s}, handler); });
  serves_twice([&](auto& handler) { async_acquire(locks_, "x", named, handler); });
  serves_twice([&](auto& handler) { async_acquire(three, {.wait = 20s}, handler); });
  serves_twice([&](auto& handler) { async_acquire(three, named, handler); });
  serves_twice([&](auto& handler) { async_acquire(rw, {.wait = 20s}, handler); });
  serves_twice([&](auto& handler) { async_acquire(rw, named, handler); });
  serves_twice([&](auto& handler) { async_acquire_shared(rw, {.wait = 20s}, handler); });
  serves_twice([&](auto& handler) { async_acquire_shared(rw, named, handler); });
}

TEST_F(named_token, renews_downgrades_and_releases_as_a_copy_too) {
  shared_mutex rw{locks_, "rw"};
  const lease held = rw.acquire();
  auto ends = std::make_shared<int>(0);
  auto told = bound([ends](error_code) { ++*ends; });
  async_renew(held, told);
  async_renew(held, told);
  async_downgrade(held, told);
  async_downgrade(held, told);
  run();
  EXPECT_EQ(*ends, 4);
  auto let_go = bound([ends](release_outcome) { ++*ends; });
  for (int i = 0; i < 2; ++i) async_release(rw.acquire_shared(), let_go);
  run();
  EXPECT_EQ(*ends, 6);
}

TEST_F(named_token, may_be_an_adapter_and_not_const) {
  const lease held = locks_.acquire("x");
  int sum = 0;
  auto appended = asio::append(bound([&](error_code ec, int what) { sum += ec ? 0 : what; }), 1);
  auto prepended = asio::prepend(bound([&](int what, error_code ec) { sum += ec ? 0 : what; }), 10);
  for (int i = 0; i < 2; ++i) {
    async_renew(held, appended);
    async_renew(held, prepended);
  }
  run();
  EXPECT_EQ(sum, 22);
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT
TEST_F(named_token, may_be_an_adapter_in_a_coroutine) {
  int served = 0;
  const auto body = [&]() -> asio::awaitable<void> {
    auto token = asio::as_tuple(asio::use_awaitable);
    for (int i = 0; i < 2; ++i) {
      auto [ec, got] = co_await async_acquire(locks_, "x", {.wait = 20s}, token);
      served += !ec && got.valid();
    }
  };
  asio::co_spawn(io, body, asio::detached);
  run();
  EXPECT_EQ(served, 2);
}
#endif

// ---- Outcomes ----

TEST_F(asynchronous, acquire_without_a_wait_is_timed_out_at_once_when_it_is_held) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  std::error_code blocking;
  EXPECT_FALSE(make_client().acquire("x", {.wait = 0ms}, blocking));
  EXPECT_EQ(end_of(locks, {.wait = 0ms}), blocking);
  EXPECT_EQ(blocking, errc::timed_out);
}

TEST_F(asynchronous, acquire_with_a_bad_name_or_option_completes_and_is_not_thrown) {
  auto locks = make_client();
  EXPECT_EQ(end_of(locks, {.ttl = 1ms}), errc::invalid_option);
  error_code ec;
  async_acquire(locks, "", {}, bound([&](error_code e, const lease&) { ec = e; }));
  EXPECT_FALSE(ec);
  run();
  EXPECT_EQ(ec, errc::invalid_name);
}

// What the caller did wrong comes first, as with the blocking call.
TEST_F(asynchronous, acquire_that_is_stopped_before_it_begins_says_so_unless_it_is_wrong) {
  auto locks = make_client();
  std::stop_source stop;
  stop.request_stop();
  const auto end = [&](const acquire_options& how) {
    error_code ec;
    async_acquire(locks, "x", how, bound([&](error_code e, const lease&) { ec = e; }));
    run();
    return ec;
  };
  EXPECT_EQ(end({.cancel = stop.get_token()}), errc::cancelled);
  EXPECT_EQ(end({.ttl = 1ms, .cancel = stop.get_token()}), errc::invalid_option);
}

TEST_F(asynchronous, acquire_that_is_stopped_before_it_begins_is_told_to_the_observer_as_a_blocking_one_is) {
  const auto seen = std::make_shared<cancelled_watch>();
  client_options how;
  how.observe = seen;
  auto locks = make_client(how);
  std::stop_source stop;
  stop.request_stop();
  const acquire_options options{.cancel = stop.get_token()};
  EXPECT_EQ(code_of([&] { (void)locks.acquire("x", options); }), errc::cancelled);
  async_acquire(locks, "x", options, bound([](error_code, const lease&) {}));
  run();
  EXPECT_TRUE(eventually([&] { return seen->cancelled == 2; }));
}

TEST_F(asynchronous, acquire_from_an_unreachable_server_says_so) {
  client locks{"redis+unix:///nowhere/at/all", {.timeout = 200ms}};
  EXPECT_EQ(end_of(locks, {}), outcome::unreachable);
}

TEST_F(asynchronous, release_of_an_empty_lease_is_thrown_at_once) {
  EXPECT_EQ(code_of([&] { (void)async_release(lease{}, asio::deferred); }), errc::empty_handle);
}

TEST_F(asynchronous, release_of_a_lost_lease_says_so) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  server_("DEL", "hf:{x}");
  EXPECT_EQ(async_release(std::move(held), asio::use_future).get(), release_outcome::already_lost);
}

TEST_F(asynchronous, lease_is_renewed_like_any_other) {
  auto locks = make_client();
  auto held = async_acquire(locks, "x", {.ttl = 1500ms}, asio::use_future).get();
  let_pass(4s);
  EXPECT_TRUE(held.valid());
}

// Who leads for both leaves while only the asynchronous one waits: its message must be read all the same.
TEST_F(asynchronous, waits_on_when_the_blocking_caller_that_led_leaves_P31) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto waiting = async_acquire(locks, "x", {.wait = 60s}, asio::use_future);
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  for (int i = 0; i < 3; ++i) locks.acquire("y").release();
  const auto from = boottime();
  in_the_way.release();
  EXPECT_TRUE(waiting.get().valid());
  EXPECT_LT(boottime() - from, slack) << "by its look, and not by the message";
}

TEST_F(asynchronous, and_blocking_calls_of_one_client_do_not_disturb_each_other) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  std::vector<std::future<lease>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(async_acquire(locks, "x", {.wait = 20s}, asio::use_future));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(locks.acquire("other").release(), release_outcome::released);
  std::jthread blocking{[&] { EXPECT_EQ(locks.acquire("x", {.wait = 20s}).release(), release_outcome::released); }};
  held.release();
  for (auto& one : waiting) one.get().release();
}

}  // namespace
}  // namespace holdfast::test
