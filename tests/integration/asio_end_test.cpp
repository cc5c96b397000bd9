// SPDX-License-Identifier: Apache-2.0
// How an operation of holdfast/asio.hpp ends early: cancelled at every stage, and with what ends under it.
#include "integration/asio_fixture.hpp"
#include "support/child_process.hpp"
#include "support/fault_proxy.hpp"

#include <boost/asio/use_future.hpp>

#include <signal.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class asynchronous_end : public on_asio {};

// ---- Cancellation, by slot, at every stage ----

TEST_F(asynchronous_end, acquire_cancelled_before_there_is_a_connection) {
  server_.pause();
  auto locks = make_client();
  EXPECT_EQ(end_when_cancelled(locks, [] {}), errc::cancelled);
  server_.resume();
}

TEST_F(asynchronous_end, acquire_cancelled_with_its_request_unanswered_is_unknown_and_cleaned_up) {
  auto locks = make_client();
  EXPECT_TRUE(locks.try_acquire("y"));  // Connected.
  server_.pause();
  EXPECT_EQ(end_when_cancelled(locks, [] {}), errc::cancelled_in_flight);
  server_.resume();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}") && make_client().try_acquire("x"); }));
}

TEST_F(asynchronous_end, acquire_cancelled_in_line_leaves_it_whatever_the_type) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                          asio::cancellation_type::total, asio::cancellation_type::all}) {
    EXPECT_TRUE(is_cancelled(end_when_cancelled(
        locks, [&] { EXPECT_TRUE(waits_for(1)); }, type)));
    EXPECT_TRUE(waits_for(0));
  }
  EXPECT_TRUE(held.valid());
}

// The grant and the cancellation cross: either there is a lease in the handler, or the lock is free soon.
TEST_F(asynchronous_end, acquire_cancelled_while_it_is_granted_is_one_or_the_other) {
  auto locks = make_client();
  auto other = make_client();
  for (int i = 0; i < scaled(200 * 6) / 6; ++i) {
    auto held = std::optional{other.acquire("x")};
    asio::cancellation_signal cancel;
    std::optional<error_code> end;
    lease got;
    async_acquire(locks, "x", {}, asio::bind_cancellation_slot(cancel.slot(), bound([&](error_code ec, lease l) {
                                                                 end = ec;
                                                                 got = std::move(l);
                                                               })));
    ASSERT_TRUE(waits_for(1));
    std::jthread releasing{[&] { held.reset(); }};
    cancel.emit(asio::cancellation_type::terminal);
    run();
    ASSERT_TRUE(end);
    EXPECT_EQ(static_cast<bool>(got), !*end);
    if (!*end) got.release();
    got = lease{};
    releasing.join();
    ASSERT_TRUE(eventually([&] { return other.try_acquire("x").has_value(); })) << "round " << i;
    ASSERT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  }
}

TEST_F(asynchronous_end, cancellation_after_the_end_does_nothing) {
  auto locks = make_client();
  asio::cancellation_signal cancel;
  lease got;
  async_acquire(locks, "x", {},
                asio::bind_cancellation_slot(cancel.slot(), bound([&](error_code, lease l) { got = std::move(l); })));
  run();
  cancel.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(got.valid());
}

TEST_F(asynchronous_end, acquire_is_cancelled_by_a_stop_token_too) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  std::stop_source stop;
  const acquire_options options{.cancel = stop.get_token()};
  auto waiting = async_acquire(locks, "x", options, asio::bind_executor(io, asio::use_future));
  ASSERT_TRUE(waits_for(1));
  stop.request_stop();
  run();
  EXPECT_TRUE(is_cancelled(code_of_future(waiting)));
  EXPECT_TRUE(waits_for(0));
  auto at_once = async_acquire(locks, "x", options, asio::bind_executor(io, asio::use_future));
  run();
  EXPECT_TRUE(code_of_future(at_once));
}

// ---- What ends under it ----

