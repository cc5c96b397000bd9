// SPDX-License-Identifier: Apache-2.0
// The line under faults: nothing may stop it for good, let two in, or leave somebody behind who is gone.
#include "integration/line_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/witness.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class line_trouble : public on_line {
protected:
  explicit line_trouble(redis_options options = {}) : on_line{std::move(options)} {}

  // `processes` of them acquire and release before a witness, so often each, while `fault` happens again and again.
  template <class Fault>
  void contend(int processes, int rounds, Fault&& fault) {
    std::vector<child_process> all;
    for (int i = 0; i < processes; ++i) {
      all.push_back(
          child_process{{HOLDFAST_WORKER, uri(), "contend", "x", std::to_string(rounds), scratch_ / "witness", "200"},
                        {.environment = worker_environment()}});
    }
    std::jthread trouble{[&](const std::stop_token& stop) {
      while (!stop.stop_requested()) fault();
    }};
    for (auto& one : all) EXPECT_EQ(one.read_line(120s), "done " + std::to_string(rounds));
    trouble.request_stop();
    trouble.join();
    const auto result = judge(read_sightings(scratch_ / "witness"));
    EXPECT_EQ(result.holds, processes * rounds);
    EXPECT_EQ(result.overlaps, 0) << result.first_offence;
    EXPECT_EQ(result.token_regressions, 0) << result.first_offence;
  }

  scratch_directory scratch_;
};

// H18: at most once is all that pub/sub promises.
TEST_F(line_trouble, subscriptions_killed_twenty_times_a_second_lose_no_wake_up_H18) {
  contend(6, scaled(2000) / 2, [&] {
    server_("CLIENT", "KILL", "TYPE", "pubsub");
    let_pass(50ms);
  });
}

