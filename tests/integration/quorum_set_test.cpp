// SPDX-License-Identifier: Apache-2.0
// Several locks of a quorum held as one: client::acquire_all.
#include "integration/quorum_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <holdfast/lease_set.hpp>

#include <array>
#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::test {
namespace {

constexpr std::array both{"hf:{a}", "hf:{b}"};
const acquire_options brief{.ttl = 4s, .wait = 60s};
const acquire_options longest{.ttl = 8s, .wait = 60s};  // For what must not end by itself.

class set_of_quorum : public with_quorum {
protected:
  int votes_for(const char* key) const {
    int n = 0;
    for (int i = 0; i < size(); ++i) n += value(i, key).empty() ? 0 : 1;
    return n;
  }
  // Of what had max_ttl.
  bool all_is_free() const {
    return eventually([&] { return votes_for(both[0]) + votes_for(both[1]) == 0; }, before_its_ttl_ends);
  }
  // On as many servers as it takes.
  void another_takes(const char* key) const {
    for (int i = 0; i < 2; ++i)
      ask(i, {"SET", key, "v1|00000000000000000000000000000000|9|60000|1|another", "PX", "60000"});
  }
  void another_goes(const char* key) const {
    for (int i = 0; i < 2; ++i) ask(i, {"DEL", key});
  }
};

TEST_F(set_of_quorum, is_all_of_it_and_each_has_a_token_of_its_own) {
  auto locks = make();
  auto other = make();
  auto set = locks.acquire_all({"b", "a"}, longest);
  EXPECT_TRUE(set.valid());
  EXPECT_EQ(set.names(), (std::vector<std::string>{"b", "a"}));
  EXPECT_GE(votes_for(both[0]), 2);
  EXPECT_GE(votes_for(both[1]), 2);
  EXPECT_LT(set.token("a"), set.token("b"));  // In the order of their names.
  EXPECT_FALSE(other.try_acquire("a", {.ttl = ttl}));
  EXPECT_FALSE(other.try_acquire("b", {.ttl = ttl}));
  EXPECT_EQ(set.release(), release_outcome::released);
  EXPECT_TRUE(all_is_free());
  EXPECT_TRUE(other.try_acquire("b", {.ttl = ttl}));
}

// The first one's lease comes at risk while the second is waited for: whoever has the set is told so, too.
TEST_F(set_of_quorum, that_is_at_risk_as_soon_as_it_is_there_is_told_so_C4) {
  auto locks = make();
  auto other = make();
  auto held = other.acquire("b", longest);
  const std::jthread releases{[&] {
    std::this_thread::sleep_for(5'300ms);  // Of 6 s. At risk is a sixth.
    held.release();
  }};
  const auto set = locks.acquire_all({"a", "b"}, {.ttl = 6s, .wait = 60s, .renew = renewal::none});
  std::atomic<bool> was_valid{false};
  const std::stop_callback told{set.at_risk(), [&] { was_valid = set.valid(); }};
  EXPECT_TRUE(eventually([&] { return set.lost().stop_requested(); }, 10s));
  EXPECT_TRUE(was_valid);
}

TEST_F(set_of_quorum, that_cannot_be_had_leaves_nothing) {
  auto locks = make();
  auto other = make();
  const auto held = other.acquire("b", brief);
  (void)locks.inspect("a");  // Connected.
  // (On a busy machine the answer to its last request may be late.)
  EXPECT_THAT(code_of([&] {
                (void)locks.acquire_all({"a", "b"}, {.ttl = max_ttl, .wait = in_vain});
              }),
              testing::AnyOf(errc::timed_out, errc::reply_lost));
  EXPECT_TRUE(eventually([&] { return votes_for(both[0]) == 0; }, before_its_ttl_ends));
  EXPECT_TRUE(held.valid());
}

TEST_F(set_of_quorum, is_renewed_for_longer_than_its_ttl) {
  auto locks = make();
  const auto set = locks.acquire_all({"a", "b"}, {.ttl = 2s, .wait = 60s});
  let_pass(5s);
  EXPECT_TRUE(set.valid());
  EXPECT_GE(votes_for(both[0]), 2);
  EXPECT_GE(votes_for(both[1]), 2);
}

TEST_F(set_of_quorum, is_lost_with_any_of_its_locks_and_what_is_left_goes_with_the_set_B57) {
  auto locks = make();
  auto set = std::make_unique<lease_set>(locks.acquire_all({"a", "b"}, longest));
  another_takes(both[1]);
  EXPECT_TRUE(eventually([&] { return set->lost().stop_requested(); }, long_enough));
  EXPECT_FALSE(set->valid());
  const auto e = error_of([&] { set->check(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->detail().subject, "'b'");
  EXPECT_EQ(set->lost_reason(), e->code());
  set.reset();
  another_goes(both[1]);
  EXPECT_TRUE(all_is_free());
}

// By whoever hangs behind the loss, and gives nothing back.
TEST_F(set_of_quorum, that_is_lost_is_renewed_no_more_and_ends_with_its_ttl) {
  auto locks = make();
  const auto set = locks.acquire_all({"a", "b"}, brief);
  another_takes(both[1]);
  EXPECT_TRUE(eventually([&] { return set.lost().stop_requested(); }, long_enough));
  EXPECT_TRUE(eventually([&] { return votes_for(both[0]) == 0; }, long_enough));
}

TEST_F(set_of_quorum, that_is_dropped_is_released_in_the_background) {
  auto locks = make();
  { const auto set = locks.acquire_all({"a", "b"}, longest); }
  EXPECT_TRUE(all_is_free());
}

TEST_F(set_of_quorum, of_many_who_name_the_same_in_any_order_one_at_a_time_has_it_C1) {
  std::atomic<int> inside{0};
  std::atomic<int> holds{0};
  const auto work = [&](const std::vector<std::string>& names) {
    auto locks = make();
    for (int i = 0; i < 10; ++i) {
      auto set = locks.acquire_all(names, brief);
      EXPECT_EQ(inside.fetch_add(1), 0);
      ++holds;
      --inside;
      EXPECT_EQ(set.release(), release_outcome::released);
    }
  };
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 3; ++i) {
      all.emplace_back([&] { work({"a", "b"}); });
      all.emplace_back([&] { work({"b", "a"}); });
    }
  }
  EXPECT_EQ(holds, 60);
}

// Each server is behind a proxy, by which its answers can come late.
class set_of_slow_servers : public testing::Test {
protected:
  set_of_slow_servers() {
    for (const auto& one : proxies_)
      uri_ += (uri_.empty() ? "redis+quorum://127.0.0.1:" : ",127.0.0.1:") + std::to_string(one.port());
    how_.max_ttl = 8s;
    client{uri_, how_}.declare_nothing_forgotten();
  }

  std::array<redis_server, 3> servers_{redis_server{{.tcp = true}}, redis_server{{.tcp = true}},
                                       redis_server{{.tcp = true}}};
  std::array<fault_proxy, 3> proxies_{fault_proxy{servers_[0].port()}, fault_proxy{servers_[1].port()},
                                      fault_proxy{servers_[2].port()}};
  client_options how_{};
  std::string uri_{};
};

TEST_F(set_of_slow_servers, is_given_up_in_the_time_of_one_release) {
  how_.timeout = 300ms;
  client locks{uri_, how_};
  std::optional<lease_set> set;
  std::error_code ec;
  ASSERT_TRUE(eventually([&] {
    set = locks.acquire_all({"a", "b", "c", "d", "e", "f"}, {.ttl = 8s}, ec);
    return set.has_value();
  }));
  for (auto& one : proxies_) one.set(direction::to_client, {.delay = 400ms});
  const auto since = boottime();
  EXPECT_EQ(set->release(), release_outcome::unknown);
  EXPECT_LT(boottime() - since, 1s);
}

}  // namespace
}  // namespace holdfast::test
