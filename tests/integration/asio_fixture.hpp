// SPDX-License-Identifier: Apache-2.0
// A test of holdfast/asio.hpp: an io_context, how an operation ends there, and a server with who waits for the lock
// "x".
#pragma once

#include "integration/fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <holdfast/asio.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::test {

namespace asio = boost::asio;
using boost::system::error_code;

// How many ends by cancellation an observer hears of.
struct cancelled_watch : observer {
  void on_acquire(const std::string&, acquire_result how, std::chrono::microseconds, int) override {
    if (how == acquire_result::cancelled) ++cancelled;
  }
  std::atomic<int> cancelled{0};
};

// The second base of a fixture: it ends before the servers do, and after all that a test has.
class with_io_context {
protected:
  template <class Handler>
  auto bound(Handler handler) {
    return asio::bind_executor(io, std::move(handler));
  }
  // Until nothing is under way.
  void run() {
    io.restart();
    EXPECT_GT(io.run_for(90s), 0u);
    EXPECT_TRUE(io.stopped()) << "something is under way after a minute and a half";
  }

  // How an acquire of "x" ends; the lease, if there is one, with it.
  error_code end_of(client& locks, const async_options& options) {
    std::optional<error_code> end;
    async_acquire(locks, "x", options, bound([&](error_code ec, const lease&) { end = ec; }));
    run();
    EXPECT_TRUE(end);
    return end.value_or(error_code{});
  }

  // How an operation ends whose slot is told to cancel once `ready` has returned. `begin(token)` begins it; Result is
  // what it completes with beside the code.
  template <class... Result, class Begin, class Ready>
  error_code end_of_cancelled(const Begin& begin, Ready ready,
                              asio::cancellation_type type = asio::cancellation_type::terminal) {
    asio::cancellation_signal cancel;
    std::optional<error_code> end;
    begin(asio::bind_cancellation_slot(cancel.slot(), bound([&](error_code ec, const Result&... result) {
                                         end = ec;
                                         EXPECT_TRUE(((static_cast<bool>(result) == !ec) && ...));
                                       })));
    ready();
    EXPECT_FALSE(end);
    cancel.emit(type);
    EXPECT_FALSE(end) << "called in place";
    run();
    cancel.emit(type);  // It is over: this does nothing.
    return end.value_or(error_code{});
  }

  // Whoever stands in line may have a look under way, whose answer is then not waited for.
  static bool is_cancelled(const error_code& ec) { return ec == errc::cancelled || ec == errc::cancelled_in_flight; }

  // Of one that was made ready by run(): ThreadSanitizer does not see the counts of an exception that changes threads.
  template <class Future>
  static error_code code_of_future(Future& one) {
    try {
      one.get();
    } catch (const boost::system::system_error& e) {
      return e.code();
    }
    return {};
  }

  // P33: the child has neither the threads nor the connections; what it says is its own.
  static void expect_refusals_in_a_child(client& locks, lease& held) {
    const auto child = ::fork();
    if (child == 0) {
      error_code ec;
      asio::io_context own;
      async_acquire(locks, "y", {}, asio::bind_executor(own, [&](error_code e, const lease&) { ec = e; }));
      own.run();
      const bool refused =
          code_of([&] { (void)async_release(std::move(held), asio::deferred); }) == errc::used_after_fork;
      ::_exit(ec == errc::used_after_fork && refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }

  asio::io_context io;
};

class on_asio : public on_redis, protected with_io_context {
protected:
  std::int64_t waiting() { return server_("ZCARD", "hf:{x}:line").number; }
  bool waits_for(std::int64_t count, std::chrono::nanoseconds deadline = 20s) {
    return eventually([&] { return waiting() == count; }, deadline);
  }

  template <class Ready>
  error_code end_when_cancelled(client& locks, Ready ready,
                                asio::cancellation_type type = asio::cancellation_type::terminal) {
    return end_of_cancelled<lease>(
        [&](auto&& token) { async_acquire(locks, "x", {}, std::forward<decltype(token)>(token)); }, ready, type);
  }
};

}  // namespace holdfast::test
