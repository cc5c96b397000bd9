// SPDX-License-Identifier: Apache-2.0
// A renewal that the holder asks for.
#include "integration/fixture.hpp"
#include "support/fault_proxy.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace holdfast::test {
namespace {

class a_renewal_by_hand : public on_redis {
protected:
  client locks_ = make_client();
};

TEST_F(a_renewal_by_hand, keeps_a_lease_that_does_not_renew_itself) {
  auto held = locks_.acquire("x", {.ttl = 2s, .renew = renewal::none});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(eventually([&] { return held.remaining() < 1500ms; }, 2s));
    held.renew();
    EXPECT_GT(held.remaining(), 1500ms);
    EXPECT_GT(pttl("hf:{x}"), 1500ms);
  }
  EXPECT_TRUE(eventually([&] { return !held.valid(); }, 2010ms)) << "it does not renew itself now";
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::lease_expired);
}

TEST_F(a_renewal_by_hand, moves_the_deadline_of_any_lease_at_once) {
  auto held = locks_.acquire("x", {.ttl = 10s});
  auto permit = semaphore{locks_, "s", 2}.acquire();
  auto read = shared_mutex{locks_, "r"}.acquire_shared();
  for (auto* one : {&held, &permit, &read}) {
    ASSERT_TRUE(eventually([&] { return one->remaining() < 9500ms; }));
    one->renew();
    EXPECT_GT(one->remaining(), 9500ms);
  }
}

TEST_F(a_renewal_by_hand, finds_out_that_the_lease_is_gone) {
  auto held = locks_.acquire("x");
  server_("DEL", "hf:{x}");
  std::error_code ec;
  held.renew(ec);
  EXPECT_EQ(ec, errc::lease_gone);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_gone);
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::lease_gone);
  EXPECT_FALSE(exists("hf:{x}")) << "made again";
}

TEST_F(a_renewal_by_hand, of_a_broken_lease_says_so) {
  auto held = locks_.acquire("x");
  make_client().break_lock("x", held.token());
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::lease_broken);
}

TEST_F(a_renewal_by_hand, of_an_empty_handle_is_an_error) {
  EXPECT_EQ(code_of([] { lease{}.renew(); }), errc::empty_handle);
}

TEST_F(a_renewal_by_hand, that_is_not_answered_is_unknown_and_the_lease_stands) {
  auto locks = make_client(1s);
  auto held = locks.acquire("x", {.renew = renewal::none});
  held.renew();  // Connected.
  server_.pause();
  const auto left = held.remaining();
  const auto failed = error_of([&] { held.renew(); });
  server_.resume();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), errc::reply_lost);
  EXPECT_EQ(failed->code(), outcome::unknown);
  EXPECT_TRUE(held.valid());
  EXPECT_LT(held.remaining(), left);
}

TEST_F(a_renewal_by_hand, that_reaches_nobody_says_so_and_the_lease_stands) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri(), 1s);
  auto held = locks.acquire("x", {.renew = renewal::none});
  proxy.refuse_connections(true);
  proxy.cut_all();
  EXPECT_EQ(code_of([&] { held.renew(); }), outcome::unreachable);
  EXPECT_TRUE(held.valid());
}

TEST_F(a_renewal_by_hand, may_be_asked_for_by_many_threads_at_once) {
  auto held = locks_.acquire("x", {.renew = renewal::none});
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&] {
      for (int k = 0; k < 50; ++k) held.renew();
    });
  }
  for (auto& one : all) one.join();
  EXPECT_TRUE(held.valid());
}

TEST_F(a_renewal_by_hand, is_refused_in_a_forked_child) {
  auto held = locks_.acquire("x");
  const auto child = ::fork();
  if (child == 0) ::_exit(code_of([&] { held.renew(); }) == errc::used_after_fork ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  held.renew();
}

}  // namespace
}  // namespace holdfast::test
