// SPDX-License-Identifier: Apache-2.0
// What a quorum does when servers lose their data, vote twice, or are lists of somebody else.
#include "integration/few_descriptors.hpp"
#include "integration/line_fixture.hpp"
#include "integration/quorum_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

const acquire_options brief{.ttl = 4s};

TEST_F(with_quorum, a_minority_s_renewals_do_not_move_the_deadline_H58) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = 3s});
  lab_.pause(node(1));
  lab_.pause(node(2));
  const auto cut_at = boottime();
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, long_enough));
  EXPECT_FALSE(held.valid());
  // What was renewed before the pause lasts 3 s at most; the thread that says so may be late.
  EXPECT_LT(boottime() - cut_at, 6s);
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  lab_.resume(node(1));
  lab_.resume(node(2));
}

TEST_F(with_quorum, a_lease_lives_on_while_one_server_is_silent) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = 3s});
  have_all_votes(held);
  lab_.pause(node(0));
  let_pass(7s);
  EXPECT_TRUE(held.valid());
  lab_.resume(node(0));
}

// Each server has its own connection and its own renewals: one that is silent delays those of no other (H44).
TEST_F(with_five, a_thousand_leases_live_on_while_one_server_is_silent_H44) {
  struct least_margin : observer {
    void on_renewed(const std::string&, std::chrono::microseconds margin) override {
      auto had = least.load();
      while (margin < had && !least.compare_exchange_weak(had, margin)) {
      }
    }
    std::atomic<std::chrono::microseconds> least{std::chrono::hours{1}};
  };
  auto how = options(10s);
  const auto seen = std::make_shared<least_margin>();
  how.observe = seen;
  client locks{lab_.uri(), how};
  std::vector<lease> all;
  for (int i = 0; i < scaled(1000); ++i) all.push_back(locks.acquire("x" + std::to_string(i), {.ttl = 6s}));
  lab_.pause(node(0));
  let_pass(12s);
  for (const auto& one : all) EXPECT_TRUE(one.valid());
  EXPECT_GT(seen->least.load(), 2s) << "renewed a third of the ttl before its end, at the latest";
  lab_.resume(node(0));
}

// Without a restart the server does not know that it forgot, and so has no quarantine.
TEST_F(with_five, a_vote_that_is_lost_is_given_again_and_then_counts_R18_B57) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = ttl});
  have_all_votes(held);
  const auto owner = owner_at(1);
  ASSERT_EQ(ask(0, {"DEL", "hf:{x}"}), "");
  EXPECT_TRUE(eventually([&] { return owner_at(0) == owner; }, long_enough));
  EXPECT_TRUE(held.valid());
  // Two of those that voted in the round go: without the one that was mended there is no majority.
  let_pass(ttl);
  lab_.kill(node(3));
  lab_.kill(node(4));
  let_pass(2 * ttl);
  EXPECT_TRUE(held.valid());
}

TEST_F(with_quorum, a_lease_of_a_bare_majority_is_lost_with_one_of_its_votes_B57) {
  lab_.kill(node(2));
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl});
  ASSERT_TRUE(held.valid());
  ask(0, {"DEL", "hf:{x}"});
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, long_enough));
  EXPECT_EQ(held.lost_reason(), errc::lease_gone);
}

TEST_F(with_quorum, a_server_that_lost_its_data_gives_no_second_holder_R7) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  ASSERT_TRUE(eventually([&] { return votes() == 3; }, long_enough));
  for (int i = 0; i < 2; ++i) {
    lab_.kill(node(i));
    lab_.restart(node(i), lab_data::dropped);
  }
  auto second = make();
  EXPECT_EQ(code_of([&] { (void)second.try_acquire("x", brief); }), errc::quarantined);
  EXPECT_EQ(votes(), 1);
  // It comes when the first holder's lease has ended, and not before.
  const auto next = second.acquire("x", {.ttl = ttl, .wait = long_enough});
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(next.valid());
  EXPECT_LT(held.token(), next.token());
}

