// SPDX-License-Identifier: Apache-2.0
// Connections that break, stay silent or are refused: leases live on, and no call outlives its deadline.
#include "integration/fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/scripted_server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class connection : public on_redis {};

// B3: Redisson's watchdog did not renew after a reconnection.
TEST_F(connection, killed_every_100_ms_keeps_the_lease) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 900ms});
  auto killer = server_.connect();
  const auto until = boottime() + 4s;
  auto next_kill = boottime();
  while (boottime() < until) {
    if (boottime() >= next_kill) {
      killer("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      next_kill += 100ms;
    }
    ASSERT_TRUE(held.valid());
    let_pass(2ms);
  }
  EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(connection, killed_all_the_time_still_acquires) {
  auto locks = make_client();
  std::atomic<bool> stop{false};
  std::thread killer{[&] {
    auto admin = server_.connect();
    while (!stop) {
      admin("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      let_pass(20ms);
    }
  }};
  for (int i = 0; i < 50; ++i) {
    auto held = locks.acquire("x", {.wait = 10s});
    EXPECT_NE(held.release(), release_outcome::already_lost);
  }
  stop = true;
  killer.join();
}

// H28, B65: NOSCRIPT at any time is repaired in the same attempt.
TEST_F(connection, scripts_flushed_at_20_hz_are_never_noticed) {
  auto locks = make_client();
  auto held = locks.acquire("long", {.ttl = 2s});
  std::atomic<bool> stop{false};
  std::thread flusher{[&] {
    auto admin = server_.connect();
    while (!stop) {
      admin("SCRIPT", "FLUSH");
      let_pass(50ms);
    }
  }};
  const auto until = boottime() + 5s;
  while (boottime() < until) {
    EXPECT_EQ(locks.acquire("x", {.wait = 0ms}).release(), release_outcome::released);
    EXPECT_TRUE(held.valid());
  }
  stop = true;
  flusher.join();
}

// H39: `timeout 1` closes idle connections; nobody may notice (B83 called that a lost lock).
TEST_F(connection, closed_for_idleness_is_no_loss) {
  server_("CONFIG", "SET", "timeout", "1");
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 12s});
  EXPECT_TRUE(eventually([&] { return server_.info("connected_clients") <= 1; }, 10s));
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(connection, silent_from_the_start_is_its_own_error_in_time) {  // H15, H22
  const scripted_server mute{scripted_server::silence()};
  auto locks = make_client_at(mute.uri(), 300ms);
  const auto began = boottime();
  const auto e = error_of([&] { (void)locks.try_acquire("x"); });
  EXPECT_LT(boottime() - began, 300ms + slack);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::server_silent);
  EXPECT_EQ(e->code(), outcome::unreachable);
  EXPECT_EQ(e->code(), outcome::not_applied);
  EXPECT_EQ(e->detail().server_text, "no answer");
}

// Where nobody ever calls accept().
class deaf_port {
public:
  enum class kind { takes_connections, takes_nothing };
  // Nothing: as a firewall that drops, or a machine that is down. A backlog that is full answers no SYN.
  explicit deaf_port(kind how) : listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    const bool is_full = how == kind::takes_nothing;
    if (::bind(listener_, at, size) != 0 || ::listen(listener_, is_full ? 0 : 64) != 0 ||
        ::getsockname(listener_, at, &size) != 0)
      throw std::runtime_error{"no port to be had"};
    where_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    for (int i = 0; is_full && i < 6; ++i) {
      fill_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      [[maybe_unused]] const int done = ::connect(fill_.back(), at, size);
    }
  }
  ~deaf_port() {
    for (const int fd : fill_) ::close(fd);
    ::close(listener_);
  }
  deaf_port(const deaf_port&) = delete;
  deaf_port& operator=(const deaf_port&) = delete;

  const std::string& where() const { return where_; }

private:
  int listener_;
  std::string where_{};
  std::vector<int> fill_{};
};

