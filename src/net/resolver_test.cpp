// SPDX-License-Identifier: Apache-2.0
#include "net/resolver.hpp"

#include "net/clock.hpp"
#include "net/cluster_watch.hpp"
#include "net/name_service_testing.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <memory>

namespace holdfast::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string shown(const socket_address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.family() == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address.bytes);
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return std::string{text.data()} + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (address.family() == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address.bytes);
    inet_ntop(AF_INET6, &in.sin6_addr, text.data(), text.size());
    return "[" + std::string{text.data()} + "]:" + std::to_string(ntohs(in.sin6_port));
  }
  return reinterpret_cast<const sockaddr_un&>(address.bytes).sun_path;
}

std::vector<std::string> shown(const resolved& answer) {
  std::vector<std::string> all;
  for (const auto& address : answer.addresses) all.push_back(shown(address));
  return all;
}

bool is_readable_within(int fd, int milliseconds) {
  pollfd wanted{fd, POLLIN, 0};
  return poll(&wanted, 1, milliseconds) == 1;
}

endpoint tcp(std::string host) { return {tcp_address{std::move(host), "6380"}}; }
endpoint path_of(std::string path) { return {unix_address{std::move(path)}}; }

// What is there without a look-up is there when the constructor returns.
resolved at_once(const endpoint& where) {
  resolver look_up{where};
  EXPECT_TRUE(is_readable_within(look_up.wake_fd(), 0));
  return look_up.take().value_or(resolved{{}, "no answer yet"});
}

TEST(resolver, answers_literals_at_once) {
  EXPECT_THAT(shown(at_once(tcp("192.0.2.7"))), ElementsAre("192.0.2.7:6380"));
  EXPECT_THAT(shown(at_once(tcp("2001:db8::7"))), ElementsAre("[2001:db8::7]:6380"));
}

// RFC 6761, 6.3. Redis listens on 127.0.0.1 more often than on ::1.
TEST(resolver, takes_localhost_for_this_machine_without_a_look_up) {
  EXPECT_THAT(shown(at_once(tcp("localhost"))), ElementsAre("127.0.0.1:6380", "[::1]:6380"));
}

// Whose certificate is expected: the name's, not that of an address.
TEST(resolver, takes_localhost_for_the_name_that_was_asked_for) {
  EXPECT_EQ(at_once(tcp("localhost")).host, "localhost");
}

TEST(resolver, answers_a_socket_path_at_once) {
  const auto answer = at_once(path_of("/run/redis/redis.sock"));
  ASSERT_THAT(shown(answer), ElementsAre("/run/redis/redis.sock"));
  EXPECT_EQ(answer.addresses[0].family(), AF_UNIX);
}

TEST(resolver, takes_the_longest_socket_path_there_can_be) {
  const std::string path = "/" + std::string(106, 'p');
  EXPECT_THAT(shown(at_once(path_of(path))), ElementsAre(path));
}

// Cut off, it would name another socket.
TEST(resolver, refuses_a_socket_path_that_is_too_long_and_says_by_how_much) {
  const auto answer = at_once(path_of("/" + std::string(107, 'p')));
  EXPECT_THAT(answer.addresses, IsEmpty());
  EXPECT_THAT(answer.failure, HasSubstr("108"));
  EXPECT_THAT(answer.failure, HasSubstr("107"));
}

TEST(resolver, gives_its_answer_once) {
  resolver look_up{tcp("192.0.2.7")};
  EXPECT_TRUE(look_up.take().has_value());
  EXPECT_FALSE(look_up.take().has_value());
}

// RFC 6761, 6.4: no name under invalid. has an address, with and without a network (H23).
TEST(resolver, says_why_a_name_has_no_address) {
  resolver look_up{tcp("no-such-host.invalid")};
  ASSERT_TRUE(is_readable_within(look_up.wake_fd(), 10'000));
  const auto answer = look_up.take();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(answer->addresses, IsEmpty());
  EXPECT_THAT(answer->failure, Not(IsEmpty()));
}

TEST(resolver, is_good_for_five_seconds_after_it_was_answered_H23) {
  const auto where = tcp("192.0.2.7");
  const auto before = boottime_now();
  const resolver look_up{where};
  EXPECT_TRUE(look_up.is_good_for(where, before + std::chrono::milliseconds{4999}));
  EXPECT_FALSE(look_up.is_good_for(where, boottime_now() + std::chrono::milliseconds{5001}));
}

TEST(resolver, is_good_for_nothing_when_there_was_no_address) {
  const auto where = path_of("/" + std::string(107, 'p'));
  EXPECT_FALSE(resolver{where}.is_good_for(where, boottime_now()));
}

// Its cluster may be known, and have a slot that nobody serves.
TEST(resolver, says_of_a_slot_without_a_primary_that_nobody_is_named_for_it) {
  const auto watch = std::make_shared<cluster_watch>(cluster_seeds{}, std::chrono::minutes{1});
  {
    resolver look_up{endpoint{cluster_node_address{watch, nullptr, nullptr}}};
    ASSERT_TRUE(is_readable_within(look_up.wake_fd(), 10'000));
    const auto answer = look_up.take();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->code, errc::no_primary);
    EXPECT_EQ(answer->failure, "no majority of its primaries names one for this slot");
  }
  watch->close(true);
}

// A connection of no term would be asked again and again, and nothing that it grants would count.
TEST(resolver, has_no_address_of_a_node_that_nobody_has_named_yet) {
  const auto watch = std::make_shared<cluster_watch>(cluster_seeds{}, std::chrono::minutes{1});
  const auto there = std::make_shared<moving_address>(tcp_address{"127.0.0.1", "6380"});
  const auto named = std::make_shared<engine::named_primary>(std::chrono::minutes{1});
  const endpoint where{cluster_node_address{watch, there, named}};
  {
    resolver look_up{where};
    ASSERT_TRUE(is_readable_within(look_up.wake_fd(), 10'000));
    const auto answer = look_up.take();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->code, errc::no_primary);
    EXPECT_TRUE(answer->addresses.empty());
  }
  named->name("one", boottime_now(), boottime_now());
  {
    resolver look_up{where};
    ASSERT_TRUE(is_readable_within(look_up.wake_fd(), 10'000));
    const auto answer = look_up.take();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->term, 1U);
    EXPECT_FALSE(answer->addresses.empty());
  }
  watch->close(true);
}

// Else whoever was named before, by a name that hangs, would stand in the way of who is named now.
TEST(resolver, is_good_while_the_same_primary_is_named) {
  made_up_name hangs{"hangs.test"};
  const auto now = boottime_now();
  const auto named = std::make_shared<engine::named_primary>(std::chrono::minutes{1});
  named->name("one", now, now);
  const auto watch = std::make_shared<cluster_watch>(cluster_seeds{}, std::chrono::minutes{1});
  const auto there = std::make_shared<moving_address>(tcp_address{"hangs.test", "6380"});
  const endpoint where{cluster_node_address{watch, there, named}};
  {
    const resolver look_up{where};
    EXPECT_TRUE(look_up.is_good_for(where, now + std::chrono::hours{1})) << "it is under way";
    named->name("another", now, now);
    EXPECT_FALSE(look_up.is_good_for(where, now));
  }
  watch->close(true);
}

}  // namespace
}  // namespace holdfast::net