TEST_F(with_five, two_lists_of_servers_cannot_both_win_R19_P26) {
  auto one = make(std::vector<int>{0, 1, 2});
  const auto held = one.acquire("x", brief);
  ASSERT_TRUE(eventually([&] { return !value(0).empty() && !value(1).empty() && !value(2).empty(); }, long_enough));
  auto other = make(std::vector<int>{1, 2, 3}, 2s);
  const auto e = error_of([&] { (void)other.try_acquire("x", {.ttl = max_ttl}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::other_quorum);
  EXPECT_EQ(e->code(), outcome::misconfigured);
  EXPECT_THAT(e->detail().server_text, HasSubstr(node(0).address));
  EXPECT_TRUE(eventually([&] { return value(3).empty(); }, before_its_ttl_ends));
}

TEST_F(with_quorum, one_server_behind_two_addresses_is_refused_R20) {
  auto twin = node(1).address;
  twin.replace(0, twin.find(':'), "localhost");
  client locks{"redis+quorum://" + node(0).address + "," + node(1).address + "," + twin, options(10s)};
  const auto e = error_of([&] { (void)locks.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::invalid_uri);
  EXPECT_THAT(e->detail().subject, HasSubstr(twin));
  EXPECT_EQ(votes(), 0);
}

TEST_F(with_quorum, a_server_that_comes_back_is_asked_again) {
  lab_.kill(node(0));
  auto locks = make(5s);
  (void)locks.acquire("x", brief).release();
  lab_.restart(node(0), lab_data::dropped);
  lab_.kill(node(1));
  // The one that came back is in quarantine first: longer than a silence is put up with.
  EXPECT_TRUE(locks.acquire("x", {.ttl = ttl, .wait = long_enough}).valid());
}

// The line is on the first server: who waits there goes to the next.
TEST_F(with_quorum, waiters_outlive_the_server_of_their_line_P25) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  std::vector<std::thread> all;
  std::atomic<int> got{0};
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&] {
      auto mine = make(3s);
      EXPECT_NO_THROW(EXPECT_TRUE(mine.acquire("x", {.ttl = ttl, .wait = long_enough}).valid()));
      ++got;
    });
  }
  let_pass(1s);
  // The list is sorted: that of the smallest address.
  int first = 0;
  for (int i = 1; i < 3; ++i)
    if (node(i).address < node(first).address) first = i;
  lab_.kill(node(first));
  let_pass(1s);
  held.release();
  for (auto& thread : all) thread.join();
  EXPECT_EQ(got, 3);
}

// Those who stand there hear it by their look, which they take once a second, and go.
TEST_F(with_quorum, waiters_go_to_another_line_when_the_server_of_theirs_is_silent_P25) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  auto mine = make();
  const auto acquires = [](client& of) {
    EXPECT_NO_THROW(EXPECT_TRUE(of.acquire("x", {.ttl = ttl, .wait = long_enough}).valid()));
  };
  std::jthread waiter{[&] { acquires(mine); }};
  const auto first = *std::min_element(nodes_.begin(), nodes_.end(),
                                       [](const auto& a, const auto& b) { return a.address < b.address; });
  ASSERT_TRUE(eventually([&] { return !test::ask(first, {"GET", "hf:turn:{x}"}).empty(); }, long_enough));
  auto another = make();
  std::jthread behind{[&] { acquires(another); }};
  ASSERT_TRUE(eventually([&] { return test::ask_number(first, {"ZCARD", "hf:turn:{x}:line"}) == "1"; }, long_enough));
  lab_.pause(first);
  const auto silent_at = boottime();
  held.release();
  waiter.join();
  behind.join();
  EXPECT_LT(boottime() - silent_at, 4s) << "they waited for the server, whose time-out is 10 s";
  lab_.resume(first);
}

// Nobody gives its turn back for it.
TEST_F(with_quorum, a_head_of_the_line_that_dies_costs_those_behind_it_a_second_P25_C7) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  const auto first = *std::min_element(nodes_.begin(), nodes_.end(),
                                       [](const auto& a, const auto& b) { return a.address < b.address; });
  waiting_process head{lab_.uri(), {"HOLDFAST_TEST_MAX_TTL_MS=" + std::to_string(largest_ttl_.count())}};
  head.go();
  ASSERT_TRUE(eventually([&] { return !test::ask(first, {"GET", "hf:turn:{x}"}).empty(); }, long_enough));
  auto mine = make();
  std::jthread waiter{[&] { EXPECT_NO_THROW(EXPECT_TRUE(mine.acquire("x", {.ttl = ttl, .wait = 20s}).valid())); }};
  ASSERT_TRUE(eventually([&] { return test::ask_number(first, {"ZCARD", "hf:turn:{x}:line"}) == "1"; }, long_enough));
  head.process().signal(SIGKILL);
  held.release();
  const auto free_at = boottime();
  waiter.join();
  EXPECT_LT(boottime() - free_at, 3500ms);
}

