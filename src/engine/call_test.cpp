// SPDX-License-Identifier: Apache-2.0
// Releases, questions, and the calls of one connection together. Acquires stand in acquire_test.cpp.
#include "engine/caller.hpp"
#include "engine/question.hpp"
#include "engine/release.hpp"

#include "engine/call_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

namespace {

using namespace std::chrono_literals;
using call_testing::call_test;
using call_testing::keys;
using call_testing::somebody;
using call_testing::token;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- release ----

class release_test : public call_test {
protected:
  void start() {
    call.emplace(calls.wire(), keys, somebody, token, server.now + 10s, server.now + 2s);
    calls.start(*call, server.now);
    server.connect();
    ASSERT_THAT(server.take_names(), ElementsAre("release"));
  }
  void TearDown() override {
    if (call) calls.stop(*call);
  }
  std::optional<release> call;
};

TEST_F(release_test, released_and_not_mine) {
  start();
  server.say(stamp(server.clock));
  EXPECT_EQ(call->end(), release_outcome::released);
  release other{calls.wire(), keys, somebody, token, server.now + 10s, server.now + 2s};
  calls.start(other, server.now);
  server.say(not_mine());
  EXPECT_EQ(other.end(), release_outcome::already_lost);
  calls.stop(other);
}

// P12: the lost copy did it, and nobody can have come in since.
TEST_F(release_test, not_mine_to_the_repeat_after_a_lost_reply_is_released_P12) {
  start();
  server.cut();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
  server.say(not_mine());
  ASSERT_TRUE(call->is_over());
  EXPECT_EQ(call->end(), release_outcome::released);
}

// Else the driver spins until the server is back.
TEST_F(release_test, sleeps_while_there_is_no_connection) {
  start();
  server.cut();
  EXPECT_GT(call->wake_at(), server.now);
  server.refuse();
  EXPECT_GT(call->wake_at(), server.now);
}

TEST_F(release_test, what_passes_is_asked_again_and_what_stays_is_unknown) {
  start();
  server.say(refusal("BUSY Redis is busy running a script."));
  EXPECT_FALSE(call->is_over());
  server.pass(25ms);
  call->step(server.now);
  EXPECT_THAT(server.take_names(), ElementsAre("release"));
  server.say(refusal("NOPERM this user has no permissions"));
  EXPECT_EQ(call->end(), release_outcome::unknown);
}

TEST_F(release_test, that_no_connection_will_ever_take_is_unknown_at_once) {
  start();
  server.cut();
  server.refuse({errc::wrong_password, "WRONGPASS", true, false});
  ASSERT_TRUE(call->is_over());
  EXPECT_EQ(call->end(), release_outcome::unknown);
}

TEST_F(release_test, a_reply_of_a_wrong_type_is_unknown) {
  start();
  server.say(simple("OK"));
  EXPECT_EQ(call->end(), release_outcome::unknown);
}

TEST_F(release_test, no_answer_in_time_is_unknown) {
  start();
  server.pass(2s);
  call->step(server.now);
  EXPECT_EQ(call->end(), release_outcome::unknown);
}

// ---- question ----

class question_test : public call_test {
protected:
  void start(question::repeat how) {
    call.emplace(calls.wire(), script::inspect(keys), how, server.now + 2s);
    calls.start(*call, server.now);
    server.connect();
    ASSERT_THAT(server.take_names(), ElementsAre("inspect"));
  }
  void TearDown() override {
    if (call) calls.stop(*call);
  }
  std::optional<question> call;
};

TEST_F(question_test, gives_the_reply_and_its_round_trip) {
  start(question::repeat::allowed);
  server.pass(7ms);
  server.say(integer(42));
  ASSERT_TRUE(call->is_over());
  EXPECT_EQ(call->reply(), resp::value{std::int64_t{42}});
  EXPECT_EQ(call->round_trip(), 7ms);
}

TEST_F(question_test, an_error_is_a_reply_too) {
  start(question::repeat::allowed);
  server.say(refusal("NOPERM no"));
  ASSERT_TRUE(call->is_over());
  EXPECT_TRUE(call->reply()->as_error());
}

TEST_F(question_test, is_repeated_after_a_cut_if_it_may_be) {
  start(question::repeat::allowed);
  server.cut();
  EXPECT_FALSE(call->is_over());
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("inspect"));
  server.say(integer(42));
  EXPECT_TRUE(call->reply());
  EXPECT_EQ(call->attempts(), 2);
}

// A break that may have taken effect is not sent twice.
TEST_F(question_test, is_not_repeated_after_a_cut_if_it_may_not_be_C5) {
  start(question::repeat::refused);
  server.cut();
  ASSERT_TRUE(call->is_over());
  EXPECT_EQ(call->failure(), errc::reply_lost);
  server.connect();
  EXPECT_THAT(server.take(), IsEmpty());
}

TEST_F(question_test, is_given_up_in_time) {
  start(question::repeat::allowed);
  EXPECT_EQ(call->wake_at(), server.now + 2s);
  server.pass(2s);
  call->step(server.now);
  EXPECT_EQ(call->failure(), errc::reply_lost);
}

