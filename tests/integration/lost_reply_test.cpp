// SPDX-License-Identifier: Apache-2.0
// Answers that are lost at every byte, and requests that arrive late (H11, H12, C5, P9, P12).
//
// The danger is an outcome folded into another: "busy" or "free" for what nobody knows, and an orphan that holds the
// lock for a ttl that nobody waits out. The trick is a proxy that lets exactly k bytes of the answer through.
#include "integration/fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/key_events.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class lost_reply : public on_redis {
protected:
  lost_reply() : proxy_{server_.socket()} {}

  // A client through the proxy with its connections made, and the number of bytes that one exchange answers.
  client warm_client(std::chrono::milliseconds timeout) {
    auto locks = make_client_at(proxy_.uri(), timeout);
    warm_up(locks);
    return locks;
  }

  static void warm_up(client& locks, const std::string& name = "warm") {
    locks.acquire(name, {.wait = 10s, .renew = renewal::none}).release();
  }

  std::size_t reply_size_of_acquire(client& locks) {
    const auto before = proxy_.bytes(direction::to_client);
    auto held = locks.acquire("measured", {.renew = renewal::none});
    const auto size = proxy_.bytes(direction::to_client) - before;
    held.release();
    return size;
  }

  fault_proxy proxy_;
};

// The connection is cut after k bytes of the answer, and a new one works: the retry with the same owner id finds the
// lock its own. Never busy, and never two.
TEST_F(lost_reply, of_an_acquire_cut_at_every_byte_is_repaired_by_a_retry) {
  auto locks = warm_client(5s);
  const auto size = reply_size_of_acquire(locks);
  ASSERT_GT(size, 10u);
  for (const auto end : {fault::then::fin, fault::then::rst}) {
    for (std::size_t k = 0; k < size; ++k) {
      warm_up(locks);
      proxy_.set_existing(direction::to_client, {.pass_only = k, .at_the_end = end});
      auto held = locks.try_acquire("x", {.renew = renewal::none});
      ASSERT_TRUE(held) << "busy after " << k << " bytes of the answer";
      EXPECT_TRUE(held->valid());
      proxy_.heal();
      EXPECT_EQ(held->release(), release_outcome::released);
      ASSERT_FALSE(exists("hf:{x}")) << "at byte " << k;
    }
  }
}

// No answer at all gets through, on no connection: unknown, and nothing else. Afterwards nothing is left.
TEST_F(lost_reply, of_an_acquire_without_any_way_back_is_unknown_and_leaves_no_orphan) {
  auto measuring = warm_client(5s);
  const auto size = reply_size_of_acquire(measuring);
  auto locks = warm_client(150ms);
  for (std::size_t k = 0; k < size; ++k) {
    proxy_.heal();
    locks.acquire("warm", {.wait = 3s, .renew = renewal::none}).release();
    proxy_.set(direction::to_client, {.pass_only = k});
    const auto failure = error_of([&] { (void)locks.try_acquire("x" + std::to_string(k), {.ttl = 60s}); });
    ASSERT_TRUE(failure) << "at byte " << k;
    EXPECT_EQ(failure->code(), outcome::unknown) << failure->what() << " at byte " << k;
    EXPECT_EQ(failure->code(), errc::reply_lost);
    EXPECT_GT(failure->detail().may_remain, 0ms);
    EXPECT_LE(failure->detail().may_remain, 60s + 150ms + 2s) << "and yet it says something";
  }
  proxy_.heal();
  // The clean-up is a release, so it is a matter of round trips and not of the ttl of a minute.
  EXPECT_TRUE(eventually([&] { return server_("KEYS", "hf:{x*}").items.empty(); }, 5s))
      << "left: " << testing::PrintToString(server_("KEYS", "hf:{x*}"));
}

TEST_F(lost_reply, of_an_acquire_is_not_busy_for_the_one_who_lost_it) {
  auto locks = warm_client(5s);
  proxy_.set_existing(direction::to_client, {.pass_only = 0, .at_the_end = fault::then::rst});
  const auto held = locks.acquire("x", {.wait = 2s});
  EXPECT_TRUE(held.valid());
}

