// SPDX-License-Identifier: Apache-2.0
// Handles and façades that are used as they are not meant to be (H52): what the headers say of that is so, nobody is
// let in who does not hold the lock, and it is free in the end. What they call undefined, as std does, is not tried.
#include "integration/fixture.hpp"

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class misuse : public on_redis {
protected:
  bool is_taken(const std::string& name = "x") { return exists("hf:{" + name + "}"); }
  bool is_free_soon(const std::string& name = "x") {
    return eventually([&] { return !is_taken(name); }, 20s);
  }
  template <class Call>
  static void on_another_thread(const Call& call) {
    std::thread{call}.join();
  }
  // What compilers warn of when they see it.
  template <class Handle>
  static void assign_to_itself(Handle& handle) {
    Handle& same = handle;
    handle = std::move(same);
  }

  client locks_ = make_client();
};

// ---- Handles ----

TEST_F(misuse, lease_that_is_moved_to_itself_is_held_as_before_H52) {
  auto held = locks_.acquire("x", {.ttl = 60s});
  const auto token = held.token();
  assign_to_itself(held);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.token(), token);
  EXPECT_TRUE(is_taken());
  EXPECT_EQ(held.release(), release_outcome::released);
  assign_to_itself(held);
  EXPECT_FALSE(held);
}

TEST_F(misuse, set_that_is_moved_to_itself_is_held_as_before_H52) {
  auto held = locks_.acquire_all({"x", "y"}, {.ttl = 60s});
  assign_to_itself(held);
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(is_taken("x"));
  EXPECT_TRUE(is_taken("y"));
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_EQ(code_of([&] { held.release(); }), errc::empty_handle);
}

TEST_F(misuse, client_that_is_moved_to_itself_works_as_before_H52) {
  auto held = locks_.acquire("x", {.ttl = 60s});
  assign_to_itself(locks_);
  EXPECT_TRUE(locks_.try_acquire("y"));
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), release_outcome::released);
}

// The lock that it held before is not forgotten.
TEST_F(misuse, lease_that_is_assigned_over_is_released_H52) {
  auto held = locks_.acquire("x", {.ttl = 60s});
  held = locks_.acquire("y", {.ttl = 60s});
  EXPECT_EQ(held.name(), "y");
  EXPECT_TRUE(is_free_soon("x"));
  EXPECT_TRUE(is_taken("y"));
}

TEST_F(misuse, leases_of_a_client_that_has_ended_are_released_once_H52) {
  std::vector<lease> held;
  {
    auto ending = make_client();
    for (const auto* name : {"x", "y"}) held.push_back(ending.acquire(name, {.ttl = 60s}));
  }
  EXPECT_TRUE(held[0].valid()) << "a lease keeps its client";
  EXPECT_EQ(held[0].release(), release_outcome::released);
  EXPECT_EQ(code_of([&] { held[0].release(); }), errc::empty_handle);
  held.clear();
  EXPECT_TRUE(is_free_soon("x"));
  EXPECT_TRUE(is_free_soon("y"));
}

// ---- mutex ----

// A second lock() would wait for itself; what has an end says so, and the first lock stands.
TEST_F(misuse, mutex_that_its_own_thread_tries_again_says_no_H52) {
  mutex m{locks_, "x", {.ttl = 60s}};
  m.lock();
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_for(in_vain));
  EXPECT_TRUE(is_taken());
  m.unlock();
  EXPECT_TRUE(is_free_soon());
  EXPECT_TRUE(m.try_lock()) << "nothing is left of the tries in vain";
  m.unlock();
}

TEST_F(misuse, mutex_that_ends_locked_drops_its_lease_H52) {
  std::optional<mutex> m{std::in_place, locks_, "x", acquire_options{.ttl = 60s}};
  m->lock();
  EXPECT_TRUE(is_taken());
  m.reset();
  EXPECT_TRUE(is_free_soon());
}

TEST_F(misuse, mutex_that_is_unlocked_by_its_guard_in_vain_throws_as_std_has_it_H52) {
  mutex m{locks_, "x", {.ttl = 60s}};
  std::unique_lock guard{m, std::defer_lock};
  EXPECT_THROW(guard.unlock(), std::system_error);
  guard.lock();
  EXPECT_THROW(guard.lock(), std::system_error) << "std's own, and not a wait for ever";
  guard.unlock();
  EXPECT_TRUE(is_free_soon());
}

// ---- shared_mutex ----

TEST_F(misuse, shared_mutex_that_another_thread_unlocks_stays_taken_H52) {
  shared_mutex rw{locks_, "x", {.ttl = 60s}};
  auto others = make_client();
  shared_mutex theirs{others, "x"};
  rw.lock();
  on_another_thread([&] {
    rw.unlock();
    rw.unlock_shared();
    EXPECT_EQ(code_of([&] { rw.unlock_and_lock_shared(); }), errc::empty_handle) << "it has nothing to downgrade";
  });
  EXPECT_FALSE(theirs.try_acquire_shared()) << "a reader beside the writer";
  rw.unlock();
  EXPECT_TRUE(eventually([&] { return theirs.try_acquire().has_value(); }));
}

TEST_F(misuse, shared_mutex_that_is_unlocked_without_a_lock_is_as_before_H52) {
  shared_mutex rw{locks_, "x", {.ttl = 60s}};
  rw.unlock();
  rw.unlock_shared();
  EXPECT_EQ(code_of([&] { rw.unlock_and_lock_shared(); }), errc::empty_handle);
  EXPECT_TRUE(rw.try_lock());
  rw.unlock();
  rw.unlock();
  EXPECT_TRUE(rw.try_lock_shared());
  rw.unlock();  // The other one's name, and the same lease.
  EXPECT_TRUE(is_free_soon());
}

TEST_F(misuse, shared_mutex_that_its_own_thread_tries_again_says_no_H52) {
  shared_mutex rw{locks_, "x", {.ttl = 60s}};
  rw.lock();
  EXPECT_FALSE(rw.try_lock());
  EXPECT_FALSE(rw.try_lock_shared());
  EXPECT_FALSE(rw.try_lock_for(in_vain));
  rw.unlock_and_lock_shared();
  EXPECT_FALSE(rw.try_lock()) << "its own reading is in the way";
  rw.unlock_shared();
  EXPECT_TRUE(is_free_soon());
  EXPECT_TRUE(rw.try_lock());
  rw.unlock();
}

TEST_F(misuse, shared_mutex_that_ends_locked_drops_its_leases_H52) {
  std::optional<shared_mutex> rw{std::in_place, locks_, "x", acquire_options{.ttl = 60s}};
  rw->lock_shared();
  on_another_thread([&] { rw->lock_shared(); });
  EXPECT_EQ(locks_.inspect("x").holders.size(), 2u);
  rw.reset();
  EXPECT_TRUE(is_free_soon());
}

// ---- recursive_mutex ----

TEST_F(misuse, recursive_mutex_that_ends_locked_twice_drops_its_lease_H52) {
  std::optional<recursive_mutex> m{std::in_place, locks_, "x", acquire_options{.ttl = 60s}};
  m->lock();
  m->lock();
  m.reset();
  EXPECT_TRUE(is_free_soon());
}

}  // namespace
}  // namespace holdfast::test
