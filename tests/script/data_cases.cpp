// SPDX-License-Identifier: Apache-2.0
// The commands that the scripts build on, one by one: what the model answers is what a real server answers.
#include "cases.hpp"

namespace holdfast::tests {

namespace {

step does(std::vector<std::string> words, shape expected) { return send(std::move(words), std::move(expected)); }
step expires(const std::string& key) { return send({"PEXPIRE", key, "600000"}, number(1)); }
const shape wrong_type = error("WRONGTYPE");
const shape nothing = list({});
const shape anything{shape::kind::anything};

std::vector<script_case> sorted_set_cases() {
  return {
      {"a_sorted_set_is_in_the_order_of_scores_and_then_of_members",
       {does({"ZADD", "z", "2", "b", "1", "c", "2", "a"}, number(3)), expires("z"), does({"TYPE", "z"}, status("zset")),
        does({"ZRANGE", "z", "0", "-1"}, list({text("c"), text("a"), text("b")})),
        does({"ZRANGE", "z", "1", "1"}, list({text("a")})),
        does({"ZRANGE", "z", "-2", "9"}, list({text("a"), text("b")})), does({"ZRANGE", "z", "2", "1"}, nothing),
        does({"ZRANGE", "z", "7", "9"}, nothing), does({"ZRANGE", "z", "x", "1"}, error("ERR value is not an integer")),
        does({"ZRANK", "z", "b"}, number(2)), does({"ZRANK", "z", "nobody"}, none()), does({"ZCARD", "z"}, number(3))}},
      {"a_score_of_16_digits_keeps_them_all",
       {does({"ZADD", "z", "1795217602501759", "a"}, number(1)), expires("z"),
        does({"ZSCORE", "z", "a"}, text("1795217602501759")), does({"ZADD", "z", "9007199254740991", "a"}, number(0)),
        does({"ZSCORE", "z", "a"}, text("9007199254740991")),
        does({"ZADD", "z", "nine", "a"}, error("ERR value is not a valid float"))}},
      {"a_sorted_set_goes_with_its_last_member",
       {does({"ZADD", "z", "1", "a"}, number(1)), does({"ZREM", "z", "b", "a"}, number(1)), is_absent("z"),
        does({"ZREM", "z", "a"}, number(0)), does({"ZRANGE", "z", "0", "-1"}, nothing),
        does({"ZSCORE", "z", "a"}, none()), does({"ZRANK", "z", "a"}, none()), does({"ZCARD", "z"}, number(0))}},
      {"a_sorted_set_expires_as_a_whole",
       {does({"ZADD", "z", "1", "a"}, number(1)), does({"PEXPIRE", "z", "20"}, number(1)), until_gone("z"),
        does({"ZCARD", "z"}, number(0))}},
      {"another_type_is_refused_by_every_sorted_set_command_H71",
       {send({"SET", "s", "x", "PX", "600000"}), does({"ZADD", "s", "1", "a"}, wrong_type),
        does({"ZREM", "s", "a"}, wrong_type), does({"ZSCORE", "s", "a"}, wrong_type),
        does({"ZRANK", "s", "a"}, wrong_type), does({"ZCARD", "s"}, wrong_type),
        does({"ZRANGE", "s", "0", "1"}, wrong_type)}},
      {"a_full_memory_refuses_ZADD_and_HSET_and_nothing_that_takes_away_H29",
       {does({"ZADD", "z", "1", "a", "2", "b"}, number(2)), expires("z"),
        does({"HSET", "h", "f", "v", "g", "w"}, number(2)), expires("h"), memory_full(),
        does({"ZADD", "z", "3", "c"}, error("OOM")), does({"HSET", "h", "k", "v"}, error("OOM")),
        does({"ZREM", "z", "a"}, number(1)), does({"HDEL", "h", "f"}, number(1)), expires("z"), memory_free()}},
  };
}

std::vector<script_case> hash_and_channel_cases() {
  return {
      {"a_greeting_is_answered_as_by_a_primary_of_one_node",
       {does({"HELLO", "2"}, list({text("server"), anything, text("version"), anything, text("proto"), number(2),
                                   text("id"), number(1, 1'000'000), text("mode"), text("standalone"), text("role"),
                                   text("master"), text("modules"), anything})),
        does({"HELLO", "9"}, error("NOPROTO unsupported protocol version")), does({"INFO", "server"}, anything),
        does({"CLUSTER", "MYID"}, error("ERR This instance has cluster support disabled")),
        does({"SELECT", "0"}, status("OK")), does({"SELECT", "x"}, error("ERR")),
        does({"SELECT", "99"}, error("ERR DB index is out of range"))}},
      {"a_script_is_there_once_it_was_loaded_B58",
       {does({"SCRIPT", "EXISTS", "a379996efd4e803cfec8bbc57f0a52b304b12e48", "none"}, list({number(0), number(0)})),
        does({"SCRIPT", "LOAD", "return 4711"}, text("a379996efd4e803cfec8bbc57f0a52b304b12e48")),
        does({"SCRIPT", "EXISTS", "none", "a379996efd4e803cfec8bbc57f0a52b304b12e48"}, list({number(0), number(1)}))}},
      {"a_hash_gives_what_was_set_and_goes_with_its_last_field",
       {does({"HLEN", "h"}, number(0)), does({"HGETALL", "h"}, nothing), does({"HSET", "h", "f", "v"}, number(1)),
        does({"HGETALL", "h"}, list({text("f"), text("v")})), does({"HSET", "h", "f", "v", "g", "w"}, number(1)),
        does({"HLEN", "h"}, number(2)), does({"TYPE", "h"}, status("hash")),
        does({"HSET", "h", "f", "x", "k", "y"}, number(1)), does({"HGET", "h", "f"}, text("x")),
        does({"HGET", "h", "none"}, none()), does({"HEXISTS", "h", "k"}, number(1)),
        does({"HEXISTS", "h", "q"}, number(0)), does({"HDEL", "h", "f", "q"}, number(1)),
        does({"HDEL", "h", "g", "k"}, number(2)), is_absent("h"), does({"HGET", "h", "f"}, none()),
        does({"HDEL", "h", "f"}, number(0)), does({"HEXISTS", "h", "f"}, number(0)),
        does({"HSET", "h", "f"}, error("ERR wrong number"))}},
      {"another_type_is_refused_by_every_hash_command_H71",
       {does({"ZADD", "z", "1", "a"}, number(1)), expires("z"), does({"HSET", "z", "f", "v"}, wrong_type),
        does({"HGET", "z", "f"}, wrong_type), does({"HLEN", "z"}, wrong_type), does({"HGETALL", "z"}, wrong_type),
        does({"HEXISTS", "z", "f"}, wrong_type), does({"HDEL", "z", "f"}, wrong_type), does({"GET", "z"}, wrong_type),
        does({"MGET", "z"}, list({none()}))}},
      {"a_message_counts_those_who_listen_and_reaches_them",
       {does({"PUBLISH", "c", "lost"}, number(0)), does({"PUBSUB", "NUMSUB", "c"}, list({text("c"), number(0)})),
        listen("c"), does({"PUBSUB", "NUMSUB", "c", "d"}, list({text("c"), number(1), text("d"), number(0)})),
        does({"PUBLISH", "c", "heard"}, number(1)), hears(text("heard")), hears(none())}},
      {"a_message_counts_those_who_listen_to_a_pattern_and_NUMSUB_does_not_P1",
       {listen_to_all(), does({"PUBLISH", "c", "heard"}, number(1)),
        does({"PUBSUB", "NUMSUB", "c"}, list({text("c"), number(0)})), does({"SPUBLISH", "c{1}", "lost"}, number(0))}},
      {"a_message_to_a_shard_is_counted_and_heard_apart",
       {does({"SPUBLISH", "c{1}", "lost"}, number(0)), listen("c{1}"),
        does({"PUBSUB", "SHARDNUMSUB", "c{1}", "d"}, list({text("c{1}"), number(1), text("d"), number(0)})),
        does({"PUBSUB", "NUMSUB", "c{1}"}, list({text("c{1}"), number(0)})),
        does({"PUBLISH", "c{1}", "elsewhere"}, number(0)), does({"SPUBLISH", "c{1}", "heard"}, number(1)),
        hears(text("heard")), hears(none())}},
      {"an_expiry_at_an_instant_is_kept_and_one_that_has_passed_removes",
       {send({"SET", "s", "x", "PXAT", "4102444800000"}), left_is("s", 1'000'000, 1LL << 50),
        send({"SET", "s", "x", "PXAT", "1000"}), is_absent("s"),
        does({"SET", "s", "x", "PXAT", "0"}, error("ERR invalid expire"))}},
      {"inside_a_script_nil_is_false_and_an_array_a_table",
       {does({"HSET", "h", "f", "v"}, number(1)), expires("h"),
        does({"EVAL",
              "return {tostring(redis.call('HGET', KEYS[1], 'q')), redis.call('PUBSUB', 'NUMSUB', 'c')[2], "
              "tostring(redis.call('ZSCORE', KEYS[2], 'a')), #redis.call('ZRANGE', KEYS[2], 0, 3)}",
              "2", "h", "z"},
             list({text("false"), number(0), text("false"), number(0)}))}},
  };
}

}  // namespace

std::vector<script_case> data_cases() {
  auto cases = sorted_set_cases();
  for (auto& more : hash_and_channel_cases()) cases.push_back(std::move(more));
  return cases;
}

}  // namespace holdfast::tests
