// SPDX-License-Identifier: Apache-2.0
// Locks that a majority of independent servers gives together, while nothing is wrong with more than a minority.
#include "integration/quorum_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace holdfast::test {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

const acquire_options brief{.ttl = 4s};

TEST_F(with_quorum, a_lock_is_what_a_majority_has_and_nobody_else_gets_it) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  EXPECT_TRUE(held.valid());
  EXPECT_GE(votes(), 2);
  EXPECT_FALSE(make().try_acquire("x", brief));
}

TEST_F(with_quorum, release_leaves_nothing_on_any_server_B55) {
  auto locks = make();
  EXPECT_EQ(locks.acquire("x", {.ttl = max_ttl}).release(), release_outcome::released);
  EXPECT_TRUE(nothing_is_left());
  EXPECT_TRUE(make().try_acquire("x", brief));
}

// Its key was deleted on all but one of them, as an operator can.
TEST_F(with_quorum, a_lock_that_another_has_is_not_released_C5) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  const int last = value(0).empty() ? 1 : 0;
  for (int i = 0; i < size(); ++i)
    if (i != last) ask(i, {"DEL", "hf:{x}"});
  auto others = make();
  const auto next = others.acquire("x", brief);
  EXPECT_EQ(held.release(), release_outcome::already_lost);
  EXPECT_TRUE(next.valid());
}

TEST_F(with_quorum, a_lease_that_is_dropped_is_released_in_the_background) {
  auto locks = make();
  { const auto held = locks.acquire("x", {.ttl = max_ttl}); }
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(with_quorum, a_lease_outlives_its_ttl_by_renewals) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  let_pass(6s);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(make().try_acquire("x", brief));
}

TEST_F(with_quorum, a_renewal_on_request_moves_the_deadline) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  let_pass(1s);
  const auto before = held.remaining();
  held.renew();
  EXPECT_GT(held.remaining(), before);
}

TEST_F(with_quorum, tokens_increase_from_holder_to_holder_C2) {
  auto locks = make();
  fencing_token last{};
  for (int i = 0; i < 20; ++i) {
    auto held = locks.acquire("x", brief);
    EXPECT_LT(last, held.token());
    last = held.token();
    held.release();
  }
}

// Each round takes another server away, so that no majority is the one before it.
TEST_F(with_five, tokens_increase_while_majorities_change_P23) {
  auto locks = make();
  fencing_token last{};
  for (int round = 0; round < 10; ++round) {
    const int one = round % 5;
    const int other = (round + 2) % 5;
    lab_.pause(node(one));
    lab_.pause(node(other));
    {
      auto held = locks.acquire("x", brief);
      EXPECT_LT(last, held.token()) << round;
      last = held.token();
      held.release();
    }
    lab_.resume(node(one));
    lab_.resume(node(other));
  }
}

TEST_F(with_quorum, one_of_three_down_is_enough_B53) {
  lab_.kill(node(0));
  auto locks = make();
  auto held = locks.try_acquire("x", {.ttl = max_ttl});
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(held->release(), release_outcome::released);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(with_five, two_of_five_down_are_enough_B53) {
  lab_.kill(node(1));
  lab_.kill(node(3));
  auto held = make().try_acquire("x", brief);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->release(), release_outcome::released);
}

TEST_F(with_five, a_silent_one_and_a_dead_one_are_not_waited_for_B56) {
  auto locks = make();
  (void)locks.acquire("warm", brief).release();
  lab_.pause(node(0));
  lab_.kill(node(4));
  const auto started_at = boottime();
  for (int i = 0; i < 20; ++i) {
    auto held = locks.try_acquire("x", brief);
    ASSERT_TRUE(held);
    EXPECT_EQ(held->release(), release_outcome::released);
  }
  // (One alone takes a millisecond. A wait for the silent one would be 20 times 200 ms, and then the time-out.)
  EXPECT_LT(boottime() - started_at, 4s);
  lab_.resume(node(0));
}

