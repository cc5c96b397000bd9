// SPDX-License-Identifier: Apache-2.0
// A release, or downgrade, of holdfast/asio.hpp that nobody waits for any more (B40): cancelled at every stage, or
// without the context that its handler runs in. Elsewhere a cancelled release forgot the token before the server had
// done it, and then nobody could give the lock back.
//
// Every lease has a ttl of a minute here: a lock that is free at once was released.
#include "integration/asio_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::test {
namespace {

class asynchronous_release : public on_asio {
protected:
  // A handler that the slot belongs to: keeps `end`, and counts.
  template <class End>
  auto told(std::optional<End>& end) {
    return asio::bind_cancellation_slot(cancel_.slot(), bound([this, &end, own = witness_](End how) {
                                          ++calls_;
                                          end = how;
                                        }));
  }
  void cancel() {
    for (const auto type : {asio::cancellation_type::partial, asio::cancellation_type::total,
                            asio::cancellation_type::terminal, asio::cancellation_type::all}) {
      cancel_.emit(type);
    }
  }
  void expect_told_once() const {
    EXPECT_EQ(calls_, 1);
    EXPECT_EQ(witness_.use_count(), 1) << "a handler is left";
  }
  bool has_sent_more_than(std::size_t before) {
    return eventually([&] { return proxy_.bytes(direction::to_server) > before; });
  }
  std::size_t sent() const { return proxy_.bytes(direction::to_server); }
  bool is_free() {
    return eventually([&] { return !exists("hf:{x}"); }, 20s) && make_client().try_acquire("x").has_value();
  }

