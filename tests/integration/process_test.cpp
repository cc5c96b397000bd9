// SPDX-License-Identifier: Apache-2.0
// Holders in processes of their own, that are stopped, killed and forked.
#include "integration/fixture.hpp"
#include "support/fenced_store.hpp"
#include "support/witness.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace holdfast::test {
namespace {

class process : public on_redis {
protected:
  child_process start(std::vector<std::string> words) {
    words.insert(words.begin(), {HOLDFAST_WORKER, uri()});
    child_process::options how;
    how.environment = worker_environment();
    return child_process{words, how};
  }

  child_process start_holder(const std::string& ttl_ms) { return start({"hold", "x", ttl_ms, scratch_ / "store"}); }

  static std::uint64_t token_of(child_process& holder) {
    const auto line = holder.read_line().value_or("(nothing)");
    EXPECT_TRUE(line.starts_with("acquired ")) << line;
    return line.starts_with("acquired ") ? std::stoull(line.substr(9)) : 0;
  }

  static std::string ask(child_process& holder, const std::string& line) {
    holder.write_line(line);
    return holder.read_line().value_or("(nothing)");
  }

  scratch_directory scratch_;
};

// H1: stopped for longer than its ttl. The first thing it sees after that is that it holds nothing any more.
TEST_F(process, stopped_beyond_its_ttl_sees_at_once_that_the_lease_is_over) {
  auto holder = start_holder("2000");
  token_of(holder);
  EXPECT_EQ(ask(holder, "valid"), "1");
  holder.signal(SIGSTOP);
  holder.write_line("valid");  // Waits in its pipe: read as the first statement after the stop.
  let_pass(2500ms);
  holder.signal(SIGCONT);
  EXPECT_EQ(holder.read_line(), "0");
  EXPECT_TRUE(eventually([&] { return ask(holder, "lost") == "1"; }));
}

TEST_F(process, stopped_for_less_than_its_ttl_goes_on) {
  auto holder = start_holder("1500");
  token_of(holder);
  for (int i = 0; i < 4; ++i) {
    holder.signal(SIGSTOP);
    let_pass(400ms);
    holder.signal(SIGCONT);
    EXPECT_EQ(ask(holder, "valid"), "1");
    let_pass(300ms);
  }
}

// C3, R1: it wakes up, believes nothing, and even if it wrote, the store refuses: the next holder has raised.
TEST_F(process, stopped_beyond_its_ttl_cannot_write_to_a_fenced_store) {
  auto holder = start_holder("500");
  const auto old_token = token_of(holder);
  EXPECT_EQ(ask(holder, "write 1"), "1");
  holder.signal(SIGSTOP);
  auto locks = make_client();
  const auto next = locks.acquire("x", {.wait = 5s});
  EXPECT_GT(next.token().value(), old_token);
  fenced_store store{scratch_ / "store"};
  ASSERT_TRUE(store.raise(next.token().value()));
  EXPECT_EQ(store.read(next.token().value()), 1);
  holder.signal(SIGCONT);
  EXPECT_EQ(ask(holder, "write 2"), "0");
  EXPECT_EQ(store.value(), 1);
}

// H65: without the raise an old write that arrives between the grant and the first new write would land.
TEST_F(process, stale_write_between_grant_and_first_write_needs_the_raise) {
  fenced_store store{scratch_ / "store"};
  auto locks = make_client();
  auto first = locks.acquire("x");
  const auto stale = first.token().value();
  store.raise(stale);
  first.release();
  const auto second = locks.acquire("x");
  EXPECT_TRUE(store.write(stale, 1)) << "this is the danger";
  ASSERT_TRUE(store.raise(second.token().value()));
  EXPECT_EQ(store.read(second.token().value()), 1) << "what landed before the raise is seen by the read after it";
  EXPECT_FALSE(store.write(stale, 2));
}

// B25, T12, and what the 4 asks for.
TEST_F(process, killed_leaves_the_lock_to_a_waiter_within_ttl_and_100_ms) {
  auto soonest = std::chrono::nanoseconds::max();
  for (int round = 0; round < 3; ++round) {
    auto holder = start_holder("1000");
    const auto old_token = token_of(holder);
    auto locks = make_client();
    std::chrono::nanoseconds got_at{0};
    fencing_token token;
    std::thread waiter{[&] {
      auto held = locks.acquire("x", {.wait = 10s});
      got_at = boottime();
      token = held.token();
      held.release();
    }};
    let_pass(std::chrono::milliseconds{150 * (round + 1)});
    holder.signal(SIGKILL);
    const auto killed_at = boottime();
    waiter.join();
    EXPECT_LE(got_at - killed_at, 1s + slack);
    soonest = std::min(soonest, got_at - killed_at);
    EXPECT_GT(token.value(), old_token);
  }
  EXPECT_LE(soonest, 1100ms + when_busy);
}

// The 5.
TEST_F(process, twenty_with_a_thousand_acquisitions_never_overlap) {
  constexpr int workers = 20;
  constexpr int rounds = scaled(2000) == 2000 ? 50 : 10;
  std::vector<child_process> all;
  for (int i = 0; i < workers; ++i) {
    all.push_back(start({"contend", "x", std::to_string(rounds), scratch_ / "witness", "200"}));
  }
  for (auto& one : all) EXPECT_EQ(one.read_line(180s), "done " + std::to_string(rounds));
  const auto result = judge(read_sightings(scratch_ / "witness"));
  EXPECT_EQ(result.holds, workers * rounds);
  EXPECT_EQ(result.overlaps, 0) << result.first_offence;
  EXPECT_EQ(result.token_regressions, 0) << result.first_offence;
}

// H51: killed at any instant, of its own holding or of waiting for the other one, it leaves nothing for longer than the
// ttl (B41), nor in line. Not before they have locked: else the fault is in their start.
TEST_F(process, killed_at_any_instant_leaves_nothing_for_ever_H51_B41) {
  constexpr int rounds = 20;
  int left_locked = 0;
  int left_in_line = 0;
  const auto key = [](int round, const std::string& beside = "") {
    return "hf:{x" + std::to_string(round) + "}" + beside;
  };
  for (int i = 0; i < rounds; ++i) {
    const auto number = std::to_string(i);
    const auto seen = scratch_ / ("witness" + number);
    std::array<child_process, 2> both;
    for (auto& one : both) one = start({"contend", "x" + number, "100000", seen, "50"});
    const auto has_locked = [&](const child_process& one) {
      const auto all = read_sightings(seen);
      return std::any_of(all.begin(), all.end(), [&](const sighting& s) { return s.who == one.pid(); });
    };
    ASSERT_TRUE(eventually([&] { return has_locked(both[0]) && has_locked(both[1]); }, 20s))
        << both[0].read_line(10ms).value_or("") << both[1].read_line(10ms).value_or("");
    ASSERT_TRUE(exists(key(i, ":fence")));
    for (auto& one : both) {
      let_pass(std::chrono::microseconds{i * 137 % 2000});
      one.signal(SIGKILL);
      one.wait();
    }
    if (exists(key(i))) ++left_locked;
    if (server_("ZCARD", key(i, ":line")) == 1) ++left_in_line;
  }
  EXPECT_GT(left_locked, 0) << "nobody was killed where it matters";
  EXPECT_GT(left_in_line, 0) << "nobody was killed while it waited";
  EXPECT_TRUE(server_.keys_without_expiry().empty());
  const auto is_locked = [&] {
    for (int i = 0; i < rounds; ++i)
      if (exists(key(i))) return true;
    return false;
  };
  EXPECT_TRUE(eventually([&] { return !is_locked(); }, 5200ms));
  // And no half of an entry is in the way of whoever comes (B35).
  auto locks = make_client();
  for (int i = 0; i < rounds; ++i) {
    std::error_code ec;
    EXPECT_TRUE(locks.acquire("x" + std::to_string(i), {.wait = 8s}, ec)) << i << ": " << ec.message();
  }
}

// H46, P33: the child's handles refuse and leak; the parent does not notice.
TEST_F(process, forked_child_is_refused_and_harms_nothing) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 3s});
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      int wrong = 0;
      std::error_code ec;
      (void)locks.try_acquire("y", {}, ec);
      if (ec != errc::used_after_fork) wrong |= 1;
      if (held.valid()) wrong |= 2;
      if (code_of([&] { held.release(); }) != errc::used_after_fork) wrong |= 4;
      { lease dropped = std::move(held); }
      { client gone = std::move(locks); }
      ::_exit(wrong);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    let_pass(std::chrono::milliseconds{10 + i});
    ASSERT_TRUE(held.valid());
    ASSERT_TRUE(exists("hf:{x}")) << "the child released its parent's lock";
  }
  let_pass(3500ms);
  EXPECT_TRUE(held.valid()) << "still renewed";
  EXPECT_EQ(held.release(), release_outcome::released);
}