TEST_F(with_five, three_of_five_gone_are_a_refusal_in_time_with_their_names) {
  for (int i = 0; i < 3; ++i) lab_.kill(node(i));
  auto locks = make(2s);
  const auto started_at = boottime();
  const auto e = error_of([&] { (void)locks.acquire("x", brief); });
  EXPECT_LT(boottime() - started_at, 20s);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_quorum);
  EXPECT_EQ(e->code(), outcome::unreachable);
  EXPECT_THAT(e->detail().why, HasSubstr("3 of 5"));
  EXPECT_THAT(e->detail().why, HasSubstr(node(0).address));
  EXPECT_EQ(votes(), 0);
}

// The incumbent's unlock() of a failed round takes the name for the value, and leaves its votes behind.
TEST_F(with_quorum, a_try_that_fails_leaves_nothing_behind_B53_B55) {
  auto first = single(0);
  auto second = single(1);
  const auto one = first.acquire("x", brief);
  const auto two = second.acquire("x", brief);
  auto third = make();
  EXPECT_FALSE(third.try_acquire("x", {.ttl = max_ttl}));
  EXPECT_TRUE(eventually([&] { return value(2).empty(); }, before_its_ttl_ends));
  EXPECT_TRUE(one.valid());
  EXPECT_TRUE(two.valid());
}

// As of one server: a sink with a state of its own has one (P29).
TEST_F(with_quorum, tells_all_servers_news_to_one_log_sink_P29) {
  std::mutex mutex;
  std::vector<int> numbers;
  auto how = options(10s);
  how.log = [&, n = 0](const log_record&) mutable {
    const std::lock_guard guard{mutex};
    numbers.push_back(n++);
  };
  client locks{lab_.uri(), how};
  how = {};
  auto held = locks.acquire("x", {.ttl = ttl});
  have_all_votes(held);
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard guard{mutex};
    return numbers.size() >= 4;
  }));
  const std::lock_guard guard{mutex};
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int>(i));
}

// The incumbent's extend_lock() has no branch for it, and says "extended".
TEST_F(with_quorum, a_key_of_another_is_never_extended_B53) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(ask(i, {"SET", "hf:{x}", "v1|00000000000000000000000000000000|9|60000|1|another", "PX", "60000"}), "OK");
  }
  auto said = code_of([&] { held.renew(); });
  // Where the third one's vote was heard of behind the round and counts just then.
  if (said == errc::no_quorum && held.valid()) said = code_of([&] { held.renew(); });
  EXPECT_EQ(said, errc::lease_taken);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.lost_reason(), errc::lease_taken);
  EXPECT_THAT(value(0), HasSubstr("another"));
}

TEST_F(with_quorum, many_threads_of_two_clients_exclude_each_other_C1) {
  auto one = make();
  auto other = make();
  std::atomic<int> inside{0};
  std::atomic<int> done{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 6; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        auto held = (t % 2 == 0 ? one : other).acquire("x", {.ttl = ttl, .wait = long_enough});
        EXPECT_EQ(++inside, 1);
        --inside;
        held.release();
        ++done;
      }
    });
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(done, 30);
}

TEST_F(with_quorum, waiters_are_served_in_the_order_in_which_they_came_P25) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&, t] {
      auto mine = make();
      auto got = mine.acquire("x", {.ttl = ttl, .wait = long_enough});
      const std::lock_guard guard{mutex};
      order.push_back(t);
    });
    // The first has its turn, and the others stand in line behind it.
    ASSERT_TRUE(eventually(
        [&] {
          for (int i = 0; i < size(); ++i) {
            const auto waiting = single(i).inspect("x").waiters.size();
            EXPECT_EQ(waiting, 0u) << "votes have no line";
          }
          client_options how = options(10s);
          how.prefix = "hf:turn:";
          how.quarantine = quarantine_mode::trust_every_write_is_synced;
          for (int i = 0; i < size(); ++i) {
            const auto turn = client{"redis://" + node(i).address, how}.inspect("x");
            if (turn.held && turn.waiters.size() == static_cast<std::size_t>(t)) return true;
          }
          return false;
        },
        long_enough));
  }
  held.release();
  for (auto& thread : all) thread.join();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST_F(with_quorum, waiters_do_not_poll_hot_P25) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  std::vector<std::future<std::error_code>> waiting;
  for (int t = 0; t < 8; ++t) {
    waiting.push_back(std::async(std::launch::async, [&] {
      auto mine = make();
      return code_of([&] { (void)mine.acquire("x", {.ttl = ttl, .wait = 3s}); });
    }));
  }
  // (On a busy machine the answer to its last request may be late.)
  for (auto& one : waiting) EXPECT_THAT(one.get(), testing::AnyOf(errc::timed_out, errc::reply_lost));
  // The incumbent's ten waiters made 7 500 commands a second. Here each of the eight has tried once or twice, and the
  // head of the line ten times a second at the most.
  for (int i = 0; i < size(); ++i) {
    const auto stats = ask(i, {"INFO", "commandstats"});
    const auto at = stats.find("cmdstat_evalsha:calls=");
    ASSERT_NE(at, std::string::npos);
    EXPECT_LT(std::stoi(stats.substr(at + 22)), 400) << node(i).address;
  }
}

