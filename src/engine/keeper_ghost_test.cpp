// SPDX-License-Identifier: Apache-2.0
// What the keeper does when a line calls somebody who has had his turn: its server has forgotten that.
#include "engine/keeper_testing.hpp"

namespace holdfast::engine {

namespace {

using namespace keeper_testing;
using namespace std::chrono_literals;

using testing::Contains;
using testing::ElementsAre;

class keeper_ghost_test : public keeper_test {
protected:
  std::shared_ptr<held_lease> queued() {
    const auto ends = core::deadline_of(server.now, ttl, drift);
    auto lease = std::make_shared<held_lease>(keys_of(0), somebody, token, ttl, ends);
    lease->was_in_line = true;
    keeps.keep(lease, server.now, ends, renewal::automatic);
    return lease;
  }
};

// A replica that had not heard of the last grants is promoted: its line calls those who have had their turn.
TEST_F(keeper_ghost_test, leaves_a_line_that_came_back_with_one_whose_lease_has_ended_H25) {
  const auto lease = queued();
  keeps.let_go(*lease);
  keeps.on_stray_hint(server.now, lease->owner.hex(), server.clock);
  wake();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(done());
  EXPECT_TRUE(keeps.is_idle());
}

TEST_F(keeper_ghost_test, leaves_a_line_that_came_back_with_one_whose_lease_was_lost_H25) {
  const auto lease = queued();
  wake_after(ttl);
  EXPECT_THAT(listens.take(), Contains("lost lease_expired"));
  keeps.on_stray_hint(server.now, lease->owner.hex(), server.clock);
  wake();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
}

TEST_F(keeper_ghost_test, leaves_a_line_that_came_back_with_one_who_had_given_up_H25) {
  auto what = a_release();
  what.token = {};
  keeps.release_later(server.now, what);
  wake();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
  server.say(done());
  EXPECT_TRUE(keeps.is_idle());
  keeps.on_stray_hint(server.now, somebody.hex(), server.clock);
  wake();
  EXPECT_THAT(server.take_names(), ElementsAre("leave"));
}

// Whoever may publish can say anything; and a message may be late, when a look was granted it meanwhile.
TEST_F(keeper_ghost_test, what_is_held_does_not_leave_whatever_is_said_H20) {
  const auto first = queued();
  const auto next = queued();  // Handed on in the process: under the same owner id.
  keeps.let_go(*first);
  keeps.on_stray_hint(server.now, next->owner.hex(), server.clock);
  wake_after(ttl / 3);
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("renew"));
}

TEST_F(keeper_ghost_test, remembers_no_more_than_the_last_256) {
  const auto who = [](int i) {
    return owner_id{{static_cast<unsigned char>(i % 256), static_cast<unsigned char>(i / 256)}};
  };
  for (int i = 0; i <= 256; ++i) {
    const auto ends = core::deadline_of(server.now, ttl, drift);
    const auto lease = std::make_shared<held_lease>(keys_of(0), who(i), token, ttl, ends);
    lease->was_in_line = true;
    keeps.keep(lease, server.now, ends, renewal::automatic);
    keeps.let_go(*lease);
  }
  keeps.on_stray_hint(server.now, who(0).hex(), server.clock);
  EXPECT_TRUE(keeps.is_idle());
  keeps.on_stray_hint(server.now, who(1).hex(), server.clock);
  EXPECT_FALSE(keeps.is_idle());
}

TEST_F(keeper_ghost_test, who_hands_on_takes_no_room_of_the_others) {
  const auto ends = core::deadline_of(server.now, ttl, drift);
  const auto other = std::make_shared<held_lease>(keys_of(1), owner_id{rng.bytes16()}, token, ttl, ends);
  other->was_in_line = true;
  keeps.keep(other, server.now, ends, renewal::automatic);
  keeps.let_go(*other);
  for (int i = 0; i < 256; ++i) keeps.let_go(*queued());  // Under one owner id.
  keeps.on_stray_hint(server.now, other->owner.hex(), server.clock);
  EXPECT_FALSE(keeps.is_idle());
}

// The message of its own grant, which a look had found before it: its release is under way on another connection by
// now, and would be told "already lost" behind a leave that is faster.
TEST_F(keeper_ghost_test, does_not_leave_for_a_message_that_is_only_late_P5) {
  const auto lease = queued();
  keeps.let_go(*lease);
  keeps.on_stray_hint(server.now, lease->owner.hex(), server_time{std::chrono::microseconds{token.value()}});
  EXPECT_TRUE(keeps.is_idle());
  keeps.on_stray_hint(server.now, lease->owner.hex(), server_time{});
  EXPECT_TRUE(keeps.is_idle());
  keeps.on_stray_hint(server.now, lease->owner.hex(), server_time{std::chrono::microseconds{token.value() + 1}});
  EXPECT_FALSE(keeps.is_idle());
}

}  // namespace

}  // namespace holdfast::engine
