// SPDX-License-Identifier: Apache-2.0
// acquire_all: several locks in the order of their names, all or nothing, and one handle for them.
#include "integration/fixture.hpp"

#include <atomic>
#include <thread>

namespace holdfast::test {
namespace {

class all : public on_redis {
protected:
  bool is_free(const std::string& name) { return !exists("hf:{" + name + "}"); }
};

TEST_F(all, is_taken_or_nothing_is) {
  auto a = make_client();
  auto b = make_client();
  auto both = a.acquire_all({"b", "a"});
  ASSERT_TRUE(both);
  EXPECT_EQ(both.names(), (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(both.valid());
  EXPECT_EQ(code_of([&] { (void)b.acquire_all({"c", "a"}, {.wait = in_vain}); }), errc::timed_out);
  EXPECT_TRUE(eventually([&] { return is_free("c"); })) << "what was taken before is released";
  const auto late = error_of([&] { (void)b.acquire_all({"0", "a"}, {.wait = in_vain}); });
  ASSERT_TRUE(late);
  EXPECT_EQ(late->code(), errc::timed_out);
  EXPECT_EQ(late->detail().why, "1 of 2 locks were taken when its time was over");
  EXPECT_EQ(both.release(), release_outcome::released);
  EXPECT_TRUE(is_free("a"));
  EXPECT_TRUE(is_free("b"));
  EXPECT_FALSE(both);
  EXPECT_FALSE(both.valid());
}

TEST_F(all, has_the_token_of_each) {
  auto locks = make_client();
  auto both = locks.acquire_all({"b", "a"});
  EXPECT_EQ(both.token("a"), locks.inspect("a").token);
  EXPECT_EQ(both.token("b"), locks.inspect("b").token);
  EXPECT_EQ(code_of([&] { (void)both.token("c"); }), errc::invalid_option);
}

TEST_F(all, refuses_the_same_name_twice_and_no_name) {
  auto locks = make_client();
  EXPECT_EQ(code_of([&] { (void)locks.acquire_all({"a", "b", "a"}); }), errc::invalid_option);
  EXPECT_EQ(code_of([&] { (void)locks.acquire_all({}); }), errc::invalid_option);
  EXPECT_TRUE(is_free("a"));
}

TEST_F(all, refuses_a_bad_name_before_it_waits_for_a_good_one) {
  auto locks = make_client();
  auto other = make_client();
  const auto in_the_way = other.acquire("a");
  EXPECT_EQ(code_of([&] { (void)locks.acquire_all({"a", std::string(600, 'z')}, {.wait = 20s}); }), errc::invalid_name);
  EXPECT_FALSE(exists("hf:{a}:line")) << "nothing was sent";
}

TEST_F(all, says_why_by_code_too) {
  auto locks = make_client();
  const auto held = locks.acquire("b");
  std::error_code ec;
  EXPECT_FALSE(make_client().acquire_all({"a", "b"}, {.wait = 0ms}, ec));
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_TRUE(locks.acquire_all({"c", "d"}, {}, ec));
  EXPECT_FALSE(ec);
}

TEST_F(all, of_an_empty_handle_says_that_it_is_empty) {
  lease_set none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.remaining(), 0ms);
  EXPECT_FALSE(none.lost().stop_possible());
  EXPECT_EQ(code_of([&] { none.check(); }), errc::empty_handle);
  EXPECT_EQ(code_of([&] { none.release(); }), errc::empty_handle);
  EXPECT_EQ(code_of([&] { (void)none.names(); }), errc::empty_handle);
  EXPECT_EQ(code_of([&] { (void)none.token("a"); }), errc::empty_handle);
}

// H66: two that take the same names in another order must not wait for each other.
TEST_F(all, cannot_deadlock_H66) {
  auto a = make_client();
  auto b = make_client();
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> rounds{0};
  const auto work = [&](client& locks, const std::vector<std::string>& names) {
    for (int i = 0; i < 25; ++i) {
      auto held = locks.acquire_all(names, {.wait = 20s});
      if (++inside != 1) ++overlaps;
      --inside;
      EXPECT_EQ(held.release(), release_outcome::released);
      ++rounds;
    }
  };
  std::thread other{[&] { work(b, {"y", "x"}); }};
  work(a, {"x", "y"});
  other.join();
  EXPECT_EQ(rounds, 50);
  EXPECT_EQ(overlaps, 0);
}

// The first is held for much longer than its ttl before the second one comes.
TEST_F(all, keeps_what_it_has_while_it_waits_for_the_next_one) {
  auto other = make_client();
  auto locks = make_client();
  auto in_the_way = other.acquire("b");
  std::thread later{[&] {
    let_pass(4s);
    in_the_way.release();
  }};
  auto both = locks.acquire_all({"a", "b"}, {.ttl = 1500ms});
  later.join();
  EXPECT_TRUE(both.valid());
  const auto token = both.token("a");
  let_pass(4s);
  EXPECT_TRUE(both.valid()) << "and renews both from then on";
  EXPECT_FALSE(both.lost().stop_requested());
  EXPECT_EQ(locks.inspect("a").token, token);
  EXPECT_TRUE(locks.inspect("b").held);
}

TEST_F(all, is_lost_with_the_first_that_is_lost_and_told_once) {
  auto locks = make_client();
  auto three = locks.acquire_all({"a", "b", "c"}, {.ttl = 3s});
  std::atomic<int> told{0};
  const std::stop_callback on_loss{three.lost(), [&] { ++told; }};
  server_("DEL", "hf:{b}");
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_FALSE(three.valid());
  EXPECT_EQ(three.remaining(), 0ms);
  EXPECT_EQ(three.lost_reason(), errc::lease_gone);
  try {
    three.check();
    FAIL() << "it is lost";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::lease_gone);
    EXPECT_NE(std::string{e.what()}.find("'b'"), std::string::npos) << e.what();
  }
  EXPECT_EQ(three.release(), release_outcome::already_lost);
  EXPECT_TRUE(eventually([&] { return is_free("a") && is_free("c"); })) << "what was not lost is given back";
  EXPECT_EQ(told, 1);
}

// Nobody should wait for an hour for the second one after the first one went.
TEST_F(all, ends_the_wait_when_one_that_is_held_is_lost) {
  auto other = make_client();
  const auto in_the_way = other.acquire("b");
  std::thread meanwhile{[&] {
    EXPECT_TRUE(eventually([&] { return exists("hf:{a}"); }));
    server_("DEL", "hf:{a}");
  }};
  auto locks = make_client();
  EXPECT_EQ(code_of([&] { (void)locks.acquire_all({"a", "b"}, {.ttl = 3s, .wait = 20s}); }), errc::lease_gone);
  meanwhile.join();
  EXPECT_TRUE(eventually([&] { return server_("ZCARD", "hf:{b}:line").number == 0; }));
}

// It has the callback thread, on which it would hear of the loss.
TEST_F(all, waited_for_in_a_callback_until_its_time_is_over_says_which_was_lost) {
  auto other = make_client();
  const auto in_the_way = other.acquire("b");
  auto locks = make_client();
  auto first = locks.acquire("first", {.ttl = 600ms});
  std::error_code code;
  std::atomic<bool> is_over = false;
  const std::stop_callback on_loss{first.lost(), [&] {
                                     (void)locks.acquire_all({"a", "b"}, {.ttl = 600ms, .wait = 3s}, code);
                                     is_over = true;
                                   }};
  server_("DEL", "hf:{first}");
  EXPECT_TRUE(eventually([&] { return exists("hf:{a}"); }));
  server_("DEL", "hf:{a}");
  EXPECT_TRUE(eventually([&] { return is_over.load(); }, 30s));
  EXPECT_EQ(code, outcome::lost) << code.message();
}

TEST_F(all, can_be_cancelled_while_it_waits) {
  auto other = make_client();
  const auto in_the_way = other.acquire("b");
  std::stop_source stop;
  std::thread meanwhile{[&] {
    EXPECT_TRUE(eventually([&] { return exists("hf:{a}"); }));
    stop.request_stop();
  }};
  auto locks = make_client();
  const auto code = code_of([&] { (void)locks.acquire_all({"a", "b"}, {.wait = 1h, .cancel = stop.get_token()}); });
  EXPECT_TRUE(code == errc::cancelled || code == errc::cancelled_in_flight) << code.message();
  meanwhile.join();
  EXPECT_TRUE(eventually([&] { return is_free("a"); }));
}

TEST_F(all, is_released_in_the_background_when_its_handle_goes) {
  auto locks = make_client();
  { const auto both = locks.acquire_all({"a", "b"}); }
  EXPECT_TRUE(eventually([&] { return is_free("a") && is_free("b"); }));
}

// A lock that is held with others is not handed on alone; whoever waits for it in this process gets it by the server.
TEST_F(all, gives_a_lock_to_another_thread_of_the_process) {
  auto locks = make_client();
  auto both = locks.acquire_all({"a", "b"});
  const auto token = both.token("a");
  std::thread waits{[&] {
    auto held = locks.acquire("a", {.wait = 10s});
    EXPECT_GT(held.token().value(), token.value());
  }};
  EXPECT_TRUE(eventually([&] { return server_("ZCARD", "hf:{a}:line").number == 1; }));
  EXPECT_EQ(both.release(), release_outcome::released);
  waits.join();
}

// A lock of the set that came from another thread of the process, under a token of its own.
TEST_F(all, may_begin_with_a_lock_that_was_handed_over_P14) {
  auto locks = make_client();
  std::atomic<bool> stop{false};
  std::thread others[2];
  for (auto& t : others) {
    t = std::thread{[&] {
      while (!stop) locks.acquire("a").release();
    }};
  }
  for (int i = 0; i < scaled(2000) / 20; ++i) {
    auto both = locks.acquire_all({"a", "b"}, {.wait = 20s});
    EXPECT_TRUE(both.valid());
    EXPECT_EQ(both.release(), release_outcome::released);
  }
  stop = true;
  for (auto& t : others) t.join();
  EXPECT_TRUE(eventually([&] { return is_free("a") && is_free("b"); }));
}

}  // namespace
}  // namespace holdfast::test
