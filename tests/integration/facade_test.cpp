// SPDX-License-Identifier: Apache-2.0
// mutex, recursive_mutex, and synchronize with a time-out: what is built on a lease for people who want no lease.
#include "integration/fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace holdfast::test {
namespace {

class plain : public on_redis {};

// One lock, many threads: they hand it on to each other, and the server hears little of it (P14).
// Of its options only those are used that a mutex has a use for.
TEST_F(plain, mutexes_have_no_permits) {
  auto locks = make_client();
  mutex alone{locks, "x", {.permits = 2}};
  EXPECT_TRUE(alone.try_lock());
  alone.unlock();
  shared_mutex with_others{locks, "y", {.permits = 2}};
  EXPECT_TRUE(with_others.try_lock_shared());
  with_others.unlock_shared();
}

TEST_F(plain, mutex_is_handed_on_between_its_threads_P14) {
  auto locks = make_client();
  mutex m{locks, "x"};
  constexpr int rounds = scaled(2000);
  constexpr int threads = 8;
  int inside = 0;
  server_("CONFIG", "RESETSTAT");
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds / threads; ++i) {
        const std::lock_guard alone{m};
        ++inside;  // Unprotected but for the mutex; tsan watches.
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(inside, rounds / threads * threads);
  EXPECT_LT(server_.scripts_run(), rounds * 3 / 2);
}

// The lease comes before the turn in the process, and may be over when that has come: then somebody else has the lock.
TEST_F(plain, mutex_lets_nobody_in_whose_lease_was_lost_while_it_waited_for_its_turn_C1) {
  auto locks = make_client();
  auto others = make_client();
  mutex m{locks, "x", {.ttl = 1s, .renew = renewal::none}};
  m.lock();  // Its lease ends by itself, and it works on.
  auto second = std::async(std::launch::async, [&] { return m.try_lock_for(6s); });
  ASSERT_TRUE(eventually([&] { return server_("ZCARD", "hf:{x}:line").number == 1; }));
  // Behind the second one, whose lease is over then.
  const auto theirs = others.acquire("x", {.ttl = 20s, .wait = 10s});
  m.unlock();
  EXPECT_FALSE(second.get());
  EXPECT_TRUE(theirs.valid());
}

// The lock went to somebody else, but no second thread of ours goes in before the first one is out.
TEST_F(plain, mutex_keeps_its_threads_apart_even_when_the_lease_was_lost) {
  auto locks = make_client();
  mutex m{locks, "x", {.ttl = 300ms}};
  m.lock();
  server_("DEL", "hf:{x}");
  std::atomic<bool> is_in{false};
  std::thread second{[&] {
    m.lock();
    is_in = true;
    m.unlock();
  }};
  EXPECT_TRUE(eventually([&] { return exists("hf:{x}"); })) << "the second one has the lock";
  EXPECT_FALSE(m.try_lock());
  let_pass(50ms);
  EXPECT_FALSE(is_in);
  m.unlock();
  second.join();
  EXPECT_TRUE(is_in);
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
}

// The one who is told that it is free has no lease any more; who stands behind it has, and must not sleep on.
TEST_F(plain, mutex_goes_to_whoever_has_the_lease_when_the_first_who_waits_has_lost_its_own_B31) {
  auto locks = make_client();
  mutex m{locks, "x", {.ttl = 300ms}};
  m.lock();
  const auto lose = [&] {
    const auto before = server_("GET", "hf:{x}").text;
    server_("DEL", "hf:{x}");
    return before;
  };
  const auto is_taken_by_another_than = [&](const std::string& before) {
    const auto now = server_("GET", "hf:{x}").text;
    return now.starts_with("v1|") && now != before;
  };
  std::vector<std::thread> others;
  std::atomic<int> were_in{0};
  for (int i = 0; i < 2; ++i) {
    const auto before = lose();
    others.emplace_back([&] {
      if (!m.try_lock_for(10s)) return;
      ++were_in;
      m.unlock();
    });
    ASSERT_TRUE(eventually([&] { return is_taken_by_another_than(before); }));
    let_pass(250ms);  // It waits for its turn; and after the second loss it knows of the first.
  }
  const auto began = boottime();
  m.unlock();
  for (auto& one : others) one.join();
  EXPECT_EQ(were_in, 2);
  EXPECT_LT(boottime() - began, 5s);
}

// The end of a condition variable waits for those who wait on it, and in a child they are not there.
TEST_F(plain, mutex_ends_in_a_forked_child_though_its_parents_thread_waits_for_another_P33) {
  auto locks = make_client();
  std::optional<mutex> m{std::in_place, locks, "x", acquire_options{.ttl = 300ms}};
  m->lock();
  server_("DEL", "hf:{x}");
  std::thread second{[&] {
    m->lock();
    m->unlock();
  }};
  EXPECT_TRUE(eventually([&] { return exists("hf:{x}"); })) << "the second one has the lock";
  let_pass(50ms);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    m.reset();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a signal is 14: it waited";
  m->unlock();
  second.join();
}

TEST_F(plain, mutex_that_is_waited_for_in_vain_gives_the_lease_back) {
  auto locks = make_client();
  mutex m{locks, "x", {.ttl = 300ms}};
  m.lock();
  server_("DEL", "hf:{x}");
  std::thread{[&] { EXPECT_FALSE(m.try_lock_for(in_vain)); }}.join();
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  m.unlock();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

// The lease of the first one was lost, so nothing but the turn keeps the second from going through and destroying the
// mutex, as std allows once it is its own. The address sanitizer and tsan watch that the first unlock() is done with
// it.
TEST_F(plain, mutex_may_be_destroyed_by_the_next_one_when_the_lease_was_lost) {
  auto locks = make_client();
  for (int i = 0; i < scaled(200); ++i) {
    auto m = std::make_unique<mutex>(locks, "x");
    m->lock();
    server_("DEL", "hf:{x}");
    std::thread second{[&] {
      while (!m->try_lock()) std::this_thread::yield();
      m->unlock();
      m.reset();
    }};
    mutex& first = *m;
    first.unlock();
    second.join();
    EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
  }
}

// "For ever", as std's own mutexes take it: it must neither overflow into "not at all" nor be refused.
template <class Mutex>
void expect_waits_for_ever(Mutex& m) {
  EXPECT_TRUE(m.try_lock_for(std::chrono::hours::max()));
  m.unlock();
  EXPECT_TRUE(m.try_lock_for(std::chrono::nanoseconds::max()));
  m.unlock();
  EXPECT_TRUE(m.try_lock_for(std::chrono::duration<double>{1e300}));
  m.unlock();
  EXPECT_TRUE(m.try_lock_until(std::chrono::steady_clock::time_point::max()));
  m.unlock();
  EXPECT_TRUE(m.try_lock_until(std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>::max()));
  m.unlock();
  // Long ago: once, and no longer.
  EXPECT_TRUE(m.try_lock_until(std::chrono::system_clock::time_point::min()));
  m.unlock();
}

TEST_F(plain, mutex_waits_for_ever_when_told_so) {
  auto locks = make_client();
  mutex m{locks, "x"};
  expect_waits_for_ever(m);
  auto others = make_client();
  auto held = others.acquire("x");
  EXPECT_FALSE(m.try_lock_until(std::chrono::steady_clock::time_point::min()));
  std::atomic<bool> is_in{false};
  std::thread waiting{[&] {
    is_in = m.try_lock_until(std::chrono::steady_clock::time_point::max());
    if (is_in) m.unlock();
  }};
  EXPECT_FALSE(eventually([&] { return is_in.load(); }, 200ms)) << "it is held";
  held.release();
  waiting.join();
  EXPECT_TRUE(is_in);
}

TEST_F(plain, shared_mutex_waits_for_ever_when_told_so) {
  auto locks = make_client();
  shared_mutex m{locks, "y"};
  expect_waits_for_ever(m);
  EXPECT_TRUE(m.try_lock_shared_for(std::chrono::hours::max()));
  m.unlock_shared();
  EXPECT_TRUE(m.try_lock_shared_until(std::chrono::steady_clock::time_point::max()));
  m.unlock_shared();
}

class recursive : public on_redis {
protected:
  bool is_free() { return make_client().try_acquire("x").has_value(); }
  client locks_ = make_client();
  recursive_mutex m_{locks_, "x", {.ttl = 2s}};
};

TEST_F(recursive, is_free_after_as_many_unlocks_as_locks_H62) {
  for (int i = 0; i < 3; ++i) m_.lock();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(is_free());
    m_.unlock();
  }
  EXPECT_TRUE(is_free());
}

TEST_F(recursive, locking_again_changes_neither_token_nor_lease_and_asks_nobody_H62) {
  const std::unique_lock outer{m_};
  const auto token = m_.token();
  EXPECT_TRUE(token);
  const auto value = server_("GET", "hf:{x}").text;
  server_.pause();  // Nobody would answer.
  {
    const std::unique_lock inner{m_, std::try_to_lock};
    EXPECT_TRUE(inner.owns_lock());
    EXPECT_EQ(m_.token(), token);
    EXPECT_TRUE(m_.try_lock_for(1ms));
    m_.unlock();
  }
  server_.resume();
  EXPECT_TRUE(m_.valid());
  EXPECT_EQ(m_.token(), token);
  EXPECT_EQ(server_("GET", "hf:{x}").text, value);
}

TEST_F(recursive, is_renewed_while_it_is_held_more_than_once_B5) {
  recursive_mutex brief{locks_, "y", {.ttl = 1s}};
  for (int i = 0; i < 3; ++i) brief.lock();
  const auto token = brief.token();
  for (int i = 0; i < 2; ++i) brief.unlock();
  let_pass(3s);
  EXPECT_TRUE(brief.valid());
  EXPECT_EQ(brief.token(), token);
  EXPECT_FALSE(make_client().try_acquire("y"));
  brief.unlock();
  EXPECT_TRUE(make_client().try_acquire("y"));
}

TEST_F(recursive, waits_for_ever_when_told_so) { expect_waits_for_ever(m_); }

TEST_F(recursive, each_first_lock_is_a_new_grant) {
  m_.lock();
  const auto first = m_.token();
  m_.unlock();
  const std::lock_guard again{m_};
  EXPECT_GT(m_.token().value(), first.value());
}

TEST_F(recursive, excludes_the_other_threads_of_one_object) {
  int inside = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::lock_guard outer{m_};
        const std::lock_guard inner{m_};
        inside = inside + 1;  // Unprotected but for the mutex; tsan watches.
      }
    });
  }
  for (auto& one : all) one.join();
  EXPECT_EQ(inside, 200);
}