TEST_F(connection, that_nobody_takes_or_refuses_is_said_to_be_none) {
  const deaf_port nowhere{deaf_port::kind::takes_nothing};
  auto locks = make_client_at("redis://" + nowhere.where(), 300ms);
  for (int times = 0; times < 2; ++times) {
    const auto e = error_of([&] { (void)locks.try_acquire("x"); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), errc::server_silent);
    EXPECT_EQ(e->detail().server_text, "no connection");
  }
}

// Whoever comes behind the first thread asks nobody himself.
TEST_F(connection, that_nobody_takes_is_said_to_be_none_to_each_thread) {
  const deaf_port nowhere{deaf_port::kind::takes_nothing};
  auto locks = make_client_at("redis://" + nowhere.where(), 5s);
  std::stop_source stop;
  std::jthread first{[&] {
    std::error_code ec;
    (void)locks.acquire("x", {.wait = 10s, .cancel = stop.get_token()}, ec);
  }};
  for (int times = 0; times < 5; ++times) {
    const auto e = error_of([&] { (void)locks.acquire("x", {.wait = 60ms}); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), errc::server_silent);
    EXPECT_EQ(e->detail().server_text, "no connection");
  }
  stop.request_stop();
}

// Those who are to name a server take the connection, and that there is none would be said of them.
TEST_F(connection, to_those_who_name_the_server_is_not_said_to_be_none) {
  const deaf_port mute{deaf_port::kind::takes_connections};
  for (const auto& uri : {"redis+cluster://" + mute.where(), "redis+sentinel://" + mute.where() + "/mymaster"}) {
    client locks{uri, {.timeout = 300ms}};
    const auto e = error_of([&] { (void)locks.try_acquire("x"); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), errc::no_primary) << uri;
    EXPECT_EQ(e->detail().server_text, "no majority has answered yet") << uri;
  }
}

// A backlog that is full: not even connect() answers.
TEST_F(connection, that_is_never_accepted_does_not_hang) {
  scratch_directory scratch;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto path = scratch / "full.sock";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  std::vector<int> fill;
  for (int i = 0; i < 4; ++i) {
    fill.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    [[maybe_unused]] const int done =
        ::connect(fill.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  auto locks = make_client_at("redis+unix://" + path, 300ms);
  const auto began = boottime();
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x"); }), outcome::unreachable);
  EXPECT_LT(boottime() - began, 300ms + slack);
  for (const int fd : fill) ::close(fd);
  ::close(listener);
}

TEST_F(connection, refused_is_its_own_error) {
  auto locks = make_client_at("redis+unix:///var/tmp/no-such-directory-of-ours/redis.sock", 500ms);
  const auto code = code_of([&] { (void)locks.try_acquire("x"); });
  EXPECT_EQ(code, errc::cannot_connect);
  EXPECT_EQ(code, outcome::unreachable);
}

// A call may begin and end while nobody tries: in a pause, up to a second long, behind an attempt in vain. That the
// server answers nothing it cannot say then, nor count the attempts of the calls before it.
TEST_F(connection, refused_is_its_own_error_also_between_two_attempts) {
  auto locks = make_client_at("redis+unix:///var/tmp/no-such-directory-of-ours/redis.sock", 20ms);
  semaphore permits{locks, "s", 1};
  int without_attempt = 0;
  int attempts = 0;
  const auto look = [&](const std::optional<error>& e) {
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), errc::cannot_connect) << e->what();
    EXPECT_NE(e->detail().server_text, "");
    attempts += e->detail().attempts;
    if (e->detail().attempts == 0) ++without_attempt;
  };
  int calls = 0;
  while (without_attempt < 30 && calls < 300) {
    calls += 3;
    look(error_of([&] { (void)locks.acquire("x", {.wait = 20ms}); }));
    look(error_of([&] { (void)permits.acquire({.wait = 20ms}); }));
    look(error_of([&] { (void)locks.inspect("x"); }));
  }
  EXPECT_GE(without_attempt, 30);
  EXPECT_LT(attempts, 60);
}

TEST_F(connection, to_a_stopped_server_ends_with_unknown_in_time) {
  auto locks = make_client(300ms);
  locks.acquire("warm", {.wait = 10s}).release();
  server_.pause();
  const auto began = boottime();
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("x"); }), outcome::unknown);
  EXPECT_LT(boottime() - began, 300ms + slack);
  server_.resume();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
}