// Its connection for votes still speaks, and it takes no other: so it is for a moment when a server dies, too.
TEST_F(with_quorum, waiters_pass_over_a_server_that_has_no_line_for_them_P25) {
  auto locks = make();
  auto held = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  auto mine = make();
  (void)mine.acquire("warm", brief).release();
  const auto first = *std::min_element(nodes_.begin(), nodes_.end(),
                                       [](const auto& a, const auto& b) { return a.address < b.address; });
  // The one that asks is among them, and goes.
  const auto clients =
      test::ask(first, {"EVAL", "return redis.call('INFO', 'clients'):match('connected_clients:(%d+)')", "0"});
  ASSERT_EQ(test::ask(first, {"CONFIG", "SET", "maxclients", std::to_string(std::stoi(clients) - 1).c_str()}), "OK");
  const auto asked_at = boottime();
  std::jthread waiter{
      [&] { EXPECT_NO_THROW(EXPECT_TRUE(mine.acquire("x", {.ttl = ttl, .wait = long_enough}).valid())); }};
  let_pass(500ms);
  held.release();
  waiter.join();
  EXPECT_LT(boottime() - asked_at, 10s);
}

// A place needs a client of that server, with connections of its own. What its votes say counts all the same.
TEST_F(with_quorum, who_has_too_few_descriptors_for_a_place_in_line_waits_without_one_P25) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "the sanitizer's run-time needs descriptors of its own to look at memory";
#endif
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  auto mine = make();
  (void)mine.acquire("warm", brief).release();
  std::error_code ec;
  {
    const all_descriptors_but none{0};
    (void)mine.acquire("x", {.ttl = ttl, .wait = 1500ms}, ec);
  }
  EXPECT_THAT(ec, testing::AnyOf(errc::timed_out, errc::reply_lost));  // (The latter on a busy machine.)
}

// They may have voted before they fell silent, and then it is ours; a minority's votes would be nobody's.
// They are there: to start them does not help.
TEST_F(with_quorum, whoever_looks_is_told_what_a_majority_denies) {
  auto locks = make(long_enough);
  (void)locks.inspect("x");
  for (int i = 0; i < 2; ++i) ask(i, {"ACL", "SETUSER", "default", "-get"});
  std::error_code ec;
  (void)locks.inspect("x", ec);
  EXPECT_EQ(ec, errc::no_permission);
  for (int i = 0; i < 2; ++i) {
    ask(i, {"ACL", "SETUSER", "default", "+get"});
    ask(i, {"CONFIG", "SET", "requirepass", "secret"});
  }
  auto wrong = options(long_enough);
  wrong.password = "wrong";
  const auto asked_at = boottime();
  client refused{lab_.uri(), wrong};
  (void)refused.inspect("x", ec);
  EXPECT_EQ(ec, errc::wrong_password);
  (void)refused.try_acquire("x", brief, ec);
  EXPECT_EQ(ec, errc::wrong_password);
  EXPECT_LT(boottime() - asked_at, long_enough / 2) << "trying again does not help";
  for (int i = 0; i < 2; ++i) {
    const auto port = std::to_string(port_of(node(i)));
    const auto repair = "redis-cli -p " + port + " -a secret CONFIG SET requirepass wrong >/dev/null 2>&1";
    ASSERT_EQ(std::system(repair.c_str()), 0);
  }
  EXPECT_TRUE(refused.try_acquire("x", brief, ec)) << "it is asked again, and not told what was: " << ec.message();
}

