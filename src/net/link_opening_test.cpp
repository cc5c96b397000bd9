// SPDX-License-Identifier: Apache-2.0
// How a link comes to its peer: names that are looked up slowly or in vain, and hosts with several addresses.
#include "net/clock.hpp"
#include "net/cluster_watch.hpp"
#include "net/link.hpp"
#include "net/name_service_testing.hpp"
#include "support/scratch_directory.hpp"
#include "support/stream_address.hpp"
#include "support/tls_material.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace {

bool takes_the_peers_port = false;
std::atomic<std::time_t> slept_for = 0;  // A suspend, in seconds.

}  // namespace

// The system's, but for a suspend that a test makes up.
extern "C" int clock_gettime(clockid_t which, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, which, now));
  if (which == CLOCK_BOOTTIME) now->tv_sec += slept_for;
  return result;
}

// The system's, and before that, if the test says so, our end is what the other end is to be: as it comes about by
// chance, of some 30,000 ports, where the peer's is among those that the system gives.
extern "C" int connect(int fd, const sockaddr* to, socklen_t size) {
  static auto* const real = reinterpret_cast<decltype(&connect)>(dlsym(RTLD_NEXT, "connect"));
  if (takes_the_peers_port && ::bind(fd, to, size) != 0) ADD_FAILURE() << "not connected with itself";
  return real(fd, to, size);
}