// Its end was here before there was a request, which nobody can have answered.
TEST_F(connection, that_has_ended_a_moment_ago_carries_no_request_C5) {
  client_options how;
  how.timeout = 500ms;
  auto locks = make_client(how);
  EXPECT_EQ(locks.acquire("x").release(), release_outcome::released);
  server_.kill();
  let_pass(60ms);
  std::error_code ec;
  (void)locks.try_acquire("x", {}, ec);
  EXPECT_EQ(ec, errc::cannot_connect) << ec.message();
}

TEST_F(connection, comes_back_by_itself_after_the_server_did) {
  auto locks = make_client(5s);
  locks.acquire("x").release();
  server_.kill();
  std::optional<lease> held;
  std::error_code ec;
  std::thread waiter{[&] { held = locks.acquire("x", {.wait = 5s}, ec); }};
  let_pass(300ms);
  server_.restart_undoubted();
  waiter.join();
  EXPECT_TRUE(held) << ec.message();
}

// P30: one caller's deadline is not the others'. It gives up after 80 ms; the connection and its neighbours stay.
TEST_F(connection, with_one_unanswered_request_serves_the_others) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  locks.acquire("warm").release();
  const int before = proxy.connections();
  proxy.set(direction::to_client, {.delay = 400ms});
  (void)locks.inspect("warm");  // It knows that it is slow: so much is no silence.
  std::error_code impatient;
  std::thread first{[&] { (void)locks.acquire("x", {.wait = 80ms}, impatient); }};
  std::vector<std::thread> others;
  std::atomic<int> got{0};
  for (int i = 0; i < 8; ++i) {
    others.emplace_back([&, i] {
      if (locks.try_acquire("y" + std::to_string(i))) ++got;
    });
  }
  first.join();
  for (auto& other : others) other.join();
  EXPECT_EQ(impatient, outcome::unknown);
  EXPECT_EQ(got, 8);
  EXPECT_LE(proxy.connections() - before, 1) << "the keeper may have connected; nothing was closed";
  proxy.heal();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
}

// Each grant is over when it is here: whoever goes on waits for its own.
TEST_F(connection, whose_way_is_longer_than_the_ttl_is_said_to_be) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  locks.acquire("warm").release();
  proxy.set(direction::to_client, {.delay = 150ms});
  const auto failure = error_of([&] { (void)locks.acquire("x", {.ttl = 100ms}); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::invalid_option);
  EXPECT_EQ(failure->detail().subject, "ttl 100 ms");
  EXPECT_THAT(failure->detail().why, testing::ContainsRegex("the server's answers take [0-9]{3,} ms"));
  EXPECT_FALSE(exists("hf:{x}"));
  EXPECT_FALSE(exists("hf:{x}:line"));
}

// P31: the only blocking caller leaves while its request is open; the answer must still be read and cleaned up.
TEST_F(connection, is_read_after_the_last_blocking_caller_left) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  locks.acquire("warm").release();
  proxy.set(direction::to_client, {.delay = 200ms});
  std::error_code ec;
  EXPECT_FALSE(locks.acquire("x", {.ttl = 60s, .wait = 50ms}, ec));
  EXPECT_EQ(ec, outcome::unknown);
  proxy.heal();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 3s)) << "nobody cleaned up";
}

TEST_F(connection, sixty_four_threads_share_at_most_three) {
  auto locks = make_client();
  std::atomic<int> running{64};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        auto held = locks.acquire("t" + std::to_string(t), {.wait = 20s});
        EXPECT_EQ(held.release(), release_outcome::released);
      }
      --running;
    });
  }
  std::int64_t most = 0;
  while (running > 0) most = std::max(most, server_.info("connected_clients") - 1);  // Less the one that asks.
  for (auto& thread : threads) thread.join();
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 3);
}

