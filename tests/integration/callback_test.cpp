// SPDX-License-Identifier: Apache-2.0
// User code that throws, calls back into the library, or destroys what it was called from (H47, P29, B84, B93).
#include "integration/fixture.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

class callback : public on_redis {};

class thrower : public observer {
public:
  void on_acquire(const std::string&, acquire_result, std::chrono::microseconds, int) override { go(acquired); }
  void on_renewed(const std::string&, std::chrono::microseconds) override { go(renewed); }
  void on_renew_failed(const std::string&, std::error_code) override { go(failed); }
  void on_lost(const std::string&, fencing_token, std::error_code, std::chrono::microseconds) override { go(lost); }
  void on_released(const std::string&, release_outcome, std::chrono::microseconds) override { go(released); }
  void on_connected(const std::string&) override { go(connected); }
  void on_disconnected(const std::string&, std::error_code) override { go(disconnected); }

  // What it was told of.
  std::atomic<bool> acquired{false};
  std::atomic<bool> renewed{false};
  std::atomic<bool> failed{false};
  std::atomic<bool> lost{false};
  std::atomic<bool> released{false};
  std::atomic<bool> connected{false};
  std::atomic<bool> disconnected{false};

private:
  static void go(std::atomic<bool>& of) {
    of = true;
    throw std::runtime_error("from the observer");
  }
};

TEST_F(callback, throwing_observer_and_log_sink_harm_nothing) {
  auto seen = std::make_shared<thrower>();
  std::atomic<int> logged{0};
  client_options how;
  how.observe = seen;
  how.log = [&](const log_record&) {
    ++logged;
    throw std::runtime_error("from the sink");
  };
  {
    auto locks = make_client(how);
    auto held = locks.acquire("x", {.ttl = 1500ms});
    let_pass(4s);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_TRUE(eventually([&] { return seen->released.load(); }));
    EXPECT_TRUE(seen->connected);
    EXPECT_TRUE(seen->acquired);
    EXPECT_TRUE(seen->renewed);
    EXPECT_GT(logged, 0);
  }
}

// What is held counts from the grant, and not from when it was asked for.
TEST_F(callback, an_observer_hears_apart_of_waiting_and_of_holding) {
  auto other = make_client();
  auto in_the_way = std::optional{other.acquire("x")};
  auto seen = std::make_shared<stop_watch>();
  client_options how;
  how.observe = seen;
  auto locks = make_client(how);
  std::jthread holder{[&] {
    let_pass(4s);
    in_the_way.reset();
  }};
  locks.acquire("x", {.wait = 20s}).release();
  ASSERT_TRUE(eventually([&] { return seen->held.load() > 0us; }));
  EXPECT_GE(seen->waited.load(), 2500ms);
  EXPECT_LT(seen->held.load(), 2500ms);
}

class counts_connections : public observer {
public:
  explicit counts_connections(std::atomic<int>& to) : seen_{to} {}
  void on_connected(const std::string&) override { ++seen_; }

private:
  std::atomic<int>& seen_;
};

class dawdler : public observer {
public:
  void on_acquire(const std::string&, acquire_result, std::chrono::microseconds, int) override { let_pass(20ms); }
};

// A callback that takes longer than C4 allows for is told to the log: it may have made another lease's lost() late.
TEST_F(callback, slow_ones_are_reported_P29) {
  std::mutex mutex;
  std::string logged;
  client_options how;
  how.observe = std::make_shared<dawdler>();
  how.log = [&](const log_record& record) {
    const std::lock_guard held{mutex};
    logged += record.text + "\n";
  };
  auto locks = make_client(how);
  auto held = locks.acquire("x");
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard reading{mutex};
    return logged.find("a callback took") != std::string::npos;
  })) << logged;
}

