// SPDX-License-Identifier: Apache-2.0
// A process that gets no memory while it looks for its server: what it has begun can be begun again.
#include "net/link.hpp"
#include "net/name_service_testing.hpp"
#include "net/resolver.hpp"
#include "support/scratch_directory.hpp"
#include "support/stream_address.hpp"

#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

namespace {

constexpr int all = std::numeric_limits<int>::max();
// How many more allocations succeed: of the thread that a test runs in, and of all others.
thread_local int left_here = all;
thread_local bool is_a_test = false;
std::atomic<int> left_elsewhere{all};

bool takes_one() {
  if (!is_a_test) return left_elsewhere == all || left_elsewhere-- > 0;
  return left_here == all || (left_here > 0 && left_here-- > 0);
}

}  // namespace

// Not inline, or g++ sees a malloc that is ended by delete and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (!takes_one()) throw std::bad_alloc{};
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t) noexcept { std::free(what); }

namespace holdfast::net {
namespace {

class scarce_memory : public testing::Test {
protected:
  scarce_memory() { is_a_test = true; }
  ~scarce_memory() override {
    is_a_test = false;
    left_elsewhere = all;
    ::close(listener_);
  }

  // Opens links to there with memory for no allocation, for one, for two, until it is enough. Each that it was not
  // enough for comes to the same with all memory.
  static void open_with_ever_more(const endpoint& where, link::progress expected) {
    int too_few = 0;
    for (bool is_enough = false; !is_enough; ++too_few) {
      link one{where};
      left_here = too_few;
      try {
        const auto came_to = went_on(one, one.open());
        left_here = all;
        EXPECT_EQ(came_to, expected);
        is_enough = true;
      } catch (const std::bad_alloc&) {
        left_here = all;
        ASSERT_TRUE(one.is_closed()) << "without allocation " << too_few;
        EXPECT_EQ(went_on(one, one.open()), expected) << one.failure().text;
      }
    }
    EXPECT_GT(too_few, 2) << "or this tests nothing";
  }

  static link::progress went_on(link& by, link::progress so_far) {
    while (so_far == link::progress::pending) {
      pollfd wanted = by.poll_for(false);
      if (::poll(&wanted, 1, 10'000) != 1) break;
      so_far = by.advance();
    }
    return so_far;
  }

  test::scratch_directory place_;
  int listener_ = test::listen_at(place_ / "s");
};

TEST_F(scarce_memory, leaves_a_link_that_can_be_opened_again) {
  open_with_ever_more({unix_address{place_ / "s"}}, link::progress::open);
}

TEST_F(scarce_memory, leaves_a_link_to_nobody_that_can_be_opened_again) {
  const int gone = test::listen_at(0);
  const auto port = std::to_string(test::port_of(gone));
  ::close(gone);
  open_with_ever_more({tcp_address{"127.0.0.1", port}}, link::progress::failed);
  open_with_ever_more({unix_address{place_ / "nobody"}}, link::progress::failed);
  open_with_ever_more({unix_address{place_ / std::string(200, 'p')}}, link::progress::failed);
}

// In a thread of its own, where whatever is thrown ends the program.
TEST_F(scarce_memory, for_a_look_up_is_its_answer) {
  made_up_name none{"none.test"};
  none.fails_with(EAI_FAIL);
  int too_few = 0;
  for (bool is_enough = false; !is_enough; ++too_few) {
    left_elsewhere = too_few;
    resolver look_up{endpoint{tcp_address{"none.test", "6380"}}};
    pollfd wanted{look_up.wake_fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&wanted, 1, 10'000), 1);
    const auto answer = look_up.take();
    ASSERT_TRUE(answer.has_value());
    EXPECT_NE(answer->failure, "");
    is_enough = answer->is_refusal;
    EXPECT_TRUE(is_enough || answer->failure == "out of memory") << answer->failure;
  }
  EXPECT_GT(too_few, 2) << "or this tests nothing";
}

}  // namespace
}  // namespace holdfast::net
