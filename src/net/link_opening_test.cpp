// SPDX-License-Identifier: Apache-2.0
// How a link comes to its peer: names that are looked up slowly or in vain, and hosts with several addresses.
#include "net/link.hpp"
#include "net/name_service_testing.hpp"
#include "support/stream_address.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>

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

}  // namespace
}  // namespace holdfast::net
