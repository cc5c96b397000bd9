// SPDX-License-Identifier: Apache-2.0
// Locks that count only when replicas have them, on a real primary with two: replicas that stand still, a primary that
// dies, a server without WAIT (hazards 8.10, B63, B66, P13b). The test stops replicas and never the clock: a stopped
// one has its bytes when it goes on.
#include "integration/fixture.hpp"
#include "support/lab.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

client_options durable(int replicas, std::chrono::milliseconds timeout = 300ms) {
  client_options how;
  how.timeout = 10s;
  how.durability = {.replicas = replicas, .timeout = timeout};
  return how;
}
// For what must be confirmed, also on a machine that has little time for us.
client_options patient(int replicas) { return durable(replicas, 4s); }
const acquire_options long_enough{.ttl = 20s};

// Counts the renewals that too few replicas had.
struct counter final : observer {
  void on_renew_failed(const std::string&, std::error_code why) override {
    if (why == errc::not_replicated) ++failed;
  }
  std::atomic<int> failed{0};
};

class durability_of : public testing::Test {
protected:
  durability_of() { plain_.declare_nothing_forgotten(); }

  client make(const client_options& how) { return client{lab_.uri(), how}; }
  void pause_all() {
    for (const auto& one : replicas_) lab_.pause(one);
  }
  void resume_all() {
    for (const auto& one : replicas_) lab_.resume(one);
  }
  // The end of a wait for "x". On a machine that was too slow for the last answer nobody knows.
  void expect_refused(std::error_code code) {
    EXPECT_TRUE(code == errc::not_replicated || code == outcome::unknown) << code.message();
    EXPECT_TRUE(eventually([&] { return plain_.try_acquire("x").has_value(); }, 20s));
  }

  lab_topology lab_{lab_kind::replicas, {.count = 2}};
  const lab_node primary_ = lab_.nodes("primary").at(0);
  const std::vector<lab_node> replicas_ = lab_.nodes("replica");
  client plain_{lab_.uri()};
};

// ---- hand-overs ----

// How often one grant is handed on at most: tokens in a row are of one.
int longest_chain(client& locks) {
  std::vector<std::uint64_t> tokens;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < 15; ++i) {
        const auto held = locks.acquire("handed", long_enough);
        tokens.push_back(held.token().value());
        let_pass(3ms);
      }
    });
  }
  for (auto& t : all) t.join();
  int run = 0;
  int longest = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    run = tokens[i] == tokens[i - 1] + 1 ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// A token that the replicas do not know could be granted again by one of them.
TEST_F(durability_of, what_is_handed_on_has_tokens_that_replicas_have_P14_C2) {
  auto how = patient(2);
  how.hand_overs = 2;
  how.hand_over_span = 1s;
  auto durable = make(how);
  EXPECT_LE(longest_chain(durable), 2);
  how.durability = {};
  auto plain = make(how);
  EXPECT_GT(longest_chain(plain), 2) << "while nobody waits outside";
}

// ---- acquire ----

