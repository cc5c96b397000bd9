// SPDX-License-Identifier: Apache-2.0
// A lease of a quorum that lacks votes. For quorum_mend_test.cpp and quorum_mend_count_test.cpp.
#pragma once

#include "engine/quorum_keeper_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

namespace holdfast::engine::quorum_testing {

class quorum_mend_test : public quorum_keeper_test {
protected:
  using quorum_keeper_test::quorum_keeper_test;

  // A bare majority, and the third server has just been asked for its vote.
  std::shared_ptr<held_lease> mending() {
    auto lease = held({0, 1});
    wake_after(std::chrono::milliseconds{500});
    servers[2].connect();
    wake_after(std::chrono::milliseconds{500});
    be_patient();
    const auto said = servers[2].take();
    EXPECT_EQ(said.size(), 1u);
    if (!said.empty()) vote = said[0];
    EXPECT_EQ(named(vote), "vote");
    return lease;
  }
  // It is given a millisecond later.
  std::shared_ptr<held_lease> mended() {
    auto lease = mending();
    wake_after(std::chrono::milliseconds{1});
    say(2, granted(servers[2], token));
    EXPECT_THAT(asked(2), testing::ElementsAre("renew")) << "at once";
    be_patient();
    return lease;
  }
  // All have said when the first renewals were due, and 0 that its vote is gone; it gives it again.
  std::shared_ptr<held_lease> given_again() {
    auto lease = renewing({0, 1, 2});
    say(0, lost(servers[0], "gone"));
    wake_after(std::chrono::milliseconds{1});
    say(0, granted(servers[0], token));
    EXPECT_THAT(asked(0), testing::ElementsAre("vote", "renew"));
    renewed(0);
    for (const std::size_t i : {1u, 2u}) {
      EXPECT_THAT(asked(i), testing::ElementsAre("renew")) << "at once, all of them";
      renewed(i);  // It was asked before it was given; the other one is unanswered.
    }
    EXPECT_THAT(asked(0), testing::IsEmpty());
    listens.take();
    return lease;
  }
  // The others' next renewals.
  void renew_others(const std::vector<std::size_t>& who = {0, 1}) {
    for (const std::size_t i : who) {
      if (keeps.wire(i).is_closed()) servers[i].connect();
      EXPECT_THAT(asked(i), testing::ElementsAre("renew"));
    }
    be_patient();
  }

  request vote{};
};

}  // namespace holdfast::engine::quorum_testing
