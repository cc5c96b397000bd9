// SPDX-License-Identifier: Apache-2.0
// Threads of one process hand a lock on without Redis (P14, P14b): each with a token of its own, within bounds, and
// with no more than one entry in the server's line.
#include "integration/hand_over_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace holdfast::test {
namespace {

TEST_F(hand_over, among_threads_costs_the_server_little_and_keeps_them_apart_C1_C2) {
  auto locks = make(16);
  constexpr int threads = 8;
  constexpr int rounds = scaled(2000);
  const auto before = server_.scripts_run();
  int inside = 0;
  int overlaps = 0;
  std::uint64_t last_token = 0;
  int regressions = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds / threads; ++i) {
        auto held = locks.acquire("x");
        if (++inside != 1) ++overlaps;
        if (held.token().value() <= last_token) ++regressions;
        last_token = held.token().value();
        EXPECT_TRUE(held.valid());
        --inside;
        EXPECT_EQ(held.release(), release_outcome::released);
        EXPECT_FALSE(held.valid());
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(regressions, 0);
  EXPECT_FALSE(exists("hf:{x}"));
  EXPECT_EQ(in_line(), 0);
  // Through the server each round costs two scripts at least, and most of them a place in line and a claim besides.
  EXPECT_LT(server_.scripts_run() - before, rounds * 2);
}

// Each grant reserves a thousand tokens, a millisecond's, and none is ever handed on: they have labels of their own.
TEST_F(hand_over, a_thousand_times_does_not_make_tokens_outrun_the_clock_C2) {
  auto locks = make(1000);
  constexpr int threads = 4;
  std::vector<std::thread> all;
  std::atomic<std::uint64_t> last{0};
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, owner = std::to_string(t)] {
      for (int i = 0; i < 1000; ++i) {
        const auto held = locks.acquire("x", {.owner = owner});
        last = held.token().value();
      }
    });
  }
  for (auto& t : all) t.join();
  const auto now = std::chrono::system_clock::now().time_since_epoch() / 1us;
  EXPECT_LT(static_cast<std::int64_t>(last.load()) - now, std::int64_t{1'200'000});
}

// The first grant was made before anybody waited, so it has no tokens to give. The next one would have.
TEST_F(hand_over, is_never_when_the_option_says_so) {
  auto locks = make(0, 1s);
  auto first = locks.acquire("x");
  std::string granted;
  auto second = in_front(locks, {}, [&](lease& held) {
    granted = owner_id();
    let_pass(giver_holds);
    held.release();
  });
  auto third = behind(locks, {}, [&](lease&) { EXPECT_NE(owner_id(), granted) << "it was handed on"; });
  first.release();
  second.join();
  third.join();
}

class hand_overs_in_a_row : public hand_over {
protected:
  // The most, of nine that wait.
  int longest_run(client& locks, std::chrono::milliseconds each_holds) {
    std::vector<std::string> owners;
    std::vector<std::thread> all;
    auto first = locks.acquire("x");
    for (int i = 0; i < 9; ++i) {
      all.push_back(behind(locks, {}, [&](lease& held) {
        let_pass(owners.empty() ? giver_holds : each_holds);
        owners.push_back(owner_id());
        held.release();
      }));
    }
    first.release();
    for (auto& t : all) t.join();
    EXPECT_EQ(owners.size(), 9u);
    int run = 0;
    int longest = 0;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      run = i > 0 && owners[i] == owners[i - 1] ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    return longest;
  }
  // On a busy machine a thread may not have come into the line when it could be given the lease.
  int longest_run_above(int what, client& locks, std::chrono::milliseconds each_holds) {
    int longest = 0;
    for (int tries = 0; longest <= what && tries < 5; ++tries) longest = longest_run(locks, each_holds);
    return longest;
  }
};