TEST_F(durability_of, a_grant_that_no_replica_has_is_refused_and_the_lock_is_free_B63) {
  auto locks = make(durable(2));
  pause_all();
  const auto e = error_of([&] { (void)locks.try_acquire("x"); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::not_replicated);
  EXPECT_EQ(e->code(), outcome::not_applied);
  EXPECT_THAT(e->what(), HasSubstr("0 of 2 replicas confirmed it within 300 ms"));
  EXPECT_TRUE(plain_.try_acquire("x")) << "it is back when the error is thrown";
}

TEST_F(durability_of, one_replica_is_enough_for_one_and_too_few_for_two_B63) {
  auto one = make(patient(1));
  auto two = make(durable(2));
  lab_.pause(replicas_[0]);
  EXPECT_EQ(code_of([&] { (void)two.try_acquire("x"); }), errc::not_replicated);
  EXPECT_TRUE(one.try_acquire("x", long_enough));
}

TEST_F(durability_of, permits_and_shared_locks_are_refused_likewise) {
  auto locks = make(durable(1));
  pause_all();
  EXPECT_EQ(code_of([&] { (void)semaphore{locks, "s", 1}.try_acquire(); }), errc::not_replicated);
  EXPECT_EQ(code_of([&] { (void)shared_mutex{locks, "r"}.try_acquire_shared(); }), errc::not_replicated);
  EXPECT_TRUE((semaphore{plain_, "s", 1}.try_acquire()));
  EXPECT_TRUE((shared_mutex{plain_, "r"}.try_acquire()));
}

TEST_F(durability_of, who_waits_gets_it_when_the_replicas_are_back) {
  auto locks = make(durable(2));
  pause_all();
  auto got = std::async(std::launch::async, [&] { return locks.acquire("x", {.wait = 60s}); });
  EXPECT_EQ(got.wait_for(700ms), std::future_status::timeout);
  resume_all();
  EXPECT_TRUE(got.get().valid());
}

TEST_F(durability_of, a_wait_that_ends_without_them_says_so) {
  auto locks = make(durable(1));
  pause_all();
  expect_refused(code_of([&] { (void)locks.acquire("x", {.wait = 3s}); }));
}

// Granted by the release of another one, out of the line: the claim has its WAIT, too.
TEST_F(durability_of, a_claim_out_of_the_line_is_refused_likewise) {
  auto locks = make(durable(1));
  auto held = plain_.acquire("x");
  auto got = std::async(std::launch::async, [&] { return code_of([&] { (void)locks.acquire("x", {.wait = 6s}); }); });
  ASSERT_TRUE(eventually([&] { return plain_.inspect("x").waiters.size() == 1; }, 20s));
  pause_all();
  held.release();
  expect_refused(got.get());
}

// What it is for.
TEST_F(durability_of, a_replica_that_is_promoted_has_the_lock) {
  auto locks = make(patient(2));
  const auto held = locks.acquire("x", long_enough);
  lab_.kill(primary_);
  for (const auto& one : replicas_) {
    EXPECT_EQ(ask(one, {"REPLICAOF", "NO", "ONE"}), "OK");
    EXPECT_THAT(ask(one, {"GET", "hf:{x}"}), HasSubstr("v1|"));
  }
}

// ---- renew ----

TEST_F(durability_of, a_stall_of_the_replicas_costs_no_lease_P13b) {
  auto seen = std::make_shared<counter>();
  auto how = durable(1);
  how.observe = seen;
  auto locks = make(how);
  const auto held = locks.acquire("x", {.ttl = 12s});
  pause_all();
  ASSERT_TRUE(eventually([&] { return seen->failed > 0; }, 30s)) << "a renewal meets the stall";
  EXPECT_TRUE(held.valid());
  EXPECT_LT(held.remaining(), 9s) << "the deadline has not moved";
  resume_all();
  EXPECT_TRUE(eventually([&] { return held.remaining() > 9s; }, 30s)) << "and moves again";
  EXPECT_FALSE(held.lost().stop_requested());
}

TEST_F(durability_of, a_long_stall_ends_the_lease_at_its_deadline_and_lets_nobody_in_before_P13b) {
  auto locks = make(durable(1));
  const auto began = boottime();
  auto held = locks.acquire("x", {.ttl = 5s});
  pause_all();
  auto next = std::async(std::launch::async, [&] {
    auto got = plain_.acquire("x", {.wait = 60s});
    return held.valid();
  });
  ASSERT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 60s));
  EXPECT_GT(boottime() - began, 4600ms) << "not before the deadline, but for the lead";
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  EXPECT_FALSE(next.get()) << "two held it";
}

TEST_F(durability_of, a_renewal_on_request_says_that_the_replicas_are_away) {
  auto how = durable(1);
  how.timeout = 2s;
  auto locks = make(how);
  auto held = locks.acquire("x", {.ttl = 60s, .renew = renewal::none});
  held.renew();
  pause_all();
  const auto left = held.remaining();
  // (On a machine without time for us WAIT's answer may come so late that it is unknown.)
  EXPECT_TRUE(eventually([&] { return code_of([&] { held.renew(); }) == errc::not_replicated; }, 20s));
  EXPECT_TRUE(held.valid());
  EXPECT_LT(held.remaining(), left);
  resume_all();
  EXPECT_TRUE(eventually([&] { return code_of([&] { held.renew(); }) == std::error_code{}; }, 30s));
}

// ---- WAIT is refused ----

TEST_F(durability_of, a_permission_that_is_taken_away_is_an_error_and_no_grant_and_costs_no_lease_B66) {
  auto locks = make(patient(1));
  auto held = locks.acquire("held", {.ttl = 30s, .renew = renewal::none});
  held.renew();  // Connected.
  EXPECT_EQ(ask(primary_, {"ACL", "SETUSER", "default", "-wait"}), "OK");
  const auto e = error_of([&] { (void)locks.try_acquire("x", long_enough); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_permission);
  EXPECT_THAT(e->what(), HasSubstr("+wait"));
  EXPECT_TRUE(plain_.try_acquire("x"));
  EXPECT_EQ(code_of([&] { held.renew(); }), errc::no_permission);
  EXPECT_TRUE(held.valid());
}

class a_server_without_wait : public on_redis {
protected:
  a_server_without_wait() : on_redis{{.config = {"rename-command WAIT \"\""}}} {}
};

TEST_F(a_server_without_wait, is_of_no_use_to_a_durable_client_and_says_why_B66) {
  auto locks = make_client(durable(1));
  const auto e = error_of([&] { (void)locks.try_acquire("x"); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_server);
  EXPECT_EQ(e->code(), outcome::not_applied);
  EXPECT_THAT(e->what(), HasSubstr("WAIT"));
  EXPECT_FALSE(exists("hf:{x}")) << "never granted";
  EXPECT_TRUE(make_client().try_acquire("x"));
}

// ---- doctor ----

TEST_F(durability_of, diagnose_counts_the_replicas) {
  const auto says_so = [](const diagnosis& found) {
    return std::any_of(found.findings.begin(), found.findings.end(), [](const finding& f) { return f.code == "E24"; });
  };
  EXPECT_FALSE(says_so(make(patient(2)).diagnose()));
  const auto found = make(durable(3)).diagnose();
  EXPECT_TRUE(says_so(found));
  EXPECT_EQ(found.worst(), finding::severity::error);
  EXPECT_FALSE(says_so(plain_.diagnose()));
}

}  // namespace
}  // namespace holdfast::test