// A client of its own makes none of them its own: it would count what its parent has locked.
TEST_F(process, forked_child_s_mutexes_refuse_with_a_client_of_its_own_too_P33) {
  auto locks = make_client();
  mutex m{locks, "m"};
  shared_mutex rw{locks, "rw"};
  recursive_mutex again{locks, "again"};
  again.lock();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    locks = make_client();
    int wrong = 0;
    if (code_of([&] { again.lock(); }) != errc::used_after_fork) wrong |= 1;
    if (code_of([&] { (void)again.try_lock(); }) != errc::used_after_fork) wrong |= 2;
    if (code_of([&] { (void)again.try_lock_for(1s); }) != errc::used_after_fork) wrong |= 4;
    if (code_of([&] { m.lock(); }) != errc::used_after_fork) wrong |= 8;
    if (code_of([&] { (void)m.try_lock(); }) != errc::used_after_fork) wrong |= 16;
    if (code_of([&] { rw.lock_shared(); }) != errc::used_after_fork) wrong |= 32;
    if (code_of([&] { (void)rw.try_lock(); }) != errc::used_after_fork) wrong |= 64;
    again.unlock();
    m.unlock();
    rw.unlock();
    mutex mine{locks, "mine"};
    mine.lock();
    mine.unlock();
    ::_exit(wrong);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a signal is 14: it waited";
  EXPECT_TRUE(again.valid());
  again.unlock();
}