TEST_F(with_quorum, whoever_is_refused_is_told_of_the_user_or_the_database_and_not_of_the_lock) {
  for (int i = 0; i < 2; ++i) ask(i, {"CONFIG", "SET", "requirepass", "secret"});
  auto wrong = options(long_enough);
  wrong.password = "wrong";
  client refused{lab_.uri(), wrong};
  const auto login = error_of([&] { (void)refused.try_acquire("x", brief); });
  ASSERT_TRUE(login);
  EXPECT_EQ(login->code(), errc::wrong_password);
  EXPECT_EQ(login->detail().subject, "user 'default'");

  wrong.password = "secret";  // The third one would not take it, and is not needed for this.
  client elsewhere{lab_.uri() + "/99", wrong};
  const auto database = error_of([&] { (void)elsewhere.try_acquire("x", brief); });
  ASSERT_TRUE(database);
  EXPECT_EQ(database->code(), errc::wrong_database);
  EXPECT_EQ(database->detail().subject, "99");
  const auto look = error_of([&] { (void)elsewhere.inspect("x"); });
  ASSERT_TRUE(look);
  EXPECT_EQ(look->code(), errc::wrong_database) << "to start those that are down helps nobody: none is";
  EXPECT_EQ(look->detail().subject, "99");
}

TEST_F(with_quorum, where_a_majority_falls_silent_nobody_knows_what_an_acquire_has_done_C5) {
  auto locks = make(1s);
  (void)locks.acquire("warm", brief).release();
  lab_.pause(node(1));
  lab_.pause(node(2));
  const acquire_options wish{.ttl = max_ttl};
  const auto e = error_of([&] { (void)locks.try_acquire("x", wish); });
  lab_.resume(node(1));
  lab_.resume(node(2));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::reply_lost) << e->what();
  EXPECT_THAT(e->detail().why, HasSubstr("of 3 servers gave no vote"));
  EXPECT_THAT(e->detail().why, HasSubstr(node(1).address));
  EXPECT_GT(e->detail().may_remain, wish.ttl - 1s);
  EXPECT_LT(e->detail().may_remain, wish.ttl + 2s);
  EXPECT_TRUE(nothing_is_left());
}

class with_long_quarantines : public with_quorum {
protected:
  with_long_quarantines() : with_quorum{3, 60s} {}
};

// Two of three have decided it before the third can answer, which may well vote.
TEST_F(with_long_quarantines, who_was_not_waited_for_is_none_of_those_that_gave_no_vote) {
  fault_proxy third{port_of(node(2))};
  client locks{
      "redis+quorum://" + node(0).address + "," + node(1).address + ",127.0.0.1:" + std::to_string(third.port()),
      options(5s)};
  (void)locks.acquire("warm", brief).release();
  for (const int i : {0, 1}) {
    lab_.kill(node(i));
    lab_.restart(node(i), lab_data::dropped);
  }
  third.set(direction::to_client, {.delay = 100ms});
  std::string why;
  const auto says_so = [&] {
    const auto e = error_of([&] { (void)locks.try_acquire("x", {.ttl = 20s}); });
    why = e ? e->detail().why : "nothing";
    return why.starts_with("2 of 3 servers gave no vote: ") && why.ends_with("; 1 was not waited for");
  };
  EXPECT_TRUE(eventually(says_so, 30s)) << why;
}

