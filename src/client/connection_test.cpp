// SPDX-License-Identifier: Apache-2.0
// How long a connection is given to come about, and what of that is somebody's silence.
#include "client/connection.hpp"

#include "core/random_testing.hpp"
#include "net/clock.hpp"
#include "net/name_service_testing.hpp"
#include "support/scratch_directory.hpp"
#include "support/stream_address.hpp"
#include "support/tls_material.hpp"

#include <holdfast/client.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#ifndef HOLDFAST_SANITIZED
namespace {

// Whether the next bytes that this thread sends find no room, as in a cgroup at its limit, on a connection that lives.
thread_local bool finds_no_room = false;

}  // namespace

extern "C" [[gnu::visibility("default")]] ssize_t send(int fd, const void* bytes, size_t count, int flags) {
  if (std::exchange(finds_no_room, false)) {
    errno = ENOBUFS;
    return -1;
  }
  return ::sendto(fd, bytes, count, flags, nullptr, 0);
}
#endif

namespace holdfast {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using net::boottime_now;

struct what_is_told final : engine::channel_listener {
  void on_ready(time_point) override {}
  void on_down(time_point, const engine::connection_failure& why, bool) override { failures.push_back(why.text); }
  void on_clock_step(time_point, duration) override {}
  std::vector<std::string> failures;
};

// A connection of which each step has `patience` to a peer that never says anything. Whether anybody drives it is the
// test's affair.
class to_a_mute {
public:
  to_a_mute(const std::string& host, int port, bool uses_tls, duration patience,
            const std::string& cacert = test::tls_material(test::certificate::good) + "/ca.pem")
      : channel_{with(patience), rng_, told_},
        line_{net::endpoint{.where = net::tcp_address{host, std::to_string(port)},
                            .uses_tls = uses_tls,
                            .tls = {.cacert = cacert, .cert = "", .key = ""}},
              channel_, mutex_} {
    channel_.set_demand(true);
  }

  // The driver's first half, and its second.
  void prepare() {
    connection::lock held{mutex_};
    line_.prepare(held);
  }
  void collect() {
    connection::lock held{mutex_};
    line_.collect(held, POLLIN | POLLOUT);
  }
  // Its files come by themselves.
  void collect_to_its_handshake() {
    while (!is_shaking_hands() && !is_closed() && has_happened()) collect();
  }
  void say(const std::string& what) {
    connection::lock held{mutex_};
    channel_.output() += what;
    line_.flush(held);
  }

  // Nobody drives it until its time is over and what it waits for has happened. False: not within ten seconds.
  bool is_left_alone() {
    while (boottime_now() < line_.wake_at()) ::poll(nullptr, 0, 1);
    return has_happened();
  }
  bool has_happened() {
    pollfd wanted = line_.poll_for();
    return ::poll(&wanted, 1, 10'000) == 1;
  }

  time_point wake_at() const { return line_.wake_at(); }
  bool is_shaking_hands() const { return line_.is_shaking_hands(); }
  bool is_closed() const { return channel_.is_closed(); }
  const std::vector<std::string>& failures() const { return told_.failures; }

private:
  static engine::channel::settings with(duration patience) {
    engine::channel::settings how;
    how.connect_timeout = patience;
    return how;
  }

  core::seeded_random rng_;
  what_is_told told_;
  engine::channel channel_;
  std::mutex mutex_;
  connection line_;
};

class connection_to_a_mute : public testing::Test {
protected:
  ~connection_to_a_mute() override { ::close(listener_); }

  // Somebody else's connection, which need not come about.
  int call() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in to{};
    socklen_t size = sizeof to;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&to), &size);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&to), size);
    return fd;
  }

  int listener_ = test::listen_at(0);
  const int port_ = test::port_of(listener_);
};

// A look-up of 1.8 s and TLS over 0.3 s of round trip never came to an end: each attempt looked up anew.
TEST_F(connection_to_a_mute, has_all_of_its_time_when_the_name_is_found) {
  net::made_up_name slow{"slow.test"};
  to_a_mute one{"slow.test", port_, true, 60s};
  one.prepare();
  ASSERT_TRUE(slow.was_asked(1));
  const auto of_the_look_up = one.wake_at();
  slow.has({"127.0.0.1"});
  ASSERT_TRUE(one.has_happened());
  const auto found_at = boottime_now();
  one.collect_to_its_handshake();
  EXPECT_TRUE(one.is_shaking_hands());
  EXPECT_GT(one.wake_at(), of_the_look_up);
  EXPECT_GE(one.wake_at(), found_at + 60s);
}

