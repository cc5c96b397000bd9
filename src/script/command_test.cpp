// SPDX-License-Identifier: Apache-2.0
#include "script/command.hpp"

#include "resp/reader.hpp"
#include "script/field.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace holdfast::script {

namespace {

using namespace std::chrono_literals;
using strings = std::vector<std::string>;

const lock_keys some_keys{"hf:{x}"};
const owner_id somebody{std::array<unsigned char, 16>{}};
const std::string somebody_hex(32, '0');

TEST(command, acquire_carries_what_the_script_wants) {
  const auto c = acquire(some_keys, somebody, 10s, server_time{1795212800000042us}, 60s, "ann", {});
  EXPECT_EQ(c.keys, (strings{"hf:{x}", "hf:{x}:fence"}));
  EXPECT_EQ(c.args, (strings{somebody_hex, "10000", "1795212800000042", "60000", "ann"}));
}

TEST(command, acquire_says_min_fence_only_when_there_is_one) {
  EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, "", {}).args.size(), 5u);
  EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, "", fencing_token{7}).args.back(), "0000000000000007");
}

TEST(command, no_deadline_is_zero) { EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, "", {}).args[2], "0"); }

// H76: the label is the last field of the holder value, but `show` and the break record put it before others.
TEST(command, labels_are_escaped_H76) {
  EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, "a|b%\n", {}).args[4], "a%7Cb%25%0A");
  const auto c = break_lock(some_keys, fencing_token{7}, break_mode::at_expiry, "me|you", "a\x1b");
  EXPECT_EQ(c.args, (strings{"0000000000000007", "expiry", "me%7Cyou", "a%1B"}));
}

TEST(command, labels_are_cut_at_256_bytes_between_characters) {
  EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, std::string(300, 'x'), {}).args[4], std::string(256, 'x'));
  // The character that begins at byte 256 does not fit, and half of it would be no UTF-8.
  EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, std::string(255, 'x') + "\u00e4\u00e4", {}).args[4],
            std::string(255, 'x'));
}

TEST(command, the_longest_label_fits_what_the_scripts_accept) {
  EXPECT_EQ(acquire(some_keys, somebody, 10s, {}, 60s, std::string(300, '|'), {}).args[4].size(), 768u);
}

TEST(command, renew_and_release_name_the_token_in_16_digits) {
  EXPECT_EQ(renew(some_keys, somebody, fencing_token{7}, 10s).args,
            (strings{somebody_hex, "0000000000000007", "10000"}));
  EXPECT_EQ(renew(some_keys, somebody, fencing_token{7}, 10s).keys, (strings{"hf:{x}", "hf:{x}:break"}));
  EXPECT_EQ(release(some_keys, somebody, fencing_token{7}).args, (strings{somebody_hex, "0000000000000007"}));
}

const strings line_keys{"hf:{x}", "hf:{x}:fence", "hf:{x}:line", "hf:{x}:waiters"};
const listener me{"hf:wake:me", true};
const listener deaf{"hf:wake:me", false};

TEST(command, leave_names_only_the_owner) {
  EXPECT_EQ(leave(some_keys, somebody).keys, line_keys);
  EXPECT_EQ(leave(some_keys, somebody).args, (strings{somebody_hex}));
  EXPECT_EQ(release(some_keys, somebody, fencing_token{7}).keys, line_keys);
}

TEST(command, wait_carries_the_whole_entry) {
  const line_entry entry{.ttl = 10s,
                         .label = "a|b",
                         .min_fence = fencing_token{7},
                         .window = 1s,
                         .wait_until = server_time{1795212800000099us},
                         .ticket = 42};
  const auto c = wait(some_keys, somebody, entry, me, server_time{1795212800000042us}, 60s);
  EXPECT_EQ(c.keys, line_keys);
  EXPECT_EQ(c.args, (strings{somebody_hex, "10000", "1795212800000042", "60000", "a%7Cb", "0000000000000007",
                             "hf:wake:me", "s", "1000", "1795212800000099", "0000000000000042", "x"}));
}

TEST(command, wait_without_demands_says_zero) {
  const line_entry entry{.ttl = 10s, .label = "", .min_fence = {}, .window = 1s, .wait_until = {}, .ticket = 0};
  const auto c = wait(some_keys, somebody, entry, deaf, {}, 60s);
  EXPECT_EQ(c.args, (strings{somebody_hex, "10000", "0", "60000", "", "0", "hf:wake:me", "-", "1000", "0", "0", "x"}));
  EXPECT_EQ(try_line(some_keys, somebody, entry, me, {}, 60s).args[7], "t");
}

