// SPDX-License-Identifier: Apache-2.0
// What the checkers say of what a holder was told, or was not, and of what is put down to whom, told to them by hand.
#include "made_up.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// For 9 s at 1 s, and renewed every 3 s.
hold renewed_every_3_s() {
  hold one = lease(1, 1s, 10s);
  one.ttl = 9s;
  return one;
}

script_run a_look() {
  static const resp::value done{std::string{"1795212800000000"}};
  script_run run{script::id::look, {}, {}, nobody, {}, 0, {}};
  run.reply = &done;
  return run;
}

}  // namespace

// ---- a lease that the server has lost: it knows of none here ----

TEST(checkers_of_news, see_that_nobody_is_told_for_a_renewal_period_that_the_server_has_lost_it_C1) {
  made_up world;
  world.at(1s, [&](checker& c) { c.on_hold(renewed_every_3_s()); });
  world.at(2s, [&](checker& c) { c.on_disturbed(cause::keys_deleted); });
  EXPECT_EQ(world.at(5300ms, [&](checker& c) { c.on_process_step(1); }), complaints{});
  EXPECT_EQ(world.at(5500ms, [&](checker& c) { c.on_process_step(1); }), complaints{"C1"});
}

TEST(checkers_of_news, see_it_also_where_a_script_shows_that_it_is_gone_C1) {
  made_up world;
  world.at(1s, [&](checker& c) { c.on_hold(renewed_every_3_s()); });
  world.at(2s, [&](checker& c) { c.on_script(a_look()); });
  EXPECT_EQ(world.at(5500ms, [&](checker& c) { c.on_process_step(1); }), complaints{"C1"});
}

TEST(checkers_of_news, let_who_had_no_answer_meanwhile_hear_of_it_later) {
  made_up world;
  world.at(1s, [&](checker& c) { c.on_hold(renewed_every_3_s()); });
  world.at(2s, [&](checker& c) { c.on_disturbed(cause::keys_deleted); });
  world.all_are_well_since(3s);
  EXPECT_EQ(world.at(6300ms, [&](checker& c) { c.on_process_step(1); }), complaints{});
  EXPECT_EQ(world.at(6500ms, [&](checker& c) { c.on_process_step(1); }), complaints{"C1"});
}

TEST(checkers_of_news, let_a_lease_that_is_not_renewed_any_more_hear_nothing) {
  made_up world;
  hold one = renewed_every_3_s();
  one.must_end_by = one.valid_until;
  world.at(1s, [&](checker& c) { c.on_hold(one); });
  world.at(2s, [&](checker& c) { c.on_disturbed(cause::keys_deleted); });
  EXPECT_EQ(world.at(5500ms, [&](checker& c) { c.on_process_step(1); }), complaints{});
}

// ---- at_risk(): 1.5 s before the deadline ----

TEST(checkers_of_news, see_that_nobody_is_told_of_a_risk_C4) {
  made_up world;
  world.at(1s, [&](checker& c) { c.on_hold(renewed_every_3_s()); });
  EXPECT_EQ(world.at(8500ms, [&](checker& c) { c.on_process_step(1); }), complaints{});
  EXPECT_EQ(world.at(8600ms, [&](checker& c) { c.on_process_step(1); }), complaints{"C4"});
}

TEST(checkers_of_news, see_that_who_was_renewed_since_is_not_told_of_the_next_risk_C4) {
  made_up world;
  const hold one = renewed_every_3_s();
  world.at(1s, [&](checker& c) { c.on_hold(one); });
  world.at(8500ms, [&](checker& c) { c.on_at_risk(one); });
  EXPECT_EQ(world.at(8600ms, [&](checker& c) { c.on_process_step(1); }), complaints{});
  world.at(9s, [&](checker& c) { c.on_extended(renewed(one, 18s)); });
  EXPECT_EQ(world.at(16600ms, [&](checker& c) { c.on_process_step(1); }), complaints{"C4"});
}

TEST(checkers_of_news, let_who_stood_still_hear_of_the_risk_when_it_runs_again) {
  made_up world;
  world.at(1s, [&](checker& c) { c.on_hold(renewed_every_3_s()); });
  world.all_run_again_at(9s);
  EXPECT_EQ(world.at(9s, [&](checker& c) { c.on_process_step(1); }), complaints{});
}

// ---- keys of no lock ----

TEST(checkers_of_news, see_a_key_of_no_lock_that_never_expires_C8) {
  made_up world;
  world.server().execute({"SET", "hf:epoch", "v1", "PX", "1000"});
  EXPECT_EQ(world.at(1s, [](checker& c) { c.at_rest(); }), complaints{});
  world.server().execute({"SET", "hf:epoch", "v1"});
  EXPECT_EQ(world.at(1s, [](checker& c) { c.at_rest(); }), complaints{"C8"});
}

// ---- what is put down to what ----

TEST(checkers_of_news, put_nothing_down_to_what_befell_another_lock) {
  statistics ignored;
  world in{draw(1, {}), std::make_shared<lua_host>(), nullptr, ignored};
  in.disturb(cause::broken_at_once, duration{0}, 0);
  EXPECT_NE(in.excuse({cause::broken_at_once}, instant{}, 0), nullptr);
  EXPECT_EQ(in.excuse({cause::broken_at_once}, instant{}, 1), nullptr);
  in.disturb(cause::keys_deleted, duration{0});
  EXPECT_NE(in.excuse({cause::keys_deleted}, instant{}, 1), nullptr);
}

// A lease with a smaller token comes late; what was broken at once before either was granted is no reason.
TEST(checkers_of_news, put_no_smaller_token_down_to_what_was_over_before_C2) {
  made_up world;
  const hold first = lease(2, 10s, 11s);
  const hold second = lease(1, 20s, 30s);
  world.at(9s, [](checker&) {});
  world.is_disturbed_by(cause::broken_at_once, 0);
  world.at(10s, [&](checker& c) { c.on_hold(first); });
  EXPECT_TRUE(world.at(20s, [&](checker& c) { c.on_hold(second); }).contains("C2"));
}

TEST(checkers_of_news, put_a_smaller_token_down_to_a_break_of_its_lease_C2) {
  made_up world;
  const hold first = lease(2, 12s, 21s);
  const hold second = lease(1, 10s, 19s);
  world.at(11s, [](checker&) {});
  world.is_disturbed_by(cause::broken_at_once, 0);
  world.at(12s, [&](checker& c) { c.on_hold(first); });
  EXPECT_FALSE(world.at(13s, [&](checker& c) { c.on_hold(second); }).contains("C2"));
}

}  // namespace holdfast::sim