// To copy it is to run the user's code, on whatever thread that is and under whatever mutex (P29).
TEST_F(callback, log_sink_is_copied_for_no_record_P29) {
  struct counting {
    explicit counting(std::atomic<int>& to) : copies{&to} {}
    counting(const counting& other) : copies{other.copies} { ++*copies; }
    counting(counting&&) = default;
    counting& operator=(const counting&) = delete;
    ~counting() = default;
    void operator()(const log_record&) { ++records; }
    std::atomic<int>* copies;
    int records = 0;
  };
  std::atomic<int> copies{0};
  client_options how;
  how.log = counting{copies};
  std::atomic<int> seen{0};
  how.observe = std::make_shared<counts_connections>(seen);
  auto locks = make_client(how);
  how = {};
  const int before = copies;
  auto held = locks.acquire("x", {.ttl = 300ms});
  server_("DEL", "hf:{x}");
  ASSERT_TRUE(eventually([&] { return held.lost().stop_requested() && seen > 0; }));
  EXPECT_EQ(copies, before);
}

TEST_F(callback, throwing_body_of_synchronize_releases_and_passes_the_exception) {
  auto locks = make_client();
  EXPECT_THROW(locks.synchronize("x", [](lease&) { throw std::logic_error("body"); }), std::logic_error);
  EXPECT_FALSE(exists("hf:{x}"));
}

