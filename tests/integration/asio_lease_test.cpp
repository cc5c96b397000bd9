// SPDX-License-Identifier: Apache-2.0
// Renewals, permits and shared locks through holdfast/asio.hpp: how they wait, how they are cancelled at each stage,
// and what becomes of them when something ends under them.
#include "integration/asio_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

class asynchronous_lease : public on_asio {
protected:
  // Begins a renewal of `held`; its end comes with run().
  void begin_renewal(const lease& held, std::optional<error_code>& end) {
    async_renew(held, bound([&](error_code ec) { end = ec; }));
  }
  error_code renewed(const lease& held) {
    std::optional<error_code> end;
    begin_renewal(held, end);
    run();
    return end.value_or(error_code{});
  }
  error_code downgraded(const lease& held) {
    std::optional<error_code> end;
    async_downgrade(held, bound([&](error_code ec) { end = ec; }));
    run();
    return end.value_or(error_code{});
  }
  auto renewal_of(const lease& held) {
    return [&](auto&& token) { async_renew(held, std::forward<decltype(token)>(token)); };
  }

  client locks_ = make_client();
};

// ---- Renewals ----

TEST_F(asynchronous_lease, that_does_not_renew_itself_lives_by_renewals) {
  auto held = locks_.acquire("x", {.ttl = 2s, .renew = renewal::none});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(eventually([&] { return held.remaining() < 1500ms; }, 2s));
    EXPECT_FALSE(renewed(held));
    EXPECT_GT(held.remaining(), 1500ms);
  }
}

TEST_F(asynchronous_lease, may_be_moved_while_it_is_renewed) {
  auto held = locks_.acquire("x", {.renew = renewal::none});
  std::optional<error_code> end;
  begin_renewal(held, end);
  auto moved = std::move(held);
  run();
  EXPECT_EQ(end, error_code{});
  EXPECT_TRUE(moved.valid());
}

TEST_F(asynchronous_lease, that_is_given_back_ends_its_renewal_C6) {
  auto held = std::optional{locks_.acquire("x", {.renew = renewal::none})};
  server_.pause();
  std::optional<error_code> end;
  begin_renewal(*held, end);
  held.reset();
  run();
  EXPECT_EQ(end, errc::empty_handle);
  server_.resume();
}

TEST_F(asynchronous_lease, that_was_given_back_before_a_lazy_renewal_began_is_an_error) {
  auto held = locks_.acquire("x");
  auto operation = async_renew(held, asio::deferred);
  held.release();
  std::optional<error_code> end;
  std::move(operation)(bound([&](error_code ec) { end = ec; }));
  run();
  EXPECT_EQ(end, errc::empty_handle);
}

TEST_F(asynchronous_lease, survives_a_renewal_that_is_cancelled_before_and_after_it_was_sent) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  auto held = locks.acquire("x", {.renew = renewal::none});
  const fault silence{.pass_only = 0};
  proxy.set(direction::to_client, silence);
  EXPECT_EQ(end_of_cancelled(renewal_of(held), [] {}), errc::cancelled) << "the keeper has no connection yet";
  proxy.heal();
  EXPECT_FALSE(renewed(held));
  proxy.set(direction::to_client, silence);
  const auto before = proxy.bytes(direction::to_server);
  EXPECT_EQ(
      end_of_cancelled(renewal_of(held),
                       [&] { EXPECT_TRUE(eventually([&] { return proxy.bytes(direction::to_server) > before; })); }),
      errc::cancelled_in_flight);
  proxy.heal();
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(renewed(held));
}

TEST_F(asynchronous_lease, is_not_touched_by_a_cancellation_after_its_renewal) {
  auto held = locks_.acquire("x");
  asio::cancellation_signal cancel;
  std::optional<error_code> end;
  async_renew(held, asio::bind_cancellation_slot(cancel.slot(), bound([&](error_code ec) { end = ec; })));
  run();
  cancel.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(end, error_code{});
  EXPECT_TRUE(held.valid());
}