TEST_F(question_test, a_server_that_refuses_thrice_is_believed) {
  call.emplace(calls.wire(), script::inspect(keys), question::repeat::allowed, server.now + 2s);
  calls.start(*call, server.now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(call->is_over());
    server.refuse();
    server.pass(100ms);
  }
  EXPECT_EQ(call->failure(), errc::cannot_connect);
}

// A change that is repeated after a cut: what the second copy meets says nothing of the first.
class change_test : public call_test {
protected:
  void start() {
    calls.start(call, server.now);
    server.connect();
    ASSERT_THAT(server.take_names(), ElementsAre("downgrade"));
  }
  void TearDown() override { calls.stop(call); }
  question call{calls.wire(), script::downgrade(keys, somebody, token), question::repeat::allowed, server.now + 2s};
};

TEST_F(change_test, that_may_have_been_made_is_unknown_when_the_next_server_is_none_for_locks_C5) {
  start();
  server.cut();
  server.refuse({errc::not_a_primary, "HELLO says role slave", true, false});
  ASSERT_TRUE(call.is_over());
  EXPECT_EQ(call.failure(), errc::reply_lost);
  EXPECT_EQ(call.server_text(), "HELLO says role slave");
}

TEST_F(change_test, that_may_have_been_made_is_unknown_when_its_repeat_is_refused_C5) {
  start();
  server.cut();
  server.connect();
  EXPECT_THAT(server.take_names(), ElementsAre("downgrade"));
  server.say(refusal("MISCONF Errors writing to the AOF file"));
  ASSERT_TRUE(call.is_over());
  EXPECT_FALSE(call.reply());
  EXPECT_EQ(call.failure(), errc::reply_lost);
  EXPECT_EQ(call.server_text(), "MISCONF Errors writing to the AOF file");
}

TEST_F(change_test, that_is_refused_at_once_has_not_been_made) {
  start();
  server.say(refusal("NOPERM no"));
  ASSERT_TRUE(call.reply());
  EXPECT_TRUE(call.reply()->as_error());
}

// What a later request may change again: no copy may take effect behind the answer.
class timed_test : public call_test {
protected:
  timed_test() { wide.is_counted = true; }
  void SetUp() override {
    calls.start(call, server.now);
    server.connect();
    asked();
  }
  void TearDown() override { calls.stop(call); }
  void asked() {
    const auto said = server.take();
    ASSERT_EQ(said.size(), 1u);
    ASSERT_THAT(named(said[0]), testing::StartsWith("resize"));
    not_after = said[0].back();
  }
  void step_after(duration time) {
    server.pass(time);
    call.step(server.now);
  }
  std::string now_and(duration time) const {
    return fmt::format(
        "{:016}", (server.clock + std::chrono::duration_cast<server_time::duration>(time)).time_since_epoch().count());
  }

  script::lock_keys wide = keys;
  std::string not_after{};
  question call{calls.wire(), script::resize(wide, 5), question::repeat::timed, server.now + 4s};
};

TEST_F(timed_test, of_one_copy_takes_the_first_answer) {
  EXPECT_EQ(not_after, now_and(1s));
  server.say(stamp(server.clock));
  EXPECT_TRUE(call.reply());
}

TEST_F(timed_test, takes_no_answer_while_an_earlier_copy_may_take_effect_behind_it_B72) {
  server.cut();
  server.pass(300ms);
  server.connect();
  asked();
  EXPECT_EQ(not_after, now_and(1s));
  server.say(stamp(server.clock));
  ASSERT_FALSE(call.is_over()) << "the first may come 0.7 s later";
  step_after(700ms - 1ms);
  EXPECT_THAT(server.take(), IsEmpty());
  step_after(1ms);
  asked();
  server.say(stamp(server.clock));
  ASSERT_FALSE(call.is_over()) << "in that microsecond it may, too";
  step_after(25ms);
  asked();
  server.say(stamp(server.clock));
  EXPECT_TRUE(call.reply());
  EXPECT_EQ(call.attempts(), 4);
}

TEST_F(timed_test, that_came_late_is_asked_again) {
  server.say(late());
  ASSERT_FALSE(call.is_over());
  step_after(25ms);
  asked();
  server.say(stamp(server.clock));
  EXPECT_TRUE(call.reply());
}

// Or each copy would be late for as long as nobody else has an answer (P11).
TEST_F(timed_test, that_came_late_knows_the_servers_clock_by_that) {
  server.clock += 5s;
  server.say(late());
  step_after(25ms);
  asked();
  EXPECT_EQ(not_after, now_and(1s));
}

// Whoever reads the answer is another thread, perhaps, and this one sleeps.
TEST_F(timed_test, that_is_to_be_asked_again_says_so) {
  struct counting final : call_listener {
    void on_news(engine::call& /*of*/) override { ++news; }
    int news = 0;
  } heard;
  call.set_listener(&heard);
  server.cut();
  server.connect();
  asked();
  const int before = heard.news;
  server.say(stamp(server.clock));
  EXPECT_EQ(heard.news, before + 1);
  EXPECT_EQ(call.wake_at(), server.now + 1s);
  call.set_listener(nullptr);
}