// redis-plus-plus calls back under its mutex: unlock() in the callback waits for itself (hazards 0.1).
TEST_F(callback, of_loss_may_release_and_acquire) {
  auto locks = make_client();
  auto held = std::make_optional(locks.acquire("x", {.ttl = 300ms}));
  std::atomic<bool> done{false};
  std::stop_callback on_lost{held->lost(), [&] {
                               held->release();
                               auto other = locks.acquire("y", {.wait = 5s});
                               other.release();
                               done = true;
                             }};
  server_("DEL", "hf:{x}");
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

TEST_F(callback, of_loss_may_destroy_its_own_lease) {
  auto locks = make_client();
  auto held = std::make_optional(locks.acquire("x", {.ttl = 300ms}));
  std::atomic<bool> done{false};
  {
    std::stop_callback on_lost{held->lost(), [&] {
                                 held.reset();
                                 done = true;
                               }};
    server_("DEL", "hf:{x}");
    EXPECT_TRUE(eventually([&] { return done.load(); }));
  }
  EXPECT_TRUE(locks.try_acquire("x"));
}

TEST_F(callback, of_loss_may_destroy_its_own_client) {
  std::optional<client> locks = make_client();
  auto held = locks->acquire("x", {.ttl = 300ms});
  std::atomic<bool> done{false};
  std::stop_callback on_lost{held.lost(), [&] {
                               locks.reset();
                               done = true;
                             }};
  server_("DEL", "hf:{x}");
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

TEST_F(callback, of_the_observer_may_destroy_lease_and_client) {
  struct destroyer : observer {
    std::optional<client> locks;
    std::optional<lease> held;
    std::atomic<bool> armed{false};
    std::atomic<bool> done{false};
    void on_renewed(const std::string&, std::chrono::microseconds) override {
      if (!armed || done) return;
      held.reset();
      locks.reset();
      done = true;
    }
  };
  auto seen = std::make_shared<destroyer>();
  client_options how;
  how.observe = seen;
  seen->locks = make_client(how);
  seen->held = seen->locks->acquire("x", {.ttl = 1500ms});
  seen->armed = true;
  EXPECT_TRUE(eventually([&] { return seen->done.load(); }));
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
}

// P29: a slow callback of one lease must not stop the renewals of the others, nor their valid().
TEST_F(callback, slow_one_does_not_stop_renewals) {
  auto locks = make_client();
  auto slow = locks.acquire("slow", {.ttl = 1500ms});
  auto other = locks.acquire("other", {.ttl = 1500ms});
  std::atomic<bool> running{false};
  std::atomic<bool> finish{false};
  std::stop_callback on_lost{slow.lost(), [&] {
                               running = true;
                               eventually([&] { return finish.load(); }, 10s);
                             }};
  server_("DEL", "hf:{slow}");
  EXPECT_TRUE(eventually([&] { return running.load(); }));
  const auto until = boottime() + 4s;
  while (boottime() < until) {
    EXPECT_TRUE(other.valid());
    let_pass(5ms);
  }
  auto third = locks.try_acquire("third");
  EXPECT_TRUE(third);
  finish = true;
}

// User code never runs on the thread that drives the connection for others.
TEST_F(callback, runs_on_a_thread_of_its_own) {
  auto locks = make_client();
  auto held = locks.acquire("x", {.ttl = 300ms});
  std::thread::id ran_on;
  std::atomic<bool> done{false};
  std::stop_callback on_lost{held.lost(), [&] {
                               ran_on = std::this_thread::get_id();
                               done = true;
                             }};
  server_("DEL", "hf:{x}");
  while (!done) locks.acquire("y", {.wait = 1s}).release();
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST_F(callback, observer_is_told_what_happened) {
  struct recorder : observer {
    std::atomic<int> acquired{0}, busy{0}, renewed{0}, lost{0}, released{0};
    void on_acquire(const std::string&, acquire_result how, std::chrono::microseconds, int) override {
      if (how == acquire_result::acquired) ++acquired;
      if (how == acquire_result::busy) ++busy;
    }
    void on_renewed(const std::string&, std::chrono::microseconds margin) override {
      EXPECT_GT(margin, 0us);
      ++renewed;
    }
    void on_lost(const std::string& name, fencing_token, std::error_code why, std::chrono::microseconds) override {
      EXPECT_EQ(name, "y");
      EXPECT_EQ(why, outcome::lost);
      ++lost;
    }
    void on_released(const std::string&, release_outcome, std::chrono::microseconds) override { ++released; }
  };
  auto seen = std::make_shared<recorder>();
  client_options how;
  how.observe = seen;
  auto locks = make_client(how);
  auto x = locks.acquire("x", {.ttl = 1500ms});
  EXPECT_FALSE(locks.try_acquire("x"));
  auto y = locks.acquire("y", {.ttl = 1500ms});
  server_("DEL", "hf:{y}");
  EXPECT_TRUE(eventually([&] { return seen->lost == 1 && seen->renewed >= 2; }, 20s));
  x.release();
  EXPECT_TRUE(eventually([&] { return seen->acquired == 2 && seen->busy == 1 && seen->released == 1; }));
}

class what_is_logged {
public:
  log_sink sink() {
    return [this](const log_record& one) {
      const std::lock_guard held{guard_};
      said_ += one.text + "\n";
    };
  }
  std::string take() {
    const std::lock_guard held{guard_};
    return std::exchange(said_, {});
  }

private:
  std::mutex guard_;
  std::string said_;
};

// Who gets no time between risk and loss is told of the loss alone; so each may be tried again.
TEST_F(callback, log_sink_is_told_why_a_lease_is_at_risk) {
  what_is_logged said;
  client_options how;
  how.log = said.sink();
  auto locks = make_client(how);
  const auto is_said = [&](const acquire_options& of, bool is_cut_off, const std::string& why) {
    for (int round = 0; round < 20; ++round) {
      auto held = locks.acquire("x", of);
      if (is_cut_off) server_.pause();
      EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 20s));
      if (is_cut_off) server_.resume();
      held = lease{};
      const auto at_risk = said.take().find("is at risk: " + why + "\n");
      if (at_risk != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_said({.ttl = 500ms, .renew = renewal::none}, false, "it does not renew itself"));
  EXPECT_TRUE(is_said({.ttl = 500ms, .max_hold = 900ms}, false, "max_hold is nearly over"));
  EXPECT_TRUE(is_said({.ttl = 500ms}, true, "renewals fail"));
}

// Of several that are renewed as one it is the first one's longest hold that ends them all.
TEST_F(callback, log_sink_is_told_of_no_failure_where_the_longest_hold_of_a_set_is_nearly_over) {
  what_is_logged said;
  client_options how;
  how.log = said.sink();
  auto locks = make_client(how);
  for (int round = 0; round < 20; ++round) {
    auto held = locks.acquire_all({"a", "b"}, {.ttl = 500ms, .max_hold = 900ms});
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 20s));
    held = lease_set{};
    const auto told = said.take();
    ASSERT_EQ(told.find("renewals fail"), std::string::npos) << told;
    if (told.find("max_hold is nearly over") != std::string::npos) return;
  }
  FAIL() << "it never said that the longest hold is nearly over";
}

}  // namespace
}  // namespace holdfast::test
