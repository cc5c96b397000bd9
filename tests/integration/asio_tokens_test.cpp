// SPDX-License-Identifier: Apache-2.0
// Each operation of holdfast/asio.hpp with each kind of completion token. A kind is a way to begin an operation and to
// come by its results; whatever it is, they are the same.
#include "integration/asio_fixture.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <memory_resource>
#include <thread>
#include <tuple>
#include <type_traits>

namespace holdfast::test {
namespace {

// The results of an operation that is over, and that it was told where it was asked to be.
template <class... Result>
struct receiver {
  asio::io_context& io;
  std::optional<std::tuple<Result...>>& end;

  void operator()(Result... result) const {
    EXPECT_TRUE(io.get_executor().running_in_this_thread());
    EXPECT_FALSE(end) << "told twice";
    end.emplace(std::move(result)...);
  }
};

struct callback {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    begin(asio::bind_executor(io, receiver<Result...>{io, end}));
    EXPECT_FALSE(end) << "called in place";
    io.run();
  }
};

struct slot {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    asio::cancellation_signal never_emitted;
    begin(asio::bind_cancellation_slot(never_emitted.slot(), asio::bind_executor(io, receiver<Result...>{io, end})));
    io.run();
  }
};

struct deferred {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    auto operation = begin(asio::deferred);
    EXPECT_EQ(io.poll(), 0u) << "begun before it was asked for";
    io.restart();
    std::move(operation)(asio::bind_executor(io, receiver<Result...>{io, end}));
    io.run();
  }
};

// As of make_strand(timer.get_executor()).
struct strand {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    const auto alone = asio::make_strand(asio::any_io_executor{io.get_executor()});
    begin(asio::bind_executor(alone, [alone, to = receiver<Result...>{io, end}](Result... result) {
      EXPECT_TRUE(alone.running_in_this_thread());
      to(std::move(result)...);
    }));
    io.run();
  }
};

// A handler behind a type that hides it, and the executor with it: that one cannot be asked never to call in place.
struct erased {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    asio::post(io, [&] {
      begin(asio::any_completion_handler<void(Result...)>{asio::bind_executor(io, receiver<Result...>{io, end})});
      EXPECT_FALSE(end) << "called in place";
    });
    io.run();
  }
};

// A handler whose memory is for the one thread that runs its context, as in many a program: a thread of ours must not
// take from it, nor give back.
class memory_of_this_thread : public std::pmr::memory_resource {
  void is_asked() const { EXPECT_EQ(std::this_thread::get_id(), its_thread_) << "asked elsewhere"; }
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    is_asked();
    return std::pmr::new_delete_resource()->allocate(size, alignment);
  }
  void do_deallocate(void* what, std::size_t size, std::size_t alignment) override {
    is_asked();
    std::pmr::new_delete_resource()->deallocate(what, size, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  const std::thread::id its_thread_ = std::this_thread::get_id();
};
template <class... Result>
auto with_memory(memory_of_this_thread& memory, receiver<Result...> to) {
  return asio::bind_executor(to.io, asio::bind_allocator(std::pmr::polymorphic_allocator<>{&memory}, to));
}

struct memory {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    memory_of_this_thread its;
    begin(with_memory(its, receiver<Result...>{io, end}));
    io.run();
  }
};

struct erased_memory {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    memory_of_this_thread its;
    begin(asio::any_completion_handler<void(Result...)>{with_memory(its, receiver<Result...>{io, end})});
    io.run();
  }
};

// Futures and coroutines throw the code: it is put beside the value again.
template <class Value, class Get>
void put_together(std::optional<std::tuple<error_code, Value>>& end, const Get& get) {
  try {
    end.emplace(error_code{}, get());
  } catch (const boost::system::system_error& e) {
    end.emplace(e.code(), Value{});
  }
}
template <class Get>
void put_together(std::optional<std::tuple<error_code>>& end, const Get& get) {
  try {
    get();
    end.emplace();
  } catch (const boost::system::system_error& e) {
    end.emplace(e.code());
  }
}
template <class Get>
void put_together(std::optional<std::tuple<release_outcome>>& end, const Get& get) {
  end.emplace(get());
}

struct future {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    auto promised = begin(asio::bind_executor(io, asio::use_future));
    io.run();
    put_together(end, [&] { return promised.get(); });
  }
};

#ifdef BOOST_ASIO_HAS_CO_AWAIT
// What an awaitable gave or threw, when it is over.
template <class Value>
struct come_by {
  std::exception_ptr thrown;
  std::optional<Value> value;
  Value get() {
    if (thrown) std::rethrow_exception(thrown);
    return std::move(*value);
  }
};
template <>
struct come_by<void> {
  std::exception_ptr thrown;
  void get() const {
    if (thrown) std::rethrow_exception(thrown);
  }
};
template <class Value>
void await(asio::io_context& io, asio::awaitable<Value> what, come_by<Value>& into) {
  if constexpr (std::is_void_v<Value>) {
    asio::co_spawn(io, std::move(what), [&](std::exception_ptr thrown) { into.thrown = thrown; });
  } else {
    asio::co_spawn(io, std::move(what), [&](std::exception_ptr thrown, Value value) {
      into.thrown = thrown;
      into.value.emplace(std::move(value));
    });
  }
  io.run();
}

