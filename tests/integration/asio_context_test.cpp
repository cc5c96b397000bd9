// SPDX-License-Identifier: Apache-2.0
// An execution context that ends under operations of holdfast/asio.hpp: their handlers end with it, on its thread and
// uncalled, and nothing touches it afterwards. Who begins, is over or is granted a lease in that moment is the danger.
#include "integration/asio_fixture.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor.hpp>
#include <boost/asio/io_context_strand.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class asynchronous_context : public on_asio {
protected:
  // For a handler to have: does this at its end.
  template <class End>
  static std::shared_ptr<void> at_end(End end) {
    return {nullptr, [end = std::move(end)](void*) { end(); }};
  }

  // `executor_of` a context gives one for the handlers.
  template <class ExecutorOf>
  void drops_operations(const ExecutorOf& executor_of) {
    auto held = locks_.acquire("x");
    const auto witness = std::make_shared<int>();
    {
      asio::io_context ending;
      const auto where = executor_of(ending);
      for (int i = 0; i < 20; ++i) {
        async_acquire(locks_, "x", {},
                      asio::bind_executor(where, [witness](error_code, const lease&) { ADD_FAILURE(); }));
      }
      ASSERT_TRUE(waits_for(20));
    }
    EXPECT_EQ(witness.use_count(), 1) << "a handler is left";
    EXPECT_TRUE(waits_for(0));
    held.release();
    EXPECT_TRUE(locks_.try_acquire("x"));
  }

  // `begin(context, handler)`: the context's end ends the handler, whose end begins operations in that context.
  template <class Begin>
  void abandons_what_is_begun_at_its_end(const Begin& begin) {
    auto held = locks_.acquire("x");
    const auto kept = locks_.acquire("kept");
    auto given_back = locks_.acquire("given back");
    const auto witness = std::make_shared<int>();
    {
      asio::io_context ending;
      begin(ending, [last = at_end([&] {
                       begin_each_kind(ending, witness, kept, std::move(given_back));
                       left_behind_ = witness.use_count() - 1;
                     })]([[maybe_unused]] const auto&... result) { ADD_FAILURE(); });
    }
    EXPECT_EQ(witness.use_count(), 1) << "a handler is left";
    EXPECT_TRUE(eventually([&] { return !exists("hf:{given back}"); })) << "nobody is told, but it is released";
    EXPECT_TRUE(waits_for(0));
    held.release();
    EXPECT_TRUE(locks_.try_acquire("x"));
    EXPECT_TRUE(kept.valid());
  }

  client locks_ = make_client();
  long left_behind_ = -1;  // Handlers of these, when all are begun.

private:
  void begin_each_kind(asio::io_context& in, const std::shared_ptr<int>& witness, const lease& kept, lease given_back) {
    auto handler = asio::bind_executor(in, [witness](const auto&...) { ADD_FAILURE(); });
    async_acquire(locks_, "x", {}, handler);
    async_renew(kept, handler);
    async_downgrade(kept, handler);
    async_release(std::move(given_back), handler);
    // Its slot ends with it.
    auto cancel = std::make_unique<asio::cancellation_signal>();
    const auto slot = cancel->slot();
    async_acquire(
        locks_, "x", {},
        asio::bind_cancellation_slot(slot, asio::bind_executor(in, [owned = std::move(cancel), witness](
                                                                       error_code, const lease&) { ADD_FAILURE(); })));
  }
};

TEST_F(asynchronous_context, drops_its_operations_which_leave_the_line) {
  drops_operations([](asio::io_context& of) { return of.get_executor(); });
}

TEST_F(asynchronous_context, drops_operations_of_its_strands_and_of_executors_that_hide_it) {
  drops_operations([](asio::io_context& of) { return asio::make_strand(of); });
  drops_operations([](asio::io_context& of) { return asio::any_io_executor{of.get_executor()}; });
  drops_operations([](asio::io_context& of) { return asio::make_strand(asio::any_io_executor{of.get_executor()}); });
}

