// SPDX-License-Identifier: Apache-2.0
#include "net/address_attempts.hpp"

#include "support/scratch_directory.hpp"
#include "support/stream_address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::net {
namespace {

// A host with several addresses; paths stand for them.
class a_host : public testing::Test {
protected:
  ~a_host() override {
    for (const auto& [name, fd] : listeners_) ::close(fd);
  }

  void there_is(const std::string& name) { listeners_[name] = test::listen_at(place_ / name); }

  std::vector<socket_address> with(const std::vector<std::string>& names) const {
    std::vector<socket_address> all;
    for (const auto& one : names) {
      sockaddr_un un{};
      un.sun_family = AF_UNIX;
      std::strncpy(un.sun_path, (place_ / one).c_str(), sizeof un.sun_path - 1);
      socket_address& address = all.emplace_back();
      std::memcpy(&address.bytes, &un, sizeof un);
      address.size = sizeof un;
    }
    return all;
  }

  // Of a family that no machine knows.
  static socket_address strange() {
    socket_address one;
    one.bytes.ss_family = AF_MAX;
    one.size = sizeof one.bytes;
    return one;
  }

  // Whom it comes to next. Empty: nobody.
  std::string next() {
    const int fd = attempts_.connect_next();
    if (fd < 0) return {};
    sockaddr_un un{};
    socklen_t size = sizeof un;
    EXPECT_EQ(::getpeername(fd, reinterpret_cast<sockaddr*>(&un), &size), 0);
    ::close(fd);
    return std::string{un.sun_path}.substr(place_.path().size() + 1);
  }

