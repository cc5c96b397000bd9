// SPDX-License-Identifier: Apache-2.0
// A Redis of our own making: a keyspace with expiry under a virtual clock that runs the scripts we ship. It knows only
// the commands that the scripts use and that tests need to set a scene. Anything else is an error that says so, never
// a silent nil. tests/script runs one table of cases through it and through a real server and keeps it true.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::sim {

class model_redis {
public:
  explicit model_redis(server_time start) : clock_{start} {}

  // One command of a client, or one whole script.
  resp::value execute(const std::vector<std::string>& words);

  server_time now() const { return clock_; }

  // Lets time pass; a negative step is a wall clock that was set back (H5).
  void pass(std::chrono::microseconds time) { clock_ += time; }

  // As with maxmemory reached and noeviction: what may grow the memory is refused (H29).
  void set_memory_full(bool full) { memory_full_ = full; }

  // As after an ACL change: this command, in capitals, is denied (H35).
  void deny(const std::string& command) { denied_.insert(command); }
  void allow_all() { denied_.clear(); }

  // Exact subscriptions, as PUBSUB NUMSUB counts them.
  void subscribe(const std::string& channel) { ++subscribers_[channel]; }
  void unsubscribe(const std::string& channel) { --subscribers_[channel]; }
  struct message {
    std::string channel;
    std::string text;
  };
  // What was said since the last call on channels that somebody listens to.
  std::vector<message> take_messages() { return std::exchange(said_, {}); }

  // The scripts it was told by SCRIPT LOAD or EVAL are forgotten, as after SCRIPT FLUSH or a restart.
  void forget_scripts() { scripts_.clear(); }

private:
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
  struct row;  // One command: its name, arity, flags and function.

  resp::value run(const std::vector<std::string>& words, bool in_script);
  resp::value eval(const std::vector<std::string>& words, bool in_script);
  resp::value eval_text(const std::string& text, const std::string& sha1, const std::vector<std::string>& words);

  resp::value set(const std::vector<std::string>& words);
  resp::value get(const std::vector<std::string>& words);
  resp::value mget(const std::vector<std::string>& words);
  resp::value del(const std::vector<std::string>& words);
  resp::value exists(const std::vector<std::string>& words);
  resp::value type(const std::vector<std::string>& words);
  resp::value pttl(const std::vector<std::string>& words);
  resp::value pexpire(const std::vector<std::string>& words);
  resp::value persist(const std::vector<std::string>& words);
  resp::value time(const std::vector<std::string>& words);
  resp::value rpush(const std::vector<std::string>& words);
  resp::value keys(const std::vector<std::string>& words);
  resp::value flushall(const std::vector<std::string>& words);
  resp::value ping(const std::vector<std::string>& words);
  resp::value script(const std::vector<std::string>& words);

  // model_collections.cpp
  resp::value zadd(const std::vector<std::string>& words);
  resp::value zrem(const std::vector<std::string>& words);
  resp::value zscore(const std::vector<std::string>& words);
  resp::value zrank(const std::vector<std::string>& words);
  resp::value zcard(const std::vector<std::string>& words);
  resp::value zrange(const std::vector<std::string>& words);
  resp::value zrangebyscore(const std::vector<std::string>& words);
  resp::value hset(const std::vector<std::string>& words);
  resp::value hget(const std::vector<std::string>& words);
  resp::value hexists(const std::vector<std::string>& words);
  resp::value hdel(const std::vector<std::string>& words);
  resp::value publish(const std::vector<std::string>& words);
  resp::value pubsub(const std::vector<std::string>& words);
  // Null when there is none, or another type (`is_wrong`).
  template <class Type>
  Type* collection(const std::string& key, bool& is_wrong);
  template <class Type>
  Type* collection_or_new(const std::string& key, bool& is_wrong);

  std::chrono::milliseconds now_ms() const;
  entry* find(const std::string& key);  // Null when absent or expired; an expired one is removed.

  server_time clock_;
  std::map<std::string, entry> keyspace_{};
  std::map<std::string, std::string> scripts_{};  // By SHA1.
  std::set<std::string> denied_{};
  std::map<std::string, int> subscribers_{};
  std::vector<message> said_{};
  bool memory_full_ = false;
  bool script_wrote_ = false;  // Redis checks memory only before a script's first write.
};

}  // namespace holdfast::sim