// P12: the first release did it and its answer is gone; the second finds nothing. That is `released`, not lost.
TEST_F(lost_reply, of_a_release_cut_at_every_byte_is_released) {
  auto locks = warm_client(5s);
  const auto size = reply_size_of_acquire(locks);
  for (std::size_t k = 0; k < size; ++k) {
    auto held = locks.acquire("x", {.wait = 3s, .renew = renewal::none});
    proxy_.set_existing(direction::to_client, {.pass_only = k, .at_the_end = fault::then::fin});
    EXPECT_EQ(held.release(), release_outcome::released) << "at byte " << k;
    proxy_.heal();
  }
}

// Who waits is answered three times on the connection that it has: that it is busy, its place in line, and its claim
// when it was called, which it is on another one. Cut at every byte of the latter two, and of its release, it stands in
// line once and has the lock once. Who was cut off ends slowly, since it cleans up: beside the next one.
TEST_F(lost_reply, of_a_place_in_line_or_a_claim_cut_at_every_byte_costs_neither_B35_H60) {
  struct waiter {
    std::unique_ptr<fault_proxy> proxy;
    client locks;
  };
  const auto come = [this] {
    auto proxy = std::make_unique<fault_proxy>(server_.socket());
    auto locks = make_client_at(proxy->uri());
    warm_up(locks);
    return waiter{std::move(proxy), std::move(locks)};
  };
  const auto hears = [this] {
    const auto entries = server_("HVALS", "hf:{x}:waiters").items;
    return std::any_of(entries.begin(), entries.end(),
                       [](const auto& one) { return one.text.find("|s|") != std::string::npos; });
  };
  const auto in_line = [this] {
    return testing::PrintToString(server_("ZRANGE", "hf:{x}:line", "0", "-1", "WITHSCORES"));
  };
  auto locks = make_client();
  std::size_t size_of_busy = 0;
  {
    const auto held = locks.acquire("x");
    auto measuring = come();
    const auto before = measuring.proxy->bytes(direction::to_client);
    EXPECT_FALSE(measuring.locks.try_acquire("x"));
    size_of_busy = measuring.proxy->bytes(direction::to_client) - before;
  }
  std::vector<std::future<void>> ends;
  bool is_cut = true;
  std::size_t k = size_of_busy;
  for (; is_cut && !HasFailure(); ++k) {
    auto held = locks.acquire("x", {.ttl = 60s, .wait = 5s});
    auto one = come();
    const auto uncut = one.proxy->connections() + 1;  // The one on which it is called.
    const auto end = k % 2 == 0 ? fault::then::fin : fault::then::rst;
    one.proxy->set_existing(direction::to_client, {.pass_only = k, .at_the_end = end});
    auto gets = std::async(std::launch::async, [&] {
      auto got = one.locks.acquire("x", {.wait = 10s, .renew = renewal::none});
      EXPECT_TRUE(got.valid()) << "at byte " << k;
      EXPECT_EQ(got.release(), release_outcome::released) << "at byte " << k;
    });
    EXPECT_TRUE(eventually(hears)) << "at byte " << k;
    const auto stood = in_line();
    (void)eventually([&] { return one.proxy->connections() > uncut; }, 8ms);
    EXPECT_EQ(in_line(), stood) << "at byte " << k;
    EXPECT_EQ(server_("ZCARD", "hf:{x}:line"), 1) << "at byte " << k;
    held.release();
    EXPECT_EQ(gets.wait_for(slack), std::future_status::ready) << "at byte " << k;
    gets.get();
    EXPECT_FALSE(exists("hf:{x}") || exists("hf:{x}:line")) << "at byte " << k;
    is_cut = one.proxy->connections() > uncut;
    ends.push_back(std::async(std::launch::async, [gone = std::move(one)] {}));
  }
  EXPECT_GT(k, size_of_busy + 100) << "that cannot be all";
}

// Of several at once: all are given back, whichever answers were lost (B44).
TEST_F(lost_reply, of_the_release_of_a_set_cut_at_every_third_byte_gives_all_back_B44) {
  auto locks = warm_client(5s);
  const auto of_one = reply_size_of_acquire(locks);
  for (std::size_t k = 0; k < 3 * of_one; k += 3) {
    auto held = locks.acquire_all({"a", "b", "c"}, {.wait = 3s, .renew = renewal::none});
    proxy_.set_existing(direction::to_client, {.pass_only = k, .at_the_end = fault::then::fin});
    EXPECT_EQ(held.release(), release_outcome::released) << "at byte " << k;
    for (const auto* key : {"hf:{a}", "hf:{b}", "hf:{c}"}) EXPECT_FALSE(exists(key)) << key << " at byte " << k;
    proxy_.heal();
  }
}

