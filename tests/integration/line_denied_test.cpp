// SPDX-License-Identifier: Apache-2.0
// The line where an ACL denies what its messages need: everything stays correct, for nothing is granted ahead of a
// claim then, and the head looks (docs/protocol.md, Downsides).
#include "integration/line_fixture.hpp"
#include "support/sharing_witness.hpp"
#include "support/witness.hpp"

#include <signal.h>

#include <cstdint>
#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

class line_denied : public on_line {
protected:
  // Four who take all of it, six who take a permit of three, two readers and two writers.
  void contend_in_each_kind(int rounds) {
    const auto each = std::to_string(rounds);
    std::vector<child_process> all;
    const auto start_one = [&](std::vector<std::string> words) {
      words.insert(words.begin(), {HOLDFAST_WORKER, uri()});
      all.push_back(child_process{words, {.environment = worker_environment()}});
    };
    for (int i = 0; i < 4; ++i) {
      start_one({"contend", "one", each, scratch_ / "one", "200"});
      start_one({"share", "both", each, scratch_ / "both", "200", "5000", i % 2 == 0 ? "reader" : "writer"});
    }
    for (int i = 0; i < 6; ++i) start_one({"share", "three", each, scratch_ / "three", "200", "5000", "3"});
    for (auto& one : all) EXPECT_EQ(one.read_line(40s), "done " + each);
    const auto exclusive = judge(read_sightings(scratch_ / "one"));
    EXPECT_EQ(exclusive.holds, 4 * rounds);
    EXPECT_EQ(exclusive.overlaps, 0) << exclusive.first_offence;
    EXPECT_EQ(exclusive.token_regressions, 0) << exclusive.first_offence;
    const auto permits = judge_sharing(scratch_ / "three", 3);
    EXPECT_EQ(permits.holds, 6 * rounds);
    EXPECT_EQ(permits.intrusions, 0) << permits.first_offence;
    const auto shared = judge_sharing(scratch_ / "both", 2);
    EXPECT_EQ(shared.holds, 4 * rounds);
    EXPECT_EQ(shared.intrusions, 0) << shared.first_offence;
    EXPECT_EQ(shared.overtakings, 0) << shared.first_offence;
  }

  // In order, and past one who died there: who cannot be told is passed over when it has been silent for 6 s.
  void move_past_a_dead_one() {
    auto holder = start();
    holder.go();
    holder.acquired();
    auto waiters = start_many(3);
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      waiters[i].go();
      ASSERT_TRUE(waits_for(static_cast<std::int64_t>(i) + 1));
    }
    waiters[0].process().signal(SIGKILL);
    waiters[0].process().wait();
    const auto released_at = holder.release();
    const auto next = waiters[1].acquired();
    EXPECT_LT(next.at - released_at, 6s + slack);
    waiters[1].release();
    EXPECT_GT(waiters[2].acquired().number, next.number);
  }

  void is_only_slower_without(const std::vector<std::string>& denied) {
    deny(denied);
    auto line_moves = std::async(std::launch::async, [this] { move_past_a_dead_one(); });
    contend_in_each_kind(4);
    line_moves.get();
  }

  scratch_directory scratch_;
};

TEST_F(line_denied, publish_is_only_slower_P1) { is_only_slower_without({"-publish"}); }
TEST_F(line_denied, subscribe_is_only_slower_P1) { is_only_slower_without({"-subscribe"}); }
TEST_F(line_denied, publish_and_subscribe_are_only_slower_P1) { is_only_slower_without({"-publish", "-subscribe"}); }

}  // namespace
}  // namespace holdfast::test