TEST(command, look_says_who_looks) {
  const auto c = look(some_keys, somebody, {}, me, server_time{1795212800000042us}, 60s);
  EXPECT_EQ(c.keys, line_keys);
  EXPECT_EQ(c.args, (strings{somebody_hex, "1795212800000042", "60000", "hf:wake:me", "s"}));
  EXPECT_EQ(look(some_keys, somebody, {}, deaf, {}, 60s).args[4], "-");
}

TEST(command, break_names_all_keys) {
  const auto c = break_lock(some_keys, fencing_token{7}, break_mode::immediately, "me", "why");
  EXPECT_EQ(c.keys, (strings{"hf:{x}", "hf:{x}:fence", "hf:{x}:line", "hf:{x}:waiters", "hf:{x}:break"}));
  EXPECT_EQ(c.args[1], "now");
}

const lock_keys shared_keys{"hf:{x}", {}, true};
const strings counted_keys{"hf:{x}", "hf:{x}:fence", "hf:{x}:line", "hf:{x}:waiters", "hf:{x}:holders"};

TEST(command, counted_kinds_have_scripts_and_a_key_of_their_own) {
  EXPECT_EQ(release(shared_keys, somebody, fencing_token{7}).script, id::release_counted);
  EXPECT_EQ(release(shared_keys, somebody, fencing_token{7}).keys, counted_keys);
  EXPECT_EQ(leave(shared_keys, somebody).script, id::leave_counted);
  EXPECT_EQ(leave(shared_keys, somebody).keys, counted_keys);
  EXPECT_EQ(renew(shared_keys, somebody, fencing_token{7}, 10s).script, id::renew_counted);
  EXPECT_EQ(renew(shared_keys, somebody, fencing_token{7}, 10s).keys,
            (strings{"hf:{x}", "hf:{x}:break", "hf:{x}:holders"}));
  EXPECT_EQ(break_lock(shared_keys, fencing_token{7}, break_mode::at_expiry, "", "").script, id::break_counted);
  EXPECT_EQ(break_lock(shared_keys, fencing_token{7}, break_mode::at_expiry, "", "").keys.back(), "hf:{x}:break");
}