TEST_F(lost_reply, of_a_release_without_any_way_back_is_unknown) {
  auto locks = warm_client(150ms);
  for (const std::size_t k : {0u, 1u, 5u, 22u}) {
    proxy_.heal();
    auto held = locks.acquire("x", {.wait = 3s, .renew = renewal::none});
    proxy_.set(direction::to_client, {.pass_only = k});
    EXPECT_EQ(held.release(), release_outcome::unknown) << "at byte " << k;
    EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  }
}

// A renewal took effect and nobody here heard of it, so the server keeps the lock for longer than our deadline says.
TEST_F(lost_reply, of_a_renewal_before_a_release_that_never_arrives_is_within_what_may_remain) {
  auto locks = make_client_at(proxy_.uri(), 500ms);
  auto held = locks.acquire("x", {.ttl = 6s, .renew = renewal::none});
  held.renew();  // Its connection is made by now.
  let_pass(1500ms);
  proxy_.set(direction::to_client, {.pass_only = 0});
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::reply_lost);
  proxy_.refuse_connections(true);
  proxy_.cut_all();
  error_detail why;
  ASSERT_EQ(held.release(why), release_outcome::unknown);
  const auto left = pttl("hf:{x}");
  EXPECT_GT(left, 0ms);
  EXPECT_LE(left, why.may_remain);
  EXPECT_LE(why.may_remain, 6s + 1100ms) << "and yet it says something";
}

// Each byte in its own lease, all at the same time: a renewal takes a third of a ttl to come.
TEST_F(lost_reply, of_a_renewal_cut_at_every_byte_costs_nothing) {
  constexpr std::size_t bytes = 24;
  struct holder {
    std::unique_ptr<fault_proxy> proxy;
    std::optional<client> locks;
    std::optional<lease> held;
  };
  class counter : public observer {
  public:
    void on_renewed(const std::string&, std::chrono::microseconds) override { ++renewed; }
    std::atomic<int> renewed{0};
  };
  std::vector<holder> all(bytes);
  std::vector<std::shared_ptr<counter>> seen;
  for (std::size_t k = 0; k < bytes; ++k) {
    seen.push_back(std::make_shared<counter>());
    all[k].proxy = std::make_unique<fault_proxy>(server_.socket());
    client_options how;
    how.observe = seen.back();
    all[k].locks = make_client_at(all[k].proxy->uri(), how);
    all[k].held = all[k].locks->acquire("r" + std::to_string(k), {.ttl = 1200ms});
  }
  ASSERT_TRUE(eventually(
      [&] { return std::all_of(seen.begin(), seen.end(), [](const auto& one) { return one->renewed > 0; }); }));
  for (std::size_t k = 0; k < bytes; ++k) {
    const auto end = k % 2 == 0 ? fault::then::fin : fault::then::rst;
    all[k].proxy->set_existing(direction::to_client, {.pass_only = k, .at_the_end = end});
  }
  const auto until = boottime() + 3s;
  while (boottime() < until) {
    for (std::size_t k = 0; k < bytes; ++k) ASSERT_TRUE(all[k].held->valid()) << "at byte " << k;
    let_pass(5ms);
  }
  for (auto& one : all) EXPECT_EQ(one.held->release(), release_outcome::released);
}

TEST_F(lost_reply, in_single_bytes_is_no_loss) {
  proxy_.set(direction::to_client, {.single_bytes = true});
  proxy_.set(direction::to_server, {.single_bytes = true});
  auto locks = make_client_at(proxy_.uri());
  auto held = locks.acquire("x");
  EXPECT_EQ(held.release(), release_outcome::released);
}

// H12: the request comes when its caller has long given up. It must not lock. (A release alone would not help: it
// has been answered before the acquire arrives.)
TEST_F(lost_reply, request_that_arrives_late_has_no_effect) {
  auto locks = warm_client(100ms);
  key_events events{server_};
  proxy_.set_existing(direction::to_server, {.delay = 700ms});
  const auto sent = proxy_.bytes(direction::to_server);
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x", {.ttl = 30s}); }), outcome::unknown);
  EXPECT_TRUE(eventually([&] { return proxy_.bytes(direction::to_server) > sent + 100; })) << "it did arrive";
  let_pass(800ms);
  for (const auto& event : events.take()) {
    EXPECT_FALSE(event.key == "hf:{x}" && event.what == "set") << "the late request took the lock";
  }
  EXPECT_FALSE(exists("hf:{x}"));
}

