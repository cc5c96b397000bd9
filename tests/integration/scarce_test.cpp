// SPDX-License-Identifier: Apache-2.0
// A process that gets no thread or no memory any more. The danger is a lock that the server granted and nobody has, or
// one that is renewed although it was given back.
#include "integration/cluster_fixture.hpp"
#include "integration/fixture.hpp"
#include "integration/quorum_fixture.hpp"
#include "integration/scarce_memory.hpp"
#include "support/lab.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <holdfast/asio.hpp>
#include <holdfast/quorum.hpp>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class scarce : public on_redis {};

// While it lives, a new thread's stack would be larger than the address space: EAGAIN.
class no_threads {
public:
  no_threads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~no_threads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  no_threads(const no_threads&) = delete;
  no_threads& operator=(const no_threads&) = delete;

private:
  pthread_attr_t before_{};
};

TEST_F(scarce, threads_refuse_an_acquire_before_the_server_grants_it) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers make threads of their own kind";
#endif
  auto locks = make_client();
  for (const bool waits : {false, true}) {
    std::optional<error> failure;
    {
      const no_threads now;
      failure = error_of([&] { (void)locks.acquire("x", {.wait = waits ? 1s : 0s}); });
    }
    ASSERT_TRUE(failure) << "a holdfast::error, as every failure of a call";
    EXPECT_EQ(failure->code(), std::errc::resource_unavailable_try_again) << failure->what();
    EXPECT_FALSE(exists("hf:{x}")) << "granted to nobody";
  }
  EXPECT_TRUE(locks.try_acquire("x")) << "when there are threads again";
}

// Whoever tells of it has its thread before the server grants anything: a loss comes when it comes (C4).
TEST_F(scarce, threads_do_not_keep_a_loss_from_being_told_C4) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers make threads of their own kind";
#endif
  auto locks = make_client();
  const auto held = locks.acquire("x", {.ttl = 1s});
  std::atomic<bool> is_told{false};
  const std::stop_callback on_loss{held.lost(), [&] { is_told = true; }};
  const no_threads now;
  server_("DEL", "hf:{x}");
  EXPECT_TRUE(eventually([&] { return is_told.load(); }, 3s));
}

TEST_F(scarce, threads_refuse_a_replacement_of_a_quorum) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers make threads of their own kind";
#endif
  std::optional<error> failure;
  {
    const no_threads now;
    failure = error_of([] {
      (void)replace_quorum("redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
                           "redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:4");
    });
  }
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), std::errc::resource_unavailable_try_again) << failure->what();
}

// Whoever drives such calls has a thread of its own, which begins with the first of them.
TEST_F(scarce, threads_refuse_an_asynchronous_release_and_it_is_released_all_the_same) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers make threads of their own kind";
#endif
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 60s});
  boost::asio::io_context io;
  std::optional<release_outcome> end;
  {
    const no_threads now;
    async_release(std::move(held), boost::asio::bind_executor(io, [&](release_outcome how) { end = how; }));
    io.run_for(5s);
  }
  EXPECT_EQ(end, release_outcome::unknown);
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 10s)) << "its ttl is a minute";
  EXPECT_TRUE(locks.try_acquire("x"));
}

// An exception in a stop callback ends the program, with all its locks.
TEST_F(scarce, memory_for_a_cancellation_is_not_needed_by_who_cancels) {
  auto locks = make_client();
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  std::stop_source stop;
  std::error_code ec;
  std::jthread waiting{[&] { (void)locks.acquire("x", {.cancel = stop.get_token()}, ec); }};
  std::jthread behind_it{[&] {
    std::error_code its;
    (void)locks.acquire("x", {.cancel = stop.get_token()}, its);
  }};
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  allocations_left = 0;
  stop.request_stop();
  allocations_left = -1;
  waiting.join();
  EXPECT_TRUE(ec == errc::cancelled || ec == errc::cancelled_in_flight) << ec.message();
}

