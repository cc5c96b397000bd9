// SPDX-License-Identifier: Apache-2.0
// Looking at locks and breaking them: inspect, list, break_lock (C9), and plain naming.
#include "integration/fixture.hpp"

#include <map>
#include <random>
#include <set>

namespace holdfast::test {
namespace {

class operate : public on_redis {
protected:
  operate() { allow_also({"+scan", "~theirs", "~REDIS_LOCK_*", "~shop:*"}); }

  client make_plain() {
    client_options how;
    how.names = naming::plain;
    return make_client(how);
  }
};

TEST_F(operate, inspect_shows_the_holder) {
  auto locks = make_client();
  const auto held = locks.acquire("x", {.ttl = 20s, .owner = "anna@db1:42 backup"});
  let_pass(30ms);
  const auto seen = make_client().inspect("x");
  EXPECT_TRUE(seen.held);
  EXPECT_FALSE(seen.foreign);
  EXPECT_EQ(seen.name, "x");
  EXPECT_EQ(seen.owner, "anna@db1:42 backup");
  EXPECT_EQ(seen.token, held.token());
  EXPECT_EQ(seen.ttl, 20s);
  EXPECT_GT(seen.remaining, 10s);
  EXPECT_LE(seen.remaining, 20s);
  EXPECT_GE(seen.held_for, 30ms);
  EXPECT_LT(seen.held_for, 5s);
  EXPECT_FALSE(seen.breaking);
}

TEST_F(operate, inspect_within_less_than_no_time_is_in_vain) {
  auto locks = make_client();
  // The second, as nanoseconds, overflows into 170 years.
  for (const auto within : {std::chrono::milliseconds::min(), -13'000'000'000'000ms, -1ms, 0ms}) {
    std::error_code ec;
    EXPECT_FALSE(locks.inspect("x", within, ec));
    EXPECT_TRUE(ec) << within.count();
  }
}

TEST_F(operate, inspect_of_a_free_name_is_no_error) {
  const auto seen = make_client().inspect("nobody");
  EXPECT_FALSE(seen.held);
  EXPECT_EQ(seen.token, fencing_token{});
}

TEST_F(operate, owner_with_separators_and_control_bytes_comes_back_as_it_was) {
  auto locks = make_client();
  const std::string owner = "a|b%7C\x1b[31m\n{x}";
  const auto held = locks.acquire("x", {.owner = owner});
  EXPECT_EQ(locks.inspect("x").owner, owner);
}

TEST_F(operate, list_shows_held_locks_sorted_and_nothing_else) {
  auto locks = make_client();
  const auto b = locks.acquire("job:b");
  const auto a = locks.acquire("job:a");
  const auto other = locks.acquire("other");
  auto gone = locks.acquire("job:gone");
  gone.release();
  server_("SET", "hf:{job:a}:note", "side key", "PX", "60000");
  server_("SET", "data", "not ours");
  const auto seen = locks.list("job:*");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].name, "job:a");
  EXPECT_EQ(seen[1].name, "job:b");
  EXPECT_EQ(seen[0].token, a.token());
  EXPECT_EQ(locks.list().size(), 3u);
}

TEST_F(operate, list_of_names_with_glob_characters_is_exact) {
  auto locks = make_client();
  const auto star = locks.acquire("a*b");
  const auto plain = locks.acquire("axb");
  const auto braces = locks.acquire("{a}%");
  ASSERT_EQ(locks.list("a\\*b").size(), 1u);
  EXPECT_EQ(locks.list("a\\*b")[0].name, "a*b");
  EXPECT_EQ(locks.list("a?b").size(), 2u);
  ASSERT_EQ(locks.list("{a}%").size(), 1u);
  EXPECT_EQ(locks.list("{a}%")[0].name, "{a}%");
}

