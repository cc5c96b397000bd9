// SPDX-License-Identifier: Apache-2.0
// Two clocks: the server's wall clock is turned while leases are held (H3 to H5, H8, B73). Exclusion cannot hold
// then; what must hold is that the holder hears of it within a renewal period, and that nothing is stuck for hours.
#include "integration/fixture.hpp"
#include "support/skewed_clock.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace holdfast::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct with_clock {
  skewed_clock clock_;
};

class step_counter : public observer {
public:
  void on_clock_step(std::chrono::microseconds step) override {
    last = step.count();
    ++steps;
  }
  void on_renewed(const std::string&, std::chrono::microseconds) override { ++renewals; }
  std::atomic<std::int64_t> last{0};
  std::atomic<int> steps{0};
  std::atomic<int> renewals{0};
};

class server_clock : public with_clock, public on_redis {
protected:
  server_clock() : on_redis{{.environment = clock_.environment()}} {}
  client watched() {
    client_options how;
    how.observe = seen_;
    return make_client(how);
  }
  // A step is a difference: the connection that renews must have seen the clock before.
  bool has_seen_the_clock() {
    return eventually([&] { return seen_->renewals > 0; });
  }
  const std::shared_ptr<step_counter> seen_ = std::make_shared<step_counter>();
};

// H4: every key vanishes at once; another may have it.
TEST_F(server_clock, stepping_forward_ends_the_lease_within_a_renewal_period) {
  auto locks = watched();
  auto held = locks.acquire("x", {.ttl = 6s});
  ASSERT_TRUE(has_seen_the_clock());
  clock_.set(10s);
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 2s + slack));
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), outcome::lost);
  EXPECT_TRUE(eventually([&] { return seen_->steps > 0; })) << "and it says why";
}

// It is seen by whoever asks for another name, long before the next renewal.
TEST_F(server_clock, stepping_forward_ends_the_lease_at_the_next_answer_to_anybody_H3) {
  auto locks = watched();
  auto held = locks.acquire("x", {.ttl = 30s});
  clock_.set(40s);
  const auto other = locks.acquire("y");
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 3s)) << "its renewal is due in 10 s";
  EXPECT_EQ(held.lost_reason(), outcome::lost);
  EXPECT_EQ(seen_->steps, 1) << "told once, by who saw it";
  EXPECT_TRUE(other.valid());
}

TEST_F(server_clock, stepping_forward_less_than_the_ttl_is_reported) {
  auto locks = watched();
  auto held = locks.acquire("x", {.ttl = 3s});
  ASSERT_TRUE(has_seen_the_clock());
  clock_.set(1s);
  EXPECT_TRUE(eventually([&] { return seen_->steps > 0; }, 2s));
  EXPECT_GT(seen_->last, 500'000);
  EXPECT_LT(seen_->last, 1'500'000);
  EXPECT_TRUE(held.valid());
}

TEST_F(server_clock, stepping_back_is_reported) {
  auto locks = watched();
  auto held = locks.acquire("x", {.ttl = 1500ms});
  ASSERT_TRUE(has_seen_the_clock());
  clock_.set(-1h);
  EXPECT_TRUE(eventually([&] { return seen_->steps > 0; }, 1s));
  EXPECT_EQ(held.release(), release_outcome::released);
}

// H5: a two-second lock of a dead holder would stay for an hour.
TEST_F(server_clock, stepping_back_does_not_keep_a_dead_lock_for_hours) {
  server_("SET", "hf:{x}", "v1|00000000000000000000000000000000|1700000000000000|2000|1700000000000000|dead", "PX",
          "2000");
  clock_.set(-1h);
  client_options how;
  how.max_ttl = 2s;
  auto locks = make_client(how);
  const auto began = boottime();
  const auto got = locks.acquire("x", {.ttl = 1s, .wait = 10s});
  EXPECT_LT(boottime() - began, 3s + slack);
  EXPECT_TRUE(got.valid());
}

TEST_F(server_clock, stepping_back_makes_no_hold_begin_in_the_future) {
  auto locks = make_client();
  const auto held = locks.acquire("x", {.ttl = 30s});
  clock_.set(-10s);
  EXPECT_EQ(locks.inspect("x").held_for, 0ms);
}

// No lease depends on it, but such a clock will be stepped (R16).
TEST_F(server_clock, that_is_far_from_ours_is_found_by_the_doctor_R16) {
  const auto said = [&] {
    std::string all;
    for (const auto& one : make_client().diagnose().findings) {
      if (one.code == "E09") all += one.what;
    }
    return all;
  };
  EXPECT_THAT(said(), IsEmpty());
  clock_.set(10s);
  EXPECT_THAT(said(), HasSubstr("s ahead of this machine's"));
  clock_.set(-10s);
  EXPECT_THAT(said(), HasSubstr("s behind this machine's"));
}

// C2: tokens do not go back with the clock while the counter lives.
TEST_F(server_clock, stepping_back_does_not_make_tokens_smaller) {
  auto locks = make_client();
  auto first = locks.acquire("x");
  const auto token = first.token();
  first.release();
  clock_.set(-1h);
  EXPECT_GT(locks.acquire("x", {.wait = 5s}).token(), token);
}

// Requests carry a server time after which they are void; after a step that estimate must be made anew (P11).
TEST_F(server_clock, stepping_forward_does_not_refuse_us_for_ever) {
  auto locks = make_client();
  locks.acquire("x").release();
  clock_.set(2h);
  EXPECT_TRUE(locks.acquire("x", {.wait = 5s}).valid());
}

TEST_F(server_clock, wandering_about_never_hands_out_a_smaller_token) {
  auto locks = make_client();
  fencing_token last;
  for (int i = 0; i < 60; ++i) {
    clock_.set(std::chrono::milliseconds{(i * 7919) % 4000 - 2000});
    std::error_code ec;
    auto held = locks.acquire("x", {.ttl = 1s, .wait = 5s}, ec);
    ASSERT_TRUE(held) << ec.message();
    ASSERT_GT(held->token(), last);
    last = held->token();
    held->release();
  }
}

class quorum_of_clocks : public with_clock, public testing::Test {
protected:
  redis_options options() const { return {.tcp = true, .environment = clock_.environment()}; }
  std::string uri() const {
    const auto address = [](const redis_server& of) { return "127.0.0.1:" + std::to_string(of.port()); };
    return "redis+quorum://" + address(a_) + "," + address(b_) + "," + address(c_);
  }
  redis_server a_{options()}, b_{options()}, c_{options()};
};

TEST_F(quorum_of_clocks, that_went_on_end_a_lease_at_the_next_answer_to_anybody_H3) {
  client locks{uri()};
  auto held = locks.acquire("x", {.ttl = 30s});
  clock_.set(40s);
  (void)locks.try_acquire("y");
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 3s)) << "its renewal is due in 10 s";
}