// Each lease fails at another allocation of its end. Whichever that is, nothing renews it any more.
TEST_F(scarce, memory_for_an_end_leaves_no_lease_that_is_renewed_for_ever) {
  constexpr int steps = 24;
  auto locks = make_client();
  std::vector<lease> held;
  std::vector<lease> dropped;
  for (int i = 0; i < steps; ++i) {
    held.push_back(locks.acquire("r" + std::to_string(i), {.ttl = 1s}));
    dropped.push_back(locks.acquire("d" + std::to_string(i), {.ttl = 1s}));
  }
  int failures = 0;
  for (int i = 0; i < steps; ++i) {
    auto& one = held[static_cast<std::size_t>(i)];
    allocations_left = i;
    try {
      one.release();
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    {
      allocations_left = i;
      const lease ending{std::move(dropped[static_cast<std::size_t>(i)])};
    }
    allocations_left = -1;
    EXPECT_FALSE(one);
  }
  EXPECT_GT(failures, 0) << "or this tests nothing";
  EXPECT_TRUE(eventually([&] { return server_("KEYS", "hf:{*}").items.empty(); }, 5s))
      << "still renewed: " << testing::PrintToString(server_("KEYS", "hf:{*}"));
}

// Who stands behind others in this process is given the lease without the server, and has no memory for it.
TEST_F(scarce, memory_for_a_hand_over_leaves_no_lease_that_nobody_has) {
  constexpr int steps = 12;
  client_options how;
  how.timeout = 500ms;
  how.hand_overs = 16;
  how.hand_over_span = 1s;
  auto locks = make_client(how);
  std::atomic<int> failures{0};
  for (int i = 0; i < steps; ++i) {
    auto first = locks.acquire("x", {.ttl = 1s, .wait = 20s});
    std::atomic<int> begun{0};
    std::atomic<bool> is_second_in{false};
    std::jthread second{[&] {
      ++begun;
      auto held = locks.acquire("x", {.ttl = 1s, .wait = 20s});
      is_second_in = true;
      EXPECT_TRUE(eventually([&] { return begun == 2; }));
      let_pass(3ms);  // The third is on its way; whatever comes first, nothing may be left.
      held.release();
    }};
    EXPECT_TRUE(eventually([&] { return server_("ZCARD", "hf:{x}:line").number == 1; }));
    std::jthread third{[&] {
      ++begun;
      allocations_left = i;
      try {
        const auto held = locks.acquire("x", {.ttl = 1s, .wait = 20s});
        allocations_left = -1;
      } catch (const std::bad_alloc&) {
        ++failures;
      } catch (const error&) {
        ++failures;
      }
      allocations_left = -1;
    }};
    EXPECT_TRUE(eventually([&] { return begun == 2; }));
    let_pass(3ms);
    first.release();
  }
  EXPECT_GT(failures, 2) << "or this tests nothing";
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 5s)) << "still renewed";
}

// Each acquire fails at another of the last allocations that it makes, which are those behind the grant. How many have
// failed. (Those before it are the engine's and the connection's.)
template <class Acquire>
int acquire_with_too_little_at_the_end(const Acquire& acquire) {
  constexpr int last = 30;
  int failures = 0;
  for (int missing = 1; missing <= last; ++missing) {
    const int before = allocations_made;
    int needed = 0;
    {
      const auto held = acquire("whole");
      needed = allocations_made - before;
    }
    allocations_left = std::max(0, needed - missing);
    try {
      const auto held = acquire("short" + std::to_string(missing));
      allocations_left = -1;
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const error&) {
      ++failures;
    }
    allocations_left = -1;
  }
  return failures;
}

// The servers' keys of this pattern, all together.
std::size_t keys_on(const std::vector<lab_node>& nodes, const std::string& pattern) {
  std::size_t n = 0;
  for (const auto& one : nodes) n += ask_list(one, {"KEYS", pattern.c_str()}).size();
  return n;
}

class scarce_on_a_cluster : public on_a_cluster {};

