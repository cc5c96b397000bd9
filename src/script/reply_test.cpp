// SPDX-License-Identifier: Apache-2.0
#include "script/reply.hpp"

#include "script/command.hpp"

#include <gtest/gtest.h>

namespace holdfast::script {

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using resp::value;
using array = value::array;

const std::string now_digits = "1795212800000042";
const server_time now{1795212800000042us};
const std::string owner(32, 'a');
const std::string ours = "v1|" + owner + "|1795212800000007|10000|1795212800000001|ann%7Cb";

array coded(code c, array more = {}) {
  array all{value{static_cast<std::int64_t>(c)}, value{now_digits}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// What no script of ours says, whichever was asked (H73): none may be taken for an answer.
const std::vector<value> nonsense{resp::nil{},
                                  resp::status{"OK"},
                                  resp::server_error{"ERR x"},
                                  std::int64_t{0},
                                  ""s,
                                  "OK"s,
                                  "179521280000004"s,
                                  "17952128000000420"s,
                                  "1795212800000o42"s,
                                  array{},
                                  array{std::int64_t{0}},
                                  array{std::int64_t{0}, std::int64_t{0}},
                                  array{"0"s, now_digits},
                                  array{std::int64_t{-1}, now_digits},
                                  array{std::int64_t{99}, now_digits},
                                  coded(code::queued),
                                  coded(code::quarantine),
                                  coded(code::busy),
                                  coded(code::wrong_kind),
                                  coded(code::mine, {"1795212800000007"s, std::int64_t{1}, std::int64_t{1}})};

TEST(reply, nonsense_is_never_an_answer) {
  for (std::size_t i = 0; i < nonsense.size(); ++i) {
    EXPECT_FALSE(parse_acquire(nonsense[i])) << i;
    EXPECT_FALSE(parse_renew(nonsense[i])) << i;
    EXPECT_FALSE(parse_release(nonsense[i])) << i;
    EXPECT_FALSE(parse_inspect(nonsense[i])) << i;
    EXPECT_FALSE(parse_break(nonsense[i])) << i;
  }
}

TEST(acquire_reply, a_lone_time_is_a_grant_with_that_token) {
  const auto r = parse_acquire(now_digits);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->now, now);
  EXPECT_EQ(std::get<granted>(r->what).token, fencing_token{1795212800000042});
}

TEST(acquire_reply, a_token_ahead_of_the_clock_comes_by_itself) {
  const auto r = parse_acquire(coded(code::done, {"1999999999999999"s}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->now, now);
  EXPECT_EQ(std::get<granted>(r->what).token, fencing_token{1999999999999999});
}

TEST(acquire_reply, a_grant_without_a_token_is_no_answer) {
  EXPECT_FALSE(parse_acquire("0000000000000000"s));
  EXPECT_FALSE(parse_acquire(coded(code::done)));
  EXPECT_FALSE(parse_acquire(coded(code::done, {"1.7e+15"s})));
  EXPECT_FALSE(parse_acquire(coded(code::done, {"9007199254740992"s})));
}

TEST(acquire_reply, mine_has_token_and_remaining_time) {
  const auto r = parse_acquire(coded(code::mine, {"1795212800000007"s, std::int64_t{4000}}));
  ASSERT_TRUE(r);
  EXPECT_EQ(std::get<mine>(r->what).token, fencing_token{1795212800000007});
  EXPECT_EQ(std::get<mine>(r->what).remaining, 4000ms);
}

TEST(acquire_reply, busy_has_the_holder_and_remaining_time) {
  const auto r = parse_acquire(coded(code::busy, {ours, std::int64_t{4000}}));
  ASSERT_TRUE(r);
  EXPECT_EQ(std::get<busy>(r->what).by.label, "ann|b");
  EXPECT_EQ(std::get<busy>(r->what).remaining, 4000ms);
}

TEST(acquire_reply, busy_for_ever_is_negative) {
  const auto r = parse_acquire(coded(code::busy, {"redis-py"s, std::int64_t{-1}}));
  ASSERT_TRUE(r);
  EXPECT_TRUE(std::get<busy>(r->what).by.foreign);
  EXPECT_LT(std::get<busy>(r->what).remaining, 0ms);
}

// 292 million years in milliseconds would overflow in every duration finer than that (H9).
TEST(acquire_reply, an_endless_remaining_time_does_not_overflow_H9) {
  const auto r = parse_acquire(coded(code::busy, {"x"s, std::int64_t{INT64_MAX}}));
  ASSERT_TRUE(r);
  const auto remaining = std::get<busy>(r->what).remaining;
  EXPECT_GT(remaining, 24h * 365);
  EXPECT_GT(std::chrono::nanoseconds{remaining}, 0ns);
}

TEST(acquire_reply, the_plain_refusals) {
  EXPECT_TRUE(std::holds_alternative<late>(parse_acquire(coded(code::late)).value().what));
  EXPECT_TRUE(std::holds_alternative<spent>(parse_acquire(coded(code::spent)).value().what));
  EXPECT_TRUE(std::holds_alternative<fence_too_far>(parse_acquire(coded(code::fence_too_far)).value().what));
  EXPECT_EQ(std::get<wrong_kind>(parse_acquire(coded(code::wrong_kind, {"list"s})).value().what).found, "list");
  EXPECT_EQ(std::get<bad_argument>(parse_acquire(coded(code::bad_argument, {"ttl"s})).value().what).what, "ttl");
}

// More or less than the code says is another protocol: who takes it for a refusal would ask again for ever.
TEST(acquire_reply, a_refusal_of_another_form_is_no_answer_H73) {
  for (const auto which : {code::late, code::spent, code::fence_too_far}) {
    EXPECT_FALSE(parse_acquire(coded(which, {"x"s}))) << static_cast<int>(which);
  }
  for (const auto which : {code::wrong_kind, code::bad_argument, code::other_size, code::quarantine}) {
    EXPECT_FALSE(parse_acquire(coded(which))) << static_cast<int>(which);
    EXPECT_FALSE(parse_acquire(coded(which, {resp::nil{}}))) << static_cast<int>(which);
  }
  EXPECT_FALSE(parse_acquire(coded(code::other_size, {std::int64_t{-1}})));
  EXPECT_FALSE(parse_acquire(coded(code::other_size, {std::int64_t{1'000'001}})));
}

TEST(acquire_reply, answers_to_other_questions_are_none_H73) {
  for (const auto which : {code::not_mine, code::broken, code::not_held, code::changed_hands}) {
    EXPECT_FALSE(parse_acquire(coded(which))) << static_cast<int>(which);
  }
}

TEST(epoch_reply, nothing_to_wait_for) {
  const auto r = parse_epoch(now_digits);
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->what);
}

TEST(epoch_reply, quarantine) {
  const auto r = parse_epoch(coded(code::quarantine, {std::int64_t{5000}, std::int64_t{3000}, "promotion"s}));
  ASSERT_TRUE(r && r->what);
  EXPECT_EQ(r->what->remaining, 5000ms);
  EXPECT_EQ(r->what->began_ago, 3000ms);
  EXPECT_TRUE(r->what->is_promotion);
  const auto restarted = parse_epoch(coded(code::quarantine, {std::int64_t{1}, std::int64_t{0}, "restart"s}));
  ASSERT_TRUE(restarted && restarted->what);
  EXPECT_FALSE(restarted->what->is_promotion);
}

TEST(epoch_reply, nothing_else_is_one) {
  const std::int64_t ms = 5000;
  const std::vector<value> all{coded(code::quarantine),
                               coded(code::quarantine, {ms, ms}),
                               coded(code::quarantine, {ms, ms, "flood"s}),
                               coded(code::quarantine, {std::int64_t{0}, ms, "restart"s}),
                               coded(code::quarantine, {ms, std::int64_t{-1}, "restart"s}),
                               coded(code::wrong_kind, {"list"s}),
                               coded(code::bad_argument, {"hold"s})};
  for (const auto& reply : all) {
    EXPECT_FALSE(parse_epoch(reply));
  }
}

TEST(renew_reply, each_answer) {
  EXPECT_EQ(parse_renew(now_digits).value().what, renew_answer::renewed);
  EXPECT_EQ(parse_renew(coded(code::not_mine, {"gone"s})).value().what, renew_answer::gone);
  EXPECT_EQ(parse_renew(coded(code::not_mine, {"taken"s})).value().what, renew_answer::taken);
  EXPECT_EQ(parse_renew(coded(code::broken)).value().what, renew_answer::broken);
  EXPECT_EQ(parse_renew(coded(code::broken)).value().now, now);
}

TEST(renew_reply, not_mine_without_a_known_reason_is_no_answer) {
  EXPECT_FALSE(parse_renew(coded(code::not_mine)));
  EXPECT_FALSE(parse_renew(coded(code::not_mine, {"moved"s})));
}

TEST(release_reply, each_answer) {
  EXPECT_EQ(parse_release(now_digits).value().what, release_answer::released);
  EXPECT_EQ(parse_release(coded(code::not_mine)).value().what, release_answer::not_mine);
}

resp::value inspected(resp::value held, std::int64_t remaining, resp::value record, std::int64_t waiting = 0,
                      resp::value::array entries = {}) {
  return coded(code::done, {std::move(held), remaining, std::move(record), waiting, std::move(entries)});
}

// ---- of what several hold together ----

TEST(acquire_reply, another_size_is_named) {
  EXPECT_EQ(std::get<other_size>(parse_acquire(coded(code::other_size, {std::int64_t{3}})).value().what).size, 3);
  EXPECT_FALSE(parse_acquire(coded(code::other_size, {std::int64_t{-1}})));
  EXPECT_FALSE(parse_acquire(coded(code::other_size, {std::int64_t{1'000'001}})));
  EXPECT_FALSE(parse_acquire(coded(code::other_size, {"3"s})));
  EXPECT_FALSE(parse_acquire(coded(code::other_size)));
}

TEST(change_reply, each_answer) {
  EXPECT_TRUE(parse_change(now_digits).value().wrong_kind.empty());
  EXPECT_FALSE(parse_change(now_digits).value().was_late);
  EXPECT_TRUE(parse_change(coded(code::late)).value().was_late);
  EXPECT_FALSE(parse_change(coded(code::late, {"x"s})));
  EXPECT_EQ(parse_change(coded(code::wrong_kind, {"lock"s})).value().wrong_kind, "lock");
  EXPECT_FALSE(parse_change(coded(code::bad_argument, {"size"s})));
}

TEST(vote_reply, names_the_other_size_and_the_other_list) {
  const auto size = parse_vote(coded(code::other_size, {std::int64_t{3}}));
  ASSERT_TRUE(size && std::holds_alternative<other_size>(size->what));
  EXPECT_EQ(std::get<other_size>(size->what).size, 3);
  const auto list = parse_vote(coded(code::other_quorum, {"v1|1|open|a:1"s}));
  ASSERT_TRUE(list && std::holds_alternative<other_quorum>(list->what));
  EXPECT_EQ(std::get<other_quorum>(list->what).record, "v1|1|open|a:1");
}

TEST(vote_reply, is_never_a_place_in_line) {
  EXPECT_FALSE(parse_vote(coded(code::line, {})));
  EXPECT_FALSE(parse_vote(coded(code::not_in_line, {})));
}

resp::value counted(std::string kind, std::int64_t used, resp::value::array holders) {
  return coded(code::done, {resp::nil{}, std::int64_t{-2}, resp::nil{}, std::int64_t{0}, resp::value::array{},
                            std::move(kind), used, std::move(holders)});
}

TEST(inspect_reply, lists_the_holders_of_a_semaphore) {
  const auto r =
      parse_inspect(counted("s3", 3, {"1|p|-|"s + ours, std::int64_t{400}, "2|p|b|"s + ours, std::int64_t{500}}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->kind, lock_kind::semaphore);
  EXPECT_EQ(r->size, 3);
  EXPECT_EQ(r->used, 3);
  ASSERT_EQ(r->holders.size(), 2u);
  EXPECT_EQ(r->holders[0].mode, hold_mode::permits);
  EXPECT_EQ(r->holders[0].remaining, 400ms);
  EXPECT_FALSE(r->holders[0].breaking);
  EXPECT_EQ(r->holders[1].permits, 2);
  EXPECT_TRUE(r->holders[1].breaking);
  EXPECT_EQ(r->holder_ids, (std::vector<std::string>(2, ours.substr(3, 32))));
}

TEST(inspect_reply, tells_readers_from_writers) {
  const auto r = parse_inspect(
      counted("w1000000", 1, {"1|r|-|"s + ours, std::int64_t{400}, "1000000|w|-|"s + ours, std::int64_t{500}}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->kind, lock_kind::shared);
  EXPECT_EQ(r->holders[0].mode, hold_mode::shared);
  EXPECT_EQ(r->holders[1].mode, hold_mode::exclusive);
  EXPECT_EQ(r->holders[1].permits, 1);
}

TEST(inspect_reply, does_not_list_holders_that_it_cannot_read_and_says_that_there_are_any) {
  const auto r = parse_inspect(
      counted("s3", 3, {"1|p|-|v2|x"s, std::int64_t{400}, "1|p"s, std::int64_t{500}, ""s, std::int64_t{600}}));
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->holders.empty());
  EXPECT_EQ(r->foreign_for, 400ms);
  EXPECT_EQ(parse_inspect(counted("s3", 3, {""s, std::int64_t{-1}}))->foreign_for, 0ms);
  EXPECT_FALSE(parse_inspect(counted("s3", 0, {}))->foreign_for);
}

TEST(inspect_reply, takes_what_nobody_can_have_taken_for_the_nearest_that_he_can) {
  EXPECT_EQ(parse_inspect(counted("s3", -1, {}))->used, 0);
  EXPECT_EQ(parse_inspect(counted("s3", std::int64_t{1} << 40, {}))->used, 2'000'000);
}

TEST(inspect_reply, refuses_what_no_script_gives_of_a_counted_kind) {
  EXPECT_FALSE(parse_inspect(counted("s3", 1, {"1|p|-|"s + ours})));
}

TEST(line_reply, queued_says_where_and_when_to_look) {
  const auto r = parse_acquire(
      coded(code::queued, {"1795212800000001"s, std::int64_t{2}, std::int64_t{5000}, ours, std::int64_t{4000}}));
  ASSERT_TRUE(r);
  const auto& q = std::get<queued>(r->what);
  EXPECT_EQ(q.ticket, 1795212800000001u);
  EXPECT_EQ(q.ahead, 2);
  EXPECT_EQ(q.look_in, 5000ms);
  EXPECT_EQ(q.remaining, 4000ms);
  EXPECT_TRUE(q.by);
}

TEST(line_reply, queued_for_a_free_lock_has_no_holder) {
  const auto r = parse_acquire(
      coded(code::queued, {"1795212800000001"s, std::int64_t{0}, std::int64_t{500}, ""s, std::int64_t{-2}}));
  ASSERT_TRUE(r);
  EXPECT_FALSE(std::get<queued>(r->what).by);
}

TEST(line_reply, malformed_places_are_no_answer) {
  const resp::value::array good{"1795212800000001"s, std::int64_t{0}, std::int64_t{500}, ""s, std::int64_t{-2}};
  const resp::value wrong[] = {"17"s, std::int64_t{-1}, std::int64_t{-1}, std::int64_t{1}, ""s};
  ASSERT_TRUE(parse_acquire(coded(code::queued, good)));
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto fields = good;
    fields[i] = wrong[i];
    EXPECT_FALSE(parse_acquire(coded(code::queued, fields))) << i;
    fields[i] = resp::nil{};
    EXPECT_FALSE(parse_acquire(coded(code::queued, fields))) << i;
    fields = good;
    fields.resize(i);
    EXPECT_FALSE(parse_acquire(coded(code::queued, fields))) << i;
  }
  auto more = good;
  more.emplace_back(""s);
  EXPECT_FALSE(parse_acquire(coded(code::queued, more)));
  EXPECT_FALSE(parse_acquire(coded(code::queued, {"1795212800000001"s})));
}

// Of those that one look was for, who is not in line as it was looks itself: the script counts from 1 (P8).
TEST(line_reply, a_look_for_others_names_those_who_must_look_P8) {
  const auto look_of = [](const resp::value& missing) {
    return parse_acquire(
        coded(code::queued, {"1795212800000001"s, std::int64_t{0}, std::int64_t{500}, ""s, std::int64_t{-2}, missing}));
  };
  const auto named = look_of(array{std::int64_t{1}, std::int64_t{255}});
  ASSERT_TRUE(named);
  EXPECT_EQ(std::get<queued>(named->what).missing, (std::vector<std::size_t>{0, 254}));
  EXPECT_TRUE(std::get<queued>(look_of(array{}).value().what).missing.empty());
  EXPECT_FALSE(look_of("1"s));
  EXPECT_FALSE(look_of(array{"1"s}));
  EXPECT_FALSE(look_of(array{std::int64_t{0}}));
  EXPECT_FALSE(look_of(array{std::int64_t{256}}));  // There were never so many.
}

TEST(line_reply, line_and_not_in_line) {
  EXPECT_TRUE(std::holds_alternative<lined>(parse_acquire(coded(code::line)).value().what));
  EXPECT_TRUE(std::holds_alternative<not_in_line>(parse_acquire(coded(code::not_in_line)).value().what));
  EXPECT_FALSE(parse_acquire(coded(code::line, {"x"s})));
  EXPECT_FALSE(parse_acquire(coded(code::not_in_line, {"x"s})));
}

// H73: what belongs to a waiter is no answer to anybody else.
TEST(line_reply, are_no_answers_to_other_questions_H73) {
  const resp::value::array place{"1795212800000001"s, std::int64_t{0}, std::int64_t{500}, ""s, std::int64_t{-2}};
  for (const auto& reply : {coded(code::queued, place), coded(code::line), coded(code::not_in_line)}) {
    EXPECT_FALSE(parse_renew(reply));
    EXPECT_FALSE(parse_release(reply));
    EXPECT_FALSE(parse_inspect(reply));
    EXPECT_FALSE(parse_break(reply));
  }
}

TEST(inspect_reply, the_line_with_labels_and_ages) {
  const auto r = parse_inspect(inspected(ours, 1, resp::nil{}, 3,
                                         {"v1|hf:wake:p|s|10000|1000|0|0|1795212799000042|x|ann%7C"s, "v2|later"s,
                                          "v1|hf:wake:q|-1795212799000040|1|1|0|0|17|x|bob"s}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->waiting, 3);
  ASSERT_EQ(r->waiters.size(), 1u);
  EXPECT_EQ(r->waiters[0].owner, "ann|");
  EXPECT_EQ(r->waiters[0].waiting, 1000ms);
}

TEST(inspect_reply, a_malformed_line_is_no_answer) {
  ASSERT_TRUE(parse_inspect(coded(code::done, {ours, std::int64_t{1}, resp::nil{}, std::int64_t{0}, array{}})));
  EXPECT_FALSE(parse_inspect(coded(code::done, {ours, std::int64_t{1}, resp::nil{}, std::int64_t{-1}, array{}})));
  EXPECT_FALSE(parse_inspect(coded(code::done, {ours, std::int64_t{1}, resp::nil{}, "0"s, array{}})));
  EXPECT_FALSE(parse_inspect(coded(code::done, {ours, std::int64_t{1}, resp::nil{}, std::int64_t{0}, ""s})));
  EXPECT_FALSE(parse_inspect(coded(code::done, {ours, std::int64_t{1}, resp::nil{}, std::int64_t{0}})));
  EXPECT_FALSE(parse_inspect(coded(code::done, {ours, std::int64_t{1}, resp::nil{}})));
}

// One entry that cannot be read must not hide the others, nor change how many wait.
TEST(inspect_reply, an_entry_of_another_form_is_left_out) {
  const std::string good = "v1|hf:wake:p|s|10000|1000|0|0|1795212799000042|x|";
  const auto r = parse_inspect(
      inspected(ours, 1, resp::nil{}, 6, {std::int64_t{1}, resp::nil{}, ""s, "v1|"s, good + "ann", good.substr(3)}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->waiting, 6);
  ASSERT_EQ(r->waiters.size(), 1u);
  EXPECT_EQ(r->waiters[0].owner, "ann");
}

// The server's clock stepped back since it joined.
TEST(inspect_reply, nobody_waits_since_the_future_H4) {
  const auto r =
      parse_inspect(inspected(ours, 1, resp::nil{}, 1, {"v1|hf:wake:p|s|10000|1000|0|0|1795212899000042|x|ann"s}));
  ASSERT_TRUE(r);
  ASSERT_EQ(r->waiters.size(), 1u);
  EXPECT_EQ(r->waiters[0].waiting, 0ms);
}

TEST(inspect_reply, nobody) {
  const auto r = parse_inspect(inspected(resp::nil{}, -2, resp::nil{}));
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->held || r->last_break || r->breaking);
}

TEST(inspect_reply, a_holder_that_is_being_broken) {
  const auto r =
      parse_inspect(inspected(ours, 4000, "v1|1795212800000007|1795212799000042|00ff,11ff|op%7C|why%0Anot"s));
  ASSERT_TRUE(r && r->held && r->last_break);
  EXPECT_TRUE(r->breaking);
  EXPECT_EQ(r->remaining, 4000ms);
  EXPECT_EQ(r->held->token, fencing_token{1795212800000007});
  EXPECT_EQ(r->last_break->since, 1000ms);
  EXPECT_EQ(r->last_break->by, "op|");
  EXPECT_EQ(r->last_break->why, "why\nnot");
}

TEST(inspect_reply, an_older_break_is_not_of_this_holder) {
  const auto r = parse_inspect(inspected(ours, 4000, "v1|1795212800000001|1795212799000042|00ff|op|"s));
  ASSERT_TRUE(r && r->last_break);
  EXPECT_FALSE(r->breaking);
}

TEST(inspect_reply, a_break_record_of_unknown_form_is_none) {
  for (const auto& record :
       {"v2|x"s, "v1|"s, "v1|1795212800000001|now|00ff|op|why"s, "v1|1795212800000001|1795212799000042|00ff"s}) {
    const auto r = parse_inspect(inspected(ours, 1, record));
    ASSERT_TRUE(r) << record;
    EXPECT_FALSE(r->last_break) << record;
  }
}

TEST(inspect_reply, names_a_wrong_type) {
  EXPECT_EQ(parse_inspect(coded(code::wrong_kind, {"list"s})).value().wrong_kind, "list");
}

// Done as ever; whoever reads it lets the line go on.
TEST(goes_on, where_a_script_has_not_seen_all_of_the_line_P2) {
  const auto unseen = coded(code::unseen);
  EXPECT_EQ(parse_release(unseen).value().what, release_answer::released);
  EXPECT_EQ(parse_break(unseen).value().what, break_answer::broken);
  EXPECT_TRUE(parse_change(unseen).value().wrong_kind.empty());
  EXPECT_TRUE(std::holds_alternative<script::unseen>(parse_acquire(unseen).value().what));
  const auto token = "1795212800000007"s;
  const auto with_room = coded(code::done, {token, std::int64_t{1}});
  EXPECT_TRUE(std::holds_alternative<granted>(parse_acquire(with_room).value().what));
  EXPECT_FALSE(parse_acquire(coded(code::done, {token, std::int64_t{2}})));
  EXPECT_FALSE(parse_acquire(coded(code::done, {token, "1"s})));
  EXPECT_FALSE(parse_release(coded(code::unseen, {"x"s})));

  const command a_release{id::release, {}, {}};
  EXPECT_TRUE(goes_on(a_release, unseen));
  EXPECT_FALSE(goes_on(a_release, now_digits));
  EXPECT_FALSE(goes_on(a_release, coded(code::not_mine)));
  EXPECT_FALSE(goes_on({id::wait, {}, {}}, unseen)) << "a try asks again instead";
  EXPECT_TRUE(goes_on({id::look_counted, {}, {}}, with_room));
  EXPECT_FALSE(goes_on({id::look_counted, {}, {}}, coded(code::done, {token})));
}

TEST(break_reply, each_answer) {
  EXPECT_EQ(parse_break(now_digits).value().what, break_answer::broken);
  EXPECT_EQ(parse_break(coded(code::not_held)).value().what, break_answer::not_held);
  EXPECT_EQ(parse_break(coded(code::changed_hands)).value().what, break_answer::changed_hands);
  EXPECT_EQ(parse_break(coded(code::wrong_kind, {"string"s})).value().what, break_answer::foreign);
}

TEST(holder, reads_every_field) {
  const auto h = parse_holder(ours);
  EXPECT_FALSE(h.foreign);
  EXPECT_EQ(h.label, "ann|b");
  EXPECT_EQ(h.token, fencing_token{1795212800000007});
  EXPECT_EQ(h.ttl, 10s);
  EXPECT_EQ(h.granted_at, server_time{1795212800000001us});
}

TEST(holder, what_is_not_ours_to_the_letter_is_foreign) {
  for (const auto& text :
       {""s, "redis-py"s, "v2|" + ours.substr(3), "v1|"s, "v1|short|1795212800000007|10000|1795212800000001|ann"s,
        "v1|" + owner + "|7|10000|1795212800000001|ann", "v1|" + owner + "|1795212800000007|-1|1795212800000001|ann",
        "v1|" + owner + "|1795212800000007|10000|now|ann",
        "v1|" + owner + "|0000000000000000|10000|1795212800000001|ann"}) {
    EXPECT_TRUE(parse_holder(text).foreign) << text;
  }
}

}  // namespace

}  // namespace holdfast::script