TEST_F(line_trouble, all_connections_killed_again_and_again_lose_nobody) {
  contend(5, scaled(2000) / 4, [&] {
    server_("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    server_("CLIENT", "KILL", "TYPE", "pubsub");
    let_pass(100ms);
  });
}

// H18: the server ends a subscriber that does not read: here one that is stopped, while more is said on its channel
// than the socket takes. Its turn comes when nobody can tell it.
TEST_F(line_trouble, subscriber_that_was_cut_off_for_not_reading_is_served_all_the_same_H18) {
  server_("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1 1 1");
  const auto subscribers = [this] { return server_("CLIENT", "LIST", "TYPE", "pubsub").text; };
  auto locks = make_client();
  auto held = locks.acquire("x");
  auto waiters = start_many(1);
  line_up(waiters);
  const auto listens = [this] { return server_("PUBSUB", "CHANNELS", "hf:wake:*").items.size() == 1; };
  ASSERT_TRUE(eventually(listens));
  const auto listed = subscribers();
  const auto id = listed.substr(0, listed.find(' ') + 1);  // "id=7 "
  const auto channel = server_("PUBSUB", "CHANNELS", "hf:wake:*").items.at(0).text;
  ASSERT_TRUE(id.starts_with("id=")) << listed;

  waiters[0].process().signal(SIGSTOP);
  for (int i = 0; i < 32; ++i) server_("PUBLISH", channel, std::string(64 * 1024, 'x'));
  ASSERT_TRUE(eventually([&] { return subscribers().find(id) == std::string::npos; })) << subscribers();
  held.release();
  waiters[0].process().signal(SIGCONT);
  const auto went_on_at = boottime();
  EXPECT_LT(waiters[0].acquired().at - went_on_at, slack);
  EXPECT_EQ(subscribers().find(id), std::string::npos);
}

// The keeper's connection knew nothing of the epoch when it was made, and went on without asking (seed 49628382): then
// its releases, which are those of leases that go out of scope, leave everybody to a heartbeat of 5 s.
TEST_F(line_trouble, releases_in_the_background_call_the_next_one_though_info_was_denied_once_C7) {
  auto locks = make_client();
  const auto is_free = [this] { return server_("EXISTS", "hf:{x}").number == 0; };
  {
    const auto held = locks.acquire("x");
    deny({"-info"});
  }
  ASSERT_TRUE(eventually(is_free));
  deny({"+info"});
  let_pass(1100ms);  // It asks again once a second, behind what it sends.
  (void)locks.acquire("x");
  ASSERT_TRUE(eventually(is_free));
  std::optional held{locks.acquire("x")};
  std::vector<waiting_process> waiters = start_many(1);
  line_up(waiters);
  held.reset();
  EXPECT_NE(waiters[0].acquired(2s + when_busy / 4).number, 0u);
}

// A pattern subscriber makes PUBLISH count one more receiver: the dead are passed all the same (P1, [run]).
TEST_F(line_trouble, pattern_subscriber_does_not_keep_the_dead_alive_P1) {
  auto monitor = server_.connect();
  monitor.ask({"PSUBSCRIBE", "hf:*"});
  auto holder = start();
  holder.go();
  holder.acquired();
  std::vector<waiting_process> waiters = start_many(2);
  line_up(waiters);
  kill_seen(waiters[0]);
  const auto released_at = holder.release();
  EXPECT_LT(waiters[1].acquired().at - released_at, 500ms + when_busy / 5) << "a claim window is 1 s";
}

// H15: nothing comes from it any more and nothing reaches it, and neither end is told. The server still counts its
// subscription, so it is granted in vain; it finds out by its own look that nobody answers.
TEST_F(line_trouble, waiter_that_is_cut_off_silently_costs_one_window_and_comes_back_H15) {
  fault_proxy proxy{server_.socket()};
  auto holder = start();
  holder.go();
  holder.acquired();
  std::vector<waiting_process> waiters;
  waiters.emplace_back(proxy.uri(), worker_environment());
  waiters.push_back(start());
  line_up(waiters);
  for (const auto way : {direction::to_server, direction::to_client}) proxy.set_existing(way, {.pass_only = 0});
  const auto released_at = holder.release();
  EXPECT_LT(waiters[1].acquired().at - released_at, 1500ms + when_busy);
  waiters[1].release();
  EXPECT_NE(waiters[0].acquired(20s).number, 0u);
}

// B30: all locks go with a hundred waiting. They queue anew, and each gets its turn.
TEST_F(line_trouble, loss_of_all_locks_with_a_hundred_waiting_loses_nobody_B30) {
  auto holder = start();
  holder.go();
  holder.acquired();
  auto waiters = start_many(100);
  line_up(waiters);
  server_.lose_all_locks();
  // Whoever looks first finds a free lock; all the others come back within a heartbeat.
  std::vector<std::future<bool>> all;
  for (auto& one : waiters) {
    all.push_back(std::async(std::launch::async, [&one] {
      const bool is_good = one.acquired(60s).number != 0;
      if (is_good) one.release();
      return is_good;
    }));
  }
  for (auto& one : all) EXPECT_TRUE(one.get());
}

// FLUSHALL takes the epoch, too, so there may be a quarantine first, as short as the longest ttl is. Two of those who
// wait are of this process: one gives up, and at the end its client must have one.
TEST_F(line_trouble, flushall_under_waiters_loses_nobody_and_keeps_no_client_from_its_end_B30_H32) {
  client_options how;
  how.max_ttl = 6s;
  const acquire_options shortly{.ttl = 1s, .wait = 60s};
  auto environment = worker_environment();
  environment.push_back("HOLDFAST_TEST_MAX_TTL_MS=6000");
  auto theirs = make_client(how);
  const auto held = theirs.acquire("x", {.ttl = 6s, .wait = 60s});
  std::vector<waiting_process> waiters;
  for (int i = 0; i < 100; ++i) waiters.emplace_back(uri(), environment, "1000");
  line_up(waiters);
  std::optional<client> ours = make_client(how);
  std::optional<client> leaving = make_client(how);
  std::stop_source enough;
  auto gives_up = std::async(std::launch::async, [&] {
    return code_of([&] { (void)leaving->acquire("x", {.ttl = 1s, .cancel = enough.get_token()}); });
  });
  auto waits = std::async(std::launch::async, [&] {
    auto got = ours->acquire("x", shortly);
    const auto token = got.token().value();
    got.release();
    return token;
  });
  ASSERT_TRUE(waits_for(102));

  server_("FLUSHALL");
  enough.request_stop();
  EXPECT_EQ(gives_up.wait_for(slack), std::future_status::ready) << "it cannot be cancelled";
  const auto code = gives_up.get();
  EXPECT_TRUE(code == errc::cancelled || code == errc::cancelled_in_flight) << code.message();
  const auto ended_within = [](std::optional<client>& one) {
    const auto began = boottime();
    one.reset();
    return boottime() - began;
  };
  EXPECT_LT(ended_within(leaving), slack);
  std::vector<std::future<std::uint64_t>> all;
  for (auto& one : waiters) {
    all.push_back(std::async(std::launch::async, [&one] {
      const auto token = one.acquired(60s).number;
      if (token != 0) one.release();
      return token;
    }));
  }
  all.push_back(std::move(waits));
  std::set<std::uint64_t> tokens;
  for (auto& one : all) tokens.insert(one.get());
  EXPECT_EQ(tokens.size(), all.size()) << "somebody was not served, or a token came twice";
  EXPECT_GT(*tokens.begin(), held.token().value());
  EXPECT_LT(ended_within(ours), slack);
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
  EXPECT_EQ(held.lost_reason(), outcome::lost);
}

TEST_F(line_trouble, server_restart_with_waiters_loses_nobody) {
  auto holder = start();  // Its key goes with the server's data.
  holder.go();
  holder.acquired();
  auto waiters = start_many(20);
  line_up(waiters);
  server_.kill();
  let_pass(300ms);
  server_.restart_undoubted();
  for (auto& one : waiters) one.process();
  std::vector<std::future<bool>> all;
  for (auto& one : waiters) {
    all.push_back(std::async(std::launch::async, [&one] {
      const bool is_good = one.acquired(60s).number != 0;
      if (is_good) one.release();
      return is_good;
    }));
  }
  for (auto& one : all) EXPECT_TRUE(one.get());
}

// Else whoever waits is as good as deaf, and found by its looks alone.
TEST_F(line_trouble, subscription_is_there_again_after_each_restart_B21) {
  auto locks = make_client();
  std::stop_source gives_up;
  auto in_the_way = make_client().acquire("x", {.ttl = 60s});
  std::jthread waiter{[&] {
    std::error_code ec;
    (void)locks.acquire("x", {.cancel = gives_up.get_token()}, ec);
  }};
  const auto hears = [&] { return server_("PUBSUB", "CHANNELS", "hf:wake:*").items.size() == 1; };
  ASSERT_TRUE(eventually(hears));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(server_("SAVE"), "OK");
    server_.kill();
    server_.restart_undoubted();
    EXPECT_TRUE(eventually(hears, 20s)) << "restart " << i;
  }
  gives_up.request_stop();
}

