// SPDX-License-Identifier: Apache-2.0
// A process that gets no memory when it begins: for its first call, which looks for the server, connects and greets.
#include "integration/fixture.hpp"
#include "integration/scarce_memory.hpp"
#include "support/tls_material.hpp"

#include <exception>
#include <string>

namespace holdfast::test {
namespace {

// Clients whose first call has memory for i allocations of its thread: none at all, one, two, until it needs no more.
// Whichever it fails at, the same client's next call does not wait for the silence of what was left behind.
template <class Make>
void begin_with_ever_more_memory(const Make& make) {
  int failures = 0;
  for (bool is_enough = false; !is_enough; ++failures) {
    ASSERT_LT(failures, 5000) << "it never has enough";
    client locks = make();
    allocations_left = failures;
    try {
      (void)locks.acquire("x" + std::to_string(failures), {.ttl = 1s});
      is_enough = true;
    } catch (const std::exception&) {  // Also a holdfast::error: no answer, for want of memory to read it.
    }
    allocations_left = -1;
    const auto began = boottime();
    std::error_code ec;
    // Another one each time: the farewell of the client before may have been too short to give it back.
    EXPECT_TRUE(locks.try_acquire("y" + std::to_string(failures), {.ttl = 1s}, ec))
        << ec.message() << " after " << failures << " allocations";
    EXPECT_LT(boottime() - began, slack) << "after " << failures << " allocations";
  }
  EXPECT_GT(failures, 20) << "or this tests nothing";
}

class scarce_start : public on_redis {
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer's pthread_once waits for ever behind a call that threw";
#endif
  }
};

TEST_F(scarce_start, memory_for_a_first_call_does_not_spoil_the_second) {
  begin_with_ever_more_memory([&] { return make_client(); });
  EXPECT_TRUE(eventually([&] { return server_("KEYS", "hf:{*}").items.empty(); }, 5s)) << "still renewed";
}

TEST_F(scarce_start, memory_for_a_first_call_over_tls_does_not_spoil_the_second) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  const auto uri = "rediss://localhost:" + std::to_string(server.tls_port()) +
                   "?cacert=" + tls_material(certificate::good) + "/ca.pem";
  begin_with_ever_more_memory([&] { return client{uri}; });
}

}  // namespace
}  // namespace holdfast::test