TEST_F(scarce_on_a_cluster, memory_behind_a_grant_leaves_no_lease_that_nobody_has) {
  auto locks = make();
  const acquire_options how{.ttl = 1s, .wait = long_enough};
  const auto one = [&](const std::string& name) { return locks.acquire(name, how); };
  const auto several = [&](const std::string& name) {
    return locks.acquire_all({name + "a", name + "b", name + "c"}, how);
  };
  for (const auto& name : a_name_on_each()) (void)one(name).release();  // Connected.
  EXPECT_GT(acquire_with_too_little_at_the_end(one), 2) << "or this tests nothing";
  EXPECT_GT(acquire_with_too_little_at_the_end(several), 2);
  EXPECT_TRUE(eventually([&] { return keys_on(primaries(), "hf:{*}") == 0; }, 5s)) << "still renewed";
}

// It had a thread at the node that it came from.
TEST_F(scarce_on_a_cluster, threads_end_an_asynchronous_wait_whose_slot_moves) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers make threads of their own kind";
#endif
  auto holder = make();
  auto locks = make();
  for (const auto& name : a_name_on_each()) {
    for (auto* one : {&holder, &locks}) one->acquire(name, {.ttl = 1s, .wait = long_enough}).release();
  }
  const auto held = holder.acquire("x", {.ttl = max_ttl});
  boost::asio::io_context io;
  std::optional<std::error_code> end;
  const auto begin = [&](std::chrono::milliseconds wait) {
    end.reset();
    async_acquire(locks, "x", {.ttl = 3s, .wait = wait},
                  boost::asio::bind_executor(io, [&](boost::system::error_code ec, const lease&) { end = ec; }));
  };
  const auto has_ended = [&] {
    io.restart();
    io.poll();
    return end.has_value();
  };
  begin(0s);
  ASSERT_TRUE(eventually(has_ended, long_enough));
  begin(long_enough);
  EXPECT_TRUE(eventually([&] { return ask_number(home_of("x"), {"ZCARD", "hf:{x}:line"}) == "1"; }, long_enough));
  {
    const no_threads now;
    move("x");
    ASSERT_TRUE(eventually(has_ended, 20s)) << "nobody drives it there";
  }
  EXPECT_TRUE(*end == errc::reply_lost || *end == std::errc::resource_unavailable_try_again) << end->message();
}

// Runs `call(i)` with memory for i allocations of this thread: no memory at all, for one, for two, until it needs no
// more. `on_failure(i)` is called with all memory. A failure may have cost the connection, so the next call waits for
// another.
template <class Call, class OnFailure>
void with_ever_more_memory(client& locks, const Call& call, const OnFailure& on_failure) {
  const auto works = [&] { return !code_of([&] { locks.acquire_all({"warm", "warmer"}, {.ttl = 1s}).release(); }); };
  ASSERT_TRUE(works());
  for (int i = 0; i < 5000; ++i) {
    allocations_left = i;
    try {
      call(i);
      allocations_left = -1;
      return;
    } catch (const std::exception&) {  // Also a holdfast::error: no answer, for want of memory to read it.
      allocations_left = -1;
      on_failure(i);
      ASSERT_TRUE(eventually(works, 20s));
    }
  }
  FAIL() << "it never has enough";
}

// Each acquire fails at another allocation. Wherever that is, nothing is renewed that nobody has. `keys(pattern)`: how
// many the servers have, where a grant leaves more than `few` of a lock's last tokens.
template <class Acquire, class Keys>
void expect_no_lease_that_nobody_has(client& locks, const Acquire& acquire, const Keys& keys, std::size_t few = 0) {
  const auto name = [](int i) { return "x" + std::to_string(i); };
  int failures_behind_the_grant = 0;
  with_ever_more_memory(
      locks, [&](int i) { acquire(name(i)); },
      [&](int i) { failures_behind_the_grant += keys("hf:{" + name(i) + "}:fence") > few ? 1 : 0; });
  EXPECT_GT(failures_behind_the_grant, 0) << "or this tests nothing";
  EXPECT_TRUE(eventually([&] { return keys("hf:{*}") == 0; }, 5s)) << "still renewed";
}