  // Before the client: what it has under way ends with it.
  fault_proxy proxy_{server_.socket()};
  asio::cancellation_signal cancel_;
  std::shared_ptr<int> witness_ = std::make_shared<int>();
  int calls_ = 0;
  client locks_ = make_client_at(proxy_.uri());
  const acquire_options long_{.ttl = 60s};
};

TEST_F(asynchronous_release, cancelled_at_its_start_goes_on_B40) {
  auto held = locks_.acquire("x", long_);
  server_.pause();
  std::optional<release_outcome> end;
  async_release(std::move(held), told(end));
  cancel();
  server_.resume();
  run();
  EXPECT_EQ(end, release_outcome::released);
  cancel();
  expect_told_once();
  EXPECT_TRUE(is_free());
}

TEST_F(asynchronous_release, cancelled_with_its_request_unanswered_goes_on_B40) {
  auto held = locks_.acquire("x", long_);
  server_.pause();
  const auto before = sent();
  std::optional<release_outcome> end;
  async_release(std::move(held), told(end));
  ASSERT_TRUE(has_sent_more_than(before));
  cancel();
  EXPECT_FALSE(end) << "called in place";
  server_.resume();
  run();
  EXPECT_EQ(end, release_outcome::released);
  expect_told_once();
  EXPECT_TRUE(is_free());
}

// Done at the server, and the answer is in the way: it asks once more, of a lock that it does not hold any more.
TEST_F(asynchronous_release, cancelled_with_its_answer_lost_goes_on_B40) {
  auto held = locks_.acquire("x", long_);
  proxy_.set_existing(direction::to_client, {.pass_only = 0});
  std::optional<release_outcome> end;
  async_release(std::move(held), told(end));
  ASSERT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  cancel();
  proxy_.cut_all();
  run();
  EXPECT_TRUE(end);
  expect_told_once();
  EXPECT_TRUE(is_free());
}

// The connection ends with the request in it, and a cancelled release makes another one.
TEST_F(asynchronous_release, cancelled_with_its_connection_cut_is_asked_again_B40) {
  auto held = locks_.acquire("x", long_);
  proxy_.set_existing(direction::to_server, {.pass_only = 0});
  std::optional<release_outcome> end;
  async_release(std::move(held), told(end));
  cancel();
  proxy_.cut_all();
  run();
  EXPECT_EQ(end, release_outcome::released);
  expect_told_once();
  EXPECT_TRUE(is_free());
}

// Nobody answers for as long as it tries. It is said to be unknown, and what was to be released is so later.
TEST_F(asynchronous_release, cancelled_at_a_server_that_does_not_answer_is_done_in_the_background_B40) {
  auto impatient = make_client_at(proxy_.uri(), 1s);
  auto held = impatient.acquire("x", long_);
  server_.pause();
  std::optional<release_outcome> end;
  async_release(std::move(held), told(end));
  cancel();
  run();
  EXPECT_EQ(end, release_outcome::unknown);
  expect_told_once();
  server_.resume();
  EXPECT_TRUE(is_free());
}

// With a lazy token the lease is in the operation: who destroys that unbegun gives the lock back.
TEST_F(asynchronous_release, that_is_never_begun_gives_the_lock_back_B40) {
  {
    const auto operation = async_release(locks_.acquire("x", long_), asio::deferred);
    EXPECT_FALSE(make_client().try_acquire("x"));
  }
  EXPECT_TRUE(is_free());
}

TEST_F(asynchronous_release, goes_on_when_its_context_ends_B40) {
  auto held = locks_.acquire("x", long_);
  server_.pause();
  {
    asio::io_context ending;
    async_release(std::move(held), asio::bind_executor(ending, [own = witness_](release_outcome) {
                    ADD_FAILURE() << "its context is gone";
                  }));
  }
  EXPECT_EQ(witness_.use_count(), 1) << "a handler is left";
  server_.resume();
  EXPECT_TRUE(is_free());
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT
// Asio begins nothing more in a coroutine that was cancelled, and throws: also not what was to clean up behind it. The
// lease is in what was not begun.
TEST_F(asynchronous_release, in_a_coroutine_that_was_cancelled_gives_the_lock_back_B40) {
  bool is_holding = false;
  bool is_refused = false;
  const auto body = [&]() -> asio::awaitable<void> {
    auto held = co_await async_acquire(locks_, "x", {.ttl = 60s}, asio::use_awaitable);
    is_holding = true;
    asio::steady_timer work{io, 1h};
    error_code ec;
    co_await work.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    EXPECT_EQ(ec, asio::error::operation_aborted);
    try {
      (void)co_await async_release(std::move(held), asio::use_awaitable);
    } catch (const boost::system::system_error& e) {
      is_refused = e.code() == asio::error::operation_aborted;
    }
    EXPECT_FALSE(held);
  };
  std::exception_ptr thrown;
  asio::co_spawn(io, body, asio::bind_cancellation_slot(cancel_.slot(), [&](std::exception_ptr e) { thrown = e; }));
  io.restart();
  while (!is_holding && io.run_one_for(20s) > 0) {
  }
  ASSERT_TRUE(is_holding);
  cancel_.emit(asio::cancellation_type::terminal);
  run();
  EXPECT_FALSE(thrown);
  EXPECT_TRUE(is_refused) << "or this tests nothing";
  EXPECT_TRUE(is_free());
}

// The same while it is under way: the coroutine goes on with what became of it.
TEST_F(asynchronous_release, is_awaited_to_its_end_by_a_coroutine_that_is_cancelled_B40) {
  auto held = locks_.acquire("x", long_);
  server_.pause();
  const auto before = sent();
  std::optional<release_outcome> end;
  const auto body = [&]() -> asio::awaitable<void> {
    end = co_await async_release(std::move(held), asio::use_awaitable);
  };
  std::exception_ptr thrown;
  asio::co_spawn(io, body, asio::bind_cancellation_slot(cancel_.slot(), [&](std::exception_ptr e) { thrown = e; }));
  io.poll();
  ASSERT_TRUE(has_sent_more_than(before));
  cancel_.emit(asio::cancellation_type::terminal);
  server_.resume();
  run();
  EXPECT_FALSE(thrown);
  EXPECT_EQ(end, release_outcome::released);
  EXPECT_TRUE(is_free());
}
#endif

// ---- A downgrade ----

// One that stopped half way would leave a writer that takes itself for a reader, or the other way round.
TEST_F(asynchronous_release, of_a_downgrade_goes_on_B40) {
  shared_mutex rw{locks_, "x"};
  auto held = rw.acquire(long_);
  server_.pause();
  const auto before = sent();
  std::optional<error_code> end;
  async_downgrade(held, told(end));
  cancel();
  ASSERT_TRUE(has_sent_more_than(before));
  cancel();
  EXPECT_FALSE(end) << "called in place";
  server_.resume();
  run();
  EXPECT_EQ(end, error_code{});
  cancel();
  expect_told_once();
  EXPECT_TRUE(held.valid());
  auto direct = make_client();
  shared_mutex other{direct, "x"};
  EXPECT_TRUE(other.try_acquire_shared()) << "it writes still";
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_TRUE(eventually([&] { return other.try_acquire().has_value(); }));
}

// Released behind it, with both unanswered: the release comes behind the downgrade.
TEST_F(asynchronous_release, behind_a_downgrade_leaves_no_reader_when_both_are_cancelled_B40) {
  shared_mutex rw{locks_, "x"};
  auto held = rw.acquire(long_);
  server_.pause();
  const auto before = sent();
  std::optional<error_code> downgraded;
  async_downgrade(held, bound([&, own = witness_](error_code ec) { downgraded = ec; }));
  ASSERT_TRUE(has_sent_more_than(before));
  std::optional<release_outcome> end;
  async_release(std::move(held), told(end));
  cancel();
  server_.resume();
  run();
  EXPECT_TRUE(downgraded);
  EXPECT_EQ(end, release_outcome::released);
  expect_told_once();
  auto direct = make_client();
  shared_mutex other{direct, "x"};
  EXPECT_TRUE(eventually([&] { return other.try_acquire().has_value(); }));
}

}  // namespace
}  // namespace holdfast::test