TEST_F(asynchronous_lease, whose_renewal_is_not_answered_is_unknown_and_stands) {
  auto locks = make_client(1s);
  auto held = locks.acquire("x", {.renew = renewal::none});
  EXPECT_FALSE(renewed(held));
  server_.pause();
  EXPECT_EQ(renewed(held), errc::reply_lost);
  server_.resume();
  EXPECT_TRUE(held.valid());
}

// ---- Permits ----

TEST_F(asynchronous_lease, of_permits_comes_in_the_order_of_the_requests) {
  semaphore three{locks_, "x", 3};
  auto all = std::optional{three.acquire({.permits = 3})};
  std::vector<int> order;
  for (const int permits : {2, 3, 1}) {
    async_acquire(three, {.permits = permits}, bound([&, permits](error_code ec, const lease&) {
                    EXPECT_FALSE(ec) << ec.message();
                    order.push_back(permits);
                  }));
  }
  ASSERT_TRUE(waits_for(3));
  all.reset();
  run();
  EXPECT_EQ(order, (std::vector{2, 3, 1}));
}

TEST_F(asynchronous_lease, of_permits_needs_its_semaphore_only_at_the_call) {
  auto wanted = std::make_unique<semaphore>(locks_, "x", 3);
  auto operation = async_acquire(*wanted, {.permits = 2}, asio::deferred);
  wanted.reset();
  std::optional<error_code> end;
  std::move(operation)(bound([&](error_code ec, const lease& got) {
    end = ec;
    EXPECT_TRUE(got.valid());
  }));
  run();
  EXPECT_EQ(end, error_code{});
}

TEST_F(asynchronous_lease, of_permits_that_cannot_be_had_says_why) {
  const auto end_of = [&](semaphore& of, int permits) {
    std::optional<error_code> end;
    async_acquire(of, {.wait = 0ms, .permits = permits}, bound([&](error_code ec, const lease&) { end = ec; }));
    run();
    return end.value_or(error_code{});
  };
  semaphore three{locks_, "x", 3};
  EXPECT_EQ(end_of(three, 4), errc::invalid_option);
  EXPECT_EQ(end_of(three, 3), error_code{});
  semaphore four{locks_, "x", 4};
  EXPECT_EQ(end_of(four, 1), errc::other_size);
  auto locked = locks_.acquire("y");
  semaphore not_one{locks_, "y", 3};
  EXPECT_EQ(end_of(not_one, 1), errc::wrong_kind);
}

TEST_F(asynchronous_lease, of_permits_is_cancelled_in_line_and_leaves_it) {
  semaphore one{locks_, "x", 1};
  auto taken = one.acquire();
  const auto begin = [&](auto&& token) { async_acquire(one, {}, std::forward<decltype(token)>(token)); };
  EXPECT_TRUE(is_cancelled(end_of_cancelled<lease>(begin, [&] { EXPECT_TRUE(waits_for(1)); })));
  EXPECT_TRUE(waits_for(0));

  std::stop_source stop;
  const acquire_options options{.cancel = stop.get_token()};
  std::optional<error_code> end;
  async_acquire(one, options, bound([&](error_code ec, const lease&) { end = ec; }));
  ASSERT_TRUE(waits_for(1));
  stop.request_stop();
  run();
  EXPECT_TRUE(is_cancelled(end.value_or(error_code{})));
  EXPECT_TRUE(waits_for(0));
}

// ---- Shared locks ----

TEST_F(asynchronous_lease, of_readers_comes_to_all_together_and_behind_a_writer) {
  shared_mutex rw{locks_, "x"};
  auto first = std::optional{rw.acquire_shared()};
  std::vector<lease> readers;
  bool was_written = false;
  async_acquire(rw, {}, bound([&](error_code ec, const lease&) {
                  EXPECT_FALSE(ec) << ec.message();
                  EXPECT_TRUE(readers.empty()) << "overtaken";
                  was_written = true;
                }));
  ASSERT_TRUE(waits_for(1));
  for (int i = 0; i < 3; ++i) {
    async_acquire_shared(rw, {}, bound([&](error_code ec, lease got) {
                           EXPECT_FALSE(ec) << ec.message();
                           EXPECT_TRUE(was_written);
                           readers.push_back(std::move(got));
                         }));
  }
  ASSERT_TRUE(waits_for(4));
  first.reset();
  run();
  ASSERT_EQ(readers.size(), 3u);
  for (const auto& one : readers) EXPECT_TRUE(one.valid());
}

