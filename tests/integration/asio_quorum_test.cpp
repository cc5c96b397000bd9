// SPDX-License-Identifier: Apache-2.0
// holdfast/asio.hpp on a quorum, where each operation is a blocking call on a thread of the library: what a program
// sees is what it sees on one Redis.
#include "integration/asio_fixture.hpp"
#include "integration/quorum_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class asynchronous_on_quorum : public with_quorum, protected with_io_context {
protected:
  std::future<lease> begin(client& locks, const async_options& how) {
    return async_acquire(locks, "x", how, asio::bind_executor(io, asio::use_future));
  }
  // Who has the turn, and who is behind. Of several threads of one client one stands there.
  std::int64_t in_line() const {
    const auto first = *std::min_element(nodes_.begin(), nodes_.end(),
                                         [](const auto& a, const auto& b) { return a.address < b.address; });
    return test::ask_number(first, {"EXISTS", "hf:turn:{x}"}) == "1"
               ? 1 + std::stoll(test::ask_number(first, {"ZCARD", "hf:turn:{x}:line"}))
               : 0;
  }
  bool somebody_waits() const {
    return eventually([&] { return in_line() > 0; }, long_enough);
  }
  bool nobody_waits() const {
    return eventually([&] { return in_line() == 0; }, long_enough);
  }
};

TEST_F(asynchronous_on_quorum, a_lock_is_taken_renewed_and_released) {
  auto locks = make();
  std::optional<release_outcome> end;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto held = co_await async_acquire(locks, "x", {.ttl = max_ttl, .renew = renewal::none}, asio::use_awaitable);
        EXPECT_TRUE(held.valid());
        EXPECT_TRUE(eventually([&] { return held.remaining() < max_ttl - 1s; }, 2s));
        co_await async_renew(held, asio::use_awaitable);
        EXPECT_GT(held.remaining(), max_ttl - 1s);
        EXPECT_GE(votes(), 2);
        end = co_await async_release(std::move(held), asio::use_awaitable);
      },
      [](const std::exception_ptr& e) { EXPECT_FALSE(e); });
  run();
  EXPECT_EQ(end, release_outcome::released);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(asynchronous_on_quorum, whoever_waits_gets_it_when_it_is_released) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = ttl});
  std::vector<std::future<lease>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(begin(locks, {.ttl = ttl, .wait = long_enough}));
  ASSERT_TRUE(somebody_waits());
  held.release();
  // What get() gives is released at once, for the next one.
  const auto one_more = [&] {
    io.restart();
    io.run_for(100ms);
    return std::any_of(waiting.begin(), waiting.end(), [](auto& one) {
      return one.valid() && one.wait_for(0s) == std::future_status::ready && one.get().valid();
    });
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(eventually(one_more, long_enough));
}

// What is held counts from the grant, and not from when it was asked for.
TEST_F(asynchronous_on_quorum, an_observer_hears_apart_of_waiting_and_of_holding) {
  auto other = make();
  auto how = options(10s);
  const auto seen = std::make_shared<stop_watch>();
  how.observe = seen;
  client locks{lab_.uri(), how};
  for (const bool waits : {true, false}) {
    seen->held = 0us;
    auto in_the_way = std::optional{other.acquire("x", {.ttl = ttl, .wait = long_enough})};
    std::jthread holder{[&] {
      let_pass(5s);
      in_the_way.reset();
    }};
    if (waits) {
      locks.acquire("x", {.ttl = ttl, .wait = long_enough}).release();
    } else {
      auto got = begin(locks, {.ttl = ttl, .wait = long_enough});
      run();
      got.get().release();
    }
    ASSERT_TRUE(eventually([&] { return seen->held.load() > 0us; }));
    EXPECT_GE(seen->waited.load(), 3500ms);
    EXPECT_LT(seen->held.load(), 3s);
  }
}

TEST_F(asynchronous_on_quorum, an_observer_hears_of_an_acquire_that_is_stopped_before_it_begins) {
  auto how = options(10s);
  const auto seen = std::make_shared<cancelled_watch>();
  how.observe = seen;
  client locks{lab_.uri(), how};
  std::stop_source stop;
  stop.request_stop();
  acquire_options wanted;
  wanted.ttl = ttl;
  wanted.cancel = stop.get_token();
  EXPECT_EQ(code_of([&] { (void)locks.acquire("x", wanted); }), errc::cancelled);
  async_acquire(locks, "x", wanted, bound([](error_code, const lease&) {}));
  run();
  EXPECT_TRUE(eventually([&] { return seen->cancelled == 2; }));
}