TEST_F(with_quorum, a_wait_ends_when_it_is_told_to) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    auto mine = make();
    return code_of([&] { (void)mine.acquire("x", {.ttl = ttl, .cancel = stop.get_token()}); });
  });
  let_pass(500ms);
  stop.request_stop();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  const auto code = waiting.get();
  EXPECT_TRUE(code == errc::cancelled || code == errc::cancelled_in_flight) << code.message();
}

TEST_F(with_quorum, inspect_says_what_the_majority_has_and_what_each_server_has) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = ttl, .owner = "alice"});
  have_all_votes(held);
  lab_.kill(node(2));
  const auto info = make().inspect("x");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.owner, "alice");
  EXPECT_EQ(info.token, held.token());
  ASSERT_EQ(info.nodes.size(), 3u);
  EXPECT_NE(info.nodes[0].trouble + info.nodes[1].trouble + info.nodes[2].trouble, "");
  EXPECT_EQ(make().list().size(), 1u);
}

TEST_F(with_quorum, list_of_names_that_are_escaped_in_their_keys_is_exact) {
  auto locks = make();
  const auto braces = locks.acquire("a{b}", {.ttl = ttl});
  const auto other = locks.acquire("a7b}", {.ttl = ttl});
  const auto seen = locks.list("a[{]??");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].name, "a{b}");
}

// What is held is on one of each majority.
TEST_F(with_quorum, list_goes_without_a_server_that_denies_it_to_us) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  ask(0, {"ACL", "SETUSER", "default", "-scan"});
  EXPECT_THAT(locks.list(), ElementsAre(Field("name", &lock_info::name, "x")));
  ask(1, {"ACL", "SETUSER", "default", "-scan"});
  std::error_code ec;
  (void)locks.list("*", ec);
  EXPECT_EQ(ec, errc::no_permission);
}

TEST_F(with_quorum, a_minority_s_vote_is_not_a_lock) {
  auto one = single(1);
  const auto held = one.acquire("x", brief);
  EXPECT_FALSE(make().inspect("x").held);
  EXPECT_TRUE(make().try_acquire("x", brief));
}

TEST_F(with_quorum, a_lock_is_broken_on_all_servers_that_have_it) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  make().break_lock("x", held.token(), {.why = "test", .mode = break_mode::immediately});
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, long_enough));
  EXPECT_TRUE(make().acquire("x", {.ttl = ttl, .wait = long_enough}).valid());
}

// Whichever of them was away.
TEST_F(with_quorum, inspect_shows_the_last_break_of_those_that_the_servers_know_of) {
  const auto broken = [](const char* token, const char* why) {
    return std::string{"v1|"} + token + "|1795212800000041|00ff|ops|" + why;
  };
  const auto before = broken("1795212800000001", "first");
  const auto then = broken("1795212800000002", "second");
  for (int away = 0; away < size(); ++away) {
    for (int i = 0; i < size(); ++i)
      ask(i, {"SET", "hf:{x}:break", (i == away ? before : then).c_str(), "PX", "60000"});
    const auto info = make().inspect("x");
    ASSERT_TRUE(info.last_break);
    EXPECT_EQ(info.last_break->why, "second") << node(away).address;
  }
}