TEST_F(recursive, other_thread_cannot_enter_while_it_is_held_twice) {
  const std::lock_guard outer{m_};
  const std::lock_guard inner{m_};
  std::thread{[&] {
    EXPECT_FALSE(m_.try_lock());
    EXPECT_FALSE(m_.try_lock_for(in_vain));
  }}.join();
}

class synchronized : public on_redis {
protected:
  client locks_ = make_client();
  client others_ = make_client();
};

TEST_F(synchronized, try_runs_the_body_and_releases) {
  EXPECT_TRUE(locks_.try_synchronize("x", [&](lease& held) { EXPECT_TRUE(held.valid()); }));
  EXPECT_EQ(locks_.try_synchronize("x", [](lease&) { return 42; }), 42);
  EXPECT_TRUE(others_.try_acquire("x"));
}

TEST_F(synchronized, try_says_that_the_time_is_up_and_does_not_run_the_body) {
  const auto held = others_.acquire("x");
  bool has_run = false;
  EXPECT_FALSE(locks_.try_synchronize("x", [&](lease&) { has_run = true; }, {.wait = in_vain}));
  EXPECT_EQ(locks_.try_synchronize("x", [&](lease&) { return has_run = true; }, {.wait = 0ms}), std::nullopt);
  EXPECT_FALSE(has_run);
}