// Its context is no execution_context of Asio's. To post() its executor is one like any other.
class own_thread {
public:
  struct executor {
    own_thread* in;
    template <class Function>
    void execute(Function f) const {
      const std::lock_guard lock{in->adding_};
      in->all_.emplace_back(std::move(f));
    }
    own_thread& query(asio::execution::context_t) const noexcept { return *in; }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
      return asio::execution::blocking.never;
    }
    executor require(asio::execution::blocking_t::never_t) const { return *this; }
    bool operator==(const executor&) const = default;
  };
  own_thread() = default;
  ~own_thread() { const std::lock_guard lock{adding_}; }  // Who adds the last one may not have returned.
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;
  executor get_executor() { return {this}; }

private:
  std::vector<std::jthread> all_{};
  std::mutex adding_{};
};

TEST_F(asynchronous_context, need_not_be_one_of_asio_s) {
  std::promise<lease> got;
  own_thread there;
  async_acquire(locks_, "x", {}, asio::bind_executor(there.get_executor(), [&](error_code ec, lease what) {
                  EXPECT_FALSE(ec) << ec.message();
                  got.set_value(std::move(what));
                }));
  EXPECT_TRUE(got.get_future().get().valid());
}

// They tell it as the Networking TS has it, and not as a property.
TEST_F(asynchronous_context, drops_operations_of_executors_of_the_networking_ts) {
  drops_operations([](asio::io_context& of) { return asio::io_context::strand{of}; });
  drops_operations([](asio::io_context& of) { return asio::executor{of.get_executor()}; });
}

TEST_F(asynchronous_context, abandons_what_a_waiter_s_handler_begins_at_its_end) {
  abandons_what_is_begun_at_its_end([&](asio::io_context& in, auto handler) {
    async_acquire(locks_, "x", {}, asio::bind_executor(in, std::move(handler)));
    EXPECT_TRUE(waits_for(1));
  });
  EXPECT_EQ(left_behind_, 0) << "one may be over before anybody comes round again";
}

// Asio does not tell us of an end that has begun when it first hears of us.
TEST_F(asynchronous_context, without_an_operation_abandons_what_a_handler_begins_at_its_end) {
  abandons_what_is_begun_at_its_end([](asio::io_context& in, auto handler) { asio::post(in, std::move(handler)); });
}

// A wait that ends by itself while others are dropped would take its handler along, on a thread of ours, perhaps behind
// the context's end. The handler that is dropped first ends all other waits, and goes on when we have been through
// them.
TEST_F(asynchronous_context, ends_the_handlers_of_waits_that_end_meanwhile) {
  constexpr int others = 10;
  auto held = locks_.acquire("x");
  std::stop_source stop;
  const auto here = std::this_thread::get_id();
  std::atomic<int> ended_here = 0;
  {
    asio::io_context ending;
    const auto begin = [&](const acquire_options& how, auto end) {
      async_acquire(locks_, "x", how,
                    asio::bind_executor(ending, [last = at_end(end)](error_code, const lease&) { ADD_FAILURE(); }));
    };
    begin({}, [&] {
      stop.request_stop();
      async_acquire(locks_, "y", {}, asio::use_future).get();  // It is told behind them.
    });
    for (int i = 0; i < others; ++i) {
      begin({.cancel = stop.get_token()}, [&] { ended_here += std::this_thread::get_id() == here; });
    }
    ASSERT_TRUE(waits_for(1 + others));
  }
  EXPECT_EQ(ended_here, others);
}

