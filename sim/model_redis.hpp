// SPDX-License-Identifier: Apache-2.0
// A Redis of our own making: a keyspace with expiry under a virtual clock that runs the scripts we ship. It knows only
// the commands that the scripts use and that tests need to set a scene. Anything else is an error that says so, never
// a silent nil. tests/script runs one table of cases through it and through a real server and keeps it true.
#pragma once

#include "lua_host.hpp"
#include "model_words.hpp"

#include "base/time.hpp"
#include "resp/value.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::sim {

class model_redis {
public:
  // `scripts`: where scripts run; shared by worlds that come one after the other, because compiling takes long.
  explicit model_redis(server_time start, std::shared_ptr<lua_host> scripts = std::make_shared<lua_host>())
      : clock_{start}, lua_{std::move(scripts)} {}

  // One command of a client, or one whole script.
  resp::value execute(words_t words);
  resp::value execute(std::initializer_list<std::string> words) { return execute(words_t{words.begin(), words.end()}); }

  server_time now() const { return clock_; }
  void set_now(server_time now) { clock_ = now; }
  // What INFO says of this run of this server; it starts now, and is no replica's successor.
  void start_run(std::string id) {
    run_id_ = std::move(id);
    replication_id_ = std::string(40, 'b');
    second_id_ = std::string(40, '0');
    started_at_ = clock_;
  }
  server_time started_at() const { return started_at_; }
  void set_started_at(server_time at) { started_at_ = at; }
  // Its replication id changes; `second`: to what it was as a replica before (else all zeros: it was none).
  void set_replication(std::string id, std::string second = std::string(40, '0')) {
    replication_id_ = std::move(id);
    second_id_ = std::move(second);
  }

  // A replica takes writes from its primary only (load()), and says that it is one.
  void set_replica(bool is) { is_replica_ = is; }
  bool is_replica() const { return is_replica_; }
  // Counts what was written, or may have been.
  std::uint64_t writes() const { return writes_; }

  // Lets time pass; a negative step is a wall clock that was set back (H5).
  void pass(std::chrono::microseconds time) { clock_ += time; }

  // As with maxmemory reached and noeviction: what may grow the memory is refused (H29).
  void set_memory_full(bool full) { memory_full_ = full; }
  // As with NOREPLICAS or MISCONF: what writes is refused, and what reads is answered (H31).
  void refuse_writes(bool refuses) { lacks_replicas_ = refuses; }
  bool refuses_writes() const { return lacks_replicas_; }

  // As after an ACL change: this command, in capitals, is denied (H35).
  void deny(const std::string& command) { denied_.insert(command); }
  void allow_all() { denied_.clear(); }

  // As with rename-command NAME "", in capitals: there is no such command.
  void rename_away(const std::string& command) { renamed_away_.insert(command); }

  // Exact subscriptions, as PUBSUB NUMSUB and SHARDNUMSUB count them. What is said on a sharded channel stays here.
  enum class reach { everywhere, shard };
  void subscribe(const std::string& channel, reach how = reach::everywhere) { ++subscribers_[how][channel]; }
  void unsubscribe(const std::string& channel, reach how = reach::everywhere) { --subscribers_[how][channel]; }
  // Somebody with a pattern that fits every channel, whom PUBLISH counts and NUMSUB does not. He is not told anything.
  void subscribe_to_all() { ++subscribed_to_all_; }
  void unsubscribe_from_all() { --subscribed_to_all_; }
  bool is_heard(const std::string& channel) const {
    return std::any_of(subscribers_.begin(), subscribers_.end(), [&](const auto& kind) {
      const auto found = kind.second.find(channel);
      return found != kind.second.end() && found->second > 0;
    });
  }
  struct message {
    std::string channel;
    std::string text;
    reach how = reach::everywhere;
  };
  // Of a node of a cluster: does it serve the slot of that channel?
  void set_serves(std::function<bool(const std::string& channel)> serves) { serves_ = std::move(serves); }
  // It is a node of a cluster: who listens may do it at another one.
  void set_bus(bool has) { has_bus_ = has; }
  // And it has this id there.
  void set_node_id(std::string id) { node_id_ = std::move(id); }
  // What was said since the last call on channels that somebody listens to, as far as it knows.
  std::vector<message> take_messages() { return std::exchange(said_, {}); }

  // As if somebody had used every script that we ship before.
  void learn_scripts();
  // The scripts it was told by SCRIPT LOAD or EVAL are forgotten, as after SCRIPT FLUSH or a restart.
  void forget_scripts() { scripts_.clear(); }

