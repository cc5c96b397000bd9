// SPDX-License-Identifier: Apache-2.0
#include "net/link.hpp"

#include "net/tls_server_testing.hpp"
#include "support/eventually.hpp"
#include "support/scratch_directory.hpp"
#include "support/stream_address.hpp"
#include "support/tls_material.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace holdfast::net {
namespace {

// A link to a peer of which the test has the other end.
class open_link : public testing::Test {
protected:
  open_link() {
    EXPECT_EQ(link_.open(), link::progress::open) << link_.failure().text;  // To a path there is nothing to wait for.
    peer_ = test::accept_from(listener_);
    EXPECT_GE(peer_, 0);
  }
  ~open_link() override {
    ::close(peer_);
    ::close(listener_);
  }

  // As much as the peer can say before we must have read some of it.
  std::size_t say_all_that_fits() {
    const std::string piece(16 * 1024, 'x');
    std::size_t said = 0;
    for (ssize_t n = 0; (n = ::send(peer_, piece.data(), piece.size(), MSG_DONTWAIT)) > 0;) {
      said += static_cast<std::size_t>(n);
    }
    return said;
  }

  test::scratch_directory place_;
  int listener_ = test::listen_at(place_ / "s");
  link link_{endpoint{unix_address{place_ / "s"}}};
  int peer_ = -1;
};

// B31: otherwise whoever publishes faster than we read keeps the reader, and the wait of nobody here ends.
TEST_F(open_link, reads_a_part_of_what_does_not_end) {
  const auto said = say_all_that_fits();
  ASSERT_GT(said, link::most_at_once);
  std::string heard;
  EXPECT_TRUE(link_.read(heard));
  EXPECT_EQ(heard.size(), link::most_at_once);
  EXPECT_TRUE(link_.read_waiting(heard));
  EXPECT_EQ(heard.size(), 2 * link::most_at_once);
}

TEST_F(open_link, reads_the_last_words_of_a_peer_that_is_gone) {
  const auto said = say_all_that_fits();
  ::shutdown(peer_, SHUT_RDWR);
  std::string heard;
  while (link_.read(heard)) ASSERT_LE(heard.size(), said);
  EXPECT_EQ(heard.size(), said);
  EXPECT_EQ(link_.failure().code, errc::connection_lost);
}

TEST_F(open_link, reads_nothing_where_nothing_was_said) {
  std::string heard;
  EXPECT_TRUE(link_.read(heard));
  EXPECT_TRUE(link_.read_waiting(heard));
  EXPECT_EQ(heard, "");
}

// The rest is the caller's to write again: without a byte of it the server would take what follows for something else.
TEST_F(open_link, keeps_what_the_peer_has_no_room_for) {
  std::string said;
  while (said.size() < 1'000'000) said += std::to_string(said.size()) + ' ';
  std::string left = said;
  std::string heard;
  std::string piece(64 * 1024, '\0');
  EXPECT_EQ(link_.write(left), link::written::some) << "or this tests nothing";
  while (heard.size() < said.size()) {
    const auto n = ::recv(peer_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (n > 0) heard.append(piece, 0, static_cast<std::size_t>(n));
    const auto before = left.size();
    ASSERT_NE(link_.write(left), link::written::failed);
    ASSERT_TRUE(n > 0 || left.size() < before) << "the rest is lost";
  }
  EXPECT_EQ(heard, said);
}

// Goes on until the peer has to say something, or it has failed.
link::progress went_on_to_its_handshake(link& one, link::progress came_to) {
  while (came_to == link::progress::pending && !one.is_shaking_hands()) {
    pollfd wanted = one.poll_for(false);
    if (::poll(&wanted, 1, 10'000) != 1) break;
    came_to = one.advance();
  }
  return came_to;
}
link::progress opened_to_its_handshake(link& one) { return went_on_to_its_handshake(one, one.open()); }

class link_shaking_hands : public testing::Test {
protected:
  link_shaking_hands() {
    EXPECT_EQ(opened_to_its_handshake(link_), link::progress::pending) << link_.failure().text;
    peer_ = test::accept_from(listener_);
  }
  ~link_shaking_hands() override {
    ::close(peer_);
    ::close(listener_);
  }

  test::scratch_directory place_;
  int listener_ = test::listen_at(place_ / "s");
  link link_{endpoint{.where = unix_address{place_ / "s"}, .uses_tls = true}};
  int peer_ = -1;
};

// As a TLS proxy whose Redis is being started; who waits for a lock goes on waiting.
TEST_F(link_shaking_hands, may_be_cut_off_for_now) {
  ::shutdown(peer_, SHUT_RDWR);
  EXPECT_EQ(link_.advance(), link::progress::failed);
  EXPECT_EQ(link_.failure().code, errc::tls_failed);
  EXPECT_EQ(link_.failure().text, "the server closed the connection during the handshake");
  EXPECT_FALSE(link_.failure().is_final);
}

// As a socket that cannot be had: there may be more descriptors soon, and whoever waits for a lock goes on waiting.
TEST(a_link_with_tls, that_cannot_open_its_files_for_now_is_tried_again) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the sanitizer's run-time needs descriptors of its own";
#endif
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const int listener = test::listen_at(place / "s");
  const tls_files authorities{.cacert = material + "/ca.pem", .cert = "", .key = ""};
  const tls_files ours{.cacert = "", .cert = material + "/client.pem", .key = material + "/client.key"};
  for (const auto& files : {authorities, ours, tls_files{}}) {
    link one{endpoint{.where = unix_address{place / "s"}, .uses_tls = true, .tls = files}};
    for (const bool may_be_waited_for : {false, true}) {
      // Who has read for another link is gone, and its descriptor.
      const std::filesystem::path threads{"/proc/self/task"};
      ASSERT_TRUE(test::eventually(
          [&] { return std::distance(begin(std::filesystem::directory_iterator{threads}), {}) == 1; }));
      rlimit usual{};
      ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
      const int socket = ::dup(listener);  // What is free for one,
      const int wake = ::dup(listener);    // for who reads the files to say so,
      ::close(socket);                     // and for nothing else.
      ::close(wake);
      const rlimit few{static_cast<rlim_t>(may_be_waited_for ? wake : socket) + 1, usual.rlim_max};
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
      const auto came_to = opened_to_its_handshake(one);
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
      ASSERT_EQ(came_to, link::progress::failed);
      EXPECT_EQ(one.failure().code, errc::cannot_connect) << one.failure().text;
      EXPECT_FALSE(one.failure().is_final);
      EXPECT_NE(one.failure().text.find("Too many open files"), std::string::npos) << one.failure().text;
    }
    EXPECT_EQ(opened_to_its_handshake(one), link::progress::pending) << one.failure().text;
  }
  ::close(listener);
}

// A file of a mount that hangs: whoever drives the link has losses to tell (C4). The next connection goes on with what
// is under way: with each try there would be one thread more.
TEST(a_link_with_tls, waits_for_no_file) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const int listener = test::listen_at(place / "s");
  const auto fifo = place / "ca.pem";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const tls_files files{.cacert = fifo, .cert = "", .key = ""};
  link one{endpoint{.where = unix_address{place / "s"}, .uses_tls = true, .tls = files}};
  ASSERT_EQ(one.open(), link::progress::pending);
  EXPECT_EQ(one.advance(), link::progress::pending);
  EXPECT_FALSE(one.is_shaking_hands());
  EXPECT_EQ(one.steps(), 3U) << "behind look-up and connection it has a time of its own";
  const int first = one.poll_for(false).fd;
  one.close();
  ASSERT_EQ(one.open(), link::progress::pending);
  EXPECT_EQ(one.poll_for(false).fd, first);
  const int file = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);  // It is read.
  EXPECT_EQ(one.reads(), "cannot read authorities from '" + fifo + "'");
  std::ifstream good{material + "/ca.pem"};
  const std::string content{std::istreambuf_iterator<char>{good}, {}};
  EXPECT_EQ(::write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  ::close(file);
  EXPECT_EQ(went_on_to_its_handshake(one, link::progress::pending), link::progress::pending) << one.failure().text;
  EXPECT_TRUE(one.is_shaking_hands());
  EXPECT_EQ(one.reads(), "");
  ::close(listener);
}

// What the server says in answer has a time of its own; a part of what it said is no turn.
TEST(a_link_with_tls, counts_each_turn_of_the_handshake_as_a_step) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const int listener = test::listen_at(place / "s");
  const tls_files files{.cacert = material + "/ca.pem", .cert = "", .key = ""};
  link one{endpoint{.where = unix_address{place / "s"}, .uses_tls = true, .tls = files}};
  ASSERT_EQ(opened_to_its_handshake(one), link::progress::pending);
  const int peer = test::accept_from(listener);
  a_tls_server server{TLS1_2_VERSION};
  std::string hello(64 * 1024, '\0');
  hello.resize(static_cast<std::size_t>(std::max<ssize_t>(::recv(peer, hello.data(), hello.size(), 0), 0)));
  const auto words = server.answer(hello);
  const auto half = words.size() / 2;
  const auto before = one.steps();
  ASSERT_EQ(::send(peer, words.data(), half, 0), static_cast<ssize_t>(half));
  EXPECT_EQ(one.advance(), link::progress::pending);
  EXPECT_EQ(one.steps(), before);
  ASSERT_EQ(::send(peer, words.data() + half, words.size() - half, 0), static_cast<ssize_t>(words.size() - half));
  EXPECT_EQ(one.advance(), link::progress::pending) << one.failure().text;
  EXPECT_EQ(one.steps(), before + 1);
  ::close(peer);
  ::close(listener);
}

// Up to TLS 1.2 the server has the last word of the handshake, and what it says next may be read with that. Protected
// mode says why it refuses us, and closes.
TEST(a_link_with_tls, hears_what_came_with_the_end_of_the_handshake) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const int listener = test::listen_at(place / "s");
  const tls_files files{.cacert = material + "/ca.pem", .cert = "", .key = ""};
  link one{endpoint{.where = unix_address{place / "s"}, .uses_tls = true, .tls = files}};
  auto came_to = opened_to_its_handshake(one);
  const int peer = test::accept_from(listener);
  a_tls_server server{TLS1_2_VERSION};
  const std::string refusal = "-DENIED Redis is running in protected mode\r\n";
  for (int turn = 0; turn < 4 && came_to == link::progress::pending; ++turn) {
    std::string heard(64 * 1024, '\0');
    const ssize_t size = ::recv(peer, heard.data(), heard.size(), 0);
    ASSERT_GT(size, 0);
    heard.resize(static_cast<std::size_t>(size));
    auto words = server.answer(heard);
    if (server.is_done()) words += server.say(refusal);
    ASSERT_EQ(::send(peer, words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
    came_to = one.advance();
  }
  ASSERT_EQ(came_to, link::progress::open) << one.failure().text;
  ::shutdown(peer, SHUT_WR);
  std::string heard;
  EXPECT_FALSE(one.read(heard));
  EXPECT_EQ(heard, refusal);
  ::close(peer);
  ::close(listener);
}

TEST_F(link_shaking_hands, may_be_reset_for_now) {
  ::close(peer_);  // What it has not read makes it a reset.
  EXPECT_EQ(link_.advance(), link::progress::failed);
  EXPECT_EQ(link_.failure().code, errc::tls_failed);
  EXPECT_EQ(link_.failure().text, "Connection reset by peer during the handshake");
  EXPECT_FALSE(link_.failure().is_final);
}

TEST_F(link_shaking_hands, with_a_plain_redis_fails_for_good) {
  const std::string plain = "-ERR unknown command\r\n";
  ASSERT_GT(::send(peer_, plain.data(), plain.size(), 0), 0);
  ::shutdown(peer_, SHUT_WR);
  EXPECT_EQ(link_.advance(), link::progress::failed);
  EXPECT_EQ(link_.failure().code, errc::tls_failed);
  EXPECT_TRUE(link_.failure().is_final);
}

}  // namespace
}  // namespace holdfast::net
