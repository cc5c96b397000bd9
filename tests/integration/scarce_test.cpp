// SPDX-License-Identifier: Apache-2.0
// A process that gets no more threads. The danger is a lock that the server granted and nobody has.
#include "integration/fixture.hpp"

#include <pthread.h>

#include <cstddef>
#include <optional>

namespace holdfast::test {
namespace {

class scarce : public on_redis {};

// While it lives, a new thread's stack would be larger than the address space: EAGAIN.
class no_threads {
public:
  no_threads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~no_threads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  no_threads(const no_threads&) = delete;
  no_threads& operator=(const no_threads&) = delete;

private:
  pthread_attr_t before_{};
};

TEST_F(scarce, threads_refuse_an_acquire_before_the_server_grants_it) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers make threads of their own kind";
#endif
  auto locks = make_client();
  for (const bool waits : {false, true}) {
    std::optional<error> failure;
    {
      const no_threads now;
      failure = error_of([&] { (void)locks.acquire("x", {.wait = waits ? 1s : 0s}); });
    }
    ASSERT_TRUE(failure) << "a holdfast::error, as every failure of a call";
    EXPECT_EQ(failure->code(), std::errc::resource_unavailable_try_again) << failure->what();
    EXPECT_FALSE(exists("hf:{x}")) << "granted to nobody";
  }
  EXPECT_TRUE(locks.try_acquire("x")) << "when there are threads again";
}

}  // namespace
}  // namespace holdfast::test