TEST_F(connection_to_a_mute, goes_on_from_a_name_that_was_found_while_nobody_looked) {
  net::made_up_name slow{"slow.test"};
  to_a_mute one{"slow.test", port_, true, 100ms};
  one.prepare();
  slow.has({"127.0.0.1"});
  const auto of_the_look_up = one.wake_at();
  ASSERT_TRUE(one.is_left_alone());
  one.prepare();
  one.collect_to_its_handshake();
  EXPECT_TRUE(one.is_shaking_hands());
  EXPECT_GT(one.wake_at(), of_the_look_up);
  EXPECT_EQ(one.failures(), std::vector<std::string>{});
}

// The call that had begun it has ended, and the next one comes much later.
TEST_F(connection_to_a_mute, goes_on_from_a_peer_that_was_reached_while_nobody_looked) {
  ASSERT_EQ(::listen(listener_, 0), 0);
  for (const bool uses_tls : {false, true}) {
    const std::vector<int> in_the_way{call(), call(), call()};
    to_a_mute one{"127.0.0.1", port_, uses_tls, 100ms};
    one.prepare();
    ASSERT_FALSE(one.is_shaking_hands()) << "or this tests nothing";
    for (const int fd : in_the_way) ::close(fd);
    for (int fd = -1; (fd = test::accept_from(listener_)) >= 0;) ::close(fd);
    const auto of_the_peer = one.wake_at();
    ASSERT_TRUE(one.is_left_alone());
    one.prepare();
    EXPECT_FALSE(one.is_closed());
    if (uses_tls) one.collect_to_its_handshake();
    EXPECT_EQ(one.is_shaking_hands(), uses_tls);
    EXPECT_GT(one.wake_at(), of_the_peer);
    EXPECT_EQ(one.failures(), std::vector<std::string>{});
  }
}

#ifndef HOLDFAST_SANITIZED
// The answer to the next request would be taken for that to what was thrown away (C1).
TEST_F(connection_to_a_mute, writes_nothing_behind_a_write_that_failed_C1) {
  to_a_mute one{"127.0.0.1", port_, false, 60s};
  one.prepare();
  finds_no_room = true;
  one.say("");
  for (int i = 0; finds_no_room && i < 1000; ++i) {  // Until it is open.
    ::poll(nullptr, 0, 1);
    one.collect();
    one.say("");
  }
  ASSERT_FALSE(finds_no_room) << "or this tests nothing";
  one.say("PING\r\n");
  const int peer = test::accept_from(listener_);
  ASSERT_GE(peer, 0);
  char byte = 0;
  EXPECT_EQ(::recv(peer, &byte, 1, MSG_DONTWAIT), -1);
  ::close(peer);
}
#endif

// What is whose silence has not changed.
TEST_F(connection_to_a_mute, ends_when_its_time_is_over) {
  for (const bool uses_tls : {false, true}) {
    to_a_mute one{"127.0.0.1", port_, uses_tls, 100ms};
    one.prepare();
    if (uses_tls) one.collect_to_its_handshake();
    while (boottime_now() < one.wake_at()) ::poll(nullptr, 0, 1);
    one.prepare();
    const std::string expected =
        uses_tls ? "the handshake got no answer; that port probably speaks plain Redis" : "no answer";
    EXPECT_EQ(one.failures(), std::vector{expected});
  }
}

// It is not the server's.
TEST_F(connection_to_a_mute, names_the_file_whose_silence_it_is) {
  const test::scratch_directory place;
  const auto fifo = place / "ca.pem";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  to_a_mute one{"127.0.0.1", port_, true, 100ms, fifo};
  one.prepare();
  const int file = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);  // It is read.
  while (boottime_now() < one.wake_at()) ::poll(nullptr, 0, 1);
  one.prepare();
  EXPECT_EQ(one.failures(),
            std::vector{"cannot read authorities from '" + fifo + "': the file system does not answer"});
  ::close(file);
}

// A machine that is off, and the next address: else that one never has its turn (H23).
TEST(connection_of_a_client, with_a_short_timeout_comes_to_a_second_address) {
  net::made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  const int second = test::listen_at(0);
  const int port = test::port_of(second);
  const int first = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<std::uint16_t>(port));
  in.sin_addr.s_addr = htonl(0x7f000002);
  ASSERT_EQ(::bind(first, reinterpret_cast<const sockaddr*>(&in), sizeof in), 0);
  ASSERT_EQ(::listen(first, 4), 0);  // Its system accepts, and nobody speaks.

  client_options how;
  how.timeout = 1s;
  client locks{"redis://two.test:" + std::to_string(port), how};
  EXPECT_THROW((void)locks.try_acquire("x"), error);
  const int came = test::accept_from(second);
  EXPECT_GE(came, 0);
  for (const int fd : {came, first, second}) ::close(fd);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace holdfast
