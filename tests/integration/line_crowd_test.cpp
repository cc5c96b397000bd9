// SPDX-License-Identifier: Apache-2.0
// A line with hundreds and thousands of dead in it, more than one script sees (src/script/advance.lua): whoever lives
// among them, or comes, is served at once.
#include "integration/line_fixture.hpp"

#include <future>
#include <optional>

namespace holdfast::test {
namespace {

// What they wait for, as their entries say it, and what the fence says of the name.
struct kind {
  const char* mode;
  const char* mark;
};
constexpr kind exclusive{"x", "|q"};
constexpr kind one_permit{"p1", "|s1"};
constexpr kind reader{"r1", "|w1000000"};

class line_crowd : public on_line {
protected:
  // So many processes come, wait, and are killed: what they leave behind. Each has a channel of its own, to which
  // nobody listens any more, and has looked a moment ago.
  void die_in_line(int count, const kind& what = exclusive) {
    const auto before = waiting();
    const auto* script =
        "local t = redis.call('TIME') local now = t[1] .. string.format('%06d', t[2]) "
        "for i = 1, tonumber(ARGV[1]) do "
        "local id, ear = string.format('%016x%016x', now, i), 'hf:wake:' .. now .. 'n' .. i "
        "redis.call('ZADD', KEYS[1], string.format('%.0f', now), id) "
        "redis.call('HSET', KEYS[2], id, 'v1|' .. ear .. '|s|10000|1000|0|0|' .. now .. '|' .. ARGV[2] .. '|', "
        "ear, now) end "
        "redis.call('PEXPIRE', KEYS[1], 60000) redis.call('PEXPIRE', KEYS[2], 60000) "
        "local fence = redis.call('GET', KEYS[3]) "
        "redis.call('SET', KEYS[3], string.sub(fence, 1, 49) .. ARGV[3], 'KEEPTTL') "
        "return redis.call('ZCARD', KEYS[1])";
    const auto now = server_("EVAL", script, "3", "hf:{x}:line", "hf:{x}:waiters", "hf:{x}:fence",
                             std::to_string(count), what.mode, what.mark);
    ASSERT_EQ(now.number, before + count) << now.text;
  }

  // The living one waits among the dead, so that it is neither where a script stops nor among the last.
  waiting_process wait_between(int dead, int behind) {
    die_in_line(dead);
    auto alive = start();
    alive.go();
    EXPECT_TRUE(waits_for(dead + 1));
    die_in_line(behind);
    return alive;
  }

  // On a thread of its own; when it was granted it.
  template <class Acquire>
  std::future<std::chrono::nanoseconds> acquires(Acquire acquire) {
    return std::async(std::launch::async, [acquire] {
      const auto got = acquire();
      return boottime();
    });
  }
};

// C7, P2, B28: a heartbeat, which is five seconds, is what it took before.
TEST_F(line_crowd, of_the_killed_before_and_behind_keeps_nobody_waiting_C7_P2_B28) {
  for (const int dead : {300, 3000}) {
    auto holder = start("30000");
    holder.go();
    holder.acquired();
    auto alive = wait_between(dead, 40);
    const auto before = server_.scripts_run();
    const auto released_at = holder.release();
    EXPECT_LT(alive.acquired().at - released_at, 1s) << dead << " dead";
    // Each sees 256, and keeps 64 of them: it is done in few, and nobody runs hot behind it.
    EXPECT_LT(server_.scripts_run() - before, 10 + dead / 50);
    alive.release();
    server_.lose_all_locks();
  }
}

// Its process ends with the release, as `holdfast run` does, or with what is only dropped. For letting the line go on
// it has the 200 ms that a client gives its end, which a busy machine may need for something else.
TEST_F(line_crowd, is_passed_though_the_process_that_released_ends_P2) {
  const auto passed_after = [&](const char* last_words) {
    auto holder = start("30000");
    holder.go();
    holder.acquired();
    auto alive = wait_between(3000, 40);
    const auto released_at = boottime();
    holder.process().write_line(last_words);
    const auto taken = alive.acquired().at - released_at;
    alive.release();
    server_.lose_all_locks();
    return taken;
  };
  const auto is_soon = [&](const char* last_words) {
    for (int tries = 0; tries < 6; ++tries) {
      if (passed_after(last_words) < 1s) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_soon("release\nend"));
  EXPECT_TRUE(is_soon("end"));
}

TEST_F(line_crowd, does_not_make_a_free_lock_busy_P2) {
  for (const int dead : {300, 3000}) {
    auto locks = make_client();
    auto held = locks.acquire("x");
    die_in_line(dead);
    held.release();
    auto other = make_client();
    EXPECT_TRUE(other.try_acquire("x")) << dead << " dead";
    server_.lose_all_locks();
  }
}

TEST_F(line_crowd, is_passed_when_its_lock_is_broken_P2) {
  auto holder = start("30000");
  holder.go();
  const auto token = holder.acquired().number;
  auto alive = wait_between(1000, 40);
  auto locks = make_client();
  const auto broken_at = boottime();
  locks.break_lock("x", fencing_token{token}, {.why = "test", .mode = break_mode::immediately});
  EXPECT_LT(alive.acquired().at - broken_at, 1s);
}

// A semaphore and a shared lock have the same line.
TEST_F(line_crowd, of_a_semaphore_keeps_nobody_waiting_P2) {
  auto locks = make_client();
  auto other = make_client();
  auto held = semaphore{locks, "x", 1}.acquire({.ttl = 30s});
  die_in_line(1000, one_permit);
  auto alive = acquires([&] { return semaphore{other, "x", 1}.acquire(); });
  ASSERT_TRUE(waits_for(1001));
  die_in_line(40, one_permit);
  const auto released_at = boottime();
  held.release();
  EXPECT_LT(alive.get() - released_at, 1s);
}

TEST_F(line_crowd, of_readers_keeps_no_reader_waiting_behind_a_writer_P2) {
  auto locks = make_client();
  auto other = make_client();
  auto held = shared_mutex{locks, "x"}.acquire({.ttl = 30s});
  die_in_line(1000, reader);
  auto alive = acquires([&] { return shared_mutex{other, "x"}.acquire_shared(); });
  ASSERT_TRUE(waits_for(1001));
  die_in_line(40, reader);
  const auto downgraded_at = boottime();
  shared_mutex{locks, "x"}.downgrade(held);
  EXPECT_LT(alive.get() - downgraded_at, 1s);
}

}  // namespace
}  // namespace holdfast::test