// H50, B46: stopping while somebody else holds it is clean; nothing of ours is at the server.
TEST_F(connection, wait_cancelled_between_requests_is_cancelled) {
  auto other = make_client();
  const auto held = other.acquire("x");
  auto locks = make_client();
  std::stop_source stop;
  std::error_code ec;
  std::thread waiter{[&] { (void)locks.acquire("x", {.cancel = stop.get_token()}, ec); }};
  let_pass(200ms);
  const auto began = boottime();
  stop.request_stop();
  waiter.join();
  EXPECT_LT(boottime() - began, slack);
  EXPECT_TRUE(ec == errc::cancelled || ec == errc::cancelled_in_flight) << ec.message();
}

TEST_F(connection, wait_cancelled_while_unanswered_says_so_and_cleans_up) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  locks.acquire("warm").release();
  proxy.set(direction::to_client, {.delay = 400ms});
  std::stop_source stop;
  std::error_code ec;
  std::thread waiter{[&] { (void)locks.acquire("x", {.ttl = 60s, .cancel = stop.get_token()}, ec); }};
  EXPECT_TRUE(eventually([&] { return exists("hf:{x}"); }));
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(ec, errc::cancelled_in_flight);
  EXPECT_EQ(ec, outcome::unknown);
  proxy.heal();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 3s));
}

TEST_F(connection, wait_cancelled_while_connecting_ends_at_once) {
  const scripted_server mute{scripted_server::silence()};
  auto locks = make_client_at(mute.uri(), 10s);
  std::stop_source stop;
  std::error_code ec;
  std::thread waiter{[&] { (void)locks.acquire("x", {.cancel = stop.get_token()}, ec); }};
  let_pass(100ms);
  const auto began = boottime();
  stop.request_stop();
  waiter.join();
  EXPECT_LT(boottime() - began, slack);
  EXPECT_EQ(ec, errc::cancelled);
}

TEST_F(connection, wait_cancelled_before_it_began_sends_nothing) {
  auto locks = make_client();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { (void)locks.acquire("x", {.cancel = stop.get_token()}); }), errc::cancelled);
  EXPECT_FALSE(exists("hf:{x}"));
}

// B46 at any microsecond: cancelled or acquired, in the end nothing is held. The clean-up may need a second look when
// the request's own deadline is over (C5), so that is kept short.
TEST_F(connection, wait_cancelled_at_any_instant_leaves_nothing) {
  auto locks = make_client(1s);
  locks.acquire("warm").release();
  for (int i = 0; i < scaled(2000); ++i) {
    std::stop_source stop;
    std::thread stopper{[&] {
      const auto until = boottime() + std::chrono::microseconds{i % 200};
      while (boottime() < until) {
      }
      stop.request_stop();
    }};
    std::error_code ec;
    { const auto held = locks.acquire("x", {.ttl = 30s, .cancel = stop.get_token()}, ec); }
    stopper.join();
    ASSERT_TRUE(!ec || ec == errc::cancelled || ec == errc::cancelled_in_flight) << ec.message();
  }
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 3s));
}

TEST(a_client, that_finds_no_descriptor_to_look_at_its_certificates_cannot_connect) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the sanitizer's run-time needs descriptors of its own";
#endif
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit few{static_cast<rlim_t>(next), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto e = error_of([&] { client{"rediss://127.0.0.1:1?cacert=/etc/passwd"}; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::cannot_connect);
  EXPECT_NE(e->detail().server_text.find("Too many open files"), std::string::npos) << e->what();
}

TEST(a_client, that_finds_too_few_descriptors_cannot_connect_and_says_why) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the sanitizer's run-time needs descriptors of its own";
#endif
  for (const auto* uri : {"redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1", "redis+quorum://127.0.0.1:1"}) {
    rlimit usual{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int next = ::dup(0);
    ::close(next);
    const rlimit few{static_cast<rlim_t>(next) + 1, usual.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto e = error_of([&] { client{uri}; });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
    ASSERT_TRUE(e) << uri;
    EXPECT_EQ(e->code(), errc::cannot_connect) << uri;
    EXPECT_NE(e->detail().server_text.find("Too many open files"), std::string::npos) << e->what();
  }
}

}  // namespace
}  // namespace holdfast::test