TEST_F(scarce, memory_for_an_acquire_leaves_no_lease_that_nobody_has) {
  client_options how;
  how.timeout = 500ms;
  auto locks = make_client(how);
  const auto keys = [&](const std::string& pattern) { return server_("KEYS", pattern).items.size(); };
  expect_no_lease_that_nobody_has(
      locks, [&](const std::string& name) { (void)locks.acquire(name, {.ttl = 1s}); }, keys);
}

// Whoever asks for all of a process and fails tells those who wait behind. The names are too long to need no memory.
TEST_F(scarce, memory_for_an_acquire_leaves_nobody_in_front_who_does_not_ask) {
  client_options how;
  how.timeout = 500ms;
  auto locks = make_client(how);
  const auto name = [](int i) { return "a name that is longer than most, number " + std::to_string(i); };
  with_ever_more_memory(
      locks, [&](int i) { (void)locks.acquire(name(i), {.ttl = 300ms}); },
      [&](int i) {
        EXPECT_FALSE(code_of([&] { locks.acquire(name(i), {.ttl = 300ms, .wait = 3s}).release(); })) << i;
      });
}

// Whoever is granted a block of tokens in line keeps the wish of the first, which needs memory behind the grant.
TEST_F(scarce, memory_for_a_block_of_hand_overs_leaves_nobody_in_front_who_does_not_ask_P14) {
  client_options how;
  how.timeout = 500ms;
  how.owner = "somebody whose name needs memory of its own";
  auto locks = make_client(how);
  auto others = make_client();
  const auto name = [](int i) { return "a name that is longer than most, number " + std::to_string(i); };
  // Waits for what somebody else holds; gives how many allocations that took.
  const auto wait_with = [&](int memory, int i) {
    const auto held = others.acquire(name(i), {.ttl = 100ms, .renew = renewal::none});
    const auto whose = name(i);
    int left = memory;
    allocations_left = memory;
    try {
      (void)locks.acquire(whose, {.ttl = 300ms, .wait = 3s});
      left = allocations_left;
    } catch (const std::exception&) {
    }
    allocations_left = -1;
    return memory - left;
  };
  constexpr int plenty = 100'000;
  wait_with(plenty, 0);
  const int needed = wait_with(plenty, 1);
  ASSERT_GT(needed, 20);
  for (int i = 2; i < 20; ++i) {
    wait_with(needed - i + 1, i);
    EXPECT_FALSE(code_of([&] { locks.acquire(name(i), {.ttl = 300ms, .wait = 3s}).release(); })) << i;
  }
}

// Each wait fails at another allocation, on its way into the line or while it stands there.
TEST_F(scarce, memory_for_a_wait_ends_the_wait_and_not_the_process) {
  client_options how;
  how.timeout = 500ms;
  auto locks = make_client(how);
  auto others = make_client();
  const std::string name = "a name that is longer than most";
  const auto held = others.acquire(name, {.ttl = 60s});
  int failures = 0;
  with_ever_more_memory(
      locks,
      [&](int) {
        const auto end = code_of([&] { (void)locks.acquire(name, {.wait = 20ms}); });
        if (end != errc::timed_out || allocations_left <= 0) throw std::bad_alloc{};
      },
      [&](int) { ++failures; });
  EXPECT_GT(failures, 20) << "or this tests nothing";
}

TEST_F(scarce, memory_for_a_set_leaves_no_lease_that_nobody_has) {
  client_options how;
  how.timeout = 500ms;
  auto locks = make_client(how);
  const auto both = [&](const std::string& name) { (void)locks.acquire_all({"also " + name, name}, {.ttl = 1s}); };
  const auto keys = [&](const std::string& pattern) { return server_("KEYS", pattern).items.size(); };
  expect_no_lease_that_nobody_has(locks, both, keys);
}

// The answer is kept until the replicas' confirmation is there, and there is no memory to keep it.
TEST_F(scarce, memory_for_an_acquire_that_replicas_confirm_leaves_no_lease_that_nobody_has) {
  const lab_topology lab{lab_kind::replicas, {.count = 1}};
  client{lab.uri()}.declare_nothing_forgotten();
  client_options how;
  how.timeout = 500ms;
  how.durability = {.replicas = 1, .timeout = 250ms};
  client locks{lab.uri(), how};
  const auto keys = [primary = lab.nodes("primary")](const std::string& pattern) { return keys_on(primary, pattern); };
  expect_no_lease_that_nobody_has(
      locks, [&](const std::string& name) { (void)locks.acquire(name, {.ttl = 1s}); }, keys);
}