struct coroutine {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    auto operation = begin(asio::use_awaitable);
    come_by<typename decltype(operation)::value_type> got;
    await(io, std::move(operation), got);
    put_together(end, [&] { return got.get(); });
  }
};

// A token that somebody made of another one: nothing is thrown.
struct coroutine_of_tuples {
  template <class... Result, class Begin>
  static void run(asio::io_context& io, std::optional<std::tuple<Result...>>& end, const Begin& begin) {
    come_by<std::tuple<Result...>> got;
    await(io, begin(asio::as_tuple(asio::use_awaitable)), got);
    end.emplace(got.get());
  }
};
using kinds = testing::Types<callback, slot, deferred, strand, erased, memory, erased_memory, future, coroutine,
                             coroutine_of_tuples>;
#else
using kinds = testing::Types<callback, slot, deferred, strand, erased, memory, erased_memory, future>;
#endif

template <class Kind>
class with_token : public on_asio {
protected:
  template <class... Result, class Begin>
  std::tuple<Result...> run(const Begin& begin) {
    std::optional<std::tuple<Result...>> end;
    this->io.restart();
    Kind::run(this->io, end, begin);
    EXPECT_TRUE(end) << "never told";
    return end ? std::move(*end) : std::tuple<Result...>{};
  }
  // An acquire; how a lease is renewed, downgraded and released.
  template <class Begin>
  std::tuple<error_code, lease> get(const Begin& begin) {
    return run<error_code, lease>(begin);
  }
  template <class Begin>
  lease lease_of(const Begin& begin) {
    auto [ec, got] = get(begin);
    EXPECT_FALSE(ec) << ec.message();
    EXPECT_TRUE(got.valid());
    return std::move(got);
  }
  error_code renew(const lease& held) {
    return std::get<0>(run<error_code>([&](auto&& token) { return async_renew(held, std::move(token)); }));
  }
  error_code downgrade(const lease& held) {
    return std::get<0>(run<error_code>([&](auto&& token) { return async_downgrade(held, std::move(token)); }));
  }
  release_outcome release(lease held) {
    return std::get<0>(
        run<release_outcome>([&](auto&& token) { return async_release(std::move(held), std::move(token)); }));
  }
  template <class Begin>
  void is_busy(const Begin& begin) {
    auto [ec, got] = get(begin);
    EXPECT_EQ(ec, errc::timed_out);
    EXPECT_FALSE(got);
  }

  client locks_ = this->make_client();
};

TYPED_TEST_SUITE(with_token, kinds);

TYPED_TEST(with_token, an_exclusive_lock_is_acquired_renewed_and_released) {
  const auto acquire = [&](auto&& token) { return async_acquire(this->locks_, "x", {}, std::move(token)); };
  const auto acquire_now = [&](auto&& token) {
    return async_acquire(this->locks_, "x", {.wait = 0ms}, std::move(token));
  };
  auto held = this->lease_of(acquire);
  EXPECT_EQ(held.name(), "x");
  this->is_busy(acquire_now);
  EXPECT_FALSE(this->renew(held));
  EXPECT_EQ(this->release(std::move(held)), release_outcome::released);
  held = this->lease_of(acquire_now);
  this->server_("DEL", "hf:{x}");
  EXPECT_EQ(this->renew(held), errc::lease_gone);
  EXPECT_EQ(this->release(std::move(held)), release_outcome::already_lost);
}

TYPED_TEST(with_token, permits_of_a_semaphore_are_acquired_renewed_and_released) {
  semaphore three{this->locks_, "x", 3};
  const auto acquire_two = [&](auto&& token) { return async_acquire(three, {.permits = 2}, std::move(token)); };
  const acquire_options by_name{.wait = 0ms, .owner = "one who has options with a name", .permits = 2};
  const auto acquire_now = [&](auto&& token) { return async_acquire(three, by_name, std::move(token)); };
  auto two = this->lease_of(acquire_two);
  this->is_busy(acquire_now);
  EXPECT_FALSE(this->renew(two));
  EXPECT_EQ(this->locks_.inspect("x").permits_held, 2);
  EXPECT_EQ(this->release(std::move(two)), release_outcome::released);
  auto other_two = this->lease_of(acquire_now);
  EXPECT_EQ(this->locks_.inspect("x").owner, by_name.owner);
}

TYPED_TEST(with_token, a_shared_lock_is_written_read_and_downgraded) {
  shared_mutex rw{this->locks_, "x"};
  const auto write = [&](auto&& token) { return async_acquire(rw, {.wait = 0ms}, std::move(token)); };
  const auto read = [&](auto&& token) { return async_acquire_shared(rw, {.wait = 0ms}, std::move(token)); };
  auto writer = this->lease_of(write);
  this->is_busy(read);
  EXPECT_FALSE(this->renew(writer));
  EXPECT_FALSE(this->downgrade(writer));
  auto reader = this->lease_of(read);
  this->is_busy(write);
  EXPECT_EQ(this->release(std::move(reader)), release_outcome::released);
  EXPECT_EQ(this->release(std::move(writer)), release_outcome::released);
  writer = this->lease_of(write);
  this->server_("DEL", "hf:{x}");
  EXPECT_EQ(this->downgrade(writer), errc::lease_gone);
}

}  // namespace
}  // namespace holdfast::test
