// SPDX-License-Identifier: Apache-2.0
// Breaking a lock of a quorum where not all of its servers let us.
#include "integration/quorum_fixture.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <system_error>
#include <thread>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

const acquire_options brief{.ttl = 4s};

// Which of them is asked first, or last, makes no difference.
TEST_F(with_quorum, a_lock_that_a_majority_broke_is_broken_whatever_the_others_say_C5) {
  auto locks = make();
  for (int bad = 0; bad < size(); ++bad) {
    const auto name = "x" + std::to_string(bad);
    auto held = locks.acquire(name, brief);
    have_all_votes(held, "hf:{" + name + "}");
    ask(bad, {"ACL", "SETUSER", "default", "-del"});
    const auto code =
        code_of([&] { make().break_lock(name, held.token(), {.why = "test", .mode = break_mode::immediately}); });
    ask(bad, {"ACL", "SETUSER", "default", "+del"});
    EXPECT_EQ(code, std::error_code{}) << node(bad).address << ": " << code.message();
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, long_enough));
  }
}

TEST_F(with_quorum, a_lock_that_a_minority_broke_may_be_broken_C5) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  have_all_votes(held);
  for (int bad = 0; bad < 2; ++bad) ask(bad, {"ACL", "SETUSER", "default", "-del"});
  const auto e =
      error_of([&] { make().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately}); });
  for (int bad = 0; bad < 2; ++bad) ask(bad, {"ACL", "SETUSER", "default", "+del"});
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), outcome::unknown) << e->what();
  EXPECT_THAT(e->detail().why, HasSubstr("2 of 3 servers"));
  EXPECT_THAT(e->detail().why, HasSubstr(node(0).address));
}

// It has a vote of the holder's, for all that is known, and another may have been asked for one since.
TEST_F(with_quorum, a_server_that_does_not_answer_may_have_what_is_left_of_a_broken_lock_C5) {
  auto locks = make();
  const auto held = with_each_vote(locks);
  ask(2, {"DEL", "hf:{x}"});
  lab_.pause(node(1));
  const auto e =
      error_of([&] { make().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately}); });
  lab_.resume(node(1));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), outcome::unknown) << e->what();
  EXPECT_THAT(e->detail().why, HasSubstr("1 of 2 servers that have it, or may, did not break it"));
  EXPECT_THAT(e->detail().why, HasSubstr(node(1).address));
}

// Who looks while it is being granted sees the first of its votes, and those that come after make it.
TEST_F(with_quorum, a_vote_that_comes_while_the_others_are_broken_is_broken_too_C5) {
  auto locks = make();
  const auto held = with_each_vote(locks);
  const auto token = held.token();
  const auto vote = value(0);
  for (const int i : {1, 2}) ask(i, {"DEL", "hf:{x}"});
  bool is_in_time = false;
  for (int round = 0; round < 20 && !is_in_time; ++round) {
    ask(0, {"SET", "hf:{x}", vote.c_str(), "PX", "60000"});
    std::atomic<bool> is_over = false;
    std::error_code code;
    std::jthread operating{[&] {
      code = code_of([&] { make().break_lock("x", token, {.why = "test", .mode = break_mode::immediately}); });
      is_over = true;
    }};
    EXPECT_TRUE(eventually([&] { return value(0).empty() || is_over; }, long_enough));
    for (const int i : {1, 2}) ask(i, {"SET", "hf:{x}", vote.c_str(), "PX", "60000"});
    is_in_time = !is_over;  // Else this machine was busy: it was broken before.
    operating.join();
    ASSERT_EQ(code, std::error_code{}) << code.message();
    if (is_in_time) {
      EXPECT_EQ(votes(), 0);
    }
    for (const int i : {1, 2}) ask(i, {"DEL", "hf:{x}"});
  }
  EXPECT_TRUE(is_in_time);
}

// One after another was away for longer than the ttl, or restarted without its data.
TEST_F(with_quorum, a_lock_whose_votes_were_all_given_again_is_broken_by_its_holder_s_token) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  const auto began_at = boottime();
  const auto token = std::to_string(held.token().value());
  for (int i = 0; i < size(); ++i) {
    have_all_votes(held);
    ask(i, {"DEL", "hf:{x}", "hf:{x}:fence"});
    EXPECT_TRUE(eventually([&] { return !value(i).empty(); }, long_enough));
    EXPECT_THAT(value(i), HasSubstr(token));
  }
  const auto lasted = boottime() - began_at;
  const auto seen = make().inspect("x");
  EXPECT_EQ(seen.token, held.token());
  EXPECT_GE(seen.held_for + 1s, lasted);
  make().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, long_enough));
}

TEST_F(with_quorum, a_lock_that_all_refuse_to_break_is_not_broken) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  have_all_votes(held);
  for (int bad = 0; bad < size(); ++bad) ask(bad, {"ACL", "SETUSER", "default", "-del"});
  const auto code =
      code_of([&] { make().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately}); });
  for (int bad = 0; bad < size(); ++bad) ask(bad, {"ACL", "SETUSER", "default", "+del"});
  EXPECT_EQ(code, errc::no_permission);
  EXPECT_TRUE(held.valid());
}

}  // namespace
}  // namespace holdfast::test