// C7: the keeper renews other turns over a connection of its own, and its end is no news of the line.
TEST_F(with_quorum, whoever_waits_keeps_the_place_when_the_keepers_connection_ends_P25) {
  auto locks = make();
  const auto x = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  const auto y = locks.acquire("y", {.ttl = ttl, .wait = long_enough});
  auto before = make();
  auto mine = make();
  const auto wait_for = [](client& by, const char* name, const std::stop_token& until) {
    return std::async(std::launch::async, [&by, name, until] {
      return code_of([&] { (void)by.acquire(name, {.ttl = ttl, .cancel = until}); });
    });
  };
  const auto length = [&](const char* key) {
    for (int i = 0; i < size(); ++i) {
      if (const auto n = ask_number(node(i), {"ZCARD", key}); n != "0") return std::pair{i, n};
    }
    return std::pair{0, std::string{"0"}};
  };
  const auto connections = [&](int at) {
    std::set<std::string> ids;
    std::istringstream list{ask(at, {"CLIENT", "LIST"})};
    for (std::string line; std::getline(list, line);) {
      const bool is_ours = line.find("cmd=client|list") != std::string::npos;
      if (!is_ours && line.starts_with("id=")) ids.insert(line.substr(3, line.find(' ') - 3));
    }
    return ids;
  };
  const auto turn = [&](const char* key) {
    for (int i = 0; i < size(); ++i) {
      if (auto whose = value(i, key); !whose.empty()) return whose;
    }
    return std::string{};
  };
  const auto has_turn = [&](const char* key) { return !turn(key).empty(); };
  std::stop_source stop;
  auto first = wait_for(before, "x", stop.get_token());
  ASSERT_TRUE(eventually([&] { return has_turn("hf:turn:{x}"); }, long_enough));
  auto second = wait_for(mine, "x", stop.get_token());
  ASSERT_TRUE(eventually([&] { return length("hf:turn:{x}:line").second == "1"; }, long_enough));
  const int at = length("hf:turn:{x}:line").first;
  let_pass(4s);  // What the others' keepers need, they have by now.
  // A turn of its own, which its keeper renews from then on.
  auto other = wait_for(mine, "y", stop.get_token());
  ASSERT_TRUE(eventually([&] { return has_turn("hf:turn:{y}"); }, long_enough));
  const auto known = connections(at);
  std::string renewing;
  ASSERT_TRUE(eventually(
      [&] {
        for (const auto& id : connections(at)) {
          if (!known.contains(id)) renewing = id;
        }
        return !renewing.empty();
      },
      long_enough));
  const auto whose = turn("hf:turn:{x}");
  EXPECT_EQ(ask_number(node(at), {"CLIENT", "KILL", "ID", renewing.c_str()}), "1");
  // (It has also left when it has the turn, as it may on a busy machine, where the first can be late to renew it.)
  EXPECT_FALSE(eventually([&] { return length("hf:turn:{x}:line").second == "0" && turn("hf:turn:{x}") == whose; }, 2s))
      << "it has left its line";
  stop.request_stop();
  for (auto* one : {&first, &second, &other}) (void)one->get();
}

// C7: its end is read by whoever waits next, and says nothing of the server. Whoever went to another's line for it
// would be the first there, before all who wait here.
TEST_F(with_quorum, a_connection_that_the_server_ended_while_nobody_waited_costs_nobody_the_place_P25_C7) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = ttl, .wait = long_enough});
  const auto places_of_turns = [&] {
    std::string places;
    for (int i = 0; i < size(); ++i) {
      if (!value(i, "hf:turn:{x}").empty()) places += node(i).address + " ";
    }
    return places;
  };
  const auto place_of = [&](client& by) {
    std::stop_source stop;
    auto waits = std::async(std::launch::async, [&] {
      return code_of([&] { (void)by.acquire("x", {.ttl = ttl, .cancel = stop.get_token()}); });
    });
    EXPECT_TRUE(eventually([&] { return !places_of_turns().empty(); }, long_enough));
    auto place = places_of_turns();
    stop.request_stop();
    (void)waits.get();
    EXPECT_TRUE(eventually([&] { return places_of_turns().empty(); }, long_enough));
    return place;
  };
  const auto keeps_its_place = [&] {
    auto mine = make();
    const auto had = place_of(mine);
    for (int i = 0; i < size(); ++i) ask(i, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    // All servers are heard again, as they were before.
    for (int i = 0; i < 3; ++i) mine.acquire("y", {.ttl = ttl, .wait = long_enough}).release();
    return place_of(mine) == had;
  };
  // On a busy machine the first server may be too late to be asked for a place, which is no fault.
  EXPECT_TRUE(keeps_its_place() || keeps_its_place() || keeps_its_place());
}

// A silent server: what was asked of it before may take effect when it goes on, and must end then.
TEST_F(with_quorum, a_vote_that_was_given_late_is_withdrawn_R17) {
  auto locks = make();
  (void)locks.acquire("warm", brief).release();
  lab_.pause(node(0));
  for (int i = 0; i < 5; ++i) (void)locks.acquire("x", {.ttl = max_ttl}).release();
  lab_.resume(node(0));
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace holdfast::test