TEST_F(with_quorum, a_key_of_another_that_has_no_expiry_is_said_to_have_none) {
  for (const int i : {0, 1}) ask(i, {"SET", "hf:{x}", "foo"});
  const auto info = make().inspect("x");
  EXPECT_TRUE(info.held);
  EXPECT_TRUE(info.foreign);
  EXPECT_TRUE(info.endless);
  EXPECT_EQ(info.remaining, 0ms);
  // One of the two will go, and then no majority has it.
  ask(0, {"PEXPIRE", "hf:{x}", "60000"});
  EXPECT_FALSE(make().inspect("x").endless);
  EXPECT_GT(make().inspect("x").remaining, 0ms);
}

std::string trouble_of(const std::string& server, const lock_info& info) {
  for (const auto& one : info.nodes)
    if (one.endpoint == server) return one.trouble;
  return "is not there";
}

TEST_F(with_quorum, inspect_waits_for_a_server_that_is_being_connected_to_for_the_first_time) {
  std::string trouble;
  const auto is_heard = [&] {
    lab_.pause(node(2));
    auto looking = make();
    std::jthread far{[&] {
      let_pass(600ms);
      lab_.resume(node(2));
    }};
    trouble = trouble_of(node(2).address, looking.inspect("x"));
    return trouble.empty();
  };
  int tries = 0;  // On a busy machine 600 ms may be a second.
  while (!is_heard() && tries < 5) ++tries;
  EXPECT_EQ(trouble, "");
}

// As its `timeout` does where nobody asks for long.
void end_idle_connections_to(const lab_node& server) {
  let_pass(100ms);  // Whoever has just heard of it does not look whether it is there.
  ask(server, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
}

// Of somebody who gives them no time, which says nothing of them.
void look_for_a_moment(client& by) {
  std::error_code ec;
  (void)by.inspect("x", 0ms, ec);
}

TEST_F(with_quorum, inspect_behind_a_brief_one_waits_for_a_server_that_is_being_connected_to_again) {
  std::string trouble;
  auto looking = make();
  const auto is_heard = [&] {
    (void)looking.inspect("x");
    end_idle_connections_to(node(2));
    look_for_a_moment(looking);
    lab_.pause(node(2));
    std::jthread far{[&] {
      let_pass(300ms);
      lab_.resume(node(2));
    }};
    trouble = trouble_of(node(2).address, looking.inspect("x"));
    return trouble.empty();
  };
  int tries = 0;
  while (!is_heard() && tries < 5) ++tries;
  EXPECT_EQ(trouble, "");
}

TEST_F(with_quorum, release_behind_a_brief_inspect_hears_of_servers_that_ended_idle_connections_C5) {
  auto locks = make();
  auto held = locks.acquire("x", brief);
  for (int i = 0; i < size(); ++i) end_idle_connections_to(node(i));
  look_for_a_moment(locks);
  EXPECT_EQ(held.release(), release_outcome::released);
}

// It may vote, and a command has a new connection each time.
TEST_F(with_quorum, inspect_hears_a_server_whose_round_trip_takes_most_of_the_patience) {
  fault_proxy far{port_of(node(2))};
  far.set(direction::to_client, {.delay = 180ms});
  const auto there = "127.0.0.1:" + std::to_string(far.port());
  const auto uri = "redis+quorum://" + node(0).address + "," + node(1).address + "," + there;
  std::string trouble;
  const auto is_heard = [&] {
    ask(2, {"SCRIPT", "FLUSH"});
    trouble = trouble_of(there, client{uri, options(10s)}.inspect("x"));
    return trouble.empty();
  };
  int tries = 0;
  while (!is_heard() && tries < 5) ++tries;
  EXPECT_EQ(trouble, "");
}

TEST_F(with_quorum, one_server_is_a_quorum_too) {
  auto locks = make({1});
  auto held = locks.acquire("x", brief);
  EXPECT_FALSE(make({1}).try_acquire("x", brief));
  EXPECT_EQ(held.release(), release_outcome::released);
}

}  // namespace
}  // namespace holdfast::test