// Its parent's other threads lock and unlock in the moment of the fork, and are not in the child.
TEST_F(process, forked_child_s_mutexes_refuse_and_wait_for_nobody) {
  auto locks = make_client();
  mutex m{locks, "m"};
  shared_mutex rw{locks, "rw"};
  recursive_mutex again{locks, "again"};
  m.lock();
  rw.lock();
  again.lock();
  std::atomic<bool> is_over{false};
  std::jthread trying{[&] {
    while (!is_over) EXPECT_FALSE(m.try_lock());
  }};
  std::jthread unlocking{[&] {
    while (!is_over) rw.unlock();  // By a thread that has not locked it: it does nothing.
  }};
  int status = 0;
  for (int i = 0; i < 20 && status == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);
      int wrong = 0;
      if (code_of([&] { (void)m.try_lock(); }) != errc::used_after_fork) wrong |= 1;
      if (code_of([&] { rw.unlock_and_lock_shared(); }) != errc::used_after_fork) wrong |= 2;
      // Its thread has the id of the one that holds it.
      if (code_of([&] { again.lock(); }) != errc::used_after_fork) wrong |= 4;
      if (code_of([&] { (void)again.try_lock(); }) != errc::used_after_fork) wrong |= 8;
      if (code_of([&] { (void)again.try_lock_for(1s); }) != errc::used_after_fork) wrong |= 16;
      m.unlock();
      rw.unlock();
      rw.unlock_shared();
      again.unlock();
      ::_exit(wrong);
    }
    EXPECT_EQ(::waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0) << "a signal is 14: it waited";
  is_over = true;
  trying.join();
  unlocking.join();
  m.unlock();
  rw.unlock();
  again.unlock();
}

TEST_F(process, forked_child_may_make_a_client_of_its_own) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "neither sanitizer's run-time can start threads after a fork of a process with threads";
#endif
  auto locks = make_client();
  const auto held = locks.acquire("x");
  auto writing = shared_mutex{locks, "rw"}.acquire();
  const pid_t child = ::fork();
  if (child == 0) {
    int wrong = 1;
    try {
      auto own = make_client();
      wrong = own.try_acquire("x") ? 2 : 0;
      shared_mutex by_its_own{own, "rw"};
      if (code_of([&] { by_its_own.downgrade(writing); }) != errc::used_after_fork) wrong |= 8;
      if (own.acquire("y").release() != release_outcome::released) wrong |= 4;
    } catch (...) {
    }
    ::_exit(wrong);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(shared_mutex(locks, "rw").try_acquire_shared()) << "we still write";
}

// B91: forks while many threads are in the middle of calls; no byte of the child gets into the parent's stream.
TEST_F(process, forks_in_the_middle_of_calls_do_not_disturb_the_parent) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP()
      << "the sanitizers' allocators may be locked by another thread at the fork; the child then waits for ever";
#endif
  auto locks = make_client();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        auto held = locks.acquire("t" + std::to_string(t), {.wait = 10s});
        EXPECT_EQ(held.release(), release_outcome::released);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::error_code ec;
      (void)locks.try_acquire("y", {}, ec);
      ::_exit(ec == errc::used_after_fork ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

// P33: the child has a copy of the stop_source, and with it what the parent's threads left there. It must not wait for
// a mutex that one of them had.
TEST_F(process, forked_child_may_ask_its_parents_calls_to_stop_and_nothing_happens) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP()
      << "the sanitizers' allocators may be locked by another thread at the fork; the child then waits for ever";
#endif
  auto other = make_client();
  auto in_the_way = other.acquire("x");
  auto locks = make_client();
  std::stop_source giving_up;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {  // The second stands behind the first, in the process.
    threads.emplace_back([&] {
      auto held = locks.acquire("x", {.wait = 60s, .cancel = giving_up.get_token()});
      held.release();
    });
  }
  std::atomic<bool> stop{false};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) (void)locks.try_acquire("x");
    });
  }
  ASSERT_TRUE(eventually([&] { return exists("hf:{x}:line"); }));
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);
      giving_up.request_stop();
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "it waits for a thread that it does not have";
  }
  stop = true;
  in_the_way.release();
  for (auto& thread : threads) thread.join();  // The calls end with a lease, not with `cancelled`.
}

}  // namespace
}  // namespace holdfast::test