  test::scratch_directory place_;
  std::map<std::string, int> listeners_;
  const std::shared_ptr<silent_addresses> silent_ = std::make_shared<silent_addresses>();
  address_attempts attempts_{silent_};
};

TEST_F(a_host, is_tried_at_its_addresses_in_their_order) {
  there_is("b");
  there_is("c");
  attempts_.begin(with({"a", "b", "c"}));
  EXPECT_EQ(next(), "b") << "nobody listens at the first one";
  EXPECT_EQ(next(), "c");
  EXPECT_EQ(next(), "");
}

// `localhost` where there is no IPv6, and no server: three refusals end a call that has never had contact.
TEST_F(a_host, says_what_came_of_an_address_that_this_machine_can_ask) {
  there_is("b");
  auto with_strange = with({"a", "b"});
  with_strange.insert(with_strange.begin() + 1, strange());
  attempts_.begin(with_strange);
  EXPECT_EQ(next(), "b") << "behind an address of a family that this machine does not know";
  EXPECT_EQ(attempts_.error(), ENOENT);
  EXPECT_TRUE(attempts_.is_refusal());
  attempts_.begin({strange()});
  EXPECT_EQ(next(), "");
  EXPECT_EQ(attempts_.error(), EAFNOSUPPORT);
  EXPECT_FALSE(attempts_.is_refusal());
}

// A machine without a way to IPv6, and a server that is down: "network is unreachable" would be said of it.
TEST_F(a_host, says_what_came_of_an_address_that_there_is_a_way_to) {
  there_is("a");
  for (const auto& errors : {std::vector{ECONNREFUSED, ENETUNREACH}, {ENETUNREACH, ECONNREFUSED}}) {
    attempts_.begin(with({"a"}));
    ASSERT_EQ(next(), "a");
    for (const int one : errors) attempts_.on_error(one);
    EXPECT_EQ(attempts_.error(), ECONNREFUSED);
    EXPECT_TRUE(attempts_.is_refusal());
  }
  attempts_.begin(with({"a"}));
  ASSERT_EQ(next(), "a");
  for (const int one : {EADDRNOTAVAIL, ENETUNREACH, EAFNOSUPPORT}) attempts_.on_error(one);
  EXPECT_EQ(attempts_.error(), ENETUNREACH) << "which is all that is known";
  EXPECT_TRUE(attempts_.is_refusal());
}

// A Redis on 127.0.0.1 alone, to which all ports are in use: `localhost` has another address, which refuses.
TEST_F(a_host, has_not_refused_where_this_machine_could_not_ask_for_now) {
  const int listener = test::listen_at(0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(static_cast<std::uint16_t>(test::port_of(listener)));
  socket_address loopback;
  std::memcpy(&loopback.bytes, &in, sizeof in);
  loopback.size = sizeof in;
  for (const int passing : {EADDRNOTAVAIL, EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    for (const auto& errors : {std::vector{passing, ECONNREFUSED}, {ECONNREFUSED, passing}}) {
      attempts_.begin({loopback});
      const int fd = attempts_.connect_next();
      ASSERT_GE(fd, 0);
      ::close(fd);
      for (const int one : errors) attempts_.on_error(one);
      EXPECT_EQ(attempts_.error(), passing);
      EXPECT_FALSE(attempts_.is_refusal()) << std::strerror(passing);
    }
  }
  ::close(listener);
}

// A call that has never had contact ends with the third refusal, and one that waits for what passes does not.
TEST_F(a_host, has_refused_where_somebody_has_said_so_and_not_where_that_passes) {
  there_is("a");
  const auto is_refused_by = [&](int error) {
    attempts_.begin(with({"a"}));
    EXPECT_EQ(next(), "a");
    attempts_.on_error(error);
    return attempts_.is_refusal();
  };
  for (const int definite : {ECONNREFUSED, ENOENT, EACCES, EHOSTUNREACH, ENETUNREACH})
    EXPECT_TRUE(is_refused_by(definite)) << std::strerror(definite);
  for (const int passing : {EAGAIN, ETIMEDOUT, ECONNRESET})
    EXPECT_FALSE(is_refused_by(passing)) << std::strerror(passing);
}

TEST_F(a_host, says_what_came_last_of_addresses_that_say_as_much) {
  there_is("a");
  attempts_.begin(with({"a"}));
  ASSERT_EQ(next(), "a");
  for (const int one : {EACCES, ETIMEDOUT}) attempts_.on_error(one);
  EXPECT_EQ(attempts_.error(), ETIMEDOUT);
  EXPECT_FALSE(attempts_.is_refusal());
}

// It is tried again and again until the server is there, or the process has no descriptors any more (H15).
TEST_F(a_host, costs_no_descriptor_where_nobody_listens) {
  const auto free = [] {
    const int fd = ::dup(0);
    ::close(fd);
    return fd;
  };
  const int before = free();
  attempts_.begin(with({"a"}));
  EXPECT_EQ(attempts_.connect_next(), -1);
  EXPECT_EQ(free(), before);
}

TEST_F(a_host, is_tried_last_where_it_was_silent) {
  for (const auto* one : {"a", "b", "c"}) there_is(one);
  for (const auto* expected : {"a", "b", "c", "a"}) {
    attempts_.begin(with({"a", "b", "c"}));
    EXPECT_EQ(next(), expected);
    attempts_.on_silence();
  }
}

TEST_F(a_host, is_tried_where_it_answered_the_last_time) {
  for (const auto* one : {"a", "b", "c"}) there_is(one);
  attempts_.begin(with({"a", "b", "c"}));
  EXPECT_EQ(next(), "a");
  attempts_.on_silence();
  for (int i = 0; i < 2; ++i) {
    attempts_.begin(with({"a", "b"}));
    EXPECT_EQ(next(), "b");
    attempts_.on_spoken();
  }
}

// Somebody else may have that address by now.
TEST_F(a_host, is_not_tried_where_it_is_no_more) {
  there_is("a");
  there_is("b");
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "a");
  attempts_.on_silence();
  attempts_.begin(with({"b"}));
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "");
}

TEST_F(a_host, is_tried_last_where_another_found_it_silent) {
  there_is("a");
  there_is("b");
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "a");
  attempts_.on_silence();
  address_attempts another{silent_};
  another.begin(with({"a", "b"}));
  std::swap(attempts_, another);
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "a");
}

// What is told of many hosts is no reason to keep all of it.
TEST_F(a_host, is_tried_first_again_when_many_others_were_silent_since) {
  there_is("a");
  there_is("b");
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "a");
  attempts_.on_silence();
  for (int i = 0; i < 32; ++i) silent_->note(with({std::to_string(i)})[0]);
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "a");
}

TEST_F(a_host, is_tried_last_however_often_another_one_was_silent_since) {
  for (const auto* one : {"a", "b", "c"}) there_is(one);
  silent_->note(with({"a"})[0]);
  for (int i = 0; i < 32; ++i) silent_->note(with({"b"})[0]);
  attempts_.begin(with({"a", "b", "c"}));
  for (const auto* expected : {"c", "a", "b", ""}) EXPECT_EQ(next(), expected);
}

TEST_F(a_host, is_tried_once_where_it_was_silent_twice) {
  there_is("a");
  there_is("b");
  for (int i = 0; i < 2; ++i) {
    attempts_.begin(with({"a"}));
    EXPECT_EQ(next(), "a");
    attempts_.on_silence();
  }
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "a");
  EXPECT_EQ(next(), "");
}

TEST_F(a_host, is_forgiven_a_silence_when_it_answers) {
  there_is("a");
  there_is("b");
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "a");
  attempts_.on_silence();
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "a");
  attempts_.on_spoken();
  attempts_.begin(with({"a", "b"}));
  EXPECT_EQ(next(), "a");
}

}  // namespace
}  // namespace holdfast::net
