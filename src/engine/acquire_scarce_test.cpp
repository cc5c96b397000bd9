// SPDX-License-Identifier: Apache-2.0
// An acquire that gets no memory for what it sends: whoever drives it has others to look after, and comes back to it.
#include "engine/call_testing.hpp"
#include "engine/scarce_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

namespace holdfast::engine {

namespace {

using namespace call_testing;
using namespace scarce_testing;
using testing::ElementsAre;

class scarce_acquire : public call_test {};

TEST_F(scarce_acquire, sends_again_what_it_had_no_memory_to_send_C5) {
  {
    acquire first{calls.wire(), ear, wants(), rules(), server.now, rng};
    calls.start(first, server.now);
    server.connect();
    server.take();
    server.say(busy());
    calls.stop(first);
  }
  int failures = 0;
  for (bool is_enough = false; !is_enough; ++failures) {
    ASSERT_LT(failures, 100) << "it never has enough";
    acquire what{calls.wire(), ear, wants(), rules(), server.now, rng};
    is_enough = true;
    allocations_left = failures;
    try {
      calls.start(what, server.now);
    } catch (const std::bad_alloc&) {
      is_enough = false;
    }
    allocations_left = all;
    if (!is_enough) {
      EXPECT_THAT(server.take_names(), ElementsAre()) << failures;
      EXPECT_LE(what.wake_at(), server.now) << failures;
      what.step(server.now);
    }
    EXPECT_THAT(server.take_names(), ElementsAre("acquire")) << failures;
    server.say(busy());
    EXPECT_TRUE(what.is_over());
    calls.stop(what);
  }
  EXPECT_GT(failures, 0) << "or this tests nothing";
}

}  // namespace

}  // namespace holdfast::engine
