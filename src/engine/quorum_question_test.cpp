// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_question.hpp"

#include "engine/quorum_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace holdfast::engine {

namespace {

using namespace quorum_testing;
using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;

class quorum_question_test : public quorum_test {
protected:
  explicit quorum_question_test(const channel::settings& how = {}) : quorum_test{3, how} {}

  void start(std::vector<script::command> each = {script::inspect(keys)}) {
    question.emplace(all, std::move(each), patience, now() + 1s);
    run(*question);
  }
  std::string answer(std::size_t i) { return stamp(servers[i].clock); }

  std::optional<quorum_question> question{};
};

TEST_F(quorum_question_test, is_asked_of_all_and_waits_for_all) {
  connect_all();
  start();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(asked(i), ElementsAre("inspect"));
  say(0, answer(0));
  say(1, answer(1));
  EXPECT_FALSE(question->is_over());
  say(2, refusal("NOPERM no permissions"));
  ASSERT_TRUE(question->is_over());
  EXPECT_TRUE(question->reply(0)->as_bulk());
  EXPECT_TRUE(question->reply(2)->as_error()) << "what it means is its asker's to say";
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(question->trouble(i), "");
}

TEST_F(quorum_question_test, each_may_be_asked_its_own) {
  connect_all();
  start({script::inspect({"hf:{a}"}), script::inspect({"hf:{b}"}), script::inspect({"hf:{c}"})});
  for (std::size_t i = 0; i < 3; ++i) {
    const auto sent = servers[i].take();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_THAT(sent[0], Contains(testing::HasSubstr(std::string{"{"} + "abc"[i] + "}")));
  }
}

TEST_F(quorum_question_test, waits_for_the_rest_for_a_moment_behind_a_majority_B56) {
  connect_all();
  start();
  pass(200ms);
  say(0, answer(0));
  say(2, answer(2));
  pass(patience - 1ns);
  EXPECT_FALSE(question->is_over());
  pass(1ns);
  ASSERT_TRUE(question->is_over());
  EXPECT_FALSE(question->reply(1));
  EXPECT_EQ(question->trouble(1), "did not answer in time");
  EXPECT_EQ(question->trouble(0), "");
}

// A list of locks is a question for each of them.
TEST_F(quorum_question_test, does_not_wait_behind_a_majority_for_who_cannot_be_asked_B56) {
  connect(0);
  connect(1);
  start();
  say(0, answer(0));
  servers[2].refuse();
  drive();
  EXPECT_FALSE(question->is_over()) << "one is no majority";
  say(1, answer(1));
  ASSERT_TRUE(question->is_over());
  EXPECT_EQ(question->trouble(2), "Connection refused");
}

TEST_F(quorum_question_test, who_was_waited_for_in_vain_is_waited_for_once_B56) {
  connect(0);
  connect(1);
  for (int i = 0; i < 2; ++i) {
    start();
    say(0, answer(0));
    say(1, answer(1));
    EXPECT_EQ(question->is_over(), i == 1) << "its connection is on its way";
    pass(patience);
    ASSERT_TRUE(question->is_over());
  }
}

// Whoever asks next and has time waits for it: a release would be unknown without it.
TEST_F(quorum_question_test, who_had_no_time_was_not_waited_for_in_vain_C5) {
  connect(0);
  connect(1);
  question.emplace(all, std::vector{script::inspect(keys)}, patience, now());
  run(*question);
  ASSERT_TRUE(question->is_over());
  EXPECT_FALSE(all[2]->is_slow()) << "nobody had answered";
  question.emplace(all, std::vector{script::inspect(keys)}, patience, now() + patience / 2);
  run(*question);
  say(0, answer(0));  // To the first.
  say(1, answer(1));
  say(0, answer(0));
  say(1, answer(1));
  pass(patience / 2);
  ASSERT_TRUE(question->is_over());
  EXPECT_FALSE(all[2]->is_slow()) << "it was not waited for behind the others";
}

TEST_F(quorum_question_test, gives_up_without_a_majority_and_says_what_each_server_lacks) {
  connect(0);
  start();
  servers[1].refuse();
  drive();
  say(0, answer(0));
  pass(1s - 1ns);
  EXPECT_FALSE(question->is_over());
  pass(1ns);
  ASSERT_TRUE(question->is_over());
  EXPECT_TRUE(question->reply(0));
  EXPECT_EQ(question->trouble(1), "Connection refused");
  EXPECT_EQ(question->trouble(2), "no connection yet");
}

// Each try of a connection hears the same.
TEST_F(quorum_question_test, does_not_wait_for_a_majority_that_refuses_it_for_good) {
  const connection_failure wrong{errc::wrong_password, "WRONGPASS invalid username-password pair", true, false};
  connect(0);
  start();
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_FALSE(question->is_over());
    servers[i].refuse(wrong);
    drive();
  }
  EXPECT_FALSE(question->is_over()) << "what the other one says is to be seen";
  say(0, answer(0));
  ASSERT_TRUE(question->is_over());
  EXPECT_EQ(question->trouble(2), wrong.text);
  EXPECT_EQ(question->trouble_code(2), errc::wrong_password);
  EXPECT_EQ(question->trouble_code(0), errc{});
}