TEST_F(hand_overs_in_a_row, are_so_many_where_somebody_waits_outside_P14) {
  auto locks = make(3, 1s);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> outside;  // One of the two always waits.
  for (int i = 0; i < 2; ++i) {
    outside.emplace_back([&] {
      auto other = make_client();
      while (!is_over) {
        const auto held = other.acquire("x");
        let_pass(10ms);
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return in_line() == 1; }));
  EXPECT_EQ(longest_run_above(2, locks, 0ms), 3);
  is_over = true;
  for (auto& t : outside) t.join();
}

TEST_F(hand_overs_in_a_row, are_more_where_nobody_does_P14) {
  auto locks = make(3, 1s);
  EXPECT_GT(longest_run_above(3, locks, 10ms), 3) << "the answer has come by then";
}

// The lease that a thread was given, by another thread of its process.
class given : public hand_over {
protected:
  // Two threads line up behind `first`, so that the one in front asks for tokens; it gives to the second.
  template <class With>
  void give(client& locks, acquire_options how, With with, std::chrono::milliseconds held_before = giver_holds) {
    auto first = locks.acquire("x", how);
    std::string granted;
    auto giver = in_front(locks, how, [&](lease& held) {
      granted = owner_id();
      let_pass(held_before);
      held.release();
    });
    auto receiver = behind(locks, how, [&](lease& held) {
      EXPECT_EQ(owner_id(), granted) << "it was not handed on";
      with(held);
    });
    first.release();
    giver.join();
    receiver.join();
  }
};

TEST_F(given, is_renewed_and_released_as_any_other_C6) {
  auto locks = make(16, 1s);
  give(locks, {.ttl = 1500ms}, [&](lease& held) {
    let_pass(3500ms);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(held.release(), release_outcome::released);
  });
  EXPECT_FALSE(exists("hf:{x}"));
}

// R14: each of a chain may hold it for as long as it asked for, and not for what its giver had left of that.
TEST_F(given, counts_its_longest_hold_from_itself_P14b) {
  auto locks = make(16, 1s);
  const acquire_options how{.ttl = 1s, .max_hold = 2s};
  give(
      locks, how,
      [&](lease& held) {
        const auto since = boottime();
        EXPECT_TRUE(eventually([&] { return held.lost_reason() == errc::lease_held_too_long; }, 10s));
        EXPECT_FALSE(held.valid());
        EXPECT_GT(boottime() - since, 1750ms) << "its giver held it for half a second";
      },
      500ms);
}

TEST_F(given, is_told_of_its_loss_P14b) {
  auto locks = make(16, 1s);
  give(locks, {.ttl = 3s}, [&](lease& held) {
    server_("DEL", "hf:{x}");
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 1s + slack));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.release(), release_outcome::already_lost);
  });
}

TEST_F(given, is_broken_by_its_own_token_P14b) {
  auto locks = make(16, 1s);
  give(locks, {.ttl = 3s}, [&](lease& held) {
    auto other = make_client();
    const auto base = other.inspect("x").token;
    EXPECT_GT(held.token(), base);
    EXPECT_EQ(code_of([&] { other.break_lock("x", fencing_token{base.value() - 1}); }), errc::changed_hands);
    EXPECT_EQ(code_of([&] { other.break_lock("x", fencing_token{base.value() + 1000}); }), errc::changed_hands);
    other.break_lock("x", held.token());
    EXPECT_TRUE(other.inspect("x").breaking);
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 1s + slack));
    EXPECT_EQ(held.lost_reason(), errc::lease_broken);
  });
}

TEST_F(given, has_a_token_below_whatever_comes_after_the_block_C2) {
  auto locks = make(16, 1s);
  std::uint64_t token = 0;
  give(locks, {}, [&](lease& held) {
    token = held.token().value();
    held.release();
  });
  EXPECT_GT(make_client().acquire("x").token().value(), token);
}

TEST_F(hand_over, of_a_dropped_lease_too) {
  auto locks = make(16, 1s);
  auto first = std::optional{locks.acquire("x")};
  std::string granted;
  auto giver = in_front(locks, {}, [&](lease& held) {
    granted = owner_id();
    let_pass(giver_holds);
    const lease dropped = std::move(held);
  });
  auto receiver = behind(locks, {}, [&](lease&) { EXPECT_EQ(owner_id(), granted); });
  first->release();
  giver.join();
  receiver.join();
}

TEST_F(hand_over, is_not_made_to_another_ttl_P13) {
  auto locks = make(16, 1s);
  auto first = locks.acquire("x");
  std::string granted;
  auto giver = behind(locks, {}, [&](lease& held) {
    granted = owner_id();
    held.release();
  });
  auto receiver = behind(locks, {.ttl = 7s}, [&](lease&) { EXPECT_NE(owner_id(), granted); });
  first.release();
  giver.join();
  receiver.join();
}

TEST_F(hand_over, is_not_made_to_another_label) {
  auto locks = make(16, 1s);
  auto first = locks.acquire("x");
  auto giver = behind(locks, {}, [&](lease& held) { held.release(); });
  auto receiver = behind(locks, {.owner = "nightly"}, [&](lease&) { EXPECT_EQ(locks.inspect("x").owner, "nightly"); });
  first.release();
  giver.join();
  receiver.join();
}

TEST_F(hand_over, meets_a_demand_for_a_token) {
  auto locks = make(16, 1s);
  auto first = locks.acquire("x");
  const fencing_token floor{first.token().value() + 60'000'000};
  auto giver = behind(locks, {}, [&](lease& held) { held.release(); });
  auto receiver = behind(locks, {.min_fence = floor}, [&](lease& held) { EXPECT_GT(held.token(), floor); });
  first.release();
  giver.join();
  receiver.join();
}

std::atomic<bool> stands_still{false};
void stand_still(int /*signal*/) {
  stands_still = true;
  timespec left{1, 500'000'000};
  while (::nanosleep(&left, &left) != 0) {
  }
}