// A strand that has ended destroys the handlers that it is given, so it must not end before we do.
TEST_F(asynchronous_context, ends_the_handlers_of_a_strand_that_is_younger_than_its_first_operation) {
  constexpr int others = 10;
  auto held = locks_.acquire("x");
  std::stop_source stop;
  const auto here = std::this_thread::get_id();
  std::atomic<int> ended_here = 0;
  {
    asio::io_context ending;
    const asio::io_context::strand old_one{ending};
    async_acquire(locks_, "z", {}, asio::bind_executor(old_one, [](error_code, const lease&) {}));
    const auto strand = asio::make_strand(ending);
    asio::post(strand, [last = at_end([&] {
                          stop.request_stop();
                          async_acquire(locks_, "y", {}, asio::use_future).get();  // It is told behind them.
                        })] {});
    const acquire_options how{.cancel = stop.get_token()};
    for (int i = 0; i < others; ++i) {
      auto end = at_end([&] { ended_here += std::this_thread::get_id() == here; });
      async_acquire(locks_, "x", how,
                    asio::bind_executor(strand, [last = std::move(end)](error_code, const lease&) { ADD_FAILURE(); }));
    }
    ASSERT_TRUE(waits_for(others));
  }
  EXPECT_EQ(ended_here, others);
}

// Its end takes as long as the waits do.
TEST_F(asynchronous_context, may_end_while_waits_end) {
  auto held = locks_.acquire("x");
  const auto here = std::this_thread::get_id();
  std::atomic<int> ended_elsewhere = 0;
  const auto is_dropped = [&] {
    ended_elsewhere += std::this_thread::get_id() != here;
    let_pass(1ms);
  };
  for (int i = 0; i < scaled(6000) / 200; ++i) {
    asio::io_context ending;
    for (auto wait = 1ms; wait < 10ms; ++wait) {
      async_acquire(locks_, "x", {.wait = wait},
                    asio::bind_executor(ending, [last = at_end(is_dropped)](error_code, const lease&) {}));
    }
    ending.run_one();
  }
  EXPECT_EQ(ended_elsewhere, 0);
}

// Granted, posted, and never run: the lease is in a handler that Asio destroys.
TEST_F(asynchronous_context, gives_back_a_lease_that_nobody_took) {
  {
    asio::io_context ending;
    async_acquire(locks_, "x", {}, asio::bind_executor(ending, [](error_code, const lease&) { ADD_FAILURE(); }));
    EXPECT_TRUE(eventually([&] { return exists("hf:{x}"); }));
    let_pass(20ms);
  }
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
}

TEST_F(asynchronous_context, may_end_while_leases_are_granted) {
  for (int i = 0; i < scaled(6000) / 60; ++i) {
    asio::io_context ending;
    for (int k = 0; k < 5; ++k) {
      async_acquire(locks_, "x" + std::to_string(k), {}, asio::bind_executor(ending, [](error_code, const lease&) {}));
    }
    ending.poll();
  }
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x0}") && !exists("hf:{x4}"); }));
}

// A completion that is being posted in the moment of the fork is posted by a thread that is not in the child, which
// would wait for it at the end of its io_context.
TEST(asynchronous_fork, waits_for_what_is_being_posted) {
  std::optional<asio::io_context> io{std::in_place};
  const auto operations = holdfast::detail::operations_of(io->get_executor());
  const auto place = operations->add({}).value();
  std::latch is_posting{1};
  std::latch may_end{1};
  std::jthread poster{[&] {
    operations->take_out(place, [&] {
      is_posting.count_down();
      may_end.wait();
    });
  }};
  is_posting.wait();
  std::atomic<bool> is_prepared{false};
  int status = -1;
  std::jthread forker{[&] {
    io->notify_fork(asio::execution_context::fork_prepare);
    is_prepared = true;
    const auto child = ::fork();
    if (child == 0) {
      ::alarm(5);
      io->notify_fork(asio::execution_context::fork_child);
      io.reset();
      ::_exit(0);
    }
    io->notify_fork(asio::execution_context::fork_parent);
    ::waitpid(child, &status, 0);
  }};
  EXPECT_FALSE(eventually([&] { return is_prepared.load(); }, 100ms));
  may_end.count_down();
  forker.join();
  EXPECT_EQ(status, 0) << "a signal is 14: it waited";
}

}  // namespace
}  // namespace holdfast::test
