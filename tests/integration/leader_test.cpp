// SPDX-License-Identifier: Apache-2.0
// Who leads is a stranger's thread: whatever becomes of it in the middle of a call, the leases and the calls of the
// others go on (P32).
#include "integration/cluster_fixture.hpp"
#include "integration/fixture.hpp"
#include "integration/quorum_fixture.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <holdfast/asio.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <holdfast/start.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

// Which allocation of this thread from now on stands still; below zero: none. An allocation is where a test can stop a
// thread under a mutex of ours.
thread_local int allocations_until_it_stands_still = -1;
thread_local timespec it_stands_still_for{1, 200'000'000};

#ifndef HOLDFAST_SANITIZED
// Whether this thread stands still behind the next bytes that it sends: it has asked, and looks for the answer late.
thread_local bool stands_still_behind_a_send = false;
#endif

}  // namespace

#ifndef HOLDFAST_SANITIZED
extern "C" [[gnu::visibility("default")]] ssize_t send(int fd, const void* bytes, size_t count, int flags) {
  const ssize_t sent = ::sendto(fd, bytes, count, flags, nullptr, 0);
  if (std::exchange(stands_still_behind_a_send, false)) {
    timespec left{0, 700'000'000};
    while (::nanosleep(&left, &left) != 0) {
    }
  }
  return sent;
}
#endif

// Not inline, or g++ sees a malloc that is ended by delete and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_until_it_stands_still >= 0 && allocations_until_it_stands_still-- == 0) {
    timespec left = it_stands_still_for;
    while (::nanosleep(&left, &left) != 0) {
    }
  }
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
// Of std::stable_partition, for one: a sanitizer's own would not be ended by our delete.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept try {
  return operator new(size);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }

namespace holdfast::test {
namespace {

using leader = on_redis;

timespec stands_still{1, 800'000'000};

// As a debugger, a throttled cgroup or SCHED_IDLE would: it gets no time, wherever it is.
void stop_here(int /*signal*/) {
  timespec left = stands_still;
  while (::nanosleep(&left, &left) != 0) {
  }
}

TEST_F(leader, that_stands_still_keeps_no_lease_from_being_renewed_P32) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "a sanitizer's run-time runs handlers when it likes, and may stop the other threads meanwhile";
#endif
  struct sigaction stopping = {};
  stopping.sa_handler = stop_here;
  struct sigaction before = {};
  ASSERT_EQ(::sigaction(SIGUSR1, &stopping, &before), 0);

  auto locks = make_client();
  auto other = make_client();
  auto kept = locks.acquire("kept", {.ttl = 900ms});
  auto in_the_way = other.acquire("x");
  std::jthread waiting{[&] {
    std::error_code ec;
    (void)locks.acquire("x", {.wait = 3s}, ec);
  }};
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  ::pthread_kill(waiting.native_handle(), SIGUSR1);
  for (const auto until = boottime() + 1500ms; boottime() < until; let_pass(20ms)) {
    ASSERT_TRUE(kept.valid());
    ASSERT_TRUE(exists("hf:{kept}"));
  }
  in_the_way.release();
  waiting.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

// Wherever it stands still: at one allocation of its call after the other, most of them under the mutex that callers
// share. Somebody must drive the connection for calls that no thread waits for, and gets none of them done meanwhile.
TEST_F(leader, that_stands_still_with_their_mutex_keeps_no_lease_from_being_renewed_P32) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the allocator is a sanitizer's, and two thousand calls take all of its time";
#endif
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto kept = locks.acquire("kept", {.ttl = 900ms});
  std::atomic<bool> goes_on{true};
  std::atomic<int> ended{0};
  boost::asio::thread_pool pool{1};
  const std::function<void()> again = [&] {
    async_acquire(locks, "x", {.wait = 0ms}, boost::asio::bind_executor(pool, [&](auto, const lease&) {
                    ++ended;
                    if (goes_on) again();
                  }));
  };
  for (int i = 0; i < 2000; ++i) again();

