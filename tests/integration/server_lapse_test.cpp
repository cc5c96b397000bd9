// SPDX-License-Identifier: Apache-2.0
// A server that for a time takes no writes, or answers nothing at all: what that is to a lease and to a release (H31,
// H33, H34). Nothing of it is final, and nothing that was asked meanwhile may count too late.
#include "integration/fixture.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

namespace holdfast::test {
namespace {

class server_without_replicas : public on_redis {
protected:
  void want_replicas(int count) { server_("CONFIG", "SET", "min-replicas-to-write", std::to_string(count)); }

  // How often it has said NOREPLICAS.
  std::int64_t refusals() {
    const auto text = server_("INFO", "errorstats").text;
    const std::string field = "errorstat_NOREPLICAS:count=";
    const auto at = text.find(field);
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + field.size()));
  }
};

TEST_F(server_without_replicas, refuses_renewals_and_the_lease_is_renewed_when_it_takes_them_again_H31) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 1500ms});
  want_replicas(1);
  ASSERT_TRUE(eventually([&] { return refusals() >= 3; })) << "the first renewal, and it was tried again";
  EXPECT_TRUE(held.valid());
  want_replicas(0);
  EXPECT_TRUE(eventually([&] { return held.remaining() > 1200ms; })) << "the first one was due at 1000 ms";
  EXPECT_FALSE(held.lost().stop_requested());
  EXPECT_EQ(held.release(), release_outcome::released);
}

TEST_F(server_without_replicas, ends_a_lease_at_its_deadline_and_not_before_H31) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 600ms});
  want_replicas(1);
  const auto deadline = boottime() + held.remaining();
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
  EXPECT_GE(boottime(), deadline - 60ms) << "which is told max(5 ms, ttl/20) before";
  EXPECT_GE(refusals(), 1);
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  want_replicas(0);
}

TEST_F(server_without_replicas, refuses_a_renewal_that_somebody_asks_for_in_its_own_words_H31) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 30s});
  want_replicas(1);
  try {
    held.renew();
    ADD_FAILURE() << "it was renewed";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::server_refused);
    EXPECT_NE(std::string_view{e.what()}.find("NOREPLICAS"), std::string_view::npos) << e.what();
  }
  want_replicas(0);
  EXPECT_TRUE(held.valid());
}

// B48, B49: somebody would wait for the rest of a ttl of half a minute.
TEST_F(server_without_replicas, refuses_a_release_which_is_unknown_and_done_when_it_can_be_H31) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 30s});
  want_replicas(1);
  error_detail why;
  const auto began = boottime();
  EXPECT_EQ(held.release(why), release_outcome::unknown);
  EXPECT_LT(boottime() - began, slack) << "it has answered; there is nothing to wait for";
  EXPECT_NE(why.server_text.find("NOREPLICAS"), std::string::npos) << why.server_text;
  EXPECT_GT(why.may_remain, 30s);
  EXPECT_TRUE(exists("hf:{x}"));
  want_replicas(0);
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }, 10s));
}

// Its place is there, and the release that lets it in is done as soon as it can be.
TEST_F(server_without_replicas, keeps_whoever_stands_in_line_H31) {
  auto locks = make_client();
  auto theirs = make_client();
  auto held = locks.acquire("x", {.ttl = 30s});
  auto waits = std::async(std::launch::async, [&] { return theirs.acquire("x"); });
  ASSERT_TRUE(eventually([&] { return server_("ZCARD", "hf:{x}:line") == 1; }, 10s));
  want_replicas(1);
  server_("CLIENT", "KILL", "TYPE", "pubsub");  // So that it looks now, and not at its next heartbeat.
  ASSERT_TRUE(eventually([&] { return refusals() >= 1; }, 10s));
  want_replicas(0);
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_TRUE(waits.get().valid());
}

// ---- it stands still ----

struct stop {
  const char* name;
  std::vector<std::string> words;
};

void PrintTo(const stop& how, std::ostream* out) { *out << how.name; }

class server_that_stands_still : public on_redis, public testing::WithParamInterface<stop> {};

// What was asked meanwhile, renewals too, is done when it goes on: by then the lease is over for both sides, and two
// have stood in line all the while.
TEST_P(server_that_stands_still, for_two_ttls_tells_the_holder_in_time_and_lets_in_one_at_a_time_afterwards_H33_H34) {
  auto ours = make_client();
  const auto held = ours.acquire("x", {.ttl = 1200ms});
  std::atomic<std::chrono::nanoseconds> deadline{0ns};
  std::atomic<std::chrono::nanoseconds> lost_at{0ns};
  const std::stop_callback risk{held.at_risk(), [&] { deadline = boottime() + held.remaining(); }};
  const std::stop_callback lost{held.lost(), [&] { lost_at = boottime(); }};

  struct turn {
    std::chrono::nanoseconds at{0};
    fencing_token token;
    bool was_alone = false;
  };
  std::atomic<int> inside{0};
  const auto wait = [&] {
    auto locks = make_client();
    auto got = locks.acquire("x", {.wait = 30s});
    turn one{boottime(), got.token(), ++inside == 1 && !held.valid()};
    let_pass(50ms);
    one.was_alone = --inside == 0 && one.was_alone;
    got.release();
    return one;
  };
  auto second = std::async(std::launch::async, wait);
  auto third = std::async(std::launch::async, wait);
  ASSERT_TRUE(eventually([&] { return server_("ZCARD", "hf:{x}:line") == 2; }, 10s));

  const auto began = boottime();
  server_.ask(GetParam().words);  // DEBUG SLEEP is answered at its end.
  std::vector<turn> turns{second.get(), third.get()};
  std::sort(turns.begin(), turns.end(), [](const turn& a, const turn& b) { return a.at < b.at; });
  EXPECT_GE(turns[0].at - began, 2390ms) << "it did not stand still";
  EXPECT_GT(turns[0].token, held.token());
  EXPECT_GT(turns[1].token, turns[0].token);
  for (const auto& one : turns) EXPECT_TRUE(one.was_alone);

  EXPECT_TRUE(eventually([&] { return lost_at.load() != 0ns; }));
  EXPECT_GT(deadline.load(), 0ns);
  EXPECT_LE(lost_at.load(), deadline.load() + 500ms + when_busy / 4) << "told while it stood still";
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
}

INSTANTIATE_TEST_SUITE_P(hazards_33_34, server_that_stands_still,
                         testing::Values(stop{"pause_write", {"CLIENT", "PAUSE", "2400", "WRITE"}},
                                         stop{"pause_all", {"CLIENT", "PAUSE", "2400", "ALL"}},
                                         stop{"sleep", {"DEBUG", "SLEEP", "2.4"}}),
                         [](const auto& how) { return std::string{how.param.name}; });

}  // namespace
}  // namespace holdfast::test