// As the blocking calls: though the lock is free, and nothing is sent.
TEST_F(asynchronous_end, acquire_whose_stop_token_was_asked_before_asks_for_nothing) {
  auto locks = make_client();
  locks.acquire("y").release();
  std::stop_source stop;
  stop.request_stop();
  const acquire_options options{.cancel = stop.get_token()};
  int cancelled = 0;
  for (int i = 0; i < 50; ++i) {
    async_acquire(locks, "x", options, bound([&](error_code ec, const lease&) { cancelled += ec == errc::cancelled; }));
  }
  run();
  EXPECT_EQ(cancelled, 50);
  EXPECT_FALSE(exists("hf:{x}:fence")) << "it was never granted";
}

TEST_F(asynchronous_end, operations_of_a_client_that_ends_are_cancelled) {
  auto holder = make_client();
  auto held = holder.acquire("x");
  std::vector<std::future<lease>> waiting;
  {
    auto locks = make_client();
    for (int i = 0; i < 20; ++i)
      waiting.push_back(async_acquire(locks, "x", {}, asio::bind_executor(io, asio::use_future)));
    ASSERT_TRUE(waits_for(20));
  }
  run();
  for (auto& one : waiting) EXPECT_TRUE(is_cancelled(code_of_future(one)));
  EXPECT_TRUE(waits_for(0));
}

TEST_F(asynchronous_end, release_goes_on_when_its_client_ends) {
  std::future<release_outcome> giving_back;
  {
    auto locks = make_client();
    giving_back = async_release(locks.acquire("x"), asio::use_future);
  }
  EXPECT_EQ(giving_back.get(), release_outcome::released);
}

TEST_F(asynchronous_end, in_a_forked_child_is_an_error_and_the_parent_does_not_notice) {
  auto locks = make_client();
  auto held = locks.acquire("x");
  auto waiting = async_acquire(locks, "x", {}, asio::use_future);
  ASSERT_TRUE(waits_for(1));
  expect_refusals_in_a_child(locks, held);
  held.release();
  EXPECT_TRUE(waiting.get().valid());
}

// Asio runs what is in the context's queue in both processes.
TEST_F(asynchronous_end, posted_before_a_fork_has_no_valid_lease_in_the_child_P33) {
  auto locks = make_client();
  std::optional<lease> got;
  async_acquire(locks, "x", {}, bound([&](error_code ec, lease what) {
                  EXPECT_FALSE(ec) << ec.message();
                  got = std::move(what);
                }));
  const auto behind = async_acquire(locks, "y", {}, asio::use_future).get();  // It is told behind that one.
  io.notify_fork(asio::execution_context::fork_prepare);
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(20);
    io.notify_fork(asio::execution_context::fork_child);
    io.poll();
    const bool is_ours = !got || got->valid() || code_of([&] { got->release(); }) != errc::used_after_fork;
    ::_exit(is_ours ? 1 : 0);
  }
  io.notify_fork(asio::execution_context::fork_parent);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  run();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->valid());
  EXPECT_EQ(got->release(), release_outcome::released);
}

// H49: the answer came while nobody of us could read it, and lies in the socket when our time is up.
TEST_F(asynchronous_end, of_a_release_that_was_answered_while_the_process_was_stopped_is_the_answer) {
  client_options how;
  how.timeout = 1s;
  client locks{server_.unix_uri(), how};
  auto held = locks.acquire("x");
  std::optional<release_outcome> end;
  server_("CLIENT", "PAUSE", "300", "ALL");
  async_release(std::move(held), bound([&](release_outcome how_it_ended) { end = how_it_ended; }));
  // More than once: on a busy machine we may stop only then.
  const auto wake = "kill -CONT " + std::to_string(::getpid());
  const child_process wakes_us{{"/bin/sh", "-c", "sleep 1.5; while " + wake + "; do sleep 0.1; done"}};
  let_pass(100ms);  // By now somebody waits for the answer.
  ::raise(SIGSTOP);
  run();
  EXPECT_EQ(end, release_outcome::released);
}

TEST_F(asynchronous_end, waiters_survive_a_connection_that_is_cut) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  auto held = make_client().acquire("x");
  std::vector<std::future<lease>> waiting;
  for (int i = 0; i < 20; ++i) waiting.push_back(async_acquire(locks, "x", {}, asio::use_future));
  ASSERT_TRUE(waits_for(20));
  proxy.cut_all();
  held.release();
  for (auto& one : waiting) {
    ASSERT_EQ(one.wait_for(30s), std::future_status::ready);
    one.get().release();
  }
}

}  // namespace
}  // namespace holdfast::test