TEST_F(asynchronous_lease, of_a_writer_lets_waiting_readers_in_when_it_is_downgraded_H63) {
  shared_mutex rw{locks_, "x"};
  auto writer = rw.acquire();
  const auto token = writer.token();
  lease reader;
  async_acquire_shared(rw, {}, bound([&](error_code ec, lease got) {
                         EXPECT_FALSE(ec) << ec.message();
                         reader = std::move(got);
                       }));
  ASSERT_TRUE(waits_for(1));
  EXPECT_EQ(downgraded(writer), error_code{});
  EXPECT_TRUE(reader.valid());
  EXPECT_TRUE(writer.valid());
  EXPECT_EQ(writer.token(), token);
}

// As the blocking call; see shared_mutex_test.
TEST_F(asynchronous_lease, that_its_downgrade_does_not_find_is_lost_at_once_C1_C4) {
  shared_mutex rw{locks_, "x"};
  for (const auto mode : {renewal::automatic, renewal::none}) {
    const auto held = rw.acquire({.ttl = 60s, .renew = mode});
    server_("DEL", "hf:{x}", "hf:{x}:holders");
    auto others = make_client();
    const auto theirs = shared_mutex{others, "x"}.try_acquire();
    ASSERT_TRUE(theirs);
    EXPECT_EQ(downgraded(held), errc::lease_gone);
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.lost_reason(), errc::lease_gone);
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 3s));
  }
}

TEST_F(asynchronous_lease, that_was_broken_says_so_when_it_is_downgraded_C4) {
  const auto held = shared_mutex{locks_, "x"}.acquire({.ttl = 60s});
  make_client().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_EQ(downgraded(held), errc::lease_broken);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_broken);
}

TEST_F(asynchronous_lease, of_another_kind_is_not_downgraded) {
  auto exclusive = locks_.acquire("x");
  EXPECT_EQ(downgraded(exclusive), errc::wrong_kind);
  EXPECT_EQ(code_of([&] { shared_mutex{locks_, "x"}.downgrade(exclusive); }), errc::wrong_kind);
  EXPECT_TRUE(exclusive.valid());
  auto permit = semaphore{locks_, "y", 1}.acquire();
  EXPECT_EQ(downgraded(permit), errc::wrong_kind);
  EXPECT_TRUE(permit.valid());
}

TEST_F(asynchronous_lease, of_a_writer_is_cancelled_in_line_and_the_readers_behind_it_enter) {
  shared_mutex rw{locks_, "x"};
  auto first = rw.acquire_shared();
  bool has_read = false;
  const auto write = [&](auto&& token) { async_acquire(rw, {}, std::forward<decltype(token)>(token)); };
  const auto end = end_of_cancelled<lease>(write, [&] {
    EXPECT_TRUE(waits_for(1));
    async_acquire_shared(rw, {}, bound([&](error_code ec, const lease&) { has_read = !ec; }));
    EXPECT_TRUE(waits_for(2));
  });
  EXPECT_TRUE(is_cancelled(end));
  EXPECT_TRUE(has_read);
}

// ---- Executors, and what ends under it ----

TEST_F(asynchronous_lease, is_told_of_in_the_strand_that_its_handler_names) {
  asio::thread_pool pool{2};
  auto strand = asio::make_strand(pool);
  semaphore ten{locks_, "x", 10};
  std::atomic<int> right = 0;
  std::vector<lease> held;  // The strand's.
  const auto is_right = [&](error_code ec) { right += !ec && strand.running_in_this_thread(); };
  for (int i = 0; i < 10; ++i) {
    async_acquire(ten, {}, asio::bind_executor(strand, [&](error_code ec, lease got) {
                    is_right(ec);
                    held.push_back(std::move(got));
                    async_renew(held.back(), asio::bind_executor(strand, is_right));
                  }));
  }
  pool.join();
  EXPECT_EQ(right, 20);
}