namespace holdfast::net {
namespace {

// Goes on until it is open or has failed. Still pending: nothing has happened for ten seconds.
link::progress went_on(link& by, link::progress so_far) {
  while (so_far == link::progress::pending) {
    pollfd wanted = by.poll_for(false);
    if (::poll(&wanted, 1, 10'000) != 1) break;
    so_far = by.advance();
  }
  return so_far;
}

// Is the name there, or are the TLS files, that it waits for? For ten seconds.
bool is_looked_up(const link& by) {
  pollfd wanted = by.poll_for(false);
  return wanted.events == POLLIN && ::poll(&wanted, 1, 10'000) == 1;
}

class opening_link : public testing::Test {
protected:
  ~opening_link() override { ::close(listener_); }

  endpoint at(std::string host) const {
    return {tcp_address{std::move(host), std::to_string(test::port_of(listener_))}};
  }

  int listener_ = test::listen_at(0);
};

// A dead first name server costs 5 s, each time. Who gives up after 2 s would never come to an end, and leave a thread
// behind each time (H22).
TEST_F(opening_link, takes_up_the_look_up_that_it_gave_up_before) {
  made_up_name slow{"slow.test"};
  link one{at("slow.test")};
  ASSERT_EQ(one.open(), link::progress::pending);
  ASSERT_TRUE(slow.was_asked(1));
  one.close();
  const auto again = one.open();
  slow.has({"127.0.0.1"});
  EXPECT_EQ(went_on(one, again), link::progress::open) << one.failure().text;
  EXPECT_EQ(slow.asked(), 1);
}

// H23: the server may have moved.
TEST_F(opening_link, looks_up_anew_for_another_connection) {
  made_up_name moves{"moves.test"};
  moves.has({"127.0.0.1"});
  link one{at("moves.test")};
  for (const int times : {1, 2}) {
    EXPECT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
    one.close();
    EXPECT_EQ(moves.asked(), times);
  }
}

// The machine was suspended, or all of us stopped, and nobody took the answer: the server may have moved meanwhile, or
// the name be there at last.
TEST_F(opening_link, looks_up_anew_where_nobody_took_the_answer_for_long_H23) {
  for (const bool had_an_address : {true, false}) {
    made_up_name moves{"moves.test"};
    link one{at("moves.test")};
    ASSERT_EQ(one.open(), link::progress::pending);
    const auto before = one.steps();
    if (had_an_address) {
      moves.has({"127.0.0.2"});
    } else {
      moves.fails_with(EAI_NONAME);
    }
    ASSERT_TRUE(is_looked_up(one));
    slept_for += 6;
    moves.has({"127.0.0.1"});
    const auto again = one.advance();
    EXPECT_GT(one.steps(), before) << "it has a time of its own";
    EXPECT_EQ(went_on(one, again), link::progress::open) << one.failure().text;
    EXPECT_EQ(moves.asked(), 2);
  }
}

// Connected, and has heard something.
class spoken_link {
public:
  spoken_link(const endpoint& where, int listener) : one{where} {
    EXPECT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
    peer_ = test::accept_from(listener);
    EXPECT_EQ(::send(peer_, "x", 1, 0), 1);
    for (std::string heard; heard.empty();) EXPECT_TRUE(one.read_waiting(heard));
  }
  ~spoken_link() { end(); }
  spoken_link(const spoken_link&) = delete;
  spoken_link& operator=(const spoken_link&) = delete;

  // By its peer.
  void end() {
    if (peer_ >= 0) ::close(std::exchange(peer_, -1));
  }

  link one;

private:
  int peer_ = -1;
};

// A lease is renewed over another connection than it was granted over, and a dead first name server costs 5 s.
TEST_F(opening_link, goes_where_another_one_stands_while_the_name_service_says_nothing_H22) {
  const auto where = at("moves.test");
  std::optional<made_up_name> name{"moves.test"};
  name->has({"127.0.0.1"});
  std::optional<spoken_link> first{std::in_place, where, listener_};
  name.emplace("moves.test");
  for (const int error : {0, EAI_AGAIN, EAI_NONAME}) {
    if (error != 0) name->fails_with(error);
    link second{where};
    EXPECT_EQ(went_on(second, second.open()), link::progress::open) << error << " " << second.failure().text;
    second.close();
    EXPECT_EQ(went_on(second, second.open()), link::progress::open) << error << " and again";
  }
  link other{at("other.test")};
  made_up_name none{"other.test"};
  none.fails_with(EAI_AGAIN);
  EXPECT_EQ(went_on(other, other.open()), link::progress::failed) << "another endpoint";
  first.reset();
  link third{where};
  EXPECT_EQ(went_on(third, third.open()), link::progress::failed) << "nobody stands there any more";
  EXPECT_EQ(third.failure().code, errc::cannot_resolve);
}

// A failover for which the old primary's clients are ended: it may still answer. Who is idle has not read of that.
TEST_F(opening_link, goes_nowhere_where_the_peer_of_another_one_has_ended_it) {
  const auto where = at("moves.test");
  std::optional<made_up_name> name{"moves.test"};
  name->has({"127.0.0.1"});
  spoken_link first{where, listener_};
  name.emplace("moves.test");
  name->fails_with(EAI_AGAIN);
  first.end();
  link second{where};
  EXPECT_EQ(went_on(second, second.open()), link::progress::failed);
}

// What was asked for a connection that came about without it is old when that one ends.
TEST_F(opening_link, looks_up_anew_behind_one_that_did_not_wait_for_its_look_up_H23) {
  const auto where = at("moves.test");
  std::optional<made_up_name> name{"moves.test"};
  name->has({"127.0.0.1"});
  const spoken_link first{where, listener_};
  for (const bool has_lived : {false, true}) {
    name.emplace("moves.test");
    spoken_link second{where, listener_};
    name->has({"127.0.0.1"});
    if (has_lived) slept_for += 2;
    second.one.close();
    EXPECT_EQ(went_on(second.one, second.one.open()), link::progress::open);
    EXPECT_EQ(name->asked(), has_lived ? 2 : 1);
    ::close(test::accept_from(listener_));  // So that the next one is heard by whom it connects to.
  }
}

TEST_F(opening_link, believes_the_name_service_rather_than_where_another_one_stands_H23) {
  const auto where = at("moves.test");
  made_up_name moves{"moves.test"};
  moves.has({"127.0.0.1"});
  const spoken_link first{where, listener_};
  moves.has({"127.0.0.2"});
  link second{where};
  EXPECT_EQ(went_on(second, second.open()), link::progress::failed);
  EXPECT_EQ(second.failure().text, "Connection refused");
}

// Who waits for nothing does not wake again and again for what is late.
TEST_F(opening_link, sleeps_while_a_look_up_is_late) {
  const made_up_name hangs{"hangs.test"};
  link one{at("hangs.test")};
  ASSERT_EQ(one.open(), link::progress::pending);
  ASSERT_TRUE(is_looked_up(one)) << "it is late";
  EXPECT_EQ(one.looks_up(), "hangs.test");
  EXPECT_EQ(one.advance(), link::progress::pending);
  pollfd wanted = one.poll_for(false);
  EXPECT_EQ(::poll(&wanted, 1, 200), 0);
}

// A server behind a slow file system, with TLS files of its own. It accepts, and says nothing.
class opening_link_with_files : public opening_link {
protected:
  opening_link_with_files() { EXPECT_EQ(::mkfifo(file_.c_str(), 0600), 0); }

  void has(const std::string& contents) const {
    std::filesystem::remove(file_);
    std::filesystem::copy_file(contents, file_);
  }
  // It has been read, and nobody has taken that. Of a pipe, that says nothing before the link has said that it reads.
  void is_read(link& by, link::progress so_far, const std::string& contents) const {
    while (so_far == link::progress::pending && by.reads().empty()) {
      pollfd wanted = by.poll_for(false);
      ASSERT_EQ(::poll(&wanted, 1, 10'000), 1);
      so_far = by.advance();
    }
    ASSERT_EQ(so_far, link::progress::pending) << by.failure().text;
    std::ofstream{file_} << std::ifstream{contents}.rdbuf();
    ASSERT_TRUE(is_looked_up(by));
  }
  // Goes on until the files are there: then it shakes hands, in vain.
  static link::progress went_on_to_shake_hands(link& by, link::progress so_far) {
    while (so_far == link::progress::pending) {
      pollfd wanted = by.poll_for(false);
      if (::poll(&wanted, 1, by.reads().empty() && wanted.fd >= 0 ? 200 : 10'000) != 1) break;
      so_far = by.advance();
    }
    return so_far;
  }

  test::scratch_directory place_;
  const std::string file_ = place_ / "ca.pem";
  const std::string authorities_ = test::tls_material(test::certificate::good) + "/ca.pem";
  const std::string other_ = test::tls_material(test::certificate::good) + "/client.key";  // No certificate in it.
  endpoint where_ = [this] {
    auto made = at("127.0.0.1");
    made.uses_tls = true;
    made.tls.cacert = file_;
    return made;
  }();
};

TEST_F(opening_link_with_files, takes_up_what_was_read_when_it_had_given_up) {
  link one{where_};
  is_read(one, one.open(), authorities_);
  one.close();
  has(other_);
  EXPECT_EQ(went_on_to_shake_hands(one, one.open()), link::progress::pending) << one.failure().text;
}

TEST_F(opening_link_with_files, reads_them_anew_where_nobody_took_them_for_long) {
  link one{where_};
  is_read(one, one.open(), other_);
  const auto before = one.steps();
  slept_for += 6;
  has(authorities_);
  const auto again = one.advance();
  EXPECT_GT(one.steps(), before) << "it has a time of its own";
  EXPECT_EQ(went_on_to_shake_hands(one, again), link::progress::pending) << one.failure().text;
}

// A peer that vanished without a word: half a minute, whether somebody asks it something or nobody does.
TEST_F(opening_link, that_is_open_learns_from_its_system_that_the_peer_is_gone_H15) {
  link one{at("localhost")};
  ASSERT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
  const auto option = [fd = one.poll_for(false).fd](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 15);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 30'000);
}

// Who waits for a lock goes on: `holdfast run -w 5m` of a machine that starts, whose name servers do not answer yet.
TEST_F(opening_link, takes_only_a_definite_answer_for_a_refusal) {
  for (const auto& [error, is_refusal] :
       {std::pair{EAI_NONAME, true}, {EAI_FAIL, true}, {EAI_AGAIN, false}, {EAI_MEMORY, false}}) {
    made_up_name none{"none.test"};
    none.fails_with(error);
    link one{at("none.test")};
    EXPECT_EQ(went_on(one, one.open()), link::progress::failed) << error;
    EXPECT_EQ(one.failure().code, errc::cannot_resolve) << error;
    EXPECT_EQ(one.failure().is_refusal, is_refusal) << one.failure().text;
    EXPECT_FALSE(one.failure().is_final) << error;
  }
}

// It will name another one.
TEST_F(opening_link, takes_nothing_for_a_refusal_where_others_name_the_primary) {
  made_up_name gone{"gone.test"};
  gone.fails_with(EAI_NONAME);
  const auto watch = std::make_shared<cluster_watch>(cluster_seeds{}, std::chrono::minutes{1});
  const auto named = std::make_shared<engine::named_primary>(std::chrono::minutes{1});
  named->name("one", boottime_now(), boottime_now());
  const auto there = std::make_shared<moving_address>(tcp_address{"gone.test", "6380"});
  {
    link one{{cluster_node_address{watch, there, named}}};
    EXPECT_EQ(went_on(one, one.open()), link::progress::failed);
    EXPECT_EQ(one.failure().code, errc::cannot_resolve);
    EXPECT_FALSE(one.failure().is_refusal);
  }
  watch->close(true);
}

// Where the server is down, on the machine of its client. It would hear itself answer for good what is no answer of
// Redis, and the server could not be started again as long as the port is in use.
TEST_F(opening_link, that_is_connected_with_itself_was_refused) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<std::uint16_t>(test::port_of(listener_)));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::close(std::exchange(listener_, -1));
  link one{{tcp_address{"127.0.0.1", std::to_string(ntohs(in.sin_port))}}};
  takes_the_peers_port = true;
  const auto progress = went_on(one, one.open());
  takes_the_peers_port = false;
  EXPECT_EQ(progress, link::progress::failed);
  EXPECT_EQ(one.failure().code, errc::cannot_connect);
  EXPECT_EQ(one.failure().text, "Connection refused");
  EXPECT_TRUE(one.failure().is_refusal);
  EXPECT_FALSE(one.failure().is_final);
  one.close();
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&in), sizeof in), 0) << "the port is in use";
  ::close(server);
}

// Listens at an address of the loopback and says nothing to anybody: its backlog is full.
class silent_address {
public:
  silent_address(const char* address, int port) {
    in_.sin_family = AF_INET;
    in_.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, address, &in_.sin_addr);
    EXPECT_EQ(::bind(listener_, where(), sizeof in_), 0);
    EXPECT_EQ(::listen(listener_, 0), 0);
    for (const int fd : callers_) (void)::connect(fd, where(), sizeof in_);
  }
  ~silent_address() {
    for (const int fd : callers_) ::close(fd);
    ::close(listener_);
  }
  silent_address(const silent_address&) = delete;
  silent_address& operator=(const silent_address&) = delete;

private:
  static int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
  const sockaddr* where() const { return reinterpret_cast<const sockaddr*>(&in_); }

  sockaddr_in in_{};
  int listener_ = make_socket();
  std::array<int, 3> callers_{make_socket(), make_socket(), make_socket()};
};

// Listens at an address of the loopback.
class accepting_address {
public:
  accepting_address(const char* address, int port) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, address, &in.sin_addr);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&in), sizeof in), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
  }
  ~accepting_address() { ::close(listener_); }
  accepting_address(const accepting_address&) = delete;
  accepting_address& operator=(const accepting_address&) = delete;
  int get() const { return listener_; }