TEST_F(synchronized, body_that_returns_a_reference_gives_a_copy) {
  const std::string kept = "what is kept";
  const std::optional<std::string> got =
      locks_.try_synchronize("x", [&](lease&) -> const std::string& { return kept; });
  EXPECT_EQ(got, kept);
  EXPECT_EQ(locks_.synchronize("x", [&](lease&) -> const std::string& { return kept; }), kept);
}

TEST_F(synchronized, throwing_form_throws_instead) {
  const auto held = others_.acquire("x");
  EXPECT_EQ(code_of([&] { locks_.synchronize("x", [](lease&) {}, {.wait = in_vain}); }), errc::timed_out);
}

// The issue: a nested lock's time-out is never swallowed by the outer.
TEST_F(synchronized, time_out_of_a_nested_lock_is_its_own) {
  const auto held = others_.acquire("inner");
  const auto code = code_of([&] {
    (void)locks_.try_synchronize("outer",
                                 [&](lease&) { locks_.synchronize("inner", [](lease&) {}, {.wait = in_vain}); },
                                 {.wait = in_vain + 1s});
  });
  EXPECT_EQ(code, errc::timed_out);
  EXPECT_TRUE(others_.try_acquire("outer")) << "and the outer is released";
}

TEST_F(synchronized, try_in_a_try_says_false_for_the_inner_only) {
  const auto held = others_.acquire("inner");
  EXPECT_TRUE(locks_.try_synchronize(
      "outer", [&](lease&) { EXPECT_FALSE(locks_.try_synchronize("inner", [](lease&) {}, {.wait = in_vain})); }));
}

TEST_F(synchronized, try_releases_when_the_body_throws_and_passes_other_faults_on) {
  EXPECT_THROW((void)locks_.try_synchronize("x", [](lease&) { throw std::logic_error{"body"}; }), std::logic_error);
  EXPECT_TRUE(others_.try_acquire("x"));
  EXPECT_EQ(code_of([&] { (void)locks_.try_synchronize("", [](lease&) {}); }), errc::invalid_name);
}

}  // namespace
}  // namespace holdfast::test