TEST_F(asynchronous_on_quorum, a_try_for_what_is_held_is_timed_out) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl});
  EXPECT_EQ(end_of(locks, {.ttl = ttl, .wait = 0ms}), errc::timed_out);
}

TEST_F(asynchronous_on_quorum, what_is_wrong_is_said_and_without_a_majority_there_is_no_lease) {
  auto locks = make(1s);
  std::optional<error_code> bad_name;
  async_acquire(locks, "", {}, bound([&](error_code ec, const lease&) { bad_name = ec; }));
  run();
  EXPECT_EQ(bad_name, error_code{errc::invalid_name});
  lab_.kill(node(0));
  lab_.kill(node(1));
  EXPECT_EQ(end_of(locks, {.ttl = ttl, .wait = 2s}), errc::no_quorum);
}

TEST_F(asynchronous_on_quorum, permits_and_readers_are_had_and_a_writer_becomes_a_reader) {
  auto locks = make();
  semaphore five{locks, "five", 5};
  auto three = async_acquire(five, {.ttl = ttl, .permits = 3}, asio::bind_executor(io, asio::use_future));
  shared_mutex book{locks, "book"};
  auto writing = async_acquire(book, {.ttl = ttl}, asio::bind_executor(io, asio::use_future));
  run();
  EXPECT_TRUE(three.get().valid());
  const auto writer = writing.get();
  std::optional<error_code> downgraded;
  async_downgrade(writer, bound([&](error_code ec) { downgraded = ec; }));
  run();
  EXPECT_EQ(downgraded, error_code{});
  auto reading = async_acquire_shared(book, {.ttl = ttl}, asio::bind_executor(io, asio::use_future));
  run();
  EXPECT_TRUE(reading.get().valid());
  EXPECT_TRUE(writer.valid());
}

TEST_F(asynchronous_on_quorum, a_downgrade_that_finds_nothing_ends_the_lease_C1_C4) {
  auto locks = make();
  const auto writer = shared_mutex{locks, "book"}.acquire({.ttl = max_ttl});
  for (int i = 0; i < size(); ++i) ask(i, {"DEL", "hf:{book}", "hf:{book}:holders"});
  std::optional<error_code> downgraded;
  async_downgrade(writer, bound([&](error_code ec) { downgraded = ec; }));
  run();
  EXPECT_EQ(downgraded, errc::lease_gone);
  EXPECT_FALSE(writer.valid());
  EXPECT_EQ(writer.lost_reason(), errc::lease_gone);
}

// ---- What ends early ----

TEST_F(asynchronous_on_quorum, acquire_is_cancelled_in_line_by_its_slot_and_leaves_it) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl});
  const auto end = end_of_cancelled<lease>(
      [&](auto&& token) { async_acquire(locks, "x", {.ttl = ttl}, std::forward<decltype(token)>(token)); },
      [&] { EXPECT_TRUE(somebody_waits()); });
  EXPECT_TRUE(is_cancelled(end)) << end.message();
  EXPECT_TRUE(nobody_waits());
  EXPECT_TRUE(held.valid());
}

TEST_F(asynchronous_on_quorum, acquire_is_cancelled_by_a_stop_token_too) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl});
  std::stop_source stop;
  acquire_options how;
  how.ttl = ttl;
  how.cancel = stop.get_token();
  auto waiting = async_acquire(locks, "x", how, asio::bind_executor(io, asio::use_future));
  ASSERT_TRUE(somebody_waits());
  stop.request_stop();
  run();
  EXPECT_TRUE(is_cancelled(code_of_future(waiting)));
  auto at_once = async_acquire(locks, "x", how, asio::bind_executor(io, asio::use_future));
  run();
  EXPECT_TRUE(is_cancelled(code_of_future(at_once)));
  auto nameless = async_acquire(locks, "", how, asio::bind_executor(io, asio::use_future));
  run();
  EXPECT_EQ(code_of_future(nameless), errc::invalid_name) << "as the blocking call has it";
}

