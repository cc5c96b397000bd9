// SPDX-License-Identifier: Apache-2.0
// A process that gets no memory while its keeper hears of something: what is not done then is found again.
#include "engine/keeper_testing.hpp"
#include "engine/scarce_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>

namespace holdfast::engine {

namespace {

using namespace keeper_testing;
using namespace scarce_testing;
using namespace std::chrono_literals;
using testing::ElementsAre;

class scarce_keeper : public keeper_test {
protected:
  // The callers' connection has seen the server's clock go forward, and there is memory for so much of what that means.
  void step_is_seen_elsewhere(int with_allocations) {
    server.pass(100ms);
    server.clock += 5s;
    core::server_clock seen;
    (void)seen.observe(server.clock, server.now, server.now);
    bool is_enough = true;
    allocations_left = with_allocations;
    try {
      keeps.on_step_seen(server.now, 5s, seen);
    } catch (const std::bad_alloc&) {
      is_enough = false;
    }
    allocations_left = all;
    EXPECT_FALSE(is_enough) << "or this tests nothing";
  }
  void next_answer_puts_all_leases_to_the_test() {
    server.say(done());
    EXPECT_THAT(listens.take(), ElementsAre("step", "renewed"));
    wake();
    EXPECT_THAT(server.take_names(), ElementsAre("renew"));
  }
};

TEST_F(scarce_keeper, finds_a_step_again_that_it_had_no_memory_to_hear_of_H3) {
  const auto first = renewing();
  const auto second = held(1);
  step_is_seen_elsewhere(0);
  next_answer_puts_all_leases_to_the_test();
}

TEST_F(scarce_keeper, finds_a_step_again_that_it_had_no_memory_to_act_upon_H3) {
  const auto first = renewing();
  const auto second = held(1);
  step_is_seen_elsewhere(1);
  next_answer_puts_all_leases_to_the_test();
}

struct a_wish final : renewal_wish {
  void on_end(errc) noexcept override {}
};

// Who is thrown something does not wait, and may have ended when it would be told.
TEST_F(scarce_keeper, has_nothing_of_a_wish_that_it_had_no_memory_to_note) {
  const auto lease = renewing();
  server.say(done());
  listens.take();
  int failures = 0;
  for (bool is_enough = false; !is_enough; ++failures) {
    ASSERT_LT(failures, 100) << "it never has enough";
    const auto wish = std::make_shared<a_wish>();
    is_enough = true;
    allocations_left = failures;
    try {
      keeps.renew_now(server.now, *lease, server.now + 1s, wish);
    } catch (const std::bad_alloc&) {
      is_enough = false;
    }
    allocations_left = all;
    EXPECT_EQ(wish.use_count() > 1, is_enough) << failures;
    if (is_enough) break;
    wake();
    EXPECT_THAT(server.take_names(), ElementsAre()) << failures;
  }
  EXPECT_GT(failures, 0) << "or this tests nothing";
}

}  // namespace

}  // namespace holdfast::engine