// H12 with a whole fleet of late ones: whatever the delay, in the end nothing is held.
TEST_F(lost_reply, requests_late_by_any_time_leave_nothing) {
  constexpr int count = 16;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([this, i] {
      fault_proxy proxy{server_.socket()};
      auto locks = make_client_at(proxy.uri(), 100ms);
      const auto name = "late" + std::to_string(i);
      warm_up(locks, name + "warm");
      proxy.set_existing(direction::to_server, {.delay = std::chrono::milliseconds{20 * i}});
      std::error_code ec;
      {
        const auto held = locks.try_acquire(name, {.ttl = 60s}, ec);
        // A copy that comes just after its time is answered LATE in time: then it is known that nothing happened.
        EXPECT_TRUE(held || ec == outcome::unknown || ec == errc::server_silent)
            << ec.message() << " with a delay of " << 20 * i << " ms";
      }
      EXPECT_TRUE(
          eventually([&] { return redis_connection{server_.socket()}("EXISTS", "hf:{" + name + "}") == 0; }, 3s))
          << name;
      let_pass(500ms);
      EXPECT_EQ(redis_connection{server_.socket()}("EXISTS", "hf:{" + name + "}"), 0) << name << " came back";
    });
  }
  for (auto& thread : threads) thread.join();
}

// P10: a request is late, on a connection that its client has given up for silent, and the clean-up goes ahead of it.
// Others come and go all the time, and each takes the mark that the clean-up left (P9): so it locks, for nobody. On a
// busy machine it may come ahead of the clean-up, and lock nothing: then once more.
template <class Send>
void expect_that_a_copy_locks_not_for_long(client& others, const Send& send_late) {
  const auto is_busy = [&] {
    auto held = others.try_acquire("x");
    if (held) held->release();
    return !held;
  };
  int times = 0;
  do {
    ASSERT_LT(times++, 6) << "this tests nothing";
    send_late();
  } while (!eventually(is_busy, 3s));
  const auto from = boottime();
  EXPECT_TRUE(eventually([&] { return !is_busy(); }, 10s));
  EXPECT_LT(boottime() - from, 2500ms) << "its not_after is more than 4 s later";
}

TEST_F(lost_reply, request_that_locks_for_nobody_is_found_before_its_not_after_P10) {
  auto locks = warm_client(6s);
  auto others = make_client();
  expect_that_a_copy_locks_not_for_long(others, [&] {
    warm_up(locks, "warm");
    server_("DEL", "hf:{x}:fence");
    proxy_.set_existing(direction::to_server, {.delay = 1500ms});
    proxy_.refuse_connections(true);
    std::stop_source stop;
    std::jthread later{[&] {
      let_pass(800ms);  // The client has closed its silent connection.
      stop.request_stop();
    }};
    EXPECT_EQ(code_of([&] { (void)locks.acquire("x", {.ttl = 30s, .wait = 5s, .cancel = stop.get_token()}); }),
              errc::cancelled_in_flight);
    proxy_.refuse_connections(false);
    EXPECT_TRUE(eventually([&] { return exists("hf:{x}:fence"); })) << "the clean-up's mark";
  });
}

TEST_F(lost_reply, request_that_locks_behind_its_lease_s_release_is_found_before_its_not_after_P10) {
  auto locks = warm_client(6s);
  auto others = make_client();
  expect_that_a_copy_locks_not_for_long(others, [&] {
    warm_up(locks, "warm");
    proxy_.set_existing(direction::to_server, {.delay = 1500ms});
    EXPECT_EQ(locks.acquire("x", {.ttl = 30s}).release(), release_outcome::released) << "by its second copy";
  });
}

// P9: a copy of an acquire that was granted, used and released must not lock again.
TEST_F(lost_reply, old_copy_of_a_finished_acquire_is_spent) {
  auto locks = warm_client(5s);
  // The request is copied: the first connection delivers it half a second late, the retry on the second at once.
  proxy_.set_existing(direction::to_server, {.delay = 900ms});
  proxy_.set_existing(direction::to_client, {.pass_only = 0});
  auto held = locks.try_acquire("x", {.ttl = 30s});
  ASSERT_TRUE(held);
  EXPECT_NE(held->release(), release_outcome::already_lost);
  let_pass(1200ms);
  EXPECT_FALSE(exists("hf:{x}"));
}

}  // namespace
}  // namespace holdfast::test