TEST_F(asynchronous_on_quorum, a_renewal_is_cancelled_and_its_lease_stands) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  for (int i = 0; i < 3; ++i) lab_.pause(node(i));
  const auto end =
      end_of_cancelled([&](auto&& token) { async_renew(held, std::forward<decltype(token)>(token)); }, [] {});
  EXPECT_TRUE(is_cancelled(end)) << end.message();
  EXPECT_TRUE(held.valid());
  for (int i = 0; i < 3; ++i) lab_.resume(node(i));
}

TEST_F(asynchronous_on_quorum, a_lease_that_is_given_back_ends_its_renewal_C6) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  for (int i = 0; i < 3; ++i) lab_.pause(node(i));
  std::optional<error_code> end;
  async_renew(held, bound([&](error_code ec) { end = ec; }));
  std::optional<release_outcome> outcome;
  async_release(std::move(held), bound([&](release_outcome o) { outcome = o; }));
  EXPECT_TRUE(eventually([&] { return io.run_one_for(10s) > 0 && end; }, long_enough));
  EXPECT_EQ(end, error_code{errc::empty_handle});
  for (int i = 0; i < 3; ++i) lab_.resume(node(i));
  run();
  EXPECT_TRUE(outcome);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(asynchronous_on_quorum, operations_of_a_client_that_ends_are_cancelled) {
  auto holder = make();
  const auto held = holder.acquire("x", {.ttl = max_ttl});
  std::vector<std::future<lease>> waiting;
  {
    auto locks = make();
    for (int i = 0; i < 8; ++i) waiting.push_back(begin(locks, {.ttl = ttl}));
    ASSERT_TRUE(somebody_waits());
  }
  run();
  for (auto& one : waiting) EXPECT_TRUE(is_cancelled(code_of_future(one)));
  EXPECT_TRUE(nobody_waits());
}

TEST_F(asynchronous_on_quorum, a_client_may_end_in_its_own_callback_while_an_operation_is_under_way_H47) {
  auto holder = make();
  const auto in_the_way = holder.acquire("x", {.ttl = max_ttl});
  auto locks = std::make_unique<client>(make());
  auto lost = std::make_unique<lease>(locks->acquire("y", {.ttl = ttl}));
  const auto kept = locks->acquire("z", {.ttl = max_ttl});
  auto waiting = begin(*locks, {.ttl = ttl});
  ASSERT_TRUE(somebody_waits());
  std::atomic<bool> is_over = false;
  const std::stop_callback on_loss{lost->lost(), [&] {
                                     lost.reset();
                                     locks.reset();
                                     is_over = true;
                                   }};
  for (int i = 0; i < size(); ++i) ask(i, {"DEL", "hf:{y}"});
  EXPECT_TRUE(eventually([&] { return is_over.load(); }, long_enough));
  run();
  EXPECT_TRUE(is_cancelled(code_of_future(waiting)));
  EXPECT_TRUE(nobody_waits());
  EXPECT_TRUE(kept.valid());
}

TEST_F(asynchronous_on_quorum, a_release_goes_on_when_its_client_ends) {
  std::future<release_outcome> giving_back;
  {
    auto locks = make();
    giving_back = async_release(locks.acquire("x", {.ttl = max_ttl}), asio::use_future);
  }
  EXPECT_EQ(giving_back.get(), release_outcome::released);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(asynchronous_on_quorum, operations_of_a_context_that_ends_are_dropped) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl});
  const auto witness = std::make_shared<int>();
  {
    asio::io_context ending;
    for (int i = 0; i < 4; ++i) {
      async_acquire(locks, "x", {.ttl = ttl},
                    asio::bind_executor(ending, [witness](error_code, const lease&) { ADD_FAILURE(); }));
    }
    ASSERT_TRUE(somebody_waits());
  }
  EXPECT_EQ(witness.use_count(), 1) << "a handler is left";
  EXPECT_TRUE(nobody_waits());
  held.release();
  EXPECT_TRUE(locks.acquire("x", {.ttl = ttl, .wait = long_enough}).valid());
}

TEST_F(asynchronous_on_quorum, in_a_forked_child_it_is_refused_and_the_parent_does_not_notice_P33) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl});
  auto waiting = async_acquire(locks, "x", {.ttl = ttl, .wait = long_enough}, asio::use_future);
  ASSERT_TRUE(somebody_waits());
  expect_refusals_in_a_child(locks, held);
  held.release();
  EXPECT_TRUE(waiting.get().valid());
}

}  // namespace
}  // namespace holdfast::test