private:
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
};

// IPv6 that a firewall drops, or a first machine that is off: whoever begins with the silent address each time never
// comes to the one that answers.
TEST_F(opening_link, tries_another_address_after_one_that_was_silent) {
  made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  const silent_address first{"127.0.0.2", test::port_of(listener_)};
  link one{at("two.test")};
  ASSERT_EQ(one.open(), link::progress::pending);
  while (is_looked_up(one)) ASSERT_EQ(one.advance(), link::progress::pending);
  one.close();
  EXPECT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
}

// The connection over which a lease is renewed is made when that is due.
TEST_F(opening_link, knows_of_a_silence_that_another_one_met) {
  made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  const silent_address first{"127.0.0.2", test::port_of(listener_)};
  const auto where = at("two.test");
  link before{where};
  ASSERT_EQ(before.open(), link::progress::pending);
  while (is_looked_up(before)) ASSERT_EQ(before.advance(), link::progress::pending);
  before.close();
  link one{where};
  EXPECT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
}

// A server that is stopped, or a proxy whose server is away: its system accepts, and nobody speaks.
TEST_F(opening_link, tries_another_address_after_one_that_accepted_and_said_nothing) {
  made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  const accepting_address first{"127.0.0.2", test::port_of(listener_)};
  for (const bool uses_tls : {false, true}) {
    auto where = at("two.test");
    where.uses_tls = uses_tls;
    link one{where};
    for (const int there : {first.get(), listener_}) {
      auto progress = one.open();
      while (progress == link::progress::pending && !one.is_shaking_hands()) {
        pollfd wanted = one.poll_for(false);
        ASSERT_EQ(::poll(&wanted, 1, 10'000), 1);
        progress = one.advance();
      }
      ASSERT_NE(progress, link::progress::failed) << one.failure().text;
      const int peer = test::accept_from(there);
      EXPECT_GE(peer, 0) << (there == listener_ ? "the other one" : "the first one");
      one.close();
      ::close(peer);
    }
  }
}

// What it said on another connection is long ago.
TEST_F(opening_link, tries_another_address_after_one_that_speaks_no_more) {
  made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  const accepting_address first{"127.0.0.2", test::port_of(listener_)};
  link one{at("two.test")};
  for (const bool speaks : {true, false}) {
    ASSERT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
    const int peer = test::accept_from(first.get());
    ASSERT_GE(peer, 0);
    std::string heard;
    EXPECT_EQ(::send(peer, "x", speaks ? 1 : 0, 0), speaks ? 1 : 0);
    while (speaks && heard.empty()) ASSERT_TRUE(one.read_waiting(heard));
    one.close();
    ::close(peer);
  }
  ASSERT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
  const int peer = test::accept_from(listener_);
  EXPECT_GE(peer, 0) << "the other one";
  ::close(peer);
}

// Nobody may come back for as long as one of them takes.
TEST_F(opening_link, counts_each_address_that_it_tries_as_a_step) {
  made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  for (const bool is_first_there : {true, false}) {
    std::optional<accepting_address> first;
    if (is_first_there) first.emplace("127.0.0.2", test::port_of(listener_));
    link one{at("two.test")};
    EXPECT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
    EXPECT_EQ(one.steps(), is_first_there ? 2U : 3U) << "one is the look-up";
  }
}

// Whoever has said something may be come back to.
TEST_F(opening_link, stays_with_an_address_that_spoke) {
  made_up_name two{"two.test"};
  two.has({"127.0.0.2", "127.0.0.1"});
  const accepting_address first{"127.0.0.2", test::port_of(listener_)};
  link one{at("two.test")};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(went_on(one, one.open()), link::progress::open) << one.failure().text;
    const int peer = test::accept_from(first.get());
    ASSERT_GE(peer, 0);
    ASSERT_EQ(::send(peer, "x", 1, 0), 1);
    std::string heard;
    ASSERT_TRUE(one.read(heard));
    EXPECT_EQ(heard, "x");
    one.close();
    ::close(peer);
  }
}

}  // namespace
}  // namespace holdfast::net