// P5, B27: whoever cancels at any instant leaves nothing in line, and nobody is kept waiting by it.
TEST_F(line_trouble, cancelled_at_any_instant_leaves_no_ghost_P5_B27) {
  auto locks = make_client();
  auto other = make_client();
  for (int i = 0; i < scaled(300); ++i) {
    auto held = locks.acquire("x");
    std::stop_source stop;
    std::thread waiter{[&] {
      try {
        (void)other.acquire("x", {.cancel = stop.get_token()});  // Got after all: released again here.
      } catch (const error& e) {
        EXPECT_TRUE(e.code() == errc::cancelled || e.code() == errc::cancelled_in_flight) << e.what();
      }
    }};
    let_pass(std::chrono::microseconds{(i * 37) % 2500});
    if (i % 2 == 0) held.release();
    stop.request_stop();
    waiter.join();
  }
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); })) << server_("GET", "hf:{x}").text;
}

// The same of whoever times out, from well before the lock was granted to it to after that, in each kind: whoever
// stands behind it has the lock as soon as both are gone.
TEST_F(line_trouble, timed_out_at_any_instant_leaves_no_ghost_P5_B27) {
  const auto take = [](client& by, int kind, const acquire_options& how) {
    if (kind == 0) return by.acquire("x", how);
    if (kind == 1) return semaphore{by, "y", 1}.acquire(how);
    return shared_mutex{by, "z"}.acquire(how);
  };
  auto locks = make_client();
  auto leaving = make_client();
  auto behind = make_client();
  int granted = 0;
  int timed_out = 0;
  for (int i = 0; i < 150; ++i) {
    const int kind = i % 3;
    auto held = take(locks, kind, {});
    const auto from = boottime();
    auto leaves = std::async(std::launch::async, [&] {
      const auto code = code_of([&] { take(leaving, kind, {.wait = 20ms}).release(); });
      // On a busy machine its time may be up before its request left, or while its last look is under way.
      const bool is_end = code == outcome::timed_out || code == outcome::unknown || code == errc::server_silent;
      EXPECT_TRUE(!code || is_end) << code.message();
      ++(code ? timed_out : granted);
      return boottime();
    });
    let_pass(5ms);
    auto comes = std::async(std::launch::async, [&] {
      auto got = take(behind, kind, {.wait = 20s});
      const auto at = boottime();
      got.release();
      return at;
    });
    const auto release_at = from + 8ms + std::chrono::microseconds{i * 970 % 15'000};
    eventually([&] { return boottime() >= release_at; });
    const auto released_at = boottime();
    held.release();
    const auto free_at = std::max(released_at, leaves.get());
    EXPECT_LT(comes.get() - free_at, 900ms + when_busy) << "a claim window is 1 s; kind " << kind << ", " << i;
  }
  EXPECT_GT(granted, 0);
  EXPECT_GT(timed_out, 0);
  for (const std::string key : {"hf:{x}", "hf:{y}", "hf:{z}"}) {
    EXPECT_TRUE(eventually([&] { return !exists(key) && !exists(key + ":line"); })) << key;
  }
}

// H21: a release wakes one, not all.
TEST_F(line_trouble, release_with_many_waiting_runs_few_scripts_H21) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 60s});
  auto waiters = start_many(40);
  line_up(waiters);
  server_("CONFIG", "RESETSTAT");
  held.release();
  waiters[0].acquired();
  const auto text = server_("INFO", "commandstats").text;
  const auto at = text.find("cmdstat_evalsha:calls=");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LE(std::stoll(text.substr(at + 22)),
            20);  // The release, the claim, and heartbeats in between: eight a second.
}

// H29: heartbeat and claim begin with PEXPIRE, so a full memory does not stop the line.
TEST_F(line_trouble, memory_full_does_not_stop_heartbeat_and_claim_H29) {
  auto holder = start();
  holder.go();
  holder.acquired();
  auto waiters = start_many(2);
  line_up(waiters);
  server_("CONFIG", "SET", "maxmemory", "1");
  // Until all have looked: a heartbeat that is refused would end the wait.
  const auto full_at =
      server_("EVAL", "local t = redis.call('TIME') return t[1] .. string.format('%06d', t[2])", "0").text;
  EXPECT_TRUE(eventually(
      [&] {
        return server_("EVAL",
                       "local n = 0 for _, v in ipairs(redis.call('HVALS', KEYS[1])) do "
                       "if #v == 16 and v > ARGV[1] then n = n + 1 end end return n",
                       "1", "hf:{x}:waiters", full_at)
                   .number == 2;
      },
      20s));
  const auto released_at = holder.release();
  EXPECT_LT(waiters[0].acquired().at - released_at, 500ms + when_busy);
  server_("CONFIG", "SET", "maxmemory", "0");
  waiters[0].release();
  waiters[1].acquired();
}

}  // namespace
}  // namespace holdfast::test