// Its password was wrong, and is right by now.
TEST_F(quorum_question_test, is_not_over_by_what_became_of_a_call_before) {
  const connection_failure wrong{errc::wrong_password, "WRONGPASS invalid username-password pair", true, false};
  for (auto& one : servers) one.refuse(wrong);
  start();
  EXPECT_FALSE(question->is_over());
  pass(500ms);  // Until it may be tried again.
  connect_all();
  drive();
  for (std::size_t i = 0; i < 3; ++i) say(i, answer(i));
  ASSERT_TRUE(question->is_over());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(question->reply(i));
}

TEST_F(quorum_question_test, does_not_wait_behind_a_majority_for_longer_than_it_would_have) {
  connect_all();
  start();
  for (auto& one : all) one->wire().set_least_silence(1h);
  pass(900ms);
  say(0, answer(0));
  say(1, answer(1));
  pass(100ms);
  EXPECT_TRUE(question->is_over());
}

TEST_F(quorum_question_test, is_asked_of_who_connects_meanwhile_and_again_of_who_was_cut_off) {
  connect(0);
  start();
  connect(1);
  drive();
  EXPECT_THAT(asked(1), ElementsAre("inspect"));
  servers[0].take();
  servers[0].cut();
  drive();
  connect(0);
  drive();
  EXPECT_THAT(asked(0), ElementsAre("inspect"));
}

TEST_F(quorum_question_test, whose_copy_has_no_answer_may_have_done_it_C5) {
  connect(0);
  connect(1);
  start();
  servers[0].take();
  servers[0].cut();
  drive();
  connect(0);
  drive();
  say(0, refusal("NOPERM no permissions"));  // To the second copy.
  pass(1s);
  ASSERT_TRUE(question->is_over());
  EXPECT_TRUE(question->may_have_done(0));
  EXPECT_TRUE(question->may_have_done(1)) << "silent";
  EXPECT_FALSE(question->may_have_done(2)) << "was not asked";
}

TEST_F(quorum_question_test, who_answered_its_only_copy_has_said_what_it_did) {
  connect_all();
  start();
  for (std::size_t i = 0; i < 3; ++i) say(i, refusal("NOPERM no permissions"));
  ASSERT_TRUE(question->is_over());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(question->may_have_done(i));
}

class quorum_question_quarantine : public quorum_question_test {
protected:
  quorum_question_quarantine() : quorum_question_test{watching()} {}
};

TEST_F(quorum_question_quarantine, tells_which_servers_may_have_forgotten) {
  servers[1].epoch = in_quarantine(servers[1], 7000);
  connect_all();
  start();
  say(1, servers[1].epoch);  // Asked again, ahead of the question.
  for (std::size_t i = 0; i < 3; ++i) say(i, answer(i));
  ASSERT_TRUE(question->is_over());
  EXPECT_FALSE(question->quarantine_of(0));
  ASSERT_TRUE(question->quarantine_of(1));
  EXPECT_EQ(question->quarantine_of(1)->ends_at, now() + 7072ms);
}

}  // namespace

}  // namespace holdfast::engine