// The server has these bytes as three, as it has them in `a7b`.
TEST_F(operate, list_of_names_that_are_escaped_in_their_keys_is_exact) {
  auto locks = make_client();
  std::vector<lease> held;
  for (const auto* name : {"a{b}c", "a7b}c", "ab", "{", "7", "50%", "502", "50"}) held.push_back(locks.acquire(name));
  const auto named = [&](std::string_view glob) {
    std::vector<std::string> names;
    for (const auto& one : locks.list(glob)) names.push_back(one.name);
    return names;
  };
  using names = std::vector<std::string>;
  EXPECT_EQ(named("a[{]*"), names{"a{b}c"});
  EXPECT_EQ(named("a[7}]b}c"), names{"a7b}c"});
  EXPECT_EQ(named("a{b[}]c"), names{"a{b}c"});
  EXPECT_EQ(named("?"), (names{"7", "{"}));
  EXPECT_EQ(named("50?"), (names{"50%", "502"}));
  EXPECT_EQ(named("50[%]"), names{"50%"});
  EXPECT_EQ(named("50[^%]"), names{"502"});
  EXPECT_EQ(named("a?b?c"), (names{"a7b}c", "a{b}c"}));
}

// Of names that are in their keys as they are, so that the server can say which it would find.
TEST_F(operate, list_has_the_names_that_redis_would_match) {
  auto locks = make_client();
  std::mt19937 random{4127};
  const auto any_of = [&](std::string_view alphabet, std::size_t most) {
    std::string text;
    for (std::size_t left = 1 + random() % most; left > 0; --left) text += alphabet[random() % alphabet.size()];
    return text;
  };
  std::map<std::string, lease> held;
  for (int i = 0; i < 60; ++i) {
    const auto name = any_of("aab-]^*\\", 4);
    if (!held.contains(name)) held.emplace(name, locks.acquire(name));
    server_("SET", name, "");
  }
  for (int i = 0; i < scaled(2000); ++i) {
    const auto glob = any_of("abc**??[[]]^-\\", 7);
    std::set<std::string> theirs;
    for (const auto& one : server_("KEYS", glob).items) theirs.insert(one.text);
    std::set<std::string> ours;
    for (const auto& one : locks.list(glob)) ours.insert(one.name);
    std::erase_if(theirs, [](const std::string& key) { return key.starts_with("hf:"); });
    EXPECT_EQ(ours, theirs) << glob;
  }
}

TEST_F(operate, list_finds_all_of_many) {
  auto locks = make_client();
  std::vector<lease> held;
  for (int i = 0; i < 300; ++i) held.push_back(locks.acquire("n" + std::to_string(i)));
  EXPECT_EQ(locks.list("n*").size(), 300u);
}

TEST_F(operate, list_shows_a_key_of_another_type_as_foreign_and_all_the_rest) {
  auto locks = make_client();
  const auto held = locks.acquire("b");
  server_("RPUSH", "hf:{a}", "theirs");
  server_("SADD", "hf:{c}", "theirs");
  server_("PEXPIRE", "hf:{c}", "60000");
  const auto seen = locks.list();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[0].foreign && seen[0].endless);
  EXPECT_EQ(seen[1].token, held.token());
  EXPECT_TRUE(seen[2].foreign && !seen[2].endless);
  EXPECT_GT(seen[2].remaining, 50s);
  EXPECT_EQ(code_of([&] { (void)locks.inspect("a"); }), errc::wrong_kind);
  server_("DEL", "hf:{a}");
}

// P13d, C1: the holder's ttl runs out before anybody else gets in; it is told, and renewed no more.
TEST_F(operate, break_ends_the_lease_at_its_expiry) {
  auto holder = make_client();
  auto held = holder.acquire("x", {.ttl = 900ms});
  auto other = make_client();
  other.break_lock("x", held.token(), {.why = "it hangs"});
  EXPECT_TRUE(other.inspect("x").breaking);
  EXPECT_FALSE(other.try_acquire("x")) << "not before its ttl is over";
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 900ms));
  EXPECT_EQ(held.lost_reason(), errc::lease_broken);
  const auto next = other.acquire("x", {.wait = 3s});
  EXPECT_FALSE(held.valid());
  EXPECT_GT(next.token(), held.token());
}

TEST_F(operate, break_now_frees_it_at_once_and_tells_the_holder) {
  auto holder = make_client();
  auto held = holder.acquire("x", {.ttl = 900ms});
  auto other = make_client();
  other.break_lock("x", held.token(), {.why = "now", .mode = break_mode::immediately});
  const auto next = other.try_acquire("x");
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), held.token());
  EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, 900ms));
  EXPECT_EQ(held.lost_reason(), outcome::lost);
  EXPECT_EQ(held.release(), release_outcome::already_lost);
  EXPECT_TRUE(next->valid());
}

