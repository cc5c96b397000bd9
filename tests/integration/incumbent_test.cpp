// SPDX-License-Identifier: Apache-2.0
// What goes wrong in the C++ lock on Redis that was there before this one, as far as no other test is about it: the
// table is in docs/simulation.md.
#include "integration/fixture.hpp"

#include <chrono>
#include <optional>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class incumbent : public on_redis {};

// There each lock leaves a watcher behind: 4,002 renewals a second of one lock behind 2,000 that were given back.
TEST_F(incumbent, whoever_locked_often_before_renews_a_lease_no_more_often_for_it) {
  auto locks = make_client();
  for (int i = 0; i < scaled(2000); ++i) locks.acquire("x", {.ttl = 3s}).release();
  const auto held = locks.acquire("x", {.ttl = 3s});
  const auto before = server_.scripts_run();
  let_pass(3s);
  EXPECT_LE(server_.scripts_run() - before, 8) << "once a second, and what asks for the epoch";
  EXPECT_TRUE(held.valid());
}

// There the first renewal that is not answered in time loses the lock, which then nobody gives back.
TEST_F(incumbent, a_stall_longer_than_the_timeout_loses_no_lease_that_has_two_seconds_left) {
  auto locks = make_client(300ms);
  auto held = locks.acquire("x", {.ttl = 4s, .wait = 10s});
  const auto acquired_at = boottime();
  let_pass(1200ms);
  server_.pause();  // The first renewal is sent at a third of the ttl.
  let_pass(500ms);
  server_.resume();
  EXPECT_TRUE(eventually([&] { return boottime() > acquired_at + 5s; }, 6s));
  EXPECT_FALSE(held.lost().stop_requested());
  EXPECT_TRUE(held.valid()) << "its deadline was moved since";
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(exists("hf:{x}"));
}

// There the watcher's thread joins itself, and the program ends.
TEST_F(incumbent, a_lease_and_its_client_may_be_destroyed_while_a_renewal_is_under_way) {
  auto locks = std::make_optional(make_client());
  auto held = std::make_optional(locks->acquire("x", {.ttl = 3s}));
  server_.pause();
  let_pass(1200ms);  // It was sent at a third of the ttl.
  const auto began = boottime();
  held.reset();
  locks.reset();
  EXPECT_LT(boottime() - began, slack);
  server_.resume();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  EXPECT_TRUE(make_client().try_acquire("x"));
}

}  // namespace
}  // namespace holdfast::test