  int stops = 0;
  for (bool stood_still = true; stood_still && stops < 10; ++stops) {
    std::jthread caller{[&] {
      allocations_until_it_stands_still = stops;
      std::error_code ec;
      (void)locks.try_acquire("x", {}, ec);
      stood_still = allocations_until_it_stands_still < 0;
      allocations_until_it_stands_still = -1;
    }};
    caller.join();
    ASSERT_TRUE(kept.valid()) << "at the allocation " << stops;
  }
  EXPECT_GT(stops, 5);
  EXPECT_GT(ended, 2000) << "nobody drove them";
  goes_on = false;
  pool.join();
  in_the_way.release();
}

#ifndef HOLDFAST_SANITIZED
// A wait ends with the loss of what is held besides (acquire_all). That is noticed on the callback thread, and behind
// it come the losses of all other leases. Of those who wait one stands at the server, one in the process's own line.
TEST_F(leader, that_stands_still_with_their_mutex_keeps_no_loss_from_being_told_C4_P32) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("b");
  auto in_another_way = other.acquire("e");
  int stops = 0;
  for (bool stood_still = true; stood_still && stops < 16; ++stops) {
    auto kept = locks.acquire("c", {.ttl = 900ms});
    std::atomic<bool> is_told{false};
    const std::stop_callback on_loss{kept.lost(), [&] { is_told = true; }};
    const auto wait_for_all = [&](const std::vector<std::string>& names, std::stop_token stop) {
      EXPECT_THROW((void)locks.acquire_all(names, {.ttl = 900ms, .cancel = std::move(stop)}), error);
    };
    std::jthread first{[&](std::stop_token stop) { wait_for_all({"b"}, std::move(stop)); }};
    ASSERT_TRUE(eventually([&] { return exists("hf:{b}:line"); }));
    std::jthread in_process{[&](std::stop_token stop) { wait_for_all({"a", "b"}, std::move(stop)); }};
    std::jthread at_server{[&](std::stop_token stop) { wait_for_all({"d", "e"}, std::move(stop)); }};
    ASSERT_TRUE(eventually([&] { return exists("hf:{e}:line") && exists("hf:{a}"); }));
    std::jthread caller{[&] {
      it_stands_still_for = {1, 500'000'000};
      allocations_until_it_stands_still = stops;
      std::error_code ec;
      (void)locks.acquire("z", {.wait = 1s}, ec);
      stood_still = allocations_until_it_stands_still < 0;
      allocations_until_it_stands_still = -1;
    }};
    let_pass(50ms);
    server_("DEL", "hf:{a}", "hf:{d}");
    let_pass(300ms);
    server_("DEL", "hf:{c}");
    EXPECT_TRUE(eventually([&] { return is_told.load(); }, 900ms)) << "at the allocation " << stops;
    first.request_stop();
    caller.join();
  }
  EXPECT_GT(stops, 10);
}

// A stop callback, say, on the thread that tells of losses.
TEST_F(leader, that_stands_still_with_their_mutex_keeps_nobody_who_cancels_waiting_C4_P32) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  int stops = 0;
  for (bool stood_still = true; stood_still && stops < 16; ++stops) {
    boost::asio::thread_pool pool{1};
    std::stop_source stop;
    acquire_options until_stopped{.cancel = stop.get_token()};
    std::error_code end;
    async_acquire(locks, "x", until_stopped,
                  boost::asio::bind_executor(pool, [&](auto ec, const lease&) { end = ec; }));
    ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
    std::atomic<bool> is_over{false};
    std::jthread caller{[&] {
      it_stands_still_for = {1, 0};
      allocations_until_it_stands_still = stops;
      std::error_code ec;
      (void)locks.acquire("z", {.wait = 1s}, ec);
      stood_still = allocations_until_it_stands_still < 0;
      allocations_until_it_stands_still = -1;
      is_over = true;
    }};
    let_pass(100ms);
    stop.request_stop();
    const bool was_over = is_over;
    caller.join();
    EXPECT_FALSE(stood_still && was_over) << "it has waited for who stands still, at the allocation " << stops;
    pool.join();
    EXPECT_TRUE(end == errc::cancelled || end == errc::cancelled_in_flight) << end.message();
  }
  EXPECT_GT(stops, 10);
}

// Who is the primary is asked for by one thread for all nodes, and without it no grant counts, nor in the end any
// renewal: it must not wait for a caller of one of them.
TEST_F(on_a_cluster, a_caller_that_stands_still_with_the_mutex_of_a_node_keeps_no_other_node_from_granting_P32) {
  auto locks = make();
  const auto names = a_name_on_each();
  for (const auto& name : names) (void)locks.acquire(name, brief).release();
  auto kept = locks.acquire(names[1], brief);
  for (int stops = 1; stops < 3; ++stops) {
    std::atomic<bool> is_over{false};
    std::jthread caller{[&] {
      it_stands_still_for = {4, 0};
      allocations_until_it_stands_still = stops;
      std::error_code ec;
      (void)locks.try_acquire(names[0], brief, ec);
      allocations_until_it_stands_still = -1;
      is_over = true;
    }};
    let_pass(3s);
    EXPECT_FALSE(is_over);
    const auto held = locks.try_acquire(names[2], brief);
    EXPECT_TRUE(held && held->valid()) << "at the allocation " << stops;
    EXPECT_TRUE(kept.valid()) << "at the allocation " << stops;
    EXPECT_FALSE(is_over);
  }
}