TEST_F(operate, break_is_recorded_with_who_and_why) {
  auto holder = make_client();
  auto held = holder.acquire("x", {.ttl = 5s});
  client_options how;
  how.owner = "the operator";
  auto other = make_client(how);
  other.break_lock("x", held.token(), {.why = "it hangs | since noon", .mode = break_mode::immediately});
  const auto seen = other.inspect("x");
  ASSERT_TRUE(seen.last_break);
  EXPECT_EQ(seen.last_break->token, held.token());
  EXPECT_EQ(seen.last_break->by, "the operator");
  EXPECT_EQ(seen.last_break->why, "it hangs | since noon");
  EXPECT_LT(seen.last_break->since, 5s);
}

TEST_F(operate, break_of_what_changed_hands_is_refused) {
  auto locks = make_client();
  auto first = locks.acquire("x");
  const auto seen = first.token();
  first.release();
  const auto second = locks.acquire("x");
  EXPECT_EQ(code_of([&] { locks.break_lock("x", seen); }), errc::changed_hands);
  EXPECT_TRUE(second.valid());
  EXPECT_FALSE(locks.inspect("x").breaking);
}

TEST_F(operate, break_of_a_free_lock_is_not_held) {
  auto locks = make_client();
  EXPECT_EQ(code_of([&] { locks.break_lock("x", fencing_token{1}); }), errc::not_held);
}

// Plain naming: the key is exactly the caller's, so that any SET NX PX client respects it and is respected.
TEST_F(operate, plain_naming_uses_the_exact_key) {
  auto locks = make_plain();
  auto held = locks.acquire("REDIS_LOCK_20171228");
  EXPECT_TRUE(exists("REDIS_LOCK_20171228"));
  EXPECT_TRUE(server_("SET", "REDIS_LOCK_20171228", "theirs", "NX", "PX", "30000").is_nil());
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_FALSE(exists("REDIS_LOCK_20171228"));
}

TEST_F(operate, plain_naming_respects_a_foreign_holder_and_waits_for_its_expiry) {
  auto locks = make_plain();
  server_("SET", "theirs", "0123", "NX", "PX", "3000");
  EXPECT_FALSE(locks.try_acquire("theirs"));
  const auto seen = locks.inspect("theirs");
  EXPECT_TRUE(seen.held);
  EXPECT_TRUE(seen.foreign);
  EXPECT_GT(seen.remaining, 0ms);
  EXPECT_TRUE(locks.acquire("theirs", {.wait = 10s}).valid());
}

// P13: no contender may touch a foreign lock's expiry, not even when it has none.
TEST_F(operate, plain_naming_leaves_a_foreign_lock_without_expiry_alone) {
  auto locks = make_plain();
  server_("SET", "theirs", "for ever", "NX");
  EXPECT_FALSE(locks.try_acquire("theirs"));
  EXPECT_EQ(pttl("theirs"), -1ms);
  EXPECT_EQ(code_of([&] { (void)locks.acquire("theirs", {.wait = in_vain}); }), errc::timed_out);
  EXPECT_EQ(server_("GET", "theirs"), std::string{"for ever"});
}

TEST_F(operate, plain_naming_keeps_its_side_keys_under_our_prefix) {
  auto locks = make_plain();
  const auto held = locks.acquire("theirs");
  for (const auto& key : server_("KEYS", "*").items) {
    EXPECT_TRUE(key.text == "theirs" || key.text.starts_with("hf:")) << key.text;
  }
}

TEST_F(operate, plain_naming_cannot_list) {
  EXPECT_EQ(code_of([&] { (void)make_plain().list(); }), errc::invalid_option);
}

// B29, B97: one prefix for every key of a lock.
TEST_F(operate, prefix_is_before_every_key) {
  client_options how;
  how.prefix = "shop:";
  server_("FLUSHALL");
  server_.declare_nothing_forgotten(0, how.prefix);
  auto locks = make_client(how);
  auto held = locks.acquire("x");
  locks.break_lock("x", held.token());
  for (const auto& key : server_("KEYS", "*").items) EXPECT_TRUE(key.text.starts_with("shop:")) << key.text;
  EXPECT_TRUE(server_.keys_without_expiry("shop:").empty());
}

}  // namespace
}  // namespace holdfast::test