TEST(command, counted_kinds_say_how_much_of_what) {
  line_entry entry{.ttl = 10s, .label = "", .min_fence = {}, .window = 1s, .wait_until = {}, .ticket = 0};
  entry.what = {'p', 2, 3};
  const auto c = wait(shared_keys, somebody, entry, me, {}, 60s);
  EXPECT_EQ(c.script, id::wait_counted);
  EXPECT_EQ(c.keys, counted_keys);
  EXPECT_EQ(strings(c.args.end() - 3, c.args.end()), (strings{"p", "2", "s3"}));
  entry.what = {'w', most_permits, most_permits};
  EXPECT_EQ(wait(shared_keys, somebody, entry, me, {}, 60s).args.back(), "w1000000");
  EXPECT_EQ(look(shared_keys, somebody, {'p', 2, 3}, me, {}, 60s).args.back(), "s3");
  auto change = resize(shared_keys, 5);
  EXPECT_EQ(change.args, (strings{"s5", "0"}));
  set_not_after(change, server_time{1'795'212'800'000'042us});
  EXPECT_EQ(change.args, (strings{"s5", "1795212800000042"}));
  EXPECT_EQ(downgrade(shared_keys, somebody, fencing_token{7}).args, (strings{somebody_hex, "0000000000000007"}));
}

TEST(command, a_vote_of_a_counted_kind_says_how_much_of_what_and_where_it_stands) {
  const quorum_record servers{.servers = "a:1"};
  const auto c = vote(shared_keys, somebody, 10s, {}, 60s, "ann", {}, fencing_token{7}, "hf:", servers, {'p', 2, 3},
                      standing::first_in_line);
  const auto again = vote(shared_keys, somebody, 10s, {}, 60s, "ann", {}, fencing_token{7}, "hf:", servers, {'p', 2, 3},
                          standing::keeper);
  EXPECT_EQ(again.args.back(), "k");
  EXPECT_EQ(again.keys.back(), "hf:{x}:break");
  EXPECT_EQ(c.script, id::vote_counted);
  EXPECT_EQ(c.keys, (strings{"hf:{x}", "hf:{x}:fence", "hf:{x}:line", "hf:{x}:waiters", "hf:{x}:holders", "hf:quorum",
                             "hf:{x}:wanted"}));
  EXPECT_EQ(c.args, (strings{somebody_hex, "10000", "0", "60000", "ann", "0", "0000000000000007", "v1|1|open|a:1", "p",
                             "2", "s3", "h"}));
  EXPECT_TRUE(may_grant(c));
  const auto r = raise(shared_keys, somebody, fencing_token{7}, {'r', 1, most_permits});
  EXPECT_EQ(r.script, id::raise_counted);
  EXPECT_EQ(r.keys, (strings{"hf:{x}", "hf:{x}:fence", "hf:{x}:holders"}));
  EXPECT_EQ(r.args, (strings{somebody_hex, "0000000000000007", "w1000000"}));
  const auto renewal = renew_vote(shared_keys, somebody, fencing_token{7}, 10s, "hf:", servers);
  EXPECT_EQ(renewal.script, id::renew_counted);
  EXPECT_EQ(renewal.keys, (strings{"hf:{x}", "hf:{x}:break", "hf:{x}:holders", "hf:quorum"}));
  EXPECT_EQ(renewal.args.back(), "v1|1|open|a:1");
}

TEST(command, a_vote_for_a_lock_says_where_its_asker_stands) {
  const quorum_record servers{.servers = "a:1"};
  const auto c =
      vote(some_keys, somebody, 10s, {}, 60s, "ann", {}, fencing_token{7}, "hf:", servers, {}, standing::first_in_line);
  EXPECT_EQ(c.script, id::vote);
  EXPECT_EQ(c.keys, (strings{"hf:{x}", "hf:{x}:fence", "hf:quorum", "hf:{x}:wanted"}));
  EXPECT_EQ(c.args,
            (strings{somebody_hex, "10000", "0", "60000", "ann", "0", "0000000000000007", "v1|1|open|a:1", "h"}));
}

TEST(command, goes_on_with_the_keys_of_the_line_P2) {
  const auto behind_release = go_on(release(some_keys, somebody, fencing_token{7}));
  ASSERT_TRUE(behind_release);
  EXPECT_EQ(behind_release->script, id::go_on);
  EXPECT_EQ(behind_release->keys, (strings{"hf:{x}", "hf:{x}:fence", "hf:{x}:line", "hf:{x}:waiters"}));
  EXPECT_TRUE(behind_release->args.empty());
  EXPECT_EQ(go_on(*behind_release)->keys, behind_release->keys);
  const auto behind_break = go_on(break_lock(shared_keys, fencing_token{7}, break_mode::immediately, "op", "why"));
  ASSERT_TRUE(behind_break);
  EXPECT_EQ(behind_break->script, id::go_on_counted);
  EXPECT_EQ(behind_break->keys, (strings{"hf:{x}", "hf:{x}:fence", "hf:{x}:line", "hf:{x}:waiters", "hf:{x}:holders"}));
  EXPECT_FALSE(go_on(renew(some_keys, somebody, fencing_token{7}, 10s)));
  EXPECT_FALSE(go_on({id::release, {"hf:{x}"}, {}}));
}

TEST(command, is_sent_by_digest_or_by_text) {
  for (const auto how : {call::by_digest, call::by_text}) {
    std::string bytes;
    append(bytes, inspect(some_keys), how);
    resp::reader r;
    r.feed(bytes);
    const auto value = r.next();
    ASSERT_TRUE(value && value->as_array());
    const auto& words = *value->as_array();
    ASSERT_EQ(words.size(), 9u);
    const auto& source = find(id::inspect);
    EXPECT_EQ(*words[0].as_bulk(), how == call::by_digest ? "EVALSHA" : "EVAL");
    EXPECT_EQ(*words[1].as_bulk(), how == call::by_digest ? source.sha1 : source.text);
    EXPECT_EQ(*words[2].as_bulk(), "6");
    EXPECT_EQ(*words[3].as_bulk(), "hf:{x}");
  }
}

TEST(field, every_text_survives_escaping) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    const auto escaped = escape(text, "|");
    RC_ASSERT(unescape(escaped) == text);
    for (const char c : escaped) RC_ASSERT(c != '|' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }));
}

TEST(field, a_broken_escape_is_none) {
  for (const auto* text : {"%", "%4", "%zz", "a%", "%-1"}) EXPECT_EQ(unescape(text), std::nullopt) << text;
}

TEST(field, sixteen_digits_are_exactly_that) {
  EXPECT_EQ(digits16(7), "0000000000000007");
  EXPECT_EQ(parse_digits16("0000000000000007"), 7u);
  for (const auto* text : {"", "7", "00000000000000007", "000000000000000x", "-000000000000007", "+000000000000007"}) {
    EXPECT_EQ(parse_digits16(text), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace holdfast::script