class scarce_quorum : public with_quorum {};

TEST_F(scarce_quorum, memory_for_an_acquire_leaves_no_lease_that_nobody_has) {
  auto locks = make(500ms);
  const auto keys = [&](const std::string& pattern) { return keys_on(nodes_, pattern); };
  expect_no_lease_that_nobody_has(
      locks, [&](const std::string& name) { (void)locks.acquire(name, {.ttl = 1s}); }, keys, 1);
}

// With memory for none of it, for the first of three, and so on: what is not given back ends with its ttl.
TEST_F(scarce_quorum, memory_for_the_release_of_several_leaves_none_that_is_renewed_C6) {
  auto locks = make();
  int failures = 0;
  for (const bool is_dropped : {false, true}) {
    for (int i = 0; i < 40; ++i) {
      const auto name = [&](const char* of) { return of + std::to_string(i) + (is_dropped ? "d" : "r"); };
      auto three = std::make_optional(locks.acquire_all({name("a"), name("b"), name("c")}, {.ttl = 1s, .wait = 20s}));
      allocations_left = i;
      try {
        if (!is_dropped) (void)three->release();
        three.reset();
      } catch (const std::exception&) {
        ++failures;
      }
      allocations_left = -1;
    }
  }
  EXPECT_GT(failures, 0) << "or this tests nothing";
  EXPECT_TRUE(eventually([&] { return keys_on(nodes_, "hf:{*}") == 0; }, long_enough)) << "still renewed";
}

// Whether it is under way or thrown back: nobody renews it any more.
TEST_F(scarce_quorum, memory_for_an_asynchronous_release_leaves_none_that_is_renewed_C6) {
  auto locks = make();
  boost::asio::io_context io;
  // What is made once is there from then on: otherwise each failure would be of something else than the one before.
  async_release(locks.acquire("first", {.ttl = 1s, .wait = 20s}),
                boost::asio::bind_executor(io, [](release_outcome) {}));
  int failures = 0;
  bool is_enough = false;
  for (int i = 0; i < 60 && !is_enough; ++i) {
    auto held = locks.acquire("n" + std::to_string(i), {.ttl = 1s, .wait = 20s});
    auto handler = boost::asio::bind_executor(io, [](release_outcome) {});
    allocations_left = i;
    try {
      async_release(std::move(held), std::move(handler));
    } catch (const std::exception&) {
      ++failures;
    }
    is_enough = allocations_left > 0;
    allocations_left = -1;
  }
  EXPECT_GT(failures, 0) << "or this tests nothing";
  EXPECT_TRUE(is_enough);
  EXPECT_TRUE(eventually([&] { return keys_on(nodes_, "hf:{*}") == 0; }, 20s)) << "still renewed";
}

// Whoever has no memory to become a reader is a writer still, or a reader, and alive.
TEST_F(scarce_quorum, memory_for_a_downgrade_ends_no_process_C1) {
  auto locks = make();
  auto others = make();
  shared_mutex both{locks, "x", {.ttl = 4s, .wait = 20s}};
  shared_mutex theirs{others, "x", {.ttl = 4s, .wait = 20s}};
  int failures = 0;
  for (int i = 0; i < 60; ++i) {
    auto held = both.acquire({.ttl = 4s, .wait = 20s});
    allocations_left = i;
    try {
      both.downgrade(held);
    } catch (const std::exception&) {
      ++failures;
    }
    allocations_left = -1;
    if (i < 3) {
      EXPECT_FALSE(theirs.try_acquire_shared({.ttl = 4s})) << "nothing was asked for with memory for " << i;
    }
    held.release();
  }
  EXPECT_GT(failures, 0) << "or this tests nothing";
}

}  // namespace
}  // namespace holdfast::test