TEST_F(timed_test, is_unknown_where_its_time_is_over_before_that_C5) {
  step_after(3'500ms);
  server.cut();
  server.connect();
  asked();
  server.say(late());
  step_after(500ms);
  ASSERT_TRUE(call.is_over());
  EXPECT_EQ(call.failure(), errc::reply_lost);
}

TEST_F(timed_test, that_is_refused_is_refused) {
  server.say(list({integer(9), stamp(server.clock), bulk("lock")}));
  EXPECT_TRUE(call.reply());
}

// What only reads has nothing to be unsure of.
TEST_F(question_test, of_what_is_read_the_repeats_answer_is_the_answer) {
  start(question::repeat::allowed);
  server.cut();
  server.connect();
  server.say(refusal("NOPERM no"));
  ASSERT_TRUE(call->reply());
  EXPECT_TRUE(call->reply()->as_error());
}

// ---- caller ----

TEST_F(call_test, wants_a_connection_while_there_is_a_call) {
  EXPECT_FALSE(calls.wire().wants_connection(server.now));
  acquire one{calls.wire(), ear, wants(), rules(), server.now, rng};
  calls.start(one, server.now);
  EXPECT_TRUE(calls.wire().wants_connection(server.now));
  calls.stop(one);
  EXPECT_FALSE(calls.wire().wants_connection(server.now));
}

// P30: 64 callers share this connection; one that stops waiting costs the others nothing.
// Its thread may sleep while another one reads.
TEST_F(call_test, says_so_when_it_is_answered_or_cut_off_P30) {
  struct counting final : call_listener {
    void on_news(engine::call& /*of*/) override { ++news; }
    int news = 0;
  } heard;
  const auto asked = [&](engine::call& one) {
    one.set_listener(&heard);
    calls.start(one, server.now);
    if (calls.wire().is_closed()) server.connect();
    EXPECT_EQ(server.take().size(), 1u);
    heard.news = 0;
  };
  const auto told = [&](engine::call& one) {
    EXPECT_EQ(heard.news, 1);
    calls.stop(one);
  };
  release given_back{calls.wire(), keys, somebody, token, server.now + 10s, server.now + 2s};
  asked(given_back);
  server.say(stamp(server.clock));
  told(given_back);
  question answered{calls.wire(), script::inspect(keys), question::repeat::allowed, server.now + 2s};
  asked(answered);
  server.say(integer(42));
  told(answered);
  question once{calls.wire(), script::inspect(keys), question::repeat::refused, server.now + 2s};
  asked(once);
  server.cut();
  EXPECT_TRUE(once.is_over());
  told(once);
  release again{calls.wire(), keys, somebody, token, server.now + 10s, server.now + 2s};
  asked(again);
  server.cut();
  told(again);
}

TEST_F(call_test, a_stopped_call_does_not_disturb_the_others_P30) {
  std::vector<std::unique_ptr<acquire>> all;
  for (int i = 0; i < 64; ++i) {
    all.push_back(std::make_unique<acquire>(calls.wire(), ear, wants(), rules(), server.now, rng));
    calls.start(*all.back(), server.now);
  }
  server.connect();
  EXPECT_EQ(server.take().size(), 64u);
  calls.stop(*all[10]);
  all[10].reset();
  for (int i = 0; i < 64; ++i) server.say(i % 2 ? busy() : stamp(server.clock));
  for (std::size_t i = 0; i < 64; ++i) {
    if (!all[i]) continue;
    ASSERT_TRUE(all[i]->is_over());
    EXPECT_EQ(std::holds_alternative<core::got_busy>(all[i]->end()), i % 2 == 1) << i;
    calls.stop(*all[i]);
  }
}

TEST(caller, tells_of_the_connection_and_of_the_clock) {
  core::seeded_random rng;
  std::vector<std::string> news;
  caller::hooks tell;
  tell.on_up = [&](time_point) { news.push_back("up"); };
  tell.on_down = [&](const connection_failure& f) { news.push_back(to_string(f.code)); };
  tell.on_clock_step = [&](duration, const core::server_clock&) { news.push_back("step"); };
  tell.on_stray_hint = [&](std::string_view owner, server_time) { news.push_back(std::string{owner}); };
  caller calls{{}, rng, tell};
  peer server{calls.wire()};
  question q{calls.wire(), script::inspect(keys), question::repeat::allowed, server.now + 2s};
  calls.start(q, server.now);
  server.refuse();
  server.pass(100ms);
  server.connect();
  calls.wire().observe_clock(server.clock + 1h, server.now, server.now);
  server.cut();
  calls.on_hint(server.now, "nobody", server.clock, 0s);
  EXPECT_THAT(news, ElementsAre("up", "step", "connection_lost", "nobody"));
  calls.stop(q);
}

}  // namespace

}  // namespace holdfast::engine