TEST_F(asynchronous_lease, operations_of_a_context_that_ends_are_dropped) {
  semaphore one{locks_, "x", 1};
  shared_mutex rw{locks_, "y"};
  auto taken = one.acquire();
  auto writer = rw.acquire();
  const auto witness = std::make_shared<int>();
  {
    asio::io_context ending;
    const auto in = [&](auto handler) { return asio::bind_executor(ending, std::move(handler)); };
    async_acquire(one, {}, in([witness](error_code, const lease&) { ADD_FAILURE(); }));
    async_acquire_shared(rw, {}, in([witness](error_code, const lease&) { ADD_FAILURE(); }));
    ASSERT_TRUE(waits_for(1));
    server_.pause();
    async_renew(taken, in([witness](error_code) { ADD_FAILURE(); }));
    async_downgrade(writer, in([witness](error_code) { ADD_FAILURE(); }));
  }
  EXPECT_EQ(witness.use_count(), 1) << "a handler is left";
  server_.resume();
  EXPECT_TRUE(waits_for(0));
  EXPECT_TRUE(taken.valid());
  EXPECT_TRUE(eventually([&] { return rw.try_acquire_shared().has_value(); })) << "a downgrade goes on by itself";
}

TEST_F(asynchronous_lease, outlives_its_client_and_so_does_what_was_begun_with_it) {
  lease held;
  std::optional<error_code> waited;
  std::optional<error_code> wrote;
  std::optional<error_code> renewal;
  {
    auto ending = make_client();
    shared_mutex rw{ending, "x"};
    held = rw.acquire();
    async_acquire(rw, {}, bound([&](error_code ec, const lease&) { waited = ec; }));
    ASSERT_TRUE(waits_for(1));
    server_.pause();
    async_downgrade(held, bound([&](error_code ec) { wrote = ec; }));
    begin_renewal(held, renewal);
  }
  server_.resume();
  run();
  EXPECT_TRUE(is_cancelled(waited.value_or(error_code{})));
  EXPECT_EQ(wrote, error_code{});
  EXPECT_EQ(renewal, error_code{});
  EXPECT_TRUE(held.valid());
}

TEST_F(asynchronous_lease, that_is_empty_is_refused_at_once) {
  const lease empty;
  EXPECT_EQ(code_of([&] { (void)async_renew(empty, asio::deferred); }), errc::empty_handle);
  EXPECT_EQ(code_of([&] { (void)async_downgrade(empty, asio::deferred); }), errc::empty_handle);
}

TEST_F(asynchronous_lease, in_a_forked_child_is_refused_and_the_parent_does_not_notice) {
  auto held = shared_mutex{locks_, "x"}.acquire();
  semaphore one{locks_, "y", 1};
  auto lazy = async_renew(held, asio::deferred);
  server_.pause();
  auto renewal = async_renew(held, asio::use_future);
  const auto child = ::fork();
  if (child == 0) {
    const auto is_refused = [&](const auto& begin) { return code_of(begin) == errc::used_after_fork; };
    bool right = is_refused([&] { (void)async_renew(held, asio::deferred); }) &&
                 is_refused([&] { (void)async_downgrade(held, asio::deferred); });
    asio::io_context own;
    int refused = 0;
    async_acquire(one, {}, asio::bind_executor(own, [&](error_code ec, const lease&) {
                    refused += ec == errc::used_after_fork;
                  }));
    std::move(lazy)(asio::bind_executor(own, [&](error_code ec) { refused += ec == errc::used_after_fork; }));
    own.run();
    ::_exit(right && refused == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  server_.resume();
  EXPECT_NO_THROW(renewal.get());
  EXPECT_TRUE(held.valid());
}

}  // namespace
}  // namespace holdfast::test
