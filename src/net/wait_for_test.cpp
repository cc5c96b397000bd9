// SPDX-License-Identifier: Apache-2.0
#include "net/wait_for.hpp"

#include "net/clock.hpp"
#include "net/event_fd.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>

namespace holdfast::net {
namespace {

constexpr auto long_enough = std::chrono::seconds{30};

TEST(wait_for, says_what_has_happened) {
  event_fd wake;
  std::array<pollfd, 2> fds{pollfd{-1, 0, 0}, pollfd{wake.get(), POLLIN, 0}};
  wait_for(fds, time_point{});
  EXPECT_EQ(fds[1].revents, 0);
  wake.set();
  wait_for(fds, boottime_now() + long_enough);
  EXPECT_EQ(fds[0].revents, 0);
  EXPECT_EQ(fds[1].revents, POLLIN);
}

// As a watch of a cluster of more nodes than a sandbox gives descriptors: ppoll(2) takes no list as long as that, and
// whoever asks again at once does nothing else.
TEST(wait_for, of_more_entries_than_there_may_be_files_sees_what_has_happened_and_sleeps_between_looks) {
  event_fd wake;
  std::array<pollfd, 16> fds;
  fds.fill({-1, 0, 0});
  fds.back() = {wake.get(), POLLIN, 0};
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit few{fds.size() - 1, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto before = boottime_now();
  wait_for(fds, before + long_enough);
  const auto slept = boottime_now() - before;
  const auto nothing = fds.back().revents;
  wake.set();
  wait_for(fds, boottime_now() + long_enough);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_GE(slept, std::chrono::milliseconds{1});
  EXPECT_EQ(nothing, 0);
  EXPECT_EQ(fds.back().revents, POLLIN);
}

}  // namespace
}  // namespace holdfast::net