// Its connections stay, and so does what their greetings said of the clocks.
TEST_F(quorum_of_clocks, that_went_on_vote_at_the_first_try_P11) {
  client locks{uri()};
  (void)locks.try_acquire("x", {.ttl = 5s})->release();
  for (const auto step : {15s, 30s, 5s}) {
    clock_.set(step);
    auto got = locks.try_acquire("x", {.ttl = 5s});
    ASSERT_TRUE(got.has_value()) << step.count();
    EXPECT_EQ(got->release(), release_outcome::released);
  }
}

// ---- one of a quorum ----

class quorum_with_a_clock : public with_clock, public testing::Test {
protected:
  std::vector<finding> found() {
    const auto part = [](const redis_server& of) { return "127.0.0.1:" + std::to_string(of.port()); };
    client_options how;
    how.max_ttl = 3s;
    how.timeout = 2s;
    auto all =
        client{"redis+quorum://" + part(skewed_) + "," + part(second_) + "," + part(third_), how}.diagnose().findings;
    std::erase_if(all, [](const finding& f) { return f.code != "E10"; });
    return all;
  }

  redis_server skewed_{{.tcp = true, .environment = clock_.environment()}};
  redis_server second_{{.tcp = true}};
  redis_server third_{{.tcp = true}};
};

// More than half of max_ttl away its votes do not count (P24).
TEST_F(quorum_with_a_clock, doctor_says_whose_vote_does_not_count_P24) {
  EXPECT_THAT(found(), IsEmpty());
  clock_.set(4s);
  const auto one = found();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].level, finding::severity::warning);
  EXPECT_THAT(one[0].what, AllOf(StartsWith("127.0.0.1:" + std::to_string(skewed_.port())), HasSubstr("s ahead of")));
  EXPECT_THAT(one[0].fix, HasSubstr("when one more is down, no lock is granted"));
  second_.kill();
  const auto all = found();
  for (const auto* server : {&skewed_, &second_}) {
    const auto named = StartsWith("127.0.0.1:" + std::to_string(server->port()) + ": ");
    EXPECT_THAT(all, Contains(Field("what", &finding::what, named)));
  }
  for (const auto& f : all) {
    EXPECT_EQ(f.level, finding::severity::error) << f.what;
    EXPECT_THAT(f.fix, HasSubstr("no lock is granted while a majority"));
  }
}

}  // namespace
}  // namespace holdfast::test
