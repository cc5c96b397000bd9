// SPDX-License-Identifier: Apache-2.0
#include "loss_text.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

fault loss_at(const std::string& endpoint, std::chrono::milliseconds ttl = 5s) {
  settings s;
  s.ttl = ttl;
  return explain_loss("'x' (token 1)", {1500ms, {}, 0ms, {}}, s, endpoint);
}

TEST(a_loss, by_a_silence_may_be_a_move_where_servers_take_over) {
  for (const auto* endpoint : {"redis+cluster://a,b,c", "rediss+sentinel://a,b,c/db"}) {
    const auto what = loss_at(endpoint);
    EXPECT_NE(what.why.find("behind a failover or the move of a slot"), what.why.npos) << what.why;
    EXPECT_NE(what.fix.find("; a --ttl of 7s or more outlasts a move"), what.fix.npos) << what.fix;
  }
}

TEST(a_loss, by_a_silence_of_one_server_or_of_a_long_lease_is_no_move) {
  const auto longer = loss_at("redis+cluster://a,b,c", 7s);
  EXPECT_EQ(longer.why.find("the move of a slot"), longer.why.npos) << longer.why;
  EXPECT_EQ(longer.fix, "whether it answers: holdfast doctor");
  const auto what = loss_at("redis://a");
  EXPECT_EQ(what.why, "redis://a stopped answering, or this machine was asleep, or this process suspended");
  EXPECT_EQ(what.fix, "whether it answers: holdfast doctor");
}

// A command is stopped before that.
TEST(a_loss, by_max_hold_is_told_as_what_it_is_when_it_is_told) {
  settings s;
  s.ttl = 1s;
  s.max_hold = 2s;
  const auto text = [&](std::error_code reason) {
    return explain_loss("'x' (token 1)", {300ms, reason, 1000ms, {}}, s, "redis://a").text;
  };
  EXPECT_EQ(text({}), "lost 'x' (token 1): its 2s are nearly over (--max-hold)");
  EXPECT_EQ(text(errc::lease_held_too_long), "lost 'x' (token 1): it was held for 2s, as long as --max-hold allows");
}

}  // namespace
}  // namespace holdfast::cli
