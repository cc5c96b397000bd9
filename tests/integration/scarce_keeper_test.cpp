// SPDX-License-Identifier: Apache-2.0
// A thread of ours that has no memory to go on (H43). Elsewhere it ends and nobody says so: the program works on, and
// its locks are others' by then. Ours ends the program (docs/threads.md), and the ttl ends its locks.
#include "integration/fixture.hpp"
#include "integration/scarce_memory.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

namespace holdfast::test {
namespace {

class scarce_keeper : public on_redis {};

// The child has this thread alone, and so a client and a keeper of its own.
TEST_F(scarce_keeper, without_memory_ends_the_program_and_not_the_renewals_alone_H43) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "neither sanitizer's run-time can start threads after a fork of a process with threads";
#endif
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(
      {
        auto locks = make_client();
        const auto held = locks.acquire("x", {.ttl = 3s});
        keep_memory_to_this_thread();
        eventually([&] { return !held.valid(); }, 10s);  // It is renewed after a second.
        ::_exit(0);
      },
      testing::KilledBySignal(SIGABRT), "bad_alloc");
  EXPECT_TRUE(exists("hf:{x}")) << "or it died of something else, later";
  EXPECT_TRUE(make_client().acquire("x", {.wait = 20s}).valid());
}

}  // namespace
}  // namespace holdfast::test