// A call that no thread waits for goes on at the node to which its slot has moved, where a caller stands still: neither
// the thread that learns of moves, for all nodes, waits for that one, nor who drives the node that it comes from.
TEST_F(on_a_cluster, a_call_that_moves_to_a_node_whose_caller_stands_still_keeps_no_other_node_from_granting_P32) {
  auto locks = make();
  auto others = make();
  const auto names = a_name_on_each();
  for (const auto& name : names) (void)locks.acquire(name, brief).release();
  auto kept = locks.acquire(names[2], brief);
  int last = 0;
  const auto another_at = [&](std::size_t which) {
    for (;; ++last) {
      if (const auto name = "m" + std::to_string(last); home_of(name).address == primaries()[which].address) {
        ++last;
        return name;
      }
    }
  };
  const auto moving = another_at(0);
  const std::array free{another_at(0), another_at(2)};
  auto in_the_way = others.acquire(moving, brief);
  boost::asio::thread_pool pool{1};
  std::atomic<bool> has_got{false};
  async_acquire(locks, moving, {.ttl = 3s, .wait = long_enough},
                boost::asio::bind_executor(pool, [&](auto ec, const lease&) { has_got = !ec; }));
  ASSERT_TRUE(eventually([&] { return somebody_waits_for(moving); }, long_enough));
  std::atomic<bool> is_over{false};
  std::jthread caller{[&] {
    it_stands_still_for = {10, 0};
    allocations_until_it_stands_still = 1;
    std::error_code ec;
    (void)locks.try_acquire(names[1], brief, ec);
    allocations_until_it_stands_still = -1;
    is_over = true;
  }};
  let_pass(100ms);
  slot_move{*this, moving, primaries()[0], primaries()[1]}.finish();
  let_pass(4s);
  for (const auto& name : free) {
    const auto held = locks.try_acquire(name, brief);
    EXPECT_TRUE(held && held->valid()) << name;
  }
  EXPECT_TRUE(kept.valid());
  EXPECT_FALSE(is_over) << "or this tests nothing";
  caller.join();
  in_the_way.release();
  pool.join();
  EXPECT_TRUE(has_got);
}

// Whoever leads the connections of a quorum drives them for all its threads, and may get no time to.
TEST_F(with_quorum, whose_leader_stands_still_ends_the_calls_of_others_in_their_time_P32) {
  stands_still = {5, 0};
  struct sigaction stopping = {};
  stopping.sa_handler = stop_here;
  struct sigaction before = {};
  ASSERT_EQ(::sigaction(SIGUSR1, &stopping, &before), 0);
  auto locks = make(1500ms);
  locks.acquire("x", {.ttl = ttl, .wait = long_enough}).release();
  lab_.pause(node(0));
  lab_.pause(node(1));
  std::jthread leads{[&] {
    std::error_code ec;
    (void)locks.try_acquire("x", {.ttl = ttl}, ec);
  }};
  let_pass(100ms);  // It waits for those two.
  ::pthread_kill(leads.native_handle(), SIGUSR1);
  let_pass(50ms);
  const auto asked_at = boottime();
  std::error_code ec;
  EXPECT_FALSE(locks.acquire("y", {.ttl = ttl, .wait = 300ms}, ec));
  EXPECT_LT(boottime() - asked_at, 4s) << "it has waited for who leads";
  lab_.resume(node(0));
  lab_.resume(node(1));
  leads.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

// Its answer is there when it looks, and it is over: it must not go to sleep for the end of its time, or what it gets
// is a lease that nobody has kept meanwhile.
TEST_F(leader, that_was_stopped_behind_its_request_takes_what_came_and_returns) {
  auto locks = make_client();
  (void)locks.acquire("warm").release();
  std::stop_source may_be_woken;
  stands_still_behind_a_send = true;
  const auto asked_at = boottime();
  auto held = locks.try_acquire("x", {.ttl = 2s, .cancel = may_be_woken.get_token()});
  EXPECT_FALSE(stands_still_behind_a_send);
  EXPECT_LT(boottime() - asked_at, 1500ms);
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->valid());
}