  using list = std::vector<std::string>;
  struct sorted_set {
    std::map<std::string, double> scores{};
    std::set<std::pair<double, std::string>> order{};
    bool put(const std::string& member, double score) {
      const bool is_new = !take(member);
      scores[member] = score;
      order.insert({score, member});
      return is_new;
    }
    bool take(const std::string& member) {
      const auto found = scores.find(member);
      if (found == scores.end()) return false;
      order.erase({found->second, member});
      scores.erase(found);
      return true;
    }
  };
  struct hash {
    std::map<std::string, std::string> fields{};
  };
  struct entry {
    std::variant<std::string, list, sorted_set, hash> data;
    std::optional<std::chrono::milliseconds> expires_at{};  // Of the server's clock, as Redis keeps it.
  };
  // What there is, for who checks it or takes it along through a restart. Expired keys may be among them.
  using keyspace = std::map<std::string, entry>;
  const keyspace& all() const { return keyspace_; }
  void load(keyspace what) { keyspace_ = std::move(what); }
  // Those of these keys that there are go there, with what is left of their time (MIGRATE).
  void migrate(const std::vector<std::string>& which, model_redis& to);
  // Null when absent or expired.
  const entry* peek(const std::string& key) const;
  template <class Type>
  const Type* peek_as(const std::string& key) const {
    const auto* found = peek(key);
    return found ? std::get_if<Type>(&found->data) : nullptr;
  }

private:
  struct row;  // One command: its name, arity, flags and function.

  resp::value run(words_t words, bool in_script);
  resp::value eval(words_t words, bool in_script);
  resp::value eval_known(const lua_host::script& what, words_t words);

  resp::value set(words_t words);
  resp::value get(words_t words);
  resp::value mget(words_t words);
  resp::value del(words_t words);
  resp::value exists(words_t words);
  resp::value type(words_t words);
  resp::value pttl(words_t words);
  resp::value pexpire(words_t words);
  resp::value persist(words_t words);
  resp::value time(words_t words);
  resp::value rpush(words_t words);
  resp::value keys(words_t words);
  resp::value flushall(words_t words);
  resp::value ping(words_t words);
  resp::value script(words_t words);
  resp::value hello(words_t words);
  resp::value info(words_t words);
  resp::value cluster(words_t words);
  resp::value select(words_t words);
  resp::value replicaof(words_t words);
  resp::value config(words_t words);

  // model_collections.cpp
  resp::value zadd(words_t words);
  resp::value zrem(words_t words);
  resp::value zscore(words_t words);
  resp::value zrank(words_t words);
  resp::value zcard(words_t words);
  resp::value zrange(words_t words);
  resp::value zrangebyscore(words_t words);
  resp::value hset(words_t words);
  resp::value hget(words_t words);
  resp::value hexists(words_t words);
  resp::value hlen(words_t words);
  resp::value hgetall(words_t words);
  resp::value hdel(words_t words);
  resp::value publish(words_t words);
  resp::value spublish(words_t words);
  resp::value say(words_t words, reach how);
  resp::value pubsub(words_t words);
  // Null when there is none, or another type (`is_wrong`).
  template <class Type>
  Type* collection(const std::string& key, bool& is_wrong);
  template <class Type>
  Type* collection_or_new(const std::string& key, bool& is_wrong);

  std::chrono::milliseconds now_ms() const;
  entry* find(const std::string& key);  // Null when absent or expired; an expired one is removed.

  server_time clock_;
  std::shared_ptr<lua_host> lua_;
  keyspace keyspace_{};
  std::map<std::string, const lua_host::script*> scripts_{};  // By SHA1.
  std::string run_id_ = std::string(40, 'a');
  std::string replication_id_ = std::string(40, 'b');
  std::string second_id_ = std::string(40, '0');
  server_time started_at_ = clock_ - std::chrono::hours{24};
  std::set<std::string> denied_{};
  std::set<std::string> renamed_away_{};
  std::map<reach, std::map<std::string, int>> subscribers_{};
  int subscribed_to_all_ = 0;
  std::function<bool(const std::string& channel)> serves_{};
  std::vector<message> said_{};
  std::uint64_t writes_ = 0;
  bool is_replica_ = false;
  bool has_bus_ = false;
  std::string node_id_{};  // Empty: it is of no cluster.
  bool memory_full_ = false;
  bool lacks_replicas_ = false;  // min-replicas-to-write is not met.
  bool script_wrote_ = false;    // Redis checks memory only before a script's first write.
};

}  // namespace holdfast::sim