TEST_F(hand_over, is_not_taken_by_who_comes_too_late_for_it_P14b_B82) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "a sanitizer's run-time runs handlers when it likes";
#endif
  struct sigaction standing = {};
  standing.sa_handler = stand_still;
  struct sigaction before = {};
  ASSERT_EQ(::sigaction(SIGUSR1, &standing, &before), 0);
  auto locks = make(16, 1s);
  const acquire_options how{.ttl = 1s, .renew = renewal::none};
  auto first = locks.acquire("x", how);
  std::string given;
  std::string taken;
  auto giver = behind(locks, how, [&](lease& held) {
    given = owner_id();
    held.release();
  });
  bool is_valid = false;
  auto receiver = behind(locks, how, [&](lease& held) {
    taken = owner_id();
    is_valid = held.valid();
  });
  ::pthread_kill(receiver.native_handle(), SIGUSR1);
  ASSERT_TRUE(eventually([&] { return stands_still.load(); }));
  first.release();
  giver.join();
  receiver.join();
  EXPECT_TRUE(is_valid);
  EXPECT_NE(taken, given);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(hand_over, leaves_one_entry_in_the_line_however_many_threads_wait) {
  auto other = make_client();
  auto held = other.acquire("x");
  auto locks = make(16);
  std::atomic<int> inside{0};
  std::vector<std::thread> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(behind(locks, {}, [&](lease& mine) {
      ++inside;
      mine.release();
    }));
  }
  EXPECT_TRUE(eventually([&] { return in_line() == 1; }));
  EXPECT_EQ(inside, 0);
  held.release();
  for (auto& t : all) t.join();
  EXPECT_EQ(inside, 10);
}

TEST_F(hand_over, does_not_wait_for_a_holder_that_never_gives_back) {
  auto locks = make(16);
  auto first = locks.acquire("x");
  auto giver = in_front(locks, {.ttl = 3s}, [&](lease& held) {
    let_pass(1s);  // Past the span: nobody waits here for it any more.
    EXPECT_EQ(in_line(), 1);
    held.release();
  });
  auto next = behind(locks, {.ttl = 3s}, [&](lease&) {});
  first.release();
  giver.join();
  next.join();
}

TEST_F(hand_over, lets_go_whoever_is_cancelled_or_out_of_time) {
  auto locks = make(16);
  auto first = locks.acquire("x");
  auto front = behind(locks, {}, [&](lease& held) { held.release(); });
  const auto before = boottime();
  EXPECT_EQ(code_of([&] { (void)locks.acquire("x", {.wait = in_vain}); }), errc::timed_out);
  EXPECT_LT(boottime() - before, in_vain + slack);
  std::stop_source stop;
  std::thread canceller{[&] {
    let_pass(20ms);
    stop.request_stop();
  }};
  EXPECT_EQ(code_of([&] { (void)locks.acquire("x", {.cancel = stop.get_token()}); }), errc::cancelled);
  canceller.join();
  first.release();
  front.join();
  EXPECT_TRUE(locks.try_acquire("x"));
}

// Each is the first for a moment, with less time left than an answer takes: it knows what those before it were told.
TEST_F(hand_over, ends_waits_of_one_length_alike_C5) {
  auto holder_of_it = make_client();
  const auto held = holder_of_it.acquire("x");
  auto locks = make(16);
  EXPECT_TRUE(locks.try_acquire("y"));  // Connected.
  std::atomic<int> timed_out{0};
  std::vector<std::thread> all;
  for (int i = 0; i < 48; ++i) {
    all.emplace_back([&] {
      std::error_code ec;
      (void)locks.acquire("x", {.wait = in_vain}, ec);
      if (ec == outcome::timed_out) ++timed_out;
    });
    let_pass(50us);
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(timed_out, 48);
}

// An answer takes 400 ms. Whoever hears behind another one that the lock is taken, and has little more than that left,
// waits for nothing but the end of its time: the next one need not wait for that. A busy machine may need the 100 ms
// between the two for something else, but not each time.
TEST_F(hand_over, who_has_no_time_to_ask_any_more_keeps_nobody_from_it_C7) {
  fault_proxy proxy{server_.socket()};
  auto locks = make_client_at(proxy.uri());
  const auto is_in_time = [&] {
    proxy.heal();
    auto held = locks.acquire("x");
    proxy.set(direction::to_server, {.delay = 200ms});
    proxy.set(direction::to_client, {.delay = 200ms});
    (void)locks.try_acquire("y");  // It knows how long that takes.
    std::atomic<int> told_in_time{0};
    const auto from = boottime();
    std::vector<std::thread> all;
    for (const auto wait : {700ms, 1100ms}) {
      all.emplace_back([&, wait] {
        std::error_code ec;
        EXPECT_FALSE(locks.acquire("x", {.wait = wait}, ec));
        EXPECT_GE(boottime() - from, wait);
        if (ec == outcome::timed_out) ++told_in_time;
      });
      let_pass(20ms);
    }
    std::chrono::nanoseconds taken_after{0};
    all.emplace_back([&] {
      EXPECT_TRUE(locks.acquire("x").valid());
      taken_after = boottime() - from;
    });
    let_pass(400ms);
    held.release();
    for (auto& t : all) t.join();
    return told_in_time == 2 && taken_after < 1400ms;  // It asks when the first of them is told, after 700 ms.
  };
  bool is_good = false;
  for (int tries = 0; tries < 5 && !is_good; ++tries) is_good = is_in_time();
  EXPECT_TRUE(is_good);
}

}  // namespace
}  // namespace holdfast::test