// A page of its own, which nobody may look at any more when the operation is over: as a coroutine that goes on when its
// lock is there, on another thread of its pool, ends what it has begun the operation with.
class options_until_the_end final : public detail::acquire_receiver {
public:
  explicit options_until_the_end(const acquire_options& what) : at_{new (page_) acquire_options{what}} {}
  ~options_until_the_end() { ::munmap(page_, size); }

  const acquire_options& options() const { return *at_; }
  bool is_over() const { return is_over_; }
  void on_acquired(std::error_code /*code*/, lease /*got*/) override {
    at_->~acquire_options();
    EXPECT_EQ(::mprotect(page_, size, PROT_NONE), 0);
    is_over_ = true;
  }

private:
  static constexpr std::size_t size = 4096;
  void* const page_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  acquire_options* const at_;
  std::atomic<bool> is_over_{false};
};

TEST_F(leader, that_was_stopped_behind_a_start_looks_at_no_option_any_more) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  std::jthread reads{[&] { EXPECT_THROW((void)locks.acquire("x", {.wait = 3s}), error); }};
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  std::stop_source stop;
  stands_still_behind_a_send = true;
  // Whoever leads may be sending at that moment, and sends ours as well: then it is tried once more.
  for (int i = 0; stands_still_behind_a_send && i != 20; ++i) {
    const auto to = std::make_shared<options_until_the_end>(acquire_options{.ttl = 2s, .cancel = stop.get_token()});
    (void)detail::start_acquire({&locks, "y" + std::to_string(i)}, to->options(), to);
    ASSERT_TRUE(eventually([&] { return to->is_over(); }));
  }
  EXPECT_FALSE(stands_still_behind_a_send) << "or this tests nothing";
}

TEST_F(leader, that_was_stopped_behind_its_release_returns) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  EXPECT_THROW((void)locks.acquire("x", {.wait = in_vain}), error) << "from now on it hears the line";
  auto held = locks.acquire("y");
  stands_still_behind_a_send = true;
  const auto asked_at = boottime();
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_LT(boottime() - asked_at, 1500ms);
}
#endif

// What wakes another thread must not throw: the unwinding would end the program.
TEST_F(leader, that_is_to_be_cancelled_begins_and_ends_what_no_thread_waits_for_P32) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto held = locks.acquire("y");
  auto last = std::make_unique<client>(make_client());
  (void)last->acquire("z").release();
  boost::asio::thread_pool pool{1};
  std::atomic<int> told{0};
  std::stop_source stop;
  acquire_options until_stopped{.cancel = stop.get_token()};
  bool is_through = false;
  std::jthread calling{[&] {
    ::pthread_cancel(::pthread_self());
    async_acquire(locks, "x", until_stopped, boost::asio::bind_executor(pool, [&](auto, const lease&) { ++told; }));
    async_renew(held, boost::asio::bind_executor(pool, [&](auto) { ++told; }));
    stop.request_stop();
    async_release(std::move(held), boost::asio::bind_executor(pool, [&](auto) { ++told; }));
    last.reset();
    is_through = true;
    ::pthread_testcancel();
  }};
  calling.join();
  EXPECT_TRUE(is_through);
  pool.join();
  EXPECT_EQ(told, 3);
}

TEST_F(leader, that_is_cancelled_ends_its_call_first_P32) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto kept = locks.acquire("kept", {.ttl = 900ms});
  std::atomic<bool> has_returned{false};
  std::jthread waiting{[&] {
    std::error_code ec;
    (void)locks.acquire("x", {.wait = 1s}, ec);
    has_returned = ec == errc::timed_out;
    ::pthread_testcancel();
  }};
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  ::pthread_cancel(waiting.native_handle());
  for (int i = 0; i < 20; ++i) {
    std::error_code ec;
    auto one = locks.acquire("y", {.wait = 500ms}, ec);
    ASSERT_TRUE(one) << ec.message() << ": nobody reads any more";
    one->release();
    ASSERT_TRUE(kept.valid());
    let_pass(20ms);
  }
  waiting.join();
  EXPECT_TRUE(has_returned);
  in_the_way.release();
}

}  // namespace
}  // namespace holdfast::test
